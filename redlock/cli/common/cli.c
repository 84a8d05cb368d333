/*
 * cli.c - the command line, the list of masters, and the client.
 */
#include "redlock/cli/common/cli.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>
#include <sodium.h>

#include "drift/drift.h"
#include "drift/node.h"
#include "redlock/base/list_file.h"
#include "redlock/base/text.h"
#include "redlock/cli/common/deadline.h"
#include "redlock/client/inspect.h"

#define TTL_MAX_MS 86400000           /* 24 hours. */
#define WAIT_MAX_MS (1000u * 3600000) /* Chosen: a round number below 2^32 ms, or 1193 hours. */

static const char usage_text[] =
    "usage: redlock [OPTION...] COMMAND [ARGUMENT...]\n"
    "\n"
    "Hold a lock that a majority of independent Redis masters agree on.\n"
    "\n"
    "  run       run a command while holding a lock\n"
    "  lock      take a lock, print its token, and leave it held\n"
    "  extend    let such a lock last longer\n"
    "  unlock    release such a lock; --force: take a lock from its holder\n"
    "\n"
    "  status    which masters answer; who holds a lock\n"
    "  list      which locks are held\n"
    "\n"
    "  init      make the masters a set; wait until all may vote\n"
    "  doctor    what to change about the masters\n"
    "  acl       the rules for a user that may take locks and do nothing else\n"
    "  members   show the set of masters; add, remove or replace some\n"
    "  bench     how long locks take\n"
    "\n"
    "  help      help COMMAND: its options, exit codes, and an example; help combine: which\n"
    "            options go together; help IDENTIFIER: what a message means\n"
    "\n"
    "Example: redlock run --wait 5m deploy/web -- ./deploy.sh\n"
    "Exit: 0 done, 64 wrong arguments, 69 too few masters, 75 another client has the lock,\n"
    "76 the lock was lost, 77 forbidden, 78 wrong masters or settings; of run: that of the\n"
    "command.\n";

/* ---- Names ---- */

/* Take the escape at *at, which then is its last byte.  False: there is none. */
static bool take_hex(const struct cli *cli, const char **at, char *ret_byte)
{
    static const char digits[] = "0123456789abcdef";
    char text[3] = "";
    size_t len;

    if (strncmp(*at, "\\x", 2) != 0)
        return false;
    for (len = 0; len < 2 && (*at)[2 + len] != '\0'; len++)
        text[len] = text_lower((*at)[2 + len]);
    if (strspn(text, digits) != 2)
        return false;
    *ret_byte = (char)strtoul(text, NULL, 16);
    if (*ret_byte == '\0')
        cli_usage_error(cli, "no lock has a name with a NUL, \\x00");
    *at += 3;
    return true;
}

static bool take_escape(const struct cli *cli, const char **at, char *ret_byte)
{
    if (**at != '\\' || ((*at)[1] != ',' && (*at)[1] != '\\'))
        return take_hex(cli, at, ret_byte);
    *ret_byte = *++*at;
    return true;
}

void cli_names(const struct cli *cli, const char *argument, struct cli_names *ret_names)
{
    struct cli_names names = {.text = cli_copy(argument)};
    char *to = names.text; /* It is never longer than the argument. */

    names.list[names.len++] = to;
    for (const char *at = argument; *at != '\0'; at++) {
        if (take_escape(cli, &at, to)) {
            to++;
        } else if (*at != ',') {
            *to++ = *at;
        } else if (names.len == REDLOCK_NAMES_MAX) {
            cli_usage_error(cli, "more than %d names", REDLOCK_NAMES_MAX);
        } else {
            *to++ = '\0';
            names.list[names.len++] = to;
        }
    }
    *to = '\0';
    names.text_len = (size_t)(to - names.text);
    for (size_t i = 0; i < names.len; i++)
        cli_warn_of_blanks(names.list[i]);
    *ret_names = names;
}

char *cli_start(const struct cli *cli, const char *argument)
{
    char *start = cli_copy(argument), *to = start;

    for (const char *at = argument; *at != '\0'; at++, to++)
        if (!take_escape(cli, &at, to))
            *to = *at;
    *to = '\0';
    return start;
}

