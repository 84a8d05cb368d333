/*
 * run.c - `redlock run`: hold a lock for as long as a command runs.
 *
 * The library renews the lease.  The guardian ends the command before the lease ends: see command.h
 * and guardian.h.
 */
#include "redlock/cli/common/cli.h"

#include <inttypes.h>
#include <string.h>

#include "redlock/cli/run/command.h"
#include "redlock/cli/common/refusal.h"
#include "redlock/cli/common/session.h"
#include "redlock/client/inspect.h"

/* The lost notice comes when a fifth of the ttl is left: see deadline.c. */
#define LOST_MARGIN_SHARE 5

#define HOLD_MAX_MS (1000u * 3600000)

struct run {
    struct session session;
    struct command command;
    char **argv;      /* The command. */
    const char *name; /* The argument NAME. */
    struct cli_names names;
    struct redlock_lock_options opts;
    uint32_t at_least_ms, at_most_ms; /* Bounds for holding the lock.  0: none. */
    struct redlock_lease *lease;
    drift_time acquired;
    bool lost;
};

/* ---- The end of the lease ---- */

static void say_lost(const struct run *run, uint32_t left_ms)
{
    char name[CLI_NAMES_SHOWN_MAX], text[CLI_NAMES_SHOWN_MAX + 100];
    struct error masters;
    enum msg why = inspect_loss(run->session.rl, run->lease, &masters);

    (void)cli_show_names(&run->names, name);
    if (why == MSG_REVOKED)
        (void)snprintf(text, sizeof text, "lost the lock %s: ", name);
    else if (why == MSG_NONE)
        (void)snprintf(text, sizeof text,
                       "lost the lock %s: it was not renewed in time: redlock or its host was "
                       "stopped, or too slow",
                       name);
    else
        (void)snprintf(text, sizeof text, "lost the lock %s: %s, %u ms left%s", name,
                       why == MSG_NOT_STORED ? "most masters no longer store it"
                                             : "it was not renewed in time",
                       left_ms, masters.text[0] != 0 ? ": " : "");
    cli_say_why(why == MSG_REVOKED ? MSG_REVOKED : MSG_LOST, text, masters.text, &masters.parts);
    if (why != MSG_REVOKED && masters.parts.len > 0)
        refusal_tell(run->session.cli, run->session.rl, false, masters.text, run->session.doctor,
                     run->session.has_more_names);
}

/* End the command before printing a message. */
static void on_lost(struct redlock_lease *lease, void *arg)
{
    struct run *run = arg;
    uint32_t left_ms = redlock_remaining_ms(lease);

    if (run->lost)
        return; /* The guardian was faster. */
    run->lost = true;
    command_end(&run->command);
    say_lost(run, left_ms);
}

/* ---- The command ---- */

static void write_numbers(const struct run *run, const struct redlock_lease_info *info,
                          struct leash_order *order)
{
    if (run->opts.fence)
        (void)snprintf(order->fence, sizeof order->fence, "REDLOCK_FENCE=%" PRIu64, info->fence);
    if (run->opts.permits > 0)
        (void)snprintf(order->permit, sizeof order->permit, "REDLOCK_PERMIT=%u", info->permit);
}

static void write_order(const struct run *run, struct leash_order *order)
{
    const drift_span ttl = run->opts.ttl_ms * DRIFT_MS;
    const struct deadline_margins whole = deadline_margins(ttl, ttl);
    const struct redlock_lease_info info = cli_lease_info(run->lease);

    order->ttl = ttl;
    order->limit = (struct deadline){DRIFT_NEVER, DRIFT_NEVER};
    order->margins = deadline_margins(ttl, info.remaining_ms * DRIFT_MS);
    if (run->at_most_ms > 0) {
        order->limit.ask = drift_add(run->acquired, run->at_most_ms * DRIFT_MS);
        order->limit.kill = drift_add(order->limit.ask, whole.ask - whole.kill);
    }
    (void)snprintf(order->token, sizeof order->token, "%s", info.token);
    write_numbers(run, &info, order);
}

/* The command died of a signal, unless it is 0.  If we got it as well, main() dies of it, too. What
 * is typed at a terminal reaches the command alone, but was meant for our process group as well. */
static void note_signal(struct run *run, int signal)
{
    bool is_typed = run->command.had_terminal && (signal == SIGINT || signal == SIGQUIT);

    if (!run->command.got[signal] && !is_typed)
        return;
    run->session.cli->signal = signal;
    run->session.cli->signals_group = !run->command.got[signal];
}

