/*
 * run.c - `redlock run`: hold a lock for as long as a command runs.
 *
 * The library renews the lease.  Here it is seen to that the command does not
 * outlive it: what ends the lease ends the command, before the deadline.
 */
#include "redlock/cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlock/cli/child.h"
#include "redlock/cli/session.h"

/* When the lease cannot be renewed, the command is asked to end when so much
 * of the ttl is left, and killed at the end of that: with 10 s, it has 1.5 s
 * to clean up, and is dead 0.5 s before the deadline.  No source; a fifth of
 * the ttl leaves half of it (from a third on) for attempts to renew. */
#define LOST_MARGIN_SHARE 5
#define KILL_MARGIN_SHARE 4 /* Of the time that is left then, */
#define KILL_MARGIN_MAX_MS 500

/* Some programs send one request to end twice - timeout(1) to us and to our
 * group - so that only a later one means that somebody lost patience. */
#define IMPATIENT_AFTER_S 0.25

/* Signals that are for the command, besides those that a session watches.
 * Not those that were ignored when we were started. */
static const int more_signals[] = {SIGCONT, SIGTSTP, SIGWINCH};
enum { MORE_SIGNALS_LEN = sizeof more_signals / sizeof *more_signals };

struct run {
    struct session session;
    struct child child;
    const char *name; /* As it was written: */
    struct cli_names names;
    uint32_t ttl_ms, wait_ms, permits;
    bool fence, fair, shared;
    struct redlock_lease *lease;
    ev_signal signals[MORE_SIGNALS_LEN];
    ev_signal child_signals;
    ev_timer kill_timer;
    ev_tstamp asked_at; /* When the first signal to end came; 0: none has. */
    bool ended;
    bool lost;
    int status; /* Of the command; valid if ended. */
};

/* ---- The end of the lease ---- */

/* Act first and speak then, here and below. */
static void kill_command(struct run *run)
{
    uint32_t left_ms = redlock_remaining_ms(run->lease);

    child_signal(&run->child, SIGKILL);
    cli_say("killed the command, %u ms before the lock runs out", left_ms);
}

static void on_kill_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    kill_command(timer->data);
}

/* Let it end by itself, if there is time for that. */
static void end_command(struct run *run, uint32_t left_ms)
{
    uint32_t margin_ms = left_ms / KILL_MARGIN_SHARE;

    if (left_ms == 0) {
        kill_command(run);
        return;
    }
    child_signal(&run->child, SIGTERM);
    child_signal(&run->child, SIGCONT); /* Or a stopped one would not hear of it. */
    if (margin_ms > KILL_MARGIN_MAX_MS)
        margin_ms = KILL_MARGIN_MAX_MS;
    ev_now_update(run->session.loop);
    ev_timer_set(&run->kill_timer, (left_ms - margin_ms) / 1e3, 0);
    ev_timer_start(run->session.loop, &run->kill_timer);
}

static void on_lost(struct redlock_lease *lease, void *arg)
{
    struct run *run = arg;
    uint32_t left_ms = redlock_remaining_ms(lease);
    char name[CLI_NAMES_SHOWN_MAX];

    run->lost = true;
    if (run->child.pid != 0 && !run->ended)
        end_command(run, left_ms);
    cli_say("lost the lock %s: %s, %u ms left", cli_show_name(run->name, name),
            left_ms > 0 ? "it could not be renewed" : "it is not held any more", left_ms);
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
        child_signal(&run->child, SIGKILL);
        cli_say("second signal: killed the command");
        return;
    }
    if (asks_to_end(signal) && run->asked_at == 0)
        run->asked_at = now;
    child_signal(&run->child, signal);
}

/* We go on after a stop.  A lease that ran out meanwhile is found lost when
 * its timer rings; the command must not run until then. */
static void go_on(struct run *run)
{
    if (redlock_remaining_ms(run->lease) == 0)
        return;
    child_give_tty(&run->child);
    child_signal(&run->child, SIGCONT);
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
        child_signal(&run->child, watcher->signum);
}

