/*
 * run.c - `redlock run`: hold a lock for as long as a command runs.
 *
 * The library renews the lease, and the guardian sees to it that the command does not
 * outlive it: see guardian.h.  Here the two are brought together: renewals, the loss of
 * the lock, signals and the terminal.
 */
#include "redlock/cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlock/cli/family.h"
#include "redlock/cli/leash.h"
#include "redlock/cli/session.h"
#include "redlock/cli/terminal.h"

/* The library tells of a loss when a fifth of the ttl is left; see deadline.c. */
#define LOST_MARGIN_SHARE 5

/* Some programs send one request to end twice - timeout(1) to us and to our
 * group - so that only a later one means that somebody lost patience. */
#define IMPATIENT_AFTER_S 0.25

/* How often and how long to look for what a killed guardian has left.  Chosen, not measured. */
#define MOURN_EVERY_S 0.005
#define MOURN_LOOKS_MAX 1000

#define HOLD_MAX_MS (1000u * 3600000)

/* Signals that are for the command, besides those that a session watches.
 * Not those that were ignored when we were started, but SIGCONT always. */
static const int more_signals[] = {SIGCONT, SIGTSTP, SIGWINCH};
enum { MORE_SIGNALS_LEN = sizeof more_signals / sizeof *more_signals };

struct run {
    struct session session;
    struct leash leash;
    struct terminal terminal;
    char **argv;      /* The command. */
    const char *name; /* As it was written: */
    struct cli_names names;
    uint32_t ttl_ms, wait_ms, permits;
    uint32_t at_least_ms, at_most_ms; /* To hold the lock; 0: no such bound. */
    bool fence, fair, shared;
    struct redlock_lease *lease;
    drift_time acquired;
    ev_signal signals[MORE_SIGNALS_LEN];
    ev_io reports;        /* Of the guardian. */
    ev_timer mourning;    /* While what a killed guardian has left is being killed. */
    unsigned mourn_looks; /* So often it was looked for. */
    ev_tstamp asked_at;   /* When the first signal to end came; 0: none has. */
    bool hung_up;         /* The command could not have the terminal, and has got SIGHUP. */
    bool started;         /* The guardian has the order to start the command. */
    bool ended;
    bool lost;
    int failed; /* Why the command could not be started: an errno. */
    int status; /* Of the command; valid if ended. */
};

/* ---- Orders ---- */

static void signal_command(struct run *run, int signal)
{
    const struct leash_order order = {.type = LEASH_SIGNAL, .signal = signal};

    (void)leash_order(&run->leash, &order); /* A dead guardian is found by its reports. */
}

/* "REDLOCK_FENCE=N", or "REDLOCK_PERMIT=N", or nothing. */
static void write_number(const struct run *run, struct leash_order *order)
{
    if (run->fence)
        (void)snprintf(order->number, sizeof order->number, "REDLOCK_FENCE=%" PRIu64,
                       redlock_fence(run->lease));
    else if (run->permits > 0)
        (void)snprintf(order->number, sizeof order->number, "REDLOCK_PERMIT=%u",
                       redlock_permit(run->lease));
}

static int start_command(struct run *run)
{
    struct leash_order order = {.type = LEASH_START, .limit = {DRIFT_NEVER, DRIFT_NEVER}};

    order.gets_tty = terminal_is_free(&run->terminal);
    order.margins =
        deadline_margins(run->ttl_ms * DRIFT_MS, redlock_remaining_ms(run->lease) * DRIFT_MS);
    if (run->at_most_ms > 0) {
        order.limit.ask = drift_add(run->acquired, run->at_most_ms * DRIFT_MS);
        order.limit.kill = drift_add(order.limit.ask, order.margins.ask - order.margins.kill);
    }
    (void)snprintf(order.token, sizeof order.token, "%s", redlock_token(run->lease));
    write_number(run, &order);
    leash_renew(&run->leash, run->lease);
    run->started = true;
    return leash_order(&run->leash, &order);
}

/* ---- The end of the lease ---- */

static void say_lost(const struct run *run, const char *why, uint32_t left_ms)
{
    char name[CLI_NAMES_SHOWN_MAX];

    cli_say("lost the lock %s: %s, %u ms left", cli_show_name(run->name, name), why, left_ms);
}

