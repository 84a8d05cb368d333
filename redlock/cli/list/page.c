/*
 * page.c - prints the locks as a table, for a terminal that is watched, or as JSON.
 */
#include "redlock/cli/list/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "redlock/base/error.h"
#include "redlock/base/mask.h"
#include "redlock/base/note.h"
#include "redlock/cli/common/cli.h"
#include "redlock/wire/keys.h"

#define QUOTED_MAX (4 * REDLOCK_NAME_MAX + 1)
#define TOKEN_DIGITS_SHOWN 8

/* A table that is watched fits into this, if the terminal does not say how large it is. */
#define COLUMNS_USUAL 80
#define LINES_USUAL 24
#define COLUMNS_MIN 60
#define WIDTH_MIN 8 /* Of a name or a holder. */

/* VOTES, LEFT and WAITING, and the spaces before them. */
#define OTHER_COLUMNS 27
/* The line with the sums, that with the titles, that of what is left out, and the cursor's. */
#define OTHER_LINES 4

/* What there is to print. */
struct view {
    struct page *page;
    struct redlock *rl;
    struct members lists;
    quorum_mask up;
    struct locks_row *rows;
    size_t len;
    size_t held, waiting, fresh; /* Sums. */
    size_t lines;                /* Rows that fit.  All, if it is no terminal. */
    size_t name_width, holder_width;
};

void page_turn(struct page *page)
{
    struct locks oldest = page->before;

    page->before = page->locks;
    page->before_at = page->scanned_at;
    page->locks = oldest;
    locks_clear(&page->locks);
    page->failed = 0;
}

void page_done(struct page *page)
{
    locks_free(&page->locks);
    locks_free(&page->before);
}

static void count(struct view *view)
{
    for (size_t i = 0; i < view->len; i++) {
        const struct locks_row *row = &view->rows[i];
        bool is_holder = row->is_held && row->entry->shape < LOCKS_GUESS;

        view->held += is_holder;
        view->fresh += is_holder && !locks_have(&view->page->before, row->entry);
        if (i == 0 || view->rows[i - 1].waiting != row->waiting ||
            strcmp(view->rows[i - 1].entry->name, row->entry->name) != 0)
            view->waiting += (size_t)row->waiting;
    }
}

/* Without --all, drop guesses, and holders that no majority stores. */
static void drop(struct view *view)
{
    size_t len = 0;

    for (size_t i = 0; i < view->len; i++)
        if (view->page->all || (view->rows[i].entry->shape != LOCKS_GUESS && view->rows[i].is_held))
            view->rows[len++] = view->rows[i];
    view->len = len;
}

/* ---- A table ---- */

static const char *show_name(const struct locks_row *row, char *buf, size_t size)
{
    return error_quote(row->entry->name, row->entry->name_len, buf, size);
}

/* The note, or the first digits of the token. */
static const char *show_holder(const struct locks_row *row, char *buf, size_t size)
{
    const struct locks_entry *entry = row->entry;
    size_t len = strlen(entry->token);
    const char *note = note_find(entry->token, len, &len);
    bool is_revoked = strncmp(entry->token, WIRE_REVOKED, WIRE_REVOKED_LEN) == 0;
    char text[REDLOCK_TOKEN_MAX + 32];

    if (entry->shape >= LOCKS_QUEUE)
        (void)snprintf(text, sizeof text, "- (free)");
    else if (entry->shape == LOCKS_READERS)
        (void)snprintf(text, sizeof text, "%lld reader%s", row->count, row->count == 1 ? "" : "s");
    else if (entry->shape == LOCKS_GUESS)
        (void)snprintf(text, sizeof text, "? %s", entry->token);
    else if (is_revoked) /* The text says by whom. */
        (void)snprintf(text, sizeof text, "%s", entry->token);
    else if (note != NULL && len > 0)
        (void)snprintf(text, sizeof text, "%.*s", (int)len, note);
    else
        (void)snprintf(text, sizeof text, "%.*s...", TOKEN_DIGITS_SHOWN, entry->token);
    if (entry->shape == LOCKS_PERMIT)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), " (permit %u)",
                       entry->number);
    return error_quote(text, strlen(text), buf, size);
}

