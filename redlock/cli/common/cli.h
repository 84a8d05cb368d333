/*
 * cli.h - what the subcommands of `redlock` share: the command line, messages and exit codes.
 *
 * Results go to standard output.  Messages go to standard error, one line each, after "redlock: ".
 */
#ifndef REDLOCK_CLI_H
#define REDLOCK_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "redlock/base/error.h"
#include "redlock/cli/common/options.h"
#include "redlock/redlock.h"

/* Numbers are from <sysexits.h> if it has a fitting one.  From 126 on they are those of shells. */
enum cli_exit {
    CLI_OK = 0,
    CLI_USAGE = 64,       /* EX_USAGE: the command line or the list of masters is not valid. */
    CLI_UNREACHABLE = 69, /* EX_UNAVAILABLE: too few masters answered in time, or may vote yet. */
    CLI_INTERNAL = 70,    /* EX_SOFTWARE: memory, fork or output failed. */
    CLI_HELD = 75,        /* EX_TEMPFAIL: another client has the lock. */
    CLI_LOST = 76,        /* The lock is not held. */
    CLI_FORBIDDEN = 77,   /* EX_NOPERM: too few masters allow it to this user. */
    CLI_CHANGE = 78,      /* EX_CONFIG: something about the masters must be changed. */
    CLI_TIMED_OUT = 124,  /* As in timeout(1): the command took too long. */
    CLI_NOT_EXECUTABLE = 126,
    CLI_NOT_FOUND = 127,
    CLI_SIGNAL = 128, /* Plus the number of the signal. */
};

/* The options of all subcommands. */
struct cli {
    const struct cli_command *command; /* NULL before it is known. */
    char *masters;                     /* The list.  NULL: use REDLOCK_MASTERS. */
    char *masters_from;                /* The file of the list, for messages, or NULL. */
    char masters_option[256];          /* The option that gave the list, for a shell, or "".
                                        * Dots stand for a list that is not shown. */
    bool has_dots;                     /* It is not shown. */
    uint32_t connect_timeout_ms;
    uint32_t reply_timeout_ms;
    uint32_t max_ttl_ms;
    const char *restart_guard; /* "on" or "off".  NULL: use REDLOCK_RESTART_GUARD. */
    const char *clock_guard;   /* A mode.  NULL: use REDLOCK_CLOCK_GUARD. */
    /* TLS.  NULL: use REDLOCK_TLS_CA and so on. */
    const char *tls_ca, *tls_cert, *tls_key, *tls_server_name;
    const char *tls_verify; /* "full" or "none". */
    bool json;
    bool verbose;
    bool holds_at_least; /* --hold-at-least was given. */
    bool obeys_none;     /* The client obeys no set (inspect.h). */
    bool looks_only;     /* The client changes no marker (inspect.h). */
    int signal; /* main() dies of it if the exit code is that of this signal.  0: none came. */
    bool signals_group; /* Our process group gets it, too: a shell that waits for us. */
};

struct cli_command {
    const char *name;
    unsigned options;                                   /* Its bit in the table of options. */
    int (*run)(struct cli *cli, int argc, char **argv); /* Returns an exit code. */
    const char *usage;                                  /* Follows `redlock` in a line of usage. */
    const char *help;                                   /* What it does. */
    const char *more;   /* What follows the options: an example, and the exit codes. */
    const char *manual; /* NULL: redlock. */
};

extern const struct cli_command cli_acl, cli_bench, cli_doctor, cli_extend, cli_init, cli_list,
    cli_lock, cli_members, cli_run, cli_status, cli_unlock;

/* ---- The command line ---- */

enum {
    CLI_NAMES_SHOWN_MAX = 200,  /* Bytes of an argument in a message, with the NUL. */
    CLI_MASTERS_SHOWN_MAX = 600 /* Of masters.  Chosen: 15 names of usual lengths fit. */
};

/*
 * Take the next option, as getopt_long() does.  Returns the value of an option of the subcommand
 * alone, with optarg set, or -1 at the end of the options.  The options of all subcommands are
 * handled here.  A bad option and --help end the program.  stop: stop at the first argument that is
 * no option.
 */
int cli_getopt(struct cli *cli, int argc, char **argv, bool stop);

/* Print help, and end the program.  If cli->command is NULL, the help is on all subcommands. */
void cli_print_help(const struct cli *cli) __attribute__((noreturn));

/* No command was given: print the usage to standard error, and end the program. */
void cli_miss_command(void) __attribute__((noreturn));