/* Act first and speak then, here and below. */
static void on_lost(struct redlock_lease *lease, void *arg)
{
    const struct leash_order order = {.type = LEASH_END};
    struct run *run = arg;
    uint32_t left_ms = redlock_remaining_ms(lease);

    if (run->lost)
        return; /* The guardian was quicker. */
    run->lost = true;
    if (run->started && !run->ended) {
        leash_renew(&run->leash, lease);
        (void)leash_order(&run->leash, &order);
    }
    say_lost(run, left_ms > 0 ? "it could not be renewed" : "it is not held any more", left_ms);
}

/* ---- The end of the command ---- */

static uint32_t whole_ms(int64_t ns)
{
    return ns > 0 ? drift_to_ms((drift_span)ns) : 0;
}

static void say_killed(const struct run *run, const struct leash_report *report)
{
    if (!run->lost || report->ended_ns == LEASH_GONE)
        cli_say("killed the command");
    else if (report->ended_ns > 0)
        cli_say("killed the command, %u ms before the lock runs out", whole_ms(report->ended_ns));
    else
        cli_say("killed the command, %u ms after the lock ran out", whole_ms(-report->ended_ns));
}

static void on_ended(struct run *run, const struct leash_report *report)
{
    run->ended = true;
    run->status = report->code;
    if (report->why == LEASH_AT_DEADLINE && !run->lost) {
        run->lost = true;
        say_lost(run, "it was not renewed in time", whole_ms(report->asked_ns));
    }
    if (report->why == LEASH_AT_LIMIT) {
        run->status = CLI_TIMED_OUT;
        cli_say("the command had not ended when --hold-at-most was over");
    }
    if (report->killed)
        say_killed(run, report);
    if (report->cleared)
        cli_say("ended what the command had left running in its process group");
    if (report->survivors > 0)
        cli_say("%u processes that the command started could not be killed", report->survivors);
}

/* The guardian was killed, and the command with it.  Its orphans are ours now, unless we had
 * children of others from the start. */
static void on_mourning(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct run *run = timer->data;
    struct family_count count = {0, 0, 0};

    (void)events;
    if (run->leash.had_children)
        count.alive = run->terminal.command != 0 && kill(-run->terminal.command, SIGKILL) == 0;
    else
        count = family_signal(SIGKILL, 0);
    leash_bury(&run->leash);
    if (count.alive + count.zombies > 0 && ++run->mourn_looks < MOURN_LOOKS_MAX)
        return;
    ev_timer_stop(loop, timer);
    run->ended = true;
    run->status = CLI_SIGNAL + SIGKILL;
    if (run->leash.had_children || !family_is_known())
        cli_say("the guardian was killed, and the command with it; what that had started may run");
    else
        cli_say("the guardian was killed, and the command with all that it had started");
    if (count.alive + count.immune > 0)
        cli_say("%u processes that the command started could not be killed",
                count.alive + count.immune);
}

static void on_guardian_dead(struct run *run)
{
    ev_io_stop(run->session.loop, &run->reports);
    ev_timer_start(run->session.loop, &run->mourning);
    ev_feed_event(run->session.loop, &run->mourning, EV_TIMER);
}

/* ---- Signals ---- */

static struct run *run_of(struct session *session)
{
    return (struct run *)(void *)((char *)session - offsetof(struct run, session));
}

static bool asks_to_end(int signal)
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

/* Of a session: those that would have ended us. */
static void on_ending_signal(struct session *session, int signal)
{
    struct run *run = run_of(session);
    ev_tstamp now = ev_time();

    if (run->ended)
        return;
    if (asks_to_end(signal) && run->asked_at != 0 && now > run->asked_at + IMPATIENT_AFTER_S) {
        signal_command(run, SIGKILL);
        cli_say("second signal: SIGKILL to the command");
        return;
    }
    if (asks_to_end(signal) && run->asked_at == 0)
        run->asked_at = now;
    signal_command(run, signal);
}

/* We go on after a stop.  A command whose lease ran out meanwhile is dead. */
static void go_on(struct run *run)
{
    if (redlock_remaining_ms(run->lease) == 0)
        return;
    terminal_give(&run->terminal);
    signal_command(run, SIGCONT);
}

static void on_more_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct run *run = watcher->data;

    (void)loop, (void)events;
    if (run->ended)
        return;
    if (watcher->signum == SIGCONT)
        go_on(run);
    else
        signal_command(run, watcher->signum);
}

/* ---- Stops ---- */

static ev_signal *find_tstp(struct run *run)
{
    for (unsigned i = 0; i < MORE_SIGNALS_LEN; i++)
        if (run->signals[i].signum == SIGTSTP && ev_is_active(&run->signals[i]))
            return &run->signals[i];
    return NULL; /* It was ignored from the start. */
}

