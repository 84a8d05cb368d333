/*
 * options.c - the table of options, and what is made from it.
 *
 * The rows of a command stand in the order in which --help shows them.  An option that means the
 * same in several commands is one row.
 */
#include "redlock/cli/common/options.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define HELP_COLUMN 25 /* Where --help begins to explain. */

struct row {
    unsigned commands;
    enum option_value option;
    const char *name, *argument; /* NULL: it takes none. */
    const char *words;           /* What a shell offers for the argument, or NULL. */
    const char *help;            /* NULL: the help of the next row is for both. */
};

static const struct row rows[] = {
    /* Of all commands. */
    {OPTIONS_ALL, OPTION_MASTERS, "--masters", "LIST", NULL,
     "the masters: URIs, separated by commas or white space;\n"
     "default: REDLOCK_MASTERS in the environment"},
    {OPTIONS_ALL, OPTION_MASTERS_FILE, "--masters-file", "FILE", "FILE",
     "read the list from a file (also: --masters @FILE)"},
    {OPTIONS_ALL, OPTION_CONNECT_TIMEOUT, "--connect-timeout", "DUR", NULL,
     "how long to wait for a connection (1s)"},
    {OPTIONS_ALL, OPTION_REPLY_TIMEOUT, "--reply-timeout", "DUR", NULL,
     "how long to wait for the answers of one round (50ms)"},
    {OPTIONS_ALL, OPTION_MAX_TTL, "--max-ttl", "DUR", "5s 10s 30s 60s",
     "the longest --ttl of any client; the same for all (60s)"},
    {OPTIONS_ALL, OPTION_RESTART_GUARD, "--restart-guard", "on|off", "on off",
     "reject the votes of masters that lost their data, until\n"
     "all older leases are over; default: REDLOCK_RESTART_GUARD\n"
     "in the environment, or on"},
    {OPTIONS_ALL, OPTION_CLOCK_GUARD, "--clock-guard", "MODE", "off periodic per_vote",
     "reject the votes of masters whose clock was stepped: off,\n"
     "periodic, or per_vote (if one client uses it, all must);\n"
     "default: REDLOCK_CLOCK_GUARD in the environment, or\n"
     "periodic"},
    {OPTIONS_ALL & ~OPTIONS_RUN, OPTION_JSON, "--json", NULL, NULL,
     "print data as JSON (not of run)"},
    {OPTIONS_ALL, OPTION_TLS_CA, "--tls-ca", "FILE|DIR", "FILE",
     "the CAs of masters with rediss:// (those of the system)"},
    {OPTIONS_ALL, OPTION_TLS_CERT, "--tls-cert", "FILE", "FILE", NULL},
    {OPTIONS_ALL, OPTION_TLS_KEY, "--tls-key", "FILE", "FILE", "our own certificate and its key"},
    {OPTIONS_ALL, OPTION_TLS_SERVER_NAME, "--tls-server-name", "NAME", NULL,
     "the name in the certificates (the host of each URI)"},
    {OPTIONS_ALL, OPTION_TLS_VERIFY, "--tls-verify", "full|none", "full none",
     "none: accept any certificate, which protects nothing (full);\n"
     "the defaults of these five: REDLOCK_TLS_CA and so on"},
    {OPTIONS_ALL, OPTION_VERBOSE, "--verbose", NULL, NULL,
     "report connections that come up and go down"},
    {OPTIONS_ALL, OPTION_HELP, "--help", NULL, NULL, ""},
    {OPTIONS_ALL, OPTION_VERSION, "--version", NULL, NULL, ""},

    /* Of run and lock.  The others that take one of these say less, or something else, of it. */
    {OPTIONS_RUN | OPTIONS_LOCK, OPTION_FAIR, "--fair", NULL, NULL,
     "wait in a queue: --fair waiters are served in order"},
    {OPTIONS_RUN, OPTION_FENCE, "--fence", NULL, NULL,
     "draw a fencing token, which CMD finds in REDLOCK_FENCE"},
    {OPTIONS_LOCK, OPTION_FENCE, "--fence", NULL, NULL,
     "draw a fencing token, and print it after the token"},
    {OPTIONS_RUN, OPTION_HOLD_AT_LEAST, "--hold-at-least", "DUR", "1m 10m 1h",
     "if CMD succeeds, keep the lock until DUR after it was\n"
     "acquired: for short jobs of hosts whose clocks differ.\n"
     "It must be longer than --wait, or a host that waits\n"
     "runs CMD again"},
    {OPTIONS_RUN, OPTION_HOLD_AT_MOST, "--hold-at-most", "DUR", "1m 10m 1h",
     "end CMD at DUR after the lock was acquired: SIGTERM, then\n"
     "SIGKILL"},
    {OPTIONS_RUN, OPTION_NOTE, "--note", "TEXT", NULL,
     "who holds it, for `redlock status` (HOST/PID; \"\": none)"},
    {OPTIONS_LOCK, OPTION_NOTE, "--note", "TEXT", NULL,
     "who holds it, for `redlock status` (HOST/PID of the caller;\n"
     "\"\": none); printed behind the token, so without spaces"},
    {OPTIONS_RUN, OPTION_PERMITS, "--permits", "K", NULL,
     "hold one of K permits of NAME, which K clients may hold;\n"
     "CMD finds its number, from 1, in REDLOCK_PERMIT"},
    {OPTIONS_LOCK, OPTION_PERMITS, "--permits", "K", NULL,
     "take one of K permits of NAME, which K clients may hold"},
    {OPTIONS_RUN | OPTIONS_LOCK, OPTION_SHARED, "--shared", NULL, NULL,
     "hold the lock as a reader, together with other readers"},
    {OPTIONS_RUN, OPTION_TTL, "--ttl", "DUR", "5s 10s 30s 60s",
     "how long the lock outlives a crash (10s)"},
    {OPTIONS_LOCK, OPTION_TTL, "--ttl", "DUR", "5s 10s 30s 60s", "how long the lock lasts (10s)"},
    {OPTIONS_RUN | OPTIONS_LOCK, OPTION_WAIT, "--wait", "DUR|forever", "0 10s 1m forever",
     "how long to keep trying (0: try once)"},

    /* Of extend and unlock. */
    {OPTIONS_EXTEND | OPTIONS_UNLOCK, OPTION_PERMITS, "--permits", "K", NULL, NULL},
    {OPTIONS_EXTEND | OPTIONS_UNLOCK, OPTION_SHARED, "--shared", NULL, NULL,
     "as they were with `redlock lock`"},
    {OPTIONS_EXTEND, OPTION_TTL, "--ttl", "DUR", "5s 10s 30s 60s",
     "how long the lock lasts from now on (10s)"},
    {OPTIONS_UNLOCK, OPTION_FORCE, "--force", NULL, NULL,
     "take the lock from its holder, after a question"},
    {OPTIONS_UNLOCK, OPTION_REASON, "--reason", "TEXT", NULL,
     "for the log of the holder, up to 80 bytes"},
    {OPTIONS_UNLOCK, OPTION_PERMIT, "--permit", "N", NULL,
     "permit number N of a semaphore, as `redlock status` shows it"},
    {OPTIONS_UNLOCK, OPTION_NOW, "--now", NULL, NULL,
     "delete the lock at once: two may work until the holder has\n"
     "ended, or its time is over"},
    {OPTIONS_UNLOCK, OPTION_YES, "--yes", NULL, NULL, "do not ask"},

    /* Of status and list. */
    {OPTIONS_STATUS, OPTION_CLOCKS, "--clocks", NULL, NULL,
     "also watch the clocks for two seconds, and print how much\n"
     "faster they run than the clock of this machine"},
    {OPTIONS_STATUS, OPTION_PROMETHEUS, "--prometheus", NULL, NULL, "print it as OpenMetrics text"},
    {OPTIONS_LIST, OPTION_LIST_ALL, "--all", NULL, NULL,
     "also show locks that less than a majority stores, and keys\n"
     "that may be locks of other programs, with a question mark"},
    {OPTIONS_LIST, OPTION_WATCH, "--watch", NULL, NULL,
     "print it anew each second, until ^C, with the locks that were\n"
     "taken and released per second; no colours with NO_COLOR"},

    /* Of acl and doctor. */
    {OPTIONS_ACL, OPTION_USER, "--user", "NAME", NULL, "the user (redlock)"},
    {OPTIONS_ACL, OPTION_NAMES, "--names", "PATTERN", NULL,
     "the names of the locks, a pattern as in Redis (*: all\n"
     "names, and all other keys); doctor takes none with [.\n"
     "Give it again for each further pattern"},
    {OPTIONS_ACL | OPTIONS_DOCTOR, OPTION_FAIR, "--fair", NULL, NULL, NULL},
    {OPTIONS_ACL | OPTIONS_DOCTOR, OPTION_FENCE, "--fence", NULL, NULL, NULL},
    {OPTIONS_ACL | OPTIONS_DOCTOR, OPTION_PERMITS, "--permits", NULL, NULL, NULL},
    {OPTIONS_ACL, OPTION_SHARED, "--shared", NULL, NULL,
     "also allow what locks with these options need"},
    {OPTIONS_DOCTOR, OPTION_SHARED, "--shared", NULL, NULL,
     "also check what locks with these options need"},
    {OPTIONS_DOCTOR, OPTION_NAMES, "--names", "PATTERN", NULL,
     "check names that match PATTERN, as in `redlock acl`"},

    /* Of init and members. */
    {OPTIONS_INIT, OPTION_NEW, "--new", NULL, NULL,
     "let new masters vote at once, before the very first lock;\n"
     "all must answer, and none may have voted before.  Never\n"
     "use it while a lock may be held"},
    {OPTIONS_MEMBERS, OPTION_DRY_RUN, "--dry-run", NULL, NULL,
     "say what would be done, and what would be refused"},
    {OPTIONS_MEMBERS, OPTION_EVEN, "--even", NULL, NULL, "allow an even number of members"},
    {OPTIONS_MEMBERS, OPTION_LOST, "--i-know-what-is-lost", "NAME,...", NULL,
     "rescue: the members that are gone for good; -: none, but\n"
     "so many have lost their data that nobody remembers"},

    /* Of bench. */
    {OPTIONS_BENCH, OPTION_CYCLES, "--cycles", "N", NULL, "lock and unlock N times in all (20000)"},
    {OPTIONS_BENCH, OPTION_FENCE, "--fence", NULL, NULL, "draw a fencing token with each lock"},
    {OPTIONS_BENCH, OPTION_MODE, "--mode", "loop|blocking", "loop blocking",
     "use the asynchronous calls, or the blocking ones (loop)"},
    {OPTIONS_BENCH, OPTION_NOTE, "--note", "TEXT", NULL,
     "store TEXT beside each lock; empty: nothing (HOST/PID)"},
    {OPTIONS_BENCH, OPTION_PERMITS, "--permits", "K", NULL,
     "take permits of semaphores of K permits each, 1 to 256"},
    {OPTIONS_BENCH, OPTION_REENTRANT, "--reentrant", NULL, NULL,
     "take locks that their owner could take again"},
    {OPTIONS_BENCH, OPTION_RESOURCES, "--resources", "N", NULL,
     "take N names in each lease, 1 to 16"},
    {OPTIONS_BENCH, OPTION_SHARED, "--shared", NULL, NULL, "take each lock as a reader"},
    {OPTIONS_BENCH, OPTION_IN_FLIGHT, "--in-flight", "K", NULL,
     "K locks at the same time, with --mode loop (1)"},
    {OPTIONS_BENCH, OPTION_THREADS, "--threads", "T", NULL,
     "T threads at the same time, with --mode blocking (1)"},
    {OPTIONS_BENCH, OPTION_CONTEND, "--contend", "N", NULL,
     "instead, N clients take turns with one lock, 1000 times in\n"
     "all or as --cycles says"},
    {OPTIONS_BENCH, OPTION_FAIR, "--fair", NULL, NULL, "wait in a queue, served in order"},
    {OPTIONS_BENCH, OPTION_HOLD_MS, "--hold-ms", "MS", NULL,
     "with --contend: hold the lock for MS milliseconds (5)"},
};
#define ROWS_LEN (sizeof rows / sizeof *rows)