char *cli_pattern(const struct cli *cli, const char *argument)
{
    char *pattern = cli_copy(argument), *to = pattern, byte;

    for (const char *at = argument; *at != '\0'; at++) {
        if (take_hex(cli, &at, &byte)) {
            *to++ = '\\'; /* For fnmatch(): the byte behind it is none of its own. */
            *to++ = byte;
            continue;
        }
        if (*at == '\\' && at[1] != '\0')
            *to++ = *at++;
        *to++ = *at;
    }
    *to = '\0';
    return pattern;
}

void cli_names_done(struct cli_names *names)
{
    free(names->text);
    *names = (struct cli_names){.len = 0};
}

/* ---- Guards ---- */

/* The value is one of two words.  Returns that word itself, so a constant may be kept. */
static const char *take_either(const struct cli *cli, const char *what, const char *value,
                               const char *one, const char *other)
{
    char shown[CLI_NAMES_SHOWN_MAX];

    if (strcmp(value, one) != 0 && strcmp(value, other) != 0)
        cli_usage_error(cli, "%s is '%s', but must be %s or %s", what,
                        cli_show_argument(value, shown), one, other);
    return strcmp(value, one) == 0 ? one : other;
}

static const char *take_guard(const struct cli *cli, const char *what, const char *value)
{
    return take_either(cli, what, value, "on", "off");
}

bool cli_is_guarded(const struct cli *cli)
{
    const char *value = cli->restart_guard;

    if (value == NULL)
        value = getenv("REDLOCK_RESTART_GUARD");
    return value == NULL || strcmp(take_guard(cli, "REDLOCK_RESTART_GUARD", value), "on") == 0;
}

static const char *const clock_guards[] = {
    [REDLOCK_CLOCK_GUARD_OFF] = "off",
    [REDLOCK_CLOCK_GUARD_PERIODIC] = "periodic",
    [REDLOCK_CLOCK_GUARD_PER_VOTE] = "per_vote",
};

static enum redlock_clock_guard take_clock_guard(const struct cli *cli, const char *what,
                                                 const char *value)
{
    char shown[CLI_NAMES_SHOWN_MAX];
    unsigned guard = 0;

    while (strcmp(value, clock_guards[guard]) != 0)
        if (++guard == sizeof clock_guards / sizeof *clock_guards)
            cli_usage_error(cli, "%s is '%s', but must be off, periodic or per_vote", what,
                            cli_show_argument(value, shown));
    return (enum redlock_clock_guard)guard;
}

static enum redlock_clock_guard find_clock_guard(const struct cli *cli)
{
    const char *value = cli->clock_guard;

    if (value == NULL)
        value = getenv("REDLOCK_CLOCK_GUARD");
    return value == NULL ? REDLOCK_CLOCK_GUARD_PERIODIC
                         : take_clock_guard(cli, "REDLOCK_CLOCK_GUARD", value);
}

/* ---- TLS ---- */

static const char *take_verify(const struct cli *cli, const char *what, const char *value)
{
    return take_either(cli, what, value, "full", "none");
}

/* An empty variable counts as unset, as scripts leave it.  An empty option stands for none. */
static const char *or_variable(const char *option, const char *variable)
{
    const char *value = option != NULL ? option : getenv(variable);

    return option != NULL || (value != NULL && value[0] != '\0') ? value : NULL;
}

static void set_tls(const struct cli *cli, struct redlock_options *opts)
{
    const char *verify = or_variable(cli->tls_verify, "REDLOCK_TLS_VERIFY");

    opts->tls_ca = cli->tls_ca; /* The library reads the variables of these three. */
    opts->tls_cert = cli->tls_cert;
    opts->tls_key = cli->tls_key;
    opts->tls_server_name = or_variable(cli->tls_server_name, "REDLOCK_TLS_SERVER_NAME");
    opts->tls_verify =
        verify == NULL || strcmp(take_verify(cli, "REDLOCK_TLS_VERIFY", verify), "full") == 0;
    if (!opts->tls_verify)
        cli_say(MSG_TLS_UNVERIFIED,
                "WARNING: the certificates of masters are NOT VERIFIED: anybody on the way can "
                "answer for them and read the passwords");
}