/*
 * Stop, and with us our process group or not.  False: we did not.  The kernel drops
 * SIGTSTP where the process group is orphaned: no shell would continue it.  A process that
 * was stopped has got SIGCONT when it runs again.
 */
static bool stop(struct run *run, bool our_group)
{
    struct ev_loop *loop = run->session.loop;
    ev_signal *tstp = find_tstp(run);
    sigset_t cont, pending;

    if (tstp == NULL)
        return false;
    (void)sigemptyset(&cont);
    (void)sigaddset(&cont, SIGCONT);
    (void)sigprocmask(SIG_BLOCK, &cont, NULL);
    ev_signal_stop(loop, tstp); /* Back to what it does by default. */
    (void)kill(our_group ? 0 : getpid(), SIGTSTP);
    (void)sigpending(&pending);
    ev_signal_start(loop, tstp);
    (void)sigprocmask(SIG_UNBLOCK, &cont, NULL); /* on_more_signal() does the rest. */
    return sigismember(&pending, SIGCONT) == 1;
}

/*
 * Stop as the command did, so that the shell notices: the lock is not renewed any more, and
 * unless we are continued in time, it is lost.  Everybody in our group would have been
 * stopped by ^Z, had the terminal not been the command's.  Where we cannot be stopped,
 * the command goes on, as it would without us.
 */
static void stop_as_well(struct run *run, bool our_group)
{
    terminal_take(&run->terminal);
    if (!stop(run, our_group))
        go_on(run);
}

/* A command in the background wants the terminal.  Where nobody can bring us to the
 * foreground, it gets what the kernel gives to stopped processes that are orphaned: SIGHUP;
 * and if it tries again, SIGKILL. */
static void on_wants_terminal(struct run *run)
{
    if (terminal_we_have_it(&run->terminal)) {
        go_on(run);
    } else if (!stop(run, true)) {
        signal_command(run, run->hung_up ? SIGKILL : SIGHUP);
        run->hung_up = true;
        go_on(run);
    }
}

static void on_stopped(struct run *run, int signal)
{
    if (signal == SIGTSTP)
        stop_as_well(run, terminal_command_has_it(&run->terminal));
    else if ((signal == SIGTTIN || signal == SIGTTOU) && run->terminal.is_ours)
        on_wants_terminal(run);
    /* Whoever sent SIGSTOP lets it go on. */
}

/* ---- Reports ---- */

static void on_report(struct run *run, const struct leash_report *report)
{
    switch (report->type) {
    case LEASH_STARTED:
        run->terminal.command = report->pid;
        break;
    case LEASH_FAILED:
        run->failed = report->error;
        run->ended = true;
        break;
    case LEASH_STOPPED:
        on_stopped(run, report->signal);
        break;
    case LEASH_ENDED:
        on_ended(run, report);
        break;
    }
}

static void on_reports(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct run *run = watcher->data;
    struct leash_report report;
    int got = 0;

    (void)loop, (void)events;
    while (!run->ended && (got = leash_report(&run->leash, &report)) > 0)
        on_report(run, &report);
    if (!run->ended && got < 0)
        on_guardian_dead(run);
}

static void watch(struct run *run)
{
    struct ev_loop *loop = run->session.loop;
    struct sigaction action;

    for (unsigned i = 0; i < MORE_SIGNALS_LEN; i++) {
        ev_signal_init(&run->signals[i], on_more_signal, more_signals[i]);
        run->signals[i].data = run;
        (void)sigaction(more_signals[i], NULL, &action);
        if (action.sa_handler == SIG_IGN && more_signals[i] != SIGCONT)
            continue;
        ev_signal_start(loop, &run->signals[i]);
        session_unblock(more_signals[i]);
    }
    ev_io_init(&run->reports, on_reports, run->leash.socket, EV_READ);
    run->reports.data = run;
    ev_io_start(loop, &run->reports);
    ev_timer_init(&run->mourning, on_mourning, MOURN_EVERY_S, MOURN_EVERY_S);
    run->mourning.data = run;
    run->session.on_signal = on_ending_signal;
}

static void unwatch(struct run *run)
{
    struct ev_loop *loop = run->session.loop;

    for (unsigned i = 0; i < MORE_SIGNALS_LEN; i++)
        ev_signal_stop(loop, &run->signals[i]);
    ev_io_stop(loop, &run->reports);
    ev_timer_stop(loop, &run->mourning);
}