static size_t longer(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* As wide as the longest text.  On a terminal that is watched: as wide as fits. */
static void measure(struct view *view)
{
    char text[QUOTED_MAX];
    struct winsize size = {.ws_col = 0};
    size_t columns = COLUMNS_USUAL, lines = LINES_USUAL;

    view->lines = view->len;
    view->name_width = view->holder_width = WIDTH_MIN;
    for (size_t i = 0; i < view->len; i++) {
        const struct locks_row *row = &view->rows[i];

        view->name_width = longer(view->name_width, strlen(show_name(row, text, sizeof text)));
        view->holder_width =
            longer(view->holder_width, strlen(show_holder(row, text, sizeof text)));
    }
    if (!view->page->watch || !isatty(STDOUT_FILENO))
        return;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        columns = longer(size.ws_col, COLUMNS_MIN);
        lines = longer(size.ws_row, OTHER_LINES + 1);
    }
    if (view->len > lines - OTHER_LINES)
        view->lines = lines - OTHER_LINES;
    columns -= OTHER_COLUMNS + 2;
    if (view->name_width + view->holder_width > columns) {
        view->holder_width = view->holder_width < columns / 2 ? view->holder_width : columns / 2;
        if (view->name_width > columns - view->holder_width)
            view->name_width = columns - view->holder_width;
        else
            view->holder_width = columns - view->name_width;
    }
}

static void print_row(const struct view *view, const struct locks_row *row)
{
    char name[QUOTED_MAX], holder[QUOTED_MAX], votes[16], waiting[24] = "";

    (void)snprintf(votes, sizeof votes, "%u/%u", row->votes, mask_count(members_all(&view->lists)));
    if (row->waiting > 0)
        (void)snprintf(waiting, sizeof waiting, "%lld", row->waiting);
    else if (row->is_waited)
        (void)snprintf(waiting, sizeof waiting, "yes");
    (void)printf("%-*s  %-*s  %5s  ", (int)view->name_width,
                 show_name(row, name, view->name_width + 1), (int)view->holder_width,
                 show_holder(row, holder, view->holder_width + 1), votes);
    if (row->entry->shape < LOCKS_QUEUE)
        (void)printf("%7.1f s", (double)row->ttl_ms / 1e3);
    else
        (void)printf("%9s", "");
    (void)printf("  %7s\n", waiting);
}

/* A majority may vote, and was scanned. */
static bool is_known(const struct view *view)
{
    return members_decide(&view->lists, view->up & (quorum_mask)~view->page->failed);
}

static void print_sums(const struct view *view)
{
    const struct page *page = view->page;
    double seconds = (double)(page->scanned_at - page->before_at) / 1e9;
    unsigned members = mask_count(members_all(&view->lists));

    if (is_known(view))
        (void)printf("%zu lock%s held, %zu waiting", view->held, view->held == 1 ? "" : "s",
                     view->waiting);
    else
        (void)printf("it is not known which locks are held");
    if (page->watch && page->before_at != 0 && seconds > 0)
        (void)printf(", %.1f new/s", (double)view->fresh / seconds);
    (void)printf("; %u of %u masters up%s\n", mask_count(view->up & members_all(&view->lists)),
                 members, members_decide(&view->lists, view->up) ? "" : ": NO MAJORITY");
}

/* Write why a master that was scanned may not vote.  "": it may. */
static void write_why(const struct view *view, unsigned m, char why[INSPECT_TEXT_MAX])
{
    bool is_told = view->page->errors[m][0] != '\0' || (view->up & mask_of(m)) != 0;

    (void)snprintf(why, INSPECT_TEXT_MAX, "%s", is_told ? "" : inspect_master(view->rl, m).error);
}

static void print_errors(const struct view *view)
{
    char quoted[QUOTED_MAX];

    for (unsigned m = 0; m < view->page->masters; m++) {
        const struct inspect_master master = inspect_master(view->rl, m);
        char why[INSPECT_TEXT_MAX];

        write_why(view, m, why);
        if (why[0] != '\0')
            cli_say_reason(MSG_NONE, why, "master %u (%s) may not vote: %s", m + 1, master.name,
                           error_quote(why, strlen(why), quoted, sizeof quoted));
        if (view->page->errors[m][0] != '\0')
            cli_say_reason(MSG_NOT_SCANNED, view->page->errors[m],
                           "master %u (%s) is not scanned: %s%s", m + 1, master.name,
                           error_quote(view->page->errors[m], strlen(view->page->errors[m]), quoted,
                                       sizeof quoted),
                           message_of_reason(view->page->errors[m]) == MSG_NO_RIGHT
                               ? "; this user needs +scan +strlen"
                               : "");
    }
}