static bool is_of_all(const struct row *row)
{
    return row->option < OPTION_OF_SOME;
}

/* All commands take --json, and run refuses it with the reason. */
static bool is_of(const struct row *row, unsigned command)
{
    return is_of_all(row) || (row->commands & command) != 0;
}

void options_rows(unsigned command, struct option ret_rows[OPTIONS_ROWS_MAX])
{
    size_t len = 0;

    memset(ret_rows, 0, OPTIONS_ROWS_MAX * sizeof *ret_rows);
    for (const struct row *row = rows; row < rows + ROWS_LEN; row++) {
        if (!is_of(row, command))
            continue;
        assert(len + 1 < OPTIONS_ROWS_MAX);
        ret_rows[len++] = (struct option){row->name + strlen("--"),
                                          row->argument != NULL ? required_argument : no_argument,
                                          NULL, row->option};
    }
}

static const struct row *row_of(enum option_value option)
{
    const struct row *row = rows;

    while (row->option != option)
        row++;
    return row;
}

const char *options_name(enum option_value option)
{
    return row_of(option)->name;
}

bool options_take(unsigned command, enum option_value option)
{
    return (row_of(option)->commands & command) != 0;
}

const char *options_find(const char *text, size_t len)
{
    for (const struct row *row = rows; row < rows + ROWS_LEN; row++)
        if (strlen(row->name) == len && strncmp(row->name, text, len) == 0)
            return row->name;
    return NULL;
}