/* End the program unless `wanted` arguments are left.  names is for the message: "NAME TOKEN". */
void cli_need_arguments(const struct cli *cli, int argc, char **argv, int wanted,
                        const char *names);

/* The names of locks in one argument, separated by commas.  "\," is a comma in a name, "\\" a
 * backslash, and \xHH any byte, so names are taken as they are shown (base/text.h).  Too many names
 * end the program.  The library checks each name.  cli_names_done() frees the text. */
struct cli_names {
    const char *list[REDLOCK_NAMES_MAX];
    size_t len;
    char *text; /* The names, with a NUL between two. */
    size_t text_len;
};
void cli_names(const struct cli *cli, const char *argument, struct cli_names *ret_names);
void cli_names_done(struct cli_names *names);

/* How names begin, as one argument: a comma needs no "\,".  The caller frees it. */
char *cli_start(const struct cli *cli, const char *argument);

/* A pattern of names for fnmatch().  A byte \xHH stands for itself.  The caller frees it. */
char *cli_pattern(const struct cli *cli, const char *argument);

/* Warn of a name of a lock that begins or ends with a blank.  It is taken as it is, because
 * programs may use such names. */
void cli_warn_of_blanks(const char *name);

/* Say why the client could not be opened, with the names that options have in the command. */
void cli_say_unopened(const struct cli *cli, int status);

/* A copy that the caller frees.  Without memory the process ends. */
char *cli_copy(const char *text);

/* Parse a duration: "500ms", "30s", "2m" or "1h", and also "0" if min_ms is 0.  A bad one ends the
 * program with a message about `what`. */
uint32_t cli_duration_ms(const struct cli *cli, const char *what, const char *text, uint32_t min_ms,
                         uint32_t max_ms);

/* As cli_duration_ms().  range: what is allowed, for the message. */
uint32_t cli_read_duration(const struct cli *cli, const char *what, const char *text,
                           uint32_t min_ms, uint32_t max_ms, const char *range);
/* Write a duration in the largest unit that needs no fraction.  Returns buf. */
const char *cli_show_duration(uint32_t ms, char *buf, size_t size);

/* Parse a whole number.  A bad one ends the program with a message about `what`. */
uint32_t cli_number(const struct cli *cli, const char *what, const char *text, uint32_t min,
                    uint32_t max);

/* Returns the note, or ends the program if it is none. */
const char *cli_take_note(const struct cli *cli, const char *note);

/* Take an option of locks, with optarg set. */
void cli_take_lock_option(const struct cli *cli, int option, struct redlock_lock_options *opts);

/* End the program unless the ttl is at most --max-ttl, and longer than the allowance for clocks.
 * Call this after all options are read, because --max-ttl may follow --ttl. */
void cli_check_ttl(const struct cli *cli, uint32_t ttl_ms);

/* End the program if options of a lock do not go together, or not with several names (combine.h).
 * The library checks this as well, but its messages use the names of C. */
void cli_check_lock(const struct cli *cli, const struct cli_names *names,
                    const struct redlock_lock_options *opts);

/* Print the table of what goes together.  redlock(3) has this text, without a change. */
void cli_print_combinations(void);