static void print_table(struct view *view)
{
    bool is_terminal = view->page->watch && isatty(STDOUT_FILENO);

    measure(view);
    if (is_terminal)
        (void)printf("\033[H\033[2J");
    print_sums(view);
    if (view->len > 0)
        (void)printf("%-*s  %-*s  %5s  %9s  %7s\n", (int)view->name_width, "NAME",
                     (int)view->holder_width, "HOLDER", "VOTES", "LEFT", "WAITING");
    for (size_t i = 0; i < view->lines; i++)
        print_row(view, &view->rows[i]);
    if (view->lines < view->len)
        (void)printf("... and %zu more: choose by a PATTERN\n", view->len - view->lines);
    if (view->page->watch && !is_terminal)
        (void)printf("\n");
    if (!is_terminal)
        print_errors(view);
}

/* ---- JSON ---- */

static void print_json_row(const struct locks_row *row)
{
    static const char *const kinds[] = {"lock", "readers", "permit", "guess", "free", "free"};
    const struct locks_entry *entry = row->entry;

    (void)printf("{\"kind\":\"%s\"", kinds[entry->shape]);
    cli_json_member("resource", entry->name);
    cli_json_holder(entry->token[0] != '\0' ? entry->token : NULL, strlen(entry->token));
    if (entry->shape == LOCKS_PERMIT)
        (void)printf(",\"permit\":%u", entry->number);
    if (entry->shape == LOCKS_READERS)
        (void)printf(",\"readers\":%lld", row->count);
    if (entry->shape < LOCKS_QUEUE)
        (void)printf(",\"agreeing\":%u,\"held\":%s,\"ttl_ms\":%lld", row->votes,
                     row->is_held ? "true" : "false", row->ttl_ms);
    (void)printf(",\"waiting\":%lld,\"waited_for\":%s}", row->waiting,
                 row->is_waited ? "true" : "false");
}

static void print_json(const struct view *view)
{
    char why[INSPECT_TEXT_MAX];

    (void)printf("{\"locks\":[");
    for (size_t i = 0; i < view->len; i++) {
        (void)printf("%s", i > 0 ? "," : "");
        print_json_row(&view->rows[i]);
    }
    (void)printf("],\"masters\":[");
    for (unsigned m = 0; m < view->page->masters; m++) {
        (void)printf("%s{\"number\":%u", m > 0 ? "," : "", m + 1);
        cli_json_member("endpoint", inspect_master(view->rl, m).name);
        (void)printf(",\"up\":%s", (view->up & mask_of(m)) != 0 ? "true" : "false");
        write_why(view, m, why);
        cli_json_error(why[0] != '\0' ? why : view->page->errors[m]);
        (void)printf("}");
    }
    (void)printf("],\"majority\":%s}\n", is_known(view) ? "true" : "false");
}

/* Masters that may vote, as far as each of them says.  Those that are all new and durable may vote
 * at once.  A client counts none before it knows a majority. */
static quorum_mask find_up(struct redlock *rl, const struct inspect_client *client)
{
    quorum_mask up = client->up | client->coming;

    for (unsigned m = 0; m < client->masters; m++)
        if ((client->linked & mask_of(m)) != 0 && inspect_master(rl, m).look.ready)
            up |= mask_of(m);
    return up;
}

int page_print(struct page *page, struct redlock *rl)
{
    const struct inspect_client client = inspect_client(rl);
    struct view view = {.page = page, .rl = rl, .lists = client.lists, .up = find_up(rl, &client)};
    int code;

    page->scanned_at = client.now;
    view.len = locks_agree(&page->locks, &view.lists, view.up, page->pattern, &view.rows);
    if (view.rows == NULL) {
        cli_say(MSG_NO_MEMORY, "out of memory");
        return CLI_INTERNAL;
    }
    drop(&view);
    count(&view);
    if (page->json)
        print_json(&view);
    else
        print_table(&view);
    free(view.rows);
    code = cli_flush_output();
    if (code != CLI_OK)
        return code;
    if (redlock_ready(rl, NULL) == REDLOCK_E_WRONG_SET) {
        cli_say(MSG_WRONG_SET, "%s", redlock_errmsg(rl));
        return CLI_CHANGE;
    }
    return is_known(&view) ? CLI_OK : CLI_UNREACHABLE;
}