/* One line of --help has both, with their letters. */
static bool is_short(const struct row *row)
{
    return row->option == OPTION_HELP || row->option == OPTION_VERSION;
}

/* Print the help of a row, whose first line has `used` columns already. */
static void print_help_of(const struct row *row, int used)
{
    const char *line = row->help;
    size_t len;

    if (used >= HELP_COLUMN) {
        (void)printf("\n");
        used = 0;
    }
    for (; *line != '\0'; line += len + (line[len] == '\n')) {
        len = strcspn(line, "\n");
        (void)printf("%*s%.*s\n", HELP_COLUMN - used, "", (int)len, line);
        used = 0;
    }
}

void options_print_help(unsigned command)
{
    int used = 0;

    for (const struct row *row = rows; row < rows + ROWS_LEN; row++) {
        if (is_of_all(row) != (command == 0) || !is_of(row, command) || is_short(row))
            continue;
        used +=
            printf("%s%s%s%s", used == 0 ? "  " : ", ", row->name, row->argument != NULL ? " " : "",
                   row->argument != NULL ? row->argument : "");
        if (row->help == NULL)
            continue;
        print_help_of(row, used);
        used = 0;
    }
    if (command == 0)
        (void)printf("  -h, --help; -V, --version\n");
}

void options_print_words(const char *name, unsigned command)
{
    for (const struct row *row = rows; row < rows + ROWS_LEN; row++)
        if (command == 0 ? is_of_all(row) : (row->commands & command) != 0)
            (void)printf("%s %s %s %s\n", name, row->name,
                         row->argument != NULL ? row->argument : "-",
                         row->words != NULL ? row->words : "");
}