/* ---- The command ---- */

/* With the lock: CLI_OK when the command has ended, however. */
static int run_command(struct run *run)
{
    terminal_open(&run->terminal);
    watch(run);
    cli_never_wait();
    if (start_command(run) != 0) {
        run->failed = EPIPE; /* Somebody killed the guardian. */
        run->ended = true;
    }
    while (!run->ended) {
        leash_renew(&run->leash, run->lease);
        ev_run(run->session.loop, EVRUN_ONCE);
    }
    terminal_take(&run->terminal);
    unwatch(run);
    if (run->failed != 0) {
        cli_say("cannot start a process: %s", strerror(run->failed));
        return CLI_INTERNAL;
    }
    return CLI_OK;
}

/* ---- Holding it for longer ---- */

static void on_hold_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events; /* That the loop turns is all it is for. */
}

static void on_signal_while_holding(struct session *session, int signal)
{
    session->signal = signal;
}

/* After a command that succeeded: until --hold-at-least is over, the lock is lost, or a
 * signal comes, whose exit code this is. */
static int hold_on(struct run *run)
{
    drift_time until = drift_add(run->acquired, run->at_least_ms * DRIFT_MS), now;
    struct ev_loop *loop = run->session.loop;
    ev_timer timer;

    run->session.on_signal = on_signal_while_holding;
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
    cli_say("a signal came: the lock is released before --hold-at-least is over");
    return session_signal_exit(&run->session);
}

/* The command has ended, or was not started. */
static int release(struct run *run)
{
    char name[CLI_NAMES_SHOWN_MAX];
    int code;

    run->session.quiet = run->lost; /* The worse has been said. */
    run->session.signal = 0;        /* The release is short, and must be told. */
    code = session_unlock(&run->session, run->lease);
    if (run->lost)
        return CLI_LOST;
    if (code == CLI_LOST) {
        cli_say("the lock %s was lost while the command ran", cli_show_name(run->name, name));
        return CLI_LOST;
    }
    if (code == CLI_UNREACHABLE)
        cli_say("the lock %s may be held for %u ms more", cli_show_name(run->name, name),
                run->ttl_ms);
    return CLI_OK;
}

static int lock(struct run *run)
{
    struct redlock_lock_options opts;
    int code;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = run->ttl_ms;
    opts.wait_ms = run->wait_ms;
    opts.fence = run->fence;
    opts.permits = run->permits;
    opts.fair = run->fair;
    opts.shared = run->shared;
    opts.lost_margin_ms = run->ttl_ms / LOST_MARGIN_SHARE;
    opts.lost = on_lost;
    opts.lost_arg = run;
    code = session_lock(&run->session, &run->names, &opts, &run->lease);
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
    run->ended = true;
    if (code == CLI_OK && !run->lost)
        code = run->status;
    if (code == CLI_OK && !run->lost && run->at_least_ms > 0)
        code = hold_on(run);
    run->session.on_signal = on_ending_signal; /* Which does nothing any more. */
    released = release(run);
    return released != CLI_OK ? released : code;
}

/* ---- The command line ---- */

/* "NAME --" has been read up to its "--", which getopt may have passed already. */
static void take_separator(struct run *run, struct cli *cli, int argc, char **argv)
{
    bool passed = argv[optind - 1] != run->name && strcmp(argv[optind - 1], "--") == 0;

    if (!passed && optind < argc && strcmp(argv[optind], "--") == 0) {
        optind++;
        passed = true;
    }
    if (!passed)
        cli_usage_error(cli, "`--` is missing between NAME and the command");
    if (optind == argc)
        cli_usage_error(cli, "the command after `--` is missing");
    run->argv = argv + optind;
}