/* ---- Leases ---- */

/* The allowance for clocks with the options that were read so far. */
static struct drift_bound find_allowance(const struct cli *cli)
{
    struct redlock_options defaults;
    struct drift_bound allowance;

    redlock_options_init(&defaults);
    allowance.ppm = defaults.drift_ppm;
    allowance.fixed = defaults.drift_fixed_ms * DRIFT_MS;
    if (find_clock_guard(cli) == REDLOCK_CLOCK_GUARD_PER_VOTE)
        allowance = drift_node_allowance(allowance);
    return allowance;
}

/* The shortest --ttl of the subcommand.  run.c checks that of `run`. */
static const char *least_ttl(const struct cli *cli, char *buf, size_t size)
{
    const struct drift_bound allowance = find_allowance(cli);
    uint32_t ms = strcmp(cli->command->name, "run") == 0 ? drift_to_ms(DEADLINE_TTL_MIN) : 1;

    while (drift_deadline(0, ms * DRIFT_MS, &allowance) == 0 && ms < TTL_MAX_MS)
        ms++;
    return cli_show_duration(ms, buf, size);
}

/* cli_check_ttl() compares it with --max-ttl, which may follow. */
static uint32_t take_ttl(const struct cli *cli, const char *text)
{
    char range[64], least[16], max[16];
    struct redlock_options defaults;

    redlock_options_init(&defaults);
    (void)snprintf(range, sizeof range, "%s to --max-ttl (%s by default)",
                   least_ttl(cli, least, sizeof least),
                   cli_show_duration(defaults.max_ttl_ms, max, sizeof max));
    return cli_read_duration(cli, "--ttl", text, 1, TTL_MAX_MS, range);
}

static uint32_t wait_ms(const struct cli *cli, const char *text)
{
    if (strcmp(text, "forever") == 0)
        return UINT32_MAX;
    return cli_duration_ms(cli, "--wait", text, 0, WAIT_MAX_MS);
}

void cli_take_lock_option(const struct cli *cli, int option, struct redlock_lock_options *opts)
{
    switch (option) {
    case OPTION_FAIR:
        opts->fair = true;
        break;
    case OPTION_FENCE:
        opts->fence = true;
        break;
    case OPTION_NOTE:
        opts->note = cli_take_note(cli, optarg);
        break;
    case OPTION_PERMITS:
        opts->permits = cli_number(cli, "--permits", optarg, 1, REDLOCK_PERMITS_MAX);
        break;
    case OPTION_SHARED:
        opts->shared = true;
        break;
    case OPTION_TTL:
        opts->ttl_ms = take_ttl(cli, optarg);
        break;
    case OPTION_WAIT:
        opts->wait_ms = wait_ms(cli, optarg);
        break;
    default:
        assert(!"an option of locks");
    }
}

static void check_drift(const struct cli *cli, uint32_t ttl_ms)
{
    const struct drift_bound allowance = find_allowance(cli);
    char ttl[16];

    if (drift_deadline(0, ttl_ms * DRIFT_MS, &allowance) == 0)
        cli_usage_error(cli,
                        "--ttl is %s, but must be longer than the allowance for clocks (%u ppm and "
                        "%u ms)",
                        cli_show_duration(ttl_ms, ttl, sizeof ttl), allowance.ppm,
                        drift_to_ms(allowance.fixed));
}

void cli_check_ttl(const struct cli *cli, uint32_t ttl_ms)
{
    char ttl[16], max[16], least[16];
    struct redlock_lock_options defaults;

    redlock_lock_options_init(&defaults);
    if (ttl_ms > cli->max_ttl_ms)
        cli_usage_error(cli, "--ttl is %s%s, but must be %s to --max-ttl, which is %s",
                        cli_show_duration(ttl_ms, ttl, sizeof ttl),
                        ttl_ms == defaults.ttl_ms ? " (the default)" : "",
                        least_ttl(cli, least, sizeof least),
                        cli_show_duration(cli->max_ttl_ms, max, sizeof max));
    check_drift(cli, ttl_ms);
}

