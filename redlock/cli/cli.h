/*
 * cli.h - what the subcommands of `redlock` share: the command line, the
 * words to people, and the exit codes.
 *
 * Results go to standard output, everything else to standard error, one line
 * each, with "redlock: " before it.
 */
#ifndef REDLOCK_CLI_H
#define REDLOCK_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <getopt.h>

#include "redlock/redlock.h"

/* The numbers are those of <sysexits.h> where it has a fitting one; 126 and
 * on are what shells give. */
enum cli_exit {
    CLI_OK = 0,
    CLI_USAGE = 64,       /* EX_USAGE: the command line, or the masters, are no good. */
    CLI_UNREACHABLE = 69, /* EX_UNAVAILABLE: too few masters answered (in time). */
    CLI_INTERNAL = 70,    /* EX_SOFTWARE: memory, fork, output. */
    CLI_HELD = 75,        /* EX_TEMPFAIL: another owner has the lock. */
    CLI_LOST = 76,        /* The lock is not held (any more). */
    CLI_CHANGE = 78,      /* EX_CONFIG: the masters are not set up as they should be. */
    CLI_TIMED_OUT = 124,  /* As timeout(1) has it: the command took too long. */
    CLI_NOT_EXECUTABLE = 126,
    CLI_NOT_FOUND = 127,
    CLI_SIGNAL = 128, /* Plus the number of the signal. */
};

/* What all subcommands can be told. */
struct cli {
    const struct cli_command *command; /* NULL before it is known. */
    char *masters;                     /* The list, or NULL: that of REDLOCK_MASTERS. */
    char *masters_from;                /* The file it was read from, for messages, or NULL. */
    uint32_t connect_timeout_ms;
    uint32_t reply_timeout_ms;
    uint32_t max_ttl_ms;
    const char *restart_guard; /* "on" or "off", or NULL: that of REDLOCK_RESTART_GUARD. */
    const char *clock_guard;   /* Likewise, of REDLOCK_CLOCK_GUARD. */
    bool json;
    bool verbose;
};

struct cli_command {
    const char *name;
    int (*run)(struct cli *cli, int argc, char **argv); /* argv[0] is the name; an exit code. */
    const char *usage;                                  /* What follows "redlock ". */
    const char *help;                                   /* Lines about its own options. */
    bool prints_nothing;                                /* So --json is not for it. */
};

extern const struct cli_command cli_acl, cli_bench, cli_doctor, cli_extend, cli_init, cli_lock,
    cli_run, cli_status, cli_unlock;

/* ---- The command line ---- */

enum {
    CLI_OPTION_FIRST = 512, /* Values of a subcommand's own options begin here. */
    CLI_OPTIONS_MAX = 24,
    CLI_NAMES_SHOWN_MAX = 200 /* Bytes of an argument that a message repeats. */
};

/*
 * getopt_long() with the options that all share, which it takes care of, and
 * those of own, which ends with zeroes (NULL: none).  Gives the value of one
 * of own, with optarg set, or -1 at the end of the options.  A bad option, and
 * --help, end the program.  stop: at the first argument that is no option.
 */
int cli_getopt(struct cli *cli, int argc, char **argv, bool stop, const struct option *own);

/* Print the help of the command, or of all where it is NULL, and end the program. */
void cli_print_help(const struct cli *cli) __attribute__((noreturn));

/* The arguments that are left must be so many, named so: "NAME TOKEN". */
void cli_need_arguments(const struct cli *cli, int argc, char **argv, int wanted,
                        const char *names);

/* What is to be locked: the names of one argument, parted by commas.  "\," is a comma of a
 * name, and "\\" a backslash.  Too many end the program; whether they are good is for the
 * library to say.  The text is freed by cli_names_done(). */
struct cli_names {
    const char *list[REDLOCK_NAMES_MAX];
    size_t len;
    char *text;
};
void cli_names(const struct cli *cli, const char *argument, struct cli_names *ret_names);
void cli_names_done(struct cli_names *names);

/* "500ms", "30s", "2m", "1h", or "0" if min_ms is 0.  what: for the message
 * with which a bad one ends the program. */
uint32_t cli_duration_ms(const struct cli *cli, const char *what, const char *text, uint32_t min_ms,
                         uint32_t max_ms);

/* The value of --wait: "0", a duration, or "forever", for redlock_lock_options. */
uint32_t cli_wait_ms(const struct cli *cli, const char *text);

/* A whole number likewise. */
uint32_t cli_number(const struct cli *cli, const char *what, const char *text, uint32_t min,
                    uint32_t max);

/* The value of --permits. */
uint32_t cli_permits(const struct cli *cli, const char *text);

/* The time a lease lasts: at most --max-ttl, which may follow on the command
 * line, and so is checked only here; and longer than what clocks may take off it. */
void cli_check_ttl(const struct cli *cli, uint32_t ttl_ms);

/* End the program if options of a lock do not go together, or not with several names.  The library
 * would say so as well, but in words of C. */
void cli_check_lock(const struct cli *cli, const struct cli_names *names,
                    const struct redlock_lock_options *opts);

/* Complain, say where help is, and end the program with CLI_USAGE. */
void cli_usage_error(const struct cli *cli, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* ---- Words ---- */

/* A line on standard error. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on drop what cannot be written at once: somebody who has stopped reading
 * must not keep us from renewing a lease, or from killing a command in time. */
void cli_never_wait(void);

/* Printable, and short enough for a message; buf has CLI_NAMES_SHOWN_MAX.
 * An argument that may hold a password is not repeated at all. */
const char *cli_show_name(const char *name, char *buf);
const char *cli_show_argument(const char *argument, char *buf);

/*
 * A JSON string.  JSON is Unicode and names are bytes: a byte that is not part
 * of a UTF-8 character becomes \udcHH, the lone surrogate that Python's
 * "surrogateescape" turns back into it.
 */
void cli_json_string(FILE *file, const char *text);

/* {"resource","token","ttl_ms","validity_ms"} of a lease, and "fence" or "permit" if it has
 * one, as a line; of several names "resources", a list. */
void cli_print_lease_json(const struct cli_names *names, const struct redlock_lease *lease,
                          uint32_t ttl_ms);

/* Have all output written: CLI_OK, or CLI_INTERNAL with a message. */
int cli_flush_output(void);

/* The exit code for a status of the library. */
int cli_exit_of(int status);

/* ---- The client ---- */

struct ev_loop;

/* Whether the restart guard is on: by the option, or else by REDLOCK_RESTART_GUARD,
 * which ends the program if it is neither on nor off. */
bool cli_is_guarded(const struct cli *cli);

/*
 * redlock_open() with what the command line says.  loop: NULL for a blocking
 * client.  The list of masters is wiped from memory then.  Gives an exit code,
 * after a message unless CLI_OK.
 */
int cli_open(struct cli *cli, struct ev_loop *loop, struct redlock **ret_rl);

/* Wipe the list of masters, in a process that needs none. */
void cli_forget_masters(struct cli *cli);

#endif /* REDLOCK_CLI_H */
