/*
 * main.c - finds the subcommand, and runs it.
 */
#include "redlock/cli/common/cli.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sodium.h>

#include "redlock/base/text.h"
#include "redlock/cli/common/session.h"
#include "redlock/cli/pages.h"

static const struct cli_command *const commands[] = {
    &cli_acl,  &cli_bench,   &cli_doctor, &cli_extend, &cli_init,  &cli_list,
    &cli_lock, &cli_members, &cli_run,    &cli_status, &cli_unlock};

/* A program may be started without these descriptors.  The next socket could then be standard
 * error.  Standard output is opened for reading, so that a result that is lost is an error.  The
 * command of `run` does not get them. */
static void open_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && /* fd is the lowest free one. */
            open("/dev/null", (fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) | O_CLOEXEC) < 0)
            return;
}

/* The deepest calls, of `members`, take 140 KiB (gcc -fstack-usage), and threads have stacks of
 * this size, too.  Chosen: what is left is for the environment, and for the C library. */
#define STACK_MIN (UINT64_C(256) * 1024)

/* A smaller stack ends in a crash, perhaps with a lock held.  The limit is not raised, because the
 * command of `run` inherits it. */
static void need_stack(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_MIN)
        return;
    cli_say(MSG_SYSTEM, "the stack may have %llu KiB, and redlock needs %llu: ulimit -s %llu",
            (unsigned long long)limit.rlim_cur / 1024, (unsigned long long)STACK_MIN / 1024,
            (unsigned long long)STACK_MIN / 1024);
    exit(CLI_INTERNAL);
}

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void need_command(struct cli *cli, const char *name)
{
    char shown[CLI_NAMES_SHOWN_MAX];

    cli->command = find_command(name);
    if (cli->command == NULL)
        cli_usage_error(cli, "no such command: %s", cli_show_argument(name, shown));
}

/* Take the next identifier of a text, which may have the brackets and commas of a message.  Returns
 * its entry.  NULL: there is none; then id is "" at the end of the text. */
static const char *take_entry(const char **at, char *id, size_t size)
{
    static const char between[] = " ,[]`'\"";
    size_t len = 0;

    *at += strspn(*at, between);
    for (; **at != '\0' && strchr(between, **at) == NULL; (*at)++)
        if (len + 1 < size)
            id[len++] = **at == '_' ? '-' : text_lower(**at);
    id[len] = '\0';
    return pages_find(id);
}

/* `redlock help IDENTIFIER...`.  All of them are checked before the first is printed. */
static void help_on_messages(struct cli *cli, int argc, char **argv)
{
    char shown[CLI_NAMES_SHOWN_MAX], id[64];
    const char *entry, *at, *before = "";

    for (int i = optind + 1; i < argc; i++) {
        at = argv[i];
        do
            entry = take_entry(&at, id, sizeof id);
        while (entry != NULL && at[strspn(at, "] ,")] != '\0');
        if (entry == NULL)
            cli_usage_error(cli, "no such command or identifier: %s",
                            cli_show_argument(argv[i], shown));
    }
    for (int i = optind + 1; i < argc; i++) {
        at = argv[i];
        while ((entry = take_entry(&at, id, sizeof id)) != NULL) {
            (void)printf("%s%s\n\n%s", before, id, entry);
            before = "\n";
        }
    }
    exit(cli_flush_output());
}

/* `redlock help options`: for the completion of shells. */
static void print_options(void)
{
    options_print_words("-", 0);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        options_print_words(commands[i]->name, commands[i]->options);
}

/* `redlock help [COMMAND | combine | options | IDENTIFIER...]`; argv[optind] is "help". */
static void help(struct cli *cli, int argc, char **argv)
{
    const char *word = argc - optind > 1 ? argv[optind + 1] : "help";
    bool is_table = strcmp(word, "combine") == 0 || strcmp(word, "options") == 0;
    bool is_own = strcmp(word, "help") == 0 || is_table || word[0] == '-';

    cli->command = find_command(word);
    if (!is_own && cli->command == NULL)
        help_on_messages(cli, argc, argv);
    if (argc - optind > 2)
        cli_usage_error(cli,
                        "too many arguments; needed: help [COMMAND | combine | IDENTIFIER...]");
    if (!is_table)
        cli_print_help(cli);
    if (strcmp(word, "combine") == 0)
        cli_print_combinations();
    else
        print_options();
    exit(cli_flush_output());
}

/*
 * Die of the signal that ended the command.  A shell sees the same status, 128 + n, but ends a
 * script at ^C only if it got SIGINT itself, and the program died of it.  Service managers treat
 * a program that died of SIGTERM as one that was stopped.  There is nothing to debug, so no core is
 * dumped.  Returns if the kernel spares us: we are the first process of a PID namespace.
 */
static void die_of(int number, bool all)
{
    (void)fflush(NULL);
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)signal(number, SIG_DFL);
    (void)kill(all ? 0 : getpid(), number);
    session_unblock(number); /* The signal is delivered here, if it was blocked. */
}

/* libsodium would abort. */
static void end_without_random(void)
{
    cli_say(MSG_SYSTEM, "no random numbers can be drawn (getrandom); a lock that is held runs out "
                        "by itself");
    exit(CLI_INTERNAL);
}

int main(int argc, char **argv)
{
    struct redlock_options defaults;
    struct cli cli = {.command = NULL};
    int first, code;

    (void)setlocale(LC_CTYPE, ""); /* For names (base/text.h).  Numbers are those of C. */
    open_standard_descriptors();
    need_stack();
    (void)sodium_set_misuse_handler(end_without_random);
    redlock_options_init(&defaults);
    cli.connect_timeout_ms = defaults.connect_timeout_ms;
    cli.reply_timeout_ms = defaults.reply_timeout_ms;
    cli.max_ttl_ms = defaults.max_ttl_ms;

    (void)cli_getopt(&cli, argc, argv, true);
    if (optind >= argc)
        cli_miss_command();
    if (strcmp(argv[optind], "help") == 0)
        help(&cli, argc, argv);
    need_command(&cli, argv[optind]);
    first = optind;
    optind = 0; /* In glibc: begin again with another argv. */
    code = cli.command->run(&cli, argc - first, argv + first);
    cli_forget_masters(&cli); /* `acl` leaves it. */
    cli_tell_dropped();
    if (cli.signal != 0 && code == CLI_SIGNAL + cli.signal)
        die_of(cli.signal, cli.signals_group);
    return code;
}