/*
 * Stop as the command did, so that the shell notices: the lock is not renewed
 * any more, and unless we are continued in time, it is lost.  Everybody in our
 * group would have been stopped by ^Z, had the terminal not been the child's.
 */
static void stop_as_well(struct run *run, bool our_group)
{
    struct ev_loop *loop = run->session.loop;
    ev_signal *tstp = NULL;

    for (unsigned i = 0; i < MORE_SIGNALS_LEN; i++)
        if (run->signals[i].signum == SIGTSTP && ev_is_active(&run->signals[i]))
            tstp = &run->signals[i];
    if (tstp == NULL)
        return; /* It was ignored from the start. */
    child_take_tty(&run->child);
    ev_signal_stop(loop, tstp); /* Back to what it does by default, */
    (void)kill(our_group ? 0 : getpid(), SIGTSTP);
    ev_signal_start(loop, tstp); /* and SIGCONT does the rest. */
}

static void on_child_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct run *run = watcher->data;

    (void)loop, (void)events;
    while (!run->ended) {
        switch (child_look(&run->child, run->lost, &run->status)) {
        case CHILD_NOTHING:
            return;
        case CHILD_ENDED:
            run->ended = true;
            break;
        case CHILD_STOPPED:
            break;
        case CHILD_STOPPED_BY_TTY:
            stop_as_well(run, true);
            break;
        case CHILD_STOPPED_BY_TSTP:
            stop_as_well(run, false);
            break;
        case CHILD_WANTS_TTY:
            if (child_we_have_tty(&run->child))
                go_on(run);
            else
                stop_as_well(run, true);
            break;
        }
    }
}

static void watch(struct run *run)
{
    struct ev_loop *loop = run->session.loop;
    struct sigaction action;

    for (unsigned i = 0; i < MORE_SIGNALS_LEN; i++) {
        ev_signal_init(&run->signals[i], on_more_signal, more_signals[i]);
        run->signals[i].data = run;
        (void)sigaction(more_signals[i], NULL, &action);
        if (action.sa_handler != SIG_IGN)
            ev_signal_start(loop, &run->signals[i]);
    }
    ev_signal_init(&run->child_signals, on_child_signal, SIGCHLD);
    run->child_signals.data = run;
    ev_signal_start(loop, &run->child_signals);
    ev_timer_init(&run->kill_timer, on_kill_timer, 0, 0);
    run->kill_timer.data = run;
    run->session.on_signal = on_ending_signal;
}

static void unwatch(struct run *run)
{
    struct ev_loop *loop = run->session.loop;

    for (unsigned i = 0; i < MORE_SIGNALS_LEN; i++)
        ev_signal_stop(loop, &run->signals[i]);
    ev_signal_stop(loop, &run->child_signals);
    ev_timer_stop(loop, &run->kill_timer);
}

/* ---- The command ---- */