/* ---- The masters ---- */

void cli_forget_masters(struct cli *cli)
{
    if (cli->masters != NULL)
        sodium_memzero(cli->masters, strlen(cli->masters));
    free(cli->masters);
    free(cli->masters_from);
    cli->masters = cli->masters_from = NULL;
}

char *cli_copy(const char *text)
{
    char *copy = strdup(text);

    if (copy == NULL) {
        cli_say(MSG_NO_MEMORY, "out of memory");
        exit(CLI_INTERNAL);
    }
    return copy;
}

static void take_masters_file(struct cli *cli, const char *path)
{
    char *list = NULL;
    int status = list_file_read(path, &list);

    if (status == REDLOCK_E_INVAL)
        cli_usage_error(cli, "%s", redlock_errmsg(NULL));
    cli_forget_masters(cli);
    cli_note_masters(cli, "--masters-file", path);
    if (status == REDLOCK_OK) {
        cli->masters = cli_copy(list);
        cli->masters_from = cli_copy(path);
        list_file_free(list);
        return;
    }
    cli_say_status(status);
    exit(CLI_INTERNAL);
}

/* `ps` shows the memory of argv, so a list that may contain a password is overwritten there.  `ps`
 * can show it until then: see redlock(1). */
static void take_masters(struct cli *cli, char *list)
{
    if (list[0] == '@') {
        take_masters_file(cli, list + 1);
        return;
    }
    cli_forget_masters(cli);
    cli->masters = cli_copy(list);
    cli_note_masters(cli, "--masters", list);
    if (strchr(list, '@') != NULL)
        memset(list, '*', strlen(list));
}

/* ---- The client ---- */

static void on_log(void *arg, enum redlock_level level, const char *message)
{
    (void)arg, (void)level;
    cli_log(message);
}

int cli_open(struct cli *cli, struct ev_loop *loop, struct redlock **ret_rl)
{
    struct redlock_options opts;
    int status;

    if (cli->masters == NULL && getenv("REDLOCK_MASTERS") == NULL)
        cli_usage_error(cli, "no masters: give --masters LIST, or set REDLOCK_MASTERS");
    redlock_options_init(&opts);
    opts.masters = cli->masters;
    opts.loop = loop;
    opts.connect_timeout_ms = cli->connect_timeout_ms;
    opts.reply_timeout_ms = cli->reply_timeout_ms;
    opts.max_ttl_ms = cli->max_ttl_ms;
    opts.restart_guard = cli_is_guarded(cli);
    opts.clock_guard = find_clock_guard(cli);
    set_tls(cli, &opts);
    opts.log = cli->verbose ? on_log : NULL;
    status = redlock_open(&opts, ret_rl);
    if (status != REDLOCK_OK)
        cli_say_unopened(cli, status);
    cli_forget_masters(cli);
    if (status == REDLOCK_OK && cli->looks_only)
        inspect_look_only(*ret_rl);
    if (status == REDLOCK_OK && cli->obeys_none)
        inspect_obey_none(*ret_rl);
    return cli_exit_of(status);
}

static void on_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events; /* The timer only wakes the loop. */
}

void cli_linger(struct ev_loop *loop, bool (*busy)(void *arg), void *arg, uint32_t at_most_ms)
{
    ev_timer limit;

    ev_now_update(loop);
    ev_timer_init(&limit, on_limit, at_most_ms / 1e3, 0);
    ev_timer_start(loop, &limit);
    while (busy(arg) && ev_is_active(&limit))
        ev_run(loop, EVRUN_ONCE);
    ev_timer_stop(loop, &limit);
}

/* ---- Options ---- */

void cli_print_help(const struct cli *cli)
{
    const struct cli_command *command = cli->command;

    if (command == NULL) {
        (void)printf("%s\nOptions of all commands:\n", usage_text);
        options_print_help(0);
        (void)printf("DUR is a whole number with a unit: 500ms, 30s, 2m, 1h.\n");
    } else {
        (void)printf("usage: redlock %s\n\n%s\n", command->usage, command->help);
        options_print_help(command->options);
        (void)printf("\n%s\nOptions of all commands, such as --masters%s: redlock help\n",
                     command->more,
                     options_take(command->options, OPTION_JSON) ? " and --json" : "");
    }
    (void)printf("Manual: man %s\n",
                 command != NULL && command->manual != NULL ? command->manual : "redlock");
    exit(cli_flush_output());
}