/* Run the command while the lock is held.  Returns its exit code. */
static int run_command(struct run *run)
{
    struct leash_order order = {.signal = 0};
    const struct leash_report *end = &run->command.end;
    int code;

    write_order(run, &order);
    code = command_run(&run->command, &run->session, run->lease, &order);
    if (code != CLI_OK)
        return code;
    note_signal(run, end->signal);
    if (end->why == LEASH_AT_DEADLINE && !run->lost) {
        run->lost = true;
        say_lost(run, command_ms(end->asked_ns));
    }
    if (end->why == LEASH_AT_LIMIT)
        cli_say(MSG_AT_MOST, "the command had not ended when --hold-at-most was over");
    if (end->why == LEASH_NO_CLOCK)
        cli_say(MSG_SYSTEM, "the guardian could not read the clock (clock_gettime)");
    command_tell(&run->command, run->lost);
    if ((end->why == LEASH_TOLD && run->command.unheard) || end->why == LEASH_NO_CLOCK)
        return CLI_INTERNAL;
    return end->why == LEASH_AT_LIMIT ? CLI_TIMED_OUT : end->code;
}

/* ---- Holding it for longer ---- */

static void on_hold_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events; /* It only wakes the loop. */
}

static void on_signal_while_holding(struct session *session, int signal)
{
    session->signal = signal;
}

/* Hold the lock until --hold-at-least is over, the lock is lost, or a signal comes.  Returns the
 * exit code of the signal, or CLI_OK. */
static int hold_on(struct run *run)
{
    drift_time until = drift_add(run->acquired, run->at_least_ms * DRIFT_MS), now;
    struct ev_loop *loop = run->session.loop;
    ev_timer timer;

    run->session.on_signal = on_signal_while_holding;
    run->session.signal = run->command.late_signal; /* It reached no command. */
    ev_timer_init(&timer, on_hold_timer, 0, 0);
    while (!run->lost && run->session.signal == 0 && drift_now(&now) == 0 && now < until) {
        ev_now_update(loop);
        ev_timer_stop(loop, &timer);
        ev_timer_set(&timer, (double)(until - now) / (double)DRIFT_S, 0);
        ev_timer_start(loop, &timer);
        ev_run(loop, EVRUN_ONCE);
    }
    ev_timer_stop(loop, &timer);
    if (run->session.signal == 0)
        return CLI_OK;
    cli_say(MSG_INTERRUPTED, "a signal came: the lock is released before --hold-at-least is over");
    return session_signal_exit(&run->session);
}

/* A signal must not interrupt the release, which is short. */
static void ignore_signal(struct session *session, int signal)
{
    (void)session, (void)signal;
}

/* Release the lock after the command. */
static int release(struct run *run)
{
    char name[CLI_NAMES_SHOWN_MAX];
    int code;

    run->session.quiet = run->lost; /* The loss has been reported. */
    run->session.signal = 0;
    code = session_unlock(&run->session, run->lease);
    if (run->lost)
        return CLI_LOST;
    if (code == CLI_LOST) {
        cli_say(MSG_LOST, "the lock %s was lost while the command ran",
                cli_show_names(&run->names, name));
        return CLI_LOST;
    }
    if (code == CLI_UNREACHABLE)
        cli_say(MSG_MAY_BE_HELD, "the lock %s may be held for %u ms more",
                cli_show_names(&run->names, name), run->opts.ttl_ms);
    return CLI_OK;
}

static int lock(struct run *run)
{
    int code;

    run->opts.lost_margin_ms = run->opts.ttl_ms / LOST_MARGIN_SHARE;
    run->opts.lost = on_lost;
    run->opts.lost_arg = run;
    code = session_lock(&run->session, &run->names, &run->opts, &run->lease);
    if (code == CLI_OK && drift_now(&run->acquired) != 0)
        run->acquired = 0;
    return code;
}

static int run_locked(struct run *run)
{
    int code = lock(run), released;

    if (code != CLI_OK)
        return code;
    if (!run->lost)
        code = run_command(run);
    if (code == CLI_OK && !run->lost && run->at_least_ms > 0)
        code = hold_on(run);
    run->session.on_signal = ignore_signal;
    released = release(run);
    return released != CLI_OK ? released : code;
}

/* ---- The command line ---- */

/* There is no "--" after NAME.  at_name: none is before NAME either. */
static void refuse_words(const struct cli *cli, bool at_name, int argc, char **argv)
{
    int i = optind;

    if (!at_name)
        cli_usage_error(cli, "NAME is missing before `--`");
    while (i < argc && strcmp(argv[i], "--") != 0)
        i++;
    if (i == argc)
        cli_usage_error(cli, "`--` is missing between NAME and the command");
    cli_usage_error(cli, "more than one argument before `--`: write several names as NAME,NAME");
}

