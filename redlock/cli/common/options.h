/*
 * options.h - the options of the command, in one table.
 *
 * From it come what getopt takes, the options in --help, the completion of shells (`redlock help
 * options`), and the advice to give an option after the command.  test/tree/test-options compares
 * the pages of the manual, and the lines of usage.
 */
#ifndef REDLOCK_CLI_OPTIONS_H
#define REDLOCK_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include <getopt.h>

/* The commands of a row. */
enum {
    OPTIONS_ACL = 1 << 0,
    OPTIONS_BENCH = 1 << 1,
    OPTIONS_DOCTOR = 1 << 2,
    OPTIONS_EXTEND = 1 << 3,
    OPTIONS_INIT = 1 << 4,
    OPTIONS_LIST = 1 << 5,
    OPTIONS_LOCK = 1 << 6,
    OPTIONS_MEMBERS = 1 << 7,
    OPTIONS_RUN = 1 << 8,
    OPTIONS_STATUS = 1 << 9,
    OPTIONS_UNLOCK = 1 << 10,
    OPTIONS_ALL = (1 << 11) - 1
};

/* What getopt returns.  Those before OPTION_OF_SOME are options of all commands. */
enum option_value {
    OPTION_CLOCK_GUARD = 256,
    OPTION_CONNECT_TIMEOUT,
    OPTION_HELP,
    OPTION_JSON,
    OPTION_MASTERS,
    OPTION_MASTERS_FILE,
    OPTION_MAX_TTL,
    OPTION_REPLY_TIMEOUT,
    OPTION_RESTART_GUARD,
    OPTION_TLS_CA,
    OPTION_TLS_CERT,
    OPTION_TLS_KEY,
    OPTION_TLS_SERVER_NAME,
    OPTION_TLS_VERIFY,
    OPTION_VERBOSE,
    OPTION_VERSION,

    OPTION_OF_SOME,
    OPTION_CLOCKS = OPTION_OF_SOME,
    OPTION_CONTEND,
    OPTION_CYCLES,
    OPTION_DRY_RUN,
    OPTION_EVEN,
    OPTION_FAIR,
    OPTION_FENCE,
    OPTION_FORCE,
    OPTION_HOLD_AT_LEAST,
    OPTION_HOLD_AT_MOST,
    OPTION_HOLD_MS,
    OPTION_IN_FLIGHT,
    OPTION_LIST_ALL,
    OPTION_LOST,
    OPTION_MODE,
    OPTION_NAMES,
    OPTION_NEW,
    OPTION_NOTE,
    OPTION_NOW,
    OPTION_PERMIT,
    OPTION_PERMITS,
    OPTION_PROMETHEUS,
    OPTION_REASON,
    OPTION_REENTRANT,
    OPTION_RESOURCES,
    OPTION_SHARED,
    OPTION_THREADS,
    OPTION_TTL,
    OPTION_USER,
    OPTION_WAIT,
    OPTION_WATCH,
    OPTION_YES
};

enum { OPTIONS_ROWS_MAX = 32 }; /* Rows for getopt of one command, with the zeroes at the end. */

/* The rows for getopt_long(): the options of all commands, and those of one.  command: its bit, or
 * 0.
 */
void options_rows(unsigned command, struct option rows[OPTIONS_ROWS_MAX]);

/* The name of an option, with its dashes. */
const char *options_name(enum option_value option);

/* True: the command takes the option.  run refuses --json, and says why. */
bool options_take(unsigned command, enum option_value option);

/* An option of some command whose name, with its dashes, is the first len bytes of text.  NULL:
 * none has this name. */
const char *options_find(const char *text, size_t len);

/* Print the lines of --help about the options of one command, or with 0 those of all. */
void options_print_help(unsigned command);

/* Print the options of one command, or with 0 those of all, for the completion of shells.  A line
 * has the name of the command as given; the option; its argument as --help shows it, or "-"; and
 * words that may be offered for that, where FILE stands for the names of files. */
void options_print_words(const char *name, unsigned command);

#endif /* REDLOCK_CLI_OPTIONS_H */
