/*
 * screen.c - writes lines, and draws pages on a terminal.
 *
 * A page is drawn from the upper left corner on, each line with what is to its right erased, and
 * then all below.  So nothing vanishes that is drawn again.  It leaves no state in the terminal: it
 * hides no cursor, changes no modes, and ends each colour on its line.  Sequences: ECMA-48.
 */
#include "redlock/cli/list/screen.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "redlock/base/text.h"
#include "redlock/cli/common/cli.h"

#define HOME "\033[H"
#define ERASE_RIGHT "\033[K"
#define ERASE_BELOW "\033[J"
#define NO_COLOUR "\033[m"

/* Of a terminal that does not say how large it is. */
#define COLUMNS_USUAL 80
#define LINES_USUAL 24

#define LINE_LEN_MAX 8192 /* A quoted name and a quoted holder need less than half of it. */

/* A page is written at once.  Chosen: that of a terminal with 200 x 60 characters is a fifth. */
static char output[65536];

static bool has_value(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && value[0] != '\0';
}

static void measure(struct screen *screen)
{
    struct winsize size = {.ws_col = 0};

    screen->columns = COLUMNS_USUAL;
    screen->lines = LINES_USUAL - 1;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        screen->columns = size.ws_col;
        screen->lines = size.ws_row - 1u;
    }
}

/* A signal may end or stop the process within a page.  Then no colour may stay. */
static void on_end(int number)
{
    int saved = errno;

    if (cli_takes_output())
        (void)!write(STDOUT_FILENO, NO_COLOUR, strlen(NO_COLOUR));
    (void)raise(number); /* SA_RESETHAND: it does what it does without us. */
    errno = saved;
}

/* This is done for each page, because a process that was stopped goes on. */
static void guard_colours(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
    const struct sigaction ours = {.sa_handler = on_end, .sa_flags = SA_RESETHAND | SA_RESTART};
    struct sigaction old;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &ours, NULL);
}

/* What was on the terminal is moved out of its way, up. */
static void open_page(struct screen *screen)
{
    const char *term = getenv("TERM");

    screen->is_page = isatty(STDOUT_FILENO) != 0 && has_value("TERM") && strcmp(term, "dumb") != 0;
    if (!screen->is_page)
        return;
    screen->has_colours = !has_value("NO_COLOR"); /* https://no-color.org */
    (void)setvbuf(stdout, output, _IOFBF, sizeof output);
    measure(screen);
    for (size_t i = 0; i <= screen->lines; i++)
        (void)putchar('\n');
}

void screen_begin(struct screen *screen, bool is_watched)
{
    if (is_watched && !screen->is_page)
        open_page(screen);
    screen->used = 0;
    if (!screen->is_page)
        return;
    measure(screen);
    if (screen->has_colours)
        guard_colours();
    (void)fputs(HOME, stdout);
}

static void put(struct screen *screen, enum screen_colour colour, const char *text, size_t len)
{
    static const char *const colours[] = {"", "\033[33m", "\033[31m"};
    bool is_coloured = screen->has_colours && colour != SCREEN_PLAIN;

    if (screen->is_page && screen->used == screen->lines)
        return;
    screen->used++;
    (void)printf("%s%.*s%s%s\n", is_coloured ? colours[colour] : "", (int)len, text,
                 is_coloured ? NO_COLOUR : "",
                 /* Behind the last column it might erase that one. */
                 screen->is_page && text_columns(text, len) < screen->columns ? ERASE_RIGHT : "");
}

/* Returns how many bytes at text go into a line of a page.  It ends at a blank, if there is one. */
static size_t fit(const struct screen *screen, const char *text)
{
    const size_t fits = text_fit(text, screen->columns);
    size_t len = fits;

    if (!screen->is_page || text[fits] == '\0')
        return strlen(text);
    while (len > 0 && text[len] != ' ')
        len--;
    return len > 0 ? len : fits;
}

void screen_line(struct screen *screen, enum screen_colour colour, const char *format, ...)
{
    char text[LINE_LEN_MAX];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_clean(text);
    for (size_t len = strlen(text); len > 0 && text[len - 1] == ' '; len--)
        text[len - 1] = '\0';
    for (const char *at = text; *at != '\0'; at += strspn(at, " ")) {
        size_t len = fit(screen, at);

        put(screen, colour, at, len);
        at += len;
    }
}

void screen_end(struct screen *screen)
{
    if (screen->is_page)
        (void)fputs(ERASE_BELOW, stdout);
}