static char *make_variable(const char *name, const char *value)
{
    char *text;

    return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

static bool is_ours(const char *variable)
{
    return strncmp(variable, "REDLOCK_RESOURCE=", 17) == 0 ||
           strncmp(variable, "REDLOCK_TOKEN=", 14) == 0 ||
           strncmp(variable, "REDLOCK_FENCE=", 14) == 0 ||
           strncmp(variable, "REDLOCK_PERMIT=", 15) == 0;
}

/* "REDLOCK_FENCE=N", or "REDLOCK_PERMIT=N"; NULL without memory. */
static char *make_number(const struct run *run)
{
    char digits[24];

    if (run->fence)
        (void)snprintf(digits, sizeof digits, "%" PRIu64, redlock_fence(run->lease));
    else
        (void)snprintf(digits, sizeof digits, "%u", redlock_permit(run->lease));
    return make_variable(run->fence ? "REDLOCK_FENCE" : "REDLOCK_PERMIT", digits);
}

/* Not setenv(): a thread that looks up a name may be in getenv(). */
static char **make_environment(const struct run *run)
{
    bool has_number = run->fence || run->permits > 0; /* Never both. */
    size_t len = 0, kept = 0;
    char **envp;

    while (environ[len] != NULL)
        len++;
    envp = calloc(len + 4, sizeof *envp);
    if (envp == NULL)
        return NULL;
    for (size_t i = 0; i < len; i++)
        if (!is_ours(environ[i]))
            envp[kept++] = environ[i];
    envp[kept] = make_variable("REDLOCK_RESOURCE", run->name);
    envp[kept + 1] = make_variable("REDLOCK_TOKEN", redlock_token(run->lease));
    if (has_number)
        envp[kept + 2] = make_number(run);
    if (envp[kept] == NULL || envp[kept + 1] == NULL || (has_number && envp[kept + 2] == NULL))
        return NULL;
    return envp;
}

/* With the lock: CLI_OK when the command has ended, however. */
static int run_command(struct run *run)
{
    run->child.envp = make_environment(run);
    if (run->child.envp == NULL) {
        cli_say("out of memory");
        return CLI_INTERNAL;
    }
    run->child.mask = run->session.mask_before;
    run->child.pipe_after = run->session.pipe_before;
    watch(run);
    if (child_start(&run->child) != 0) {
        cli_say("cannot start a process: %s", strerror(errno));
        unwatch(run);
        return CLI_INTERNAL;
    }
    cli_never_wait();
    while (!run->ended)
        ev_run(run->session.loop, EVRUN_ONCE);
    child_take_tty(&run->child);
    unwatch(run);
    return CLI_OK;
}

/* The command has ended, or was not started. */
static int release(struct run *run)
{
    char name[CLI_NAMES_SHOWN_MAX];
    int code;

    run->session.quiet = run->lost; /* The worse has been said. */
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

static int run_locked(struct run *run)
{
    struct redlock_lock_options opts;
    int code, released = CLI_OK;

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
    if (code != CLI_OK)
        return code;
    if (!run->lost)
        code = run_command(run);
    run->session.on_signal = on_ending_signal; /* Which does nothing any more: */
    run->ended = true;                         /* the release is short, and must be told. */
    released = release(run);
    if (released != CLI_OK)
        return released;
    return code != CLI_OK ? code : run->status;
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
    run->child.argv = argv + optind;
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
        else
            run->wait_ms = cli_wait_ms(cli, optarg);
    }
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
    cli_check_ttl(cli, run->ttl_ms);
    cli_names(cli, run->name, &run->names);
}

static int run_main(struct cli *cli, int argc, char **argv)
{
    static struct run run; /* Zeroes, and lives as long as the program. */
    int code;

    parse(&run, cli, argc, argv);
    code = session_open(&run.session, cli);
    if (code != CLI_OK)
        return code;
    code = run_locked(&run);
    session_close(&run.session);
    cli_names_done(&run.names);
    return code;
}

const struct cli_command cli_run = {
    .name = "run",
    .run = run_main,
    .usage = "run [--fair|--fence|--shared] [--permits K] [--ttl 10s] [--wait 0|DURATION|forever]\n"
             "           NAME[,NAME...] -- CMD [ARG...]",
    .help = "Hold the lock NAME while CMD runs, renewing it.  If the lock is lost, CMD gets\n"
            "SIGTERM, and SIGKILL before the lock runs out.  CMD finds the name and the token\n"
            "in REDLOCK_RESOURCE and REDLOCK_TOKEN.  Of several names all are held, or none; a\n"
            "name with a comma is written with \\, in its place.\n"
            "\n"
            "  --fair                 wait in a queue: of those who do, first come, first served\n"
            "  --fence                draw a fencing token, for CMD in REDLOCK_FENCE\n"
            "  --permits K            hold one of K permits, which as many may hold at once;\n"
            "                         for CMD its number, from 1, is in REDLOCK_PERMIT\n"
            "  --shared               hold it together with others who do so\n"
            "  --ttl DUR              how long the lock outlives a crash (10s)\n"
            "  --wait DUR|forever     how long to try, if another has it (0)\n"
            "\n"
            "Exit: CMD's own, 64 usage, 69 too few masters, 75 held by another, 76 lost,\n"
            "126 CMD cannot be executed, 127 CMD is not found, 128+n ended by signal n.\n",
};