/* Print a message and where help is, and end the program with CLI_USAGE. */
void cli_usage_error(const struct cli *cli, const char *format, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

/* The same about an option.  Its value is not shown, because that may be a secret. */
void cli_refuse_option(const struct cli *cli, const char *problem, const char *argument)
    __attribute__((noreturn));
void cli_unknown_option(const struct cli *cli, const char *argument) __attribute__((noreturn));

/* ---- Messages and output ---- */

/* Print a message.  Its line ends with the identifier, in brackets. */
void cli_say(enum msg kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print a line without an identifier: progress, or what belongs to the message before it. */
void cli_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print a message that has the reason of a master.  kind: what that leads to, whose identifier
 * comes before that of the reason, or MSG_NONE. */
void cli_say_reason(enum msg kind, enum msg reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Print the library's message for a status. */
void cli_say_status(int status);

/* Print why a lock failed, with a line for each reason: a line of all would be too long to read. */
void cli_say_why(enum msg kind, const char *before, const char *message,
                 const struct error_parts *parts);

/* What led to the thread's message, for a call that ended with status: the first of its reasons. */
enum msg cli_cause(int status);

/* From now on drop messages that cannot be written at once.  A reader that has stopped must not
 * delay a renewal of the lease, or the kill of the command. */
void cli_never_wait(void);

/* Print a message of the library, or drop it if standard error does not take it at once: it comes
 * from the loop, which must not wait.  At the end, say how many were dropped. */
void cli_log(const char *message);
void cli_tell_dropped(void);

/* Make names, or a text, printable and short enough for a message.  buf has CLI_NAMES_SHOWN_MAX
 * bytes.  An argument that may contain a password is not shown. */
const char *cli_show_name(const char *name, char *buf);
const char *cli_show_names(const struct cli_names *names, char *buf);
/* "master 2 (HOST:PORT)", or "masters 1 and 2 (HOST:PORT, HOST:PORT)", as far as they fit. */
const char *cli_show_masters(struct redlock *rl, quorum_mask masters,
                             char buf[CLI_MASTERS_SHOWN_MAX]);
const char *cli_show_text(const char *text, char *buf);
const char *cli_show_argument(const char *argument, char *buf);

/* Make the name of a lock one word for a shell.  Returns other if that is not possible. */
const char *cli_quote_name(const char *name, char buf[CLI_NAMES_SHOWN_MAX], const char *other);

/* Note the option that gave the list of masters.  A list that may contain a password is not shown.
 */
void cli_note_masters(struct cli *cli, const char *option, const char *value);

/* Print a JSON string.  JSON is Unicode, and names are bytes.  A byte that is not part of a UTF-8
 * character becomes the lone surrogate \udcHH, which Python's "surrogateescape" turns back. */
void cli_json_string(FILE *file, const char *text);

/* Print a member of a JSON object that is not its first: a comma, the key, and the text as a
 * string.  NULL: null. */
void cli_json_member(const char *key, const char *text);

/* Print the members "error" and "id" of a master.  "": there is no error. */
void cli_json_error(const char *error, enum msg kind);

/* Print the members "holder", and "note" if there is a holder.  token: a string of `len` bytes, or
 * NULL: there is none. */
void cli_json_holder(const char *token, size_t len);

/* What the library knows of a lease that is not freed. */
struct redlock_lease_info cli_lease_info(const struct redlock_lease *lease);

/* Print a lease as a line of JSON: "resource", or "resources" of several names, "token", "fence" or
 * "permit" if it has one, "requested_ttl_ms" and "validity_ms". */
void cli_print_lease_json(const struct cli_names *names, const struct redlock_lease *lease,
                          uint32_t ttl_ms);

/* Print why an operation on a lock failed with this status, as a line of JSON: "resource" or
 * "resources", "error", "id", and "reasons", which are those of redlock_reason(). */
void cli_print_failure_json(const struct cli_names *names, struct redlock *rl, enum msg kind,
                            const char *message);

/* With the clock guard per_vote, print what it means for a new client. */
void cli_print_clock_guard(struct redlock *rl);

/* Warn of masters that are, or will be, members at this place, if it is a loopback address. */
void cli_warn_of_loopback(const char *place, bool are_many);

/* If this client has made its masters a set, say so, and what a set of one master means. */
void cli_tell_founded(struct redlock *rl);

/* False: standard output is a pipe or the like that has no room for a page, so a write would wait.
 */
bool cli_takes_output(void);

/* Flush standard output.  Returns CLI_OK, or CLI_INTERNAL after a message. */
int cli_flush_output(void);

/* The exit code for a status of the library. */
int cli_exit_of(int status);

/* True: the status says why too few masters voted. */
bool cli_lacks_votes(int status);

/* ---- The client ---- */

struct ev_loop;

/* True: the restart guard is on, by the option, or else by REDLOCK_RESTART_GUARD.  If the variable
 * is neither on nor off, the program ends. */
bool cli_is_guarded(const struct cli *cli);

/* Call redlock_open() with the options of the command line, and wipe the list of masters from
 * memory.  loop is NULL for a blocking client.  Returns an exit code, after a message unless
 * CLI_OK. */
int cli_open(struct cli *cli, struct ev_loop *loop, struct redlock **ret_rl);

/* Wipe the list of masters from memory. */
void cli_forget_masters(struct cli *cli);

/* Run the loop while busy(arg) is true, but not longer than at_most_ms.  It is called before each
 * turn of the loop, and after the last one. */
void cli_linger(struct ev_loop *loop, bool (*busy)(void *arg), void *arg, uint32_t at_most_ms);

#endif /* REDLOCK_CLI_H */