/* Skip the "--" after NAME, which getopt may have skipped already. */
static void take_separator(struct run *run, struct cli *cli, bool at_name, int argc, char **argv)
{
    bool passed = argv[optind - 1] != run->name && strcmp(argv[optind - 1], "--") == 0;

    if (!passed && optind < argc && strcmp(argv[optind], "--") == 0) {
        optind++;
        passed = true;
    }
    if (!passed)
        refuse_words(cli, at_name, argc, argv);
    if (optind == argc)
        cli_usage_error(cli, "the command after `--` is missing");
    run->argv = argv + optind;
}

static void take_options(struct run *run, struct cli *cli, int argc, char **argv)
{
    int option;

    while ((option = cli_getopt(cli, argc, argv, true)) != -1) {
        if (option == OPTION_HOLD_AT_LEAST)
            run->at_least_ms = cli_duration_ms(cli, "--hold-at-least", optarg, 1, HOLD_MAX_MS);
        else if (option == OPTION_HOLD_AT_MOST)
            run->at_most_ms = cli_duration_ms(cli, "--hold-at-most", optarg, 1, HOLD_MAX_MS);
        else
            cli_take_lock_option(cli, option, &run->opts);
    }
}

static void check_options(struct run *run, struct cli *cli)
{
    if (cli->json)
        cli_usage_error(cli, "--json is not for run: its output is the command's");
    if (run->opts.ttl_ms * DRIFT_MS < DEADLINE_TTL_MIN)
        cli_usage_error(cli,
                        "--ttl is %ums, but must be at least %ums: the command must be killed "
                        "before the lock ends, and a shorter ttl leaves too little time for that",
                        run->opts.ttl_ms, drift_to_ms(DEADLINE_TTL_MIN));
    cli_check_ttl(cli, run->opts.ttl_ms);
    cli_names(cli, run->name, &run->names);
    cli_check_lock(cli, &run->names, &run->opts);
    if (run->at_least_ms > 0 && run->opts.wait_ms >= run->at_least_ms)
        cli_say(MSG_AT_LEAST,
                "--hold-at-least is not longer than --wait: a host that waits may run the "
                "command again");
}

/* Options may stand before NAME and after it.  After "--", NAME may begin with "-". */
static void parse(struct run *run, struct cli *cli, int argc, char **argv)
{
    bool at_name;

    redlock_lock_options_init(&run->opts);
    take_options(run, cli, argc, argv);
    if (optind == argc)
        cli_usage_error(cli, "arguments are missing; needed: NAME -- CMD [ARG...]");
    at_name = strcmp(argv[optind - 1], "--") != 0;
    run->name = argv[optind++];
    if (at_name)
        take_options(run, cli, argc, argv);
    take_separator(run, cli, at_name, argc, argv);
    check_options(run, cli);
}

static int run_main(struct cli *cli, int argc, char **argv)
{
    static struct run run; /* Zeroes.  It lives as long as the program. */
    int code;

    parse(&run, cli, argc, argv);
    code = command_open(&run.command, cli, run.name, run.argv);
    if (code != CLI_OK)
        return code;
    code = session_open(&run.session, cli);
    if (code == CLI_OK) {
        code = run_locked(&run);
        session_close(&run.session);
    }
    command_close(&run.command);
    cli_names_done(&run.names);
    return code;
}

const struct cli_command cli_run = {
    .name = "run",
    .options = OPTIONS_RUN,
    .run = run_main,
    .usage = "run [--fence] [--fair|--permits K|--shared] [--ttl 10s] [--wait 0|DURATION|forever]\n"
             "           [--hold-at-least DUR] [--hold-at-most DUR] [--note TEXT]\n"
             "           NAME[,NAME...] -- CMD [ARG...]",
    .help = "Hold the lock NAME while CMD runs, and renew it.  If the lock is lost, CMD and all\n"
            "its descendants get SIGTERM, and SIGKILL before the lock runs out.  CMD finds the\n"
            "name in REDLOCK_RESOURCE, and the token in REDLOCK_TOKEN.  Of several names, all\n"
            "are held, or none.  Write a comma in a name as \\,\n",
    .more =
        "Example: redlock run --hold-at-least 10m backup -- ./backup.sh\n"
        "Exit: CMD's own, 64 usage, 69 too few masters, 75 another client has the lock,\n"
        "76 lost, 77 forbidden, 78 wrong list of masters or foreign key, 124 --hold-at-most\n"
        "was over, 126 CMD cannot be executed, 127 CMD is not found, 128+n ended by signal n.\n",
};