static void take_options(struct run *run, struct cli *cli, int argc, char **argv)
{
    static const struct option own[] = {
        {"ttl", required_argument, NULL, CLI_OPTION_FIRST},
        {"wait", required_argument, NULL, CLI_OPTION_FIRST + 1},
        {"fence", no_argument, NULL, CLI_OPTION_FIRST + 2},
        {"permits", required_argument, NULL, CLI_OPTION_FIRST + 3},
        {"fair", no_argument, NULL, CLI_OPTION_FIRST + 4},
        {"shared", no_argument, NULL, CLI_OPTION_FIRST + 5},
        {"hold-at-least", required_argument, NULL, CLI_OPTION_FIRST + 6},
        {"hold-at-most", required_argument, NULL, CLI_OPTION_FIRST + 7},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = cli_getopt(cli, argc, argv, true, own)) != -1) {
        if (option == CLI_OPTION_FIRST)
            run->ttl_ms = cli_duration_ms(cli, "--ttl", optarg, 1, 86400000);
        else if (option == CLI_OPTION_FIRST + 2)
            run->fence = true;
        else if (option == CLI_OPTION_FIRST + 3)
            run->permits = cli_permits(cli, optarg);
        else if (option == CLI_OPTION_FIRST + 4)
            run->fair = true;
        else if (option == CLI_OPTION_FIRST + 5)
            run->shared = true;
        else if (option == CLI_OPTION_FIRST + 6)
            run->at_least_ms = cli_duration_ms(cli, "--hold-at-least", optarg, 1, HOLD_MAX_MS);
        else if (option == CLI_OPTION_FIRST + 7)
            run->at_most_ms = cli_duration_ms(cli, "--hold-at-most", optarg, 1, HOLD_MAX_MS);
        else
            run->wait_ms = cli_wait_ms(cli, optarg);
    }
}

static void check_options(struct run *run, struct cli *cli)
{
    cli_check_ttl(cli, run->ttl_ms);
    if (cli->json)
        cli_usage_error(cli, "--json is not for run: its output is the command's");
    if (run->at_most_ms > 0 && run->at_least_ms > run->at_most_ms)
        cli_usage_error(cli, "--hold-at-least is longer than --hold-at-most");
}

/* Options may come before NAME and after it; a NAME after "--" may be anything. */
static void parse(struct run *run, struct cli *cli, int argc, char **argv)
{
    bool at_name;

    run->ttl_ms = 10000;
    take_options(run, cli, argc, argv);
    if (optind == argc)
        cli_usage_error(cli, "arguments are missing; needed: NAME -- CMD [ARG...]");
    at_name = strcmp(argv[optind - 1], "--") != 0;
    run->name = argv[optind++];
    if (at_name)
        take_options(run, cli, argc, argv);
    take_separator(run, cli, argc, argv);
    check_options(run, cli);
    cli_names(cli, run->name, &run->names);
}

static int run_main(struct cli *cli, int argc, char **argv)
{
    static struct run run; /* Zeroes, and lives as long as the program. */
    int code;

    parse(&run, cli, argc, argv);
    if (leash_open(&run.leash, cli, run.name, run.argv) != 0) {
        cli_say("cannot start a process: %s", strerror(errno));
        return CLI_INTERNAL;
    }
    code = session_open(&run.session, cli);
    if (code == CLI_OK) {
        code = run_locked(&run);
        session_close(&run.session);
    }
    leash_close(&run.leash);
    cli_names_done(&run.names);
    return code;
}

const struct cli_command cli_run = {
    .name = "run",
    .run = run_main,
    .usage = "run [--fair|--fence|--shared] [--permits K] [--ttl 10s] [--wait 0|DURATION|forever]\n"
             "           [--hold-at-least DUR] [--hold-at-most DUR] NAME[,NAME...] -- CMD [ARG...]",
    .help =
        "Hold the lock NAME while CMD runs, renewing it.  If the lock is lost, CMD and what\n"
        "it started get SIGTERM, and SIGKILL before the lock runs out.  CMD finds the name\n"
        "and the token in REDLOCK_RESOURCE and REDLOCK_TOKEN.  Of several names all are\n"
        "held, or none; a name with a comma is written with \\, in its place.\n"
        "\n"
        "  --fair                 wait in a queue: of those who do, first come, first served\n"
        "  --fence                draw a fencing token, for CMD in REDLOCK_FENCE\n"
        "  --hold-at-least DUR    after CMD succeeded, keep the lock until so long after it was\n"
        "                         acquired: for short jobs of hosts whose clocks differ\n"
        "  --hold-at-most DUR     so long after it was acquired end CMD: SIGTERM, then SIGKILL\n"
        "  --permits K            hold one of K permits, which as many may hold at once;\n"
        "                         for CMD its number, from 1, is in REDLOCK_PERMIT\n"
        "  --shared               hold it together with others who do so\n"
        "  --ttl DUR              how long the lock outlives a crash (10s)\n"
        "  --wait DUR|forever     how long to try, if another has it (0)\n"
        "\n"
        "Exit: CMD's own, 64 usage, 69 too few masters, 75 held by another, 76 lost,\n"
        "124 --hold-at-most was over, 126 CMD cannot be executed, 127 CMD is not found,\n"
        "128+n ended by signal n.\n",
};