void cli_miss_command(void)
{
    (void)fprintf(stderr, "%s\n", usage_text);
    cli_say(MSG_WRONG_ARGUMENT,
            "a command is missing: `redlock help COMMAND` explains one, redlock(1) all");
    exit(CLI_USAGE);
}

/* True: it was an option of all subcommands. */
static bool take_shared(struct cli *cli, int option)
{
    switch (option) {
    case OPTION_CLOCK_GUARD:
        cli->clock_guard = clock_guards[take_clock_guard(cli, "--clock-guard", optarg)];
        return true;
    case OPTION_CONNECT_TIMEOUT:
        cli->connect_timeout_ms = cli_duration_ms(cli, "--connect-timeout", optarg, 1, 3600000);
        return true;
    case OPTION_HELP:
        cli_print_help(cli);
    case OPTION_JSON:
        cli->json = true;
        return true;
    case OPTION_MASTERS:
        take_masters(cli, optarg);
        return true;
    case OPTION_MASTERS_FILE:
        take_masters_file(cli, optarg);
        return true;
    case OPTION_MAX_TTL:
        cli->max_ttl_ms = cli_duration_ms(cli, "--max-ttl", optarg, 1, TTL_MAX_MS);
        return true;
    case OPTION_REPLY_TIMEOUT:
        cli->reply_timeout_ms = cli_duration_ms(cli, "--reply-timeout", optarg, 1, 3600000);
        return true;
    case OPTION_RESTART_GUARD:
        cli->restart_guard = take_guard(cli, "--restart-guard", optarg);
        return true;
    case OPTION_TLS_CA:
        cli->tls_ca = optarg;
        return true;
    case OPTION_TLS_CERT:
        cli->tls_cert = optarg;
        return true;
    case OPTION_TLS_KEY:
        cli->tls_key = optarg;
        return true;
    case OPTION_TLS_SERVER_NAME:
        cli->tls_server_name = optarg;
        return true;
    case OPTION_TLS_VERIFY:
        cli->tls_verify = take_verify(cli, "--tls-verify", optarg);
        return true;
    case OPTION_VERBOSE:
        cli->verbose = true;
        return true;
    case OPTION_VERSION:
        (void)printf("redlock %s\n", redlock_version());
        exit(cli_flush_output());
    default:
        return false;
    }
}

int cli_getopt(struct cli *cli, int argc, char **argv, bool stop)
{
    struct option rows[OPTIONS_ROWS_MAX];
    int option;

    options_rows(cli->command != NULL ? cli->command->options : 0, rows);
    opterr = 0;
    do {
        option = getopt_long(argc, argv, stop ? "+:hV" : ":hV", rows, NULL);
        if (option == 'h')
            cli_print_help(cli);
        if (option == 'V')
            option = OPTION_VERSION;
        if (option == ':')
            cli_refuse_option(cli, "no value for", argv[optind - 1]);
        if (option == '?' && optopt >= OPTION_CLOCK_GUARD)
            cli_refuse_option(cli, "no value is allowed for", argv[optind - 1]);
        if (option == '?' && optopt != 0)
            cli_usage_error(cli, "unknown option -%c", optopt > ' ' && optopt < 127 ? optopt : '?');
        if (option == '?')
            cli_unknown_option(cli, argv[optind - 1]);
        if (option == OPTION_HOLD_AT_LEAST)
            cli->holds_at_least = true;
    } while (take_shared(cli, option));
    return option;
}

void cli_need_arguments(const struct cli *cli, int argc, char **argv, int wanted, const char *names)
{
    char shown[CLI_NAMES_SHOWN_MAX];

    if (argc - optind < wanted)
        cli_usage_error(cli, "arguments are missing; needed: %s", names);
    if (argc - optind > wanted)
        cli_usage_error(cli, "too many arguments, from %s on",
                        cli_show_argument(argv[optind + wanted], shown));
}
