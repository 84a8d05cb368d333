/*
 * command.c - sends orders to the guardian, and handles its reports, signals and the terminal.
 */
#include "redlock/cli/run/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redlock/cli/run/family.h"

/* A second signal to end kills the command only if it comes later than this after the first.  A
 * program may send one request twice: timeout(1) does, to us and to our group.  Chosen. */
#define IMPATIENT_AFTER (250 * DRIFT_MS)

/* How long after a signal to say that the command has not ended.  Chosen: as long as a wait for a
 * lock is without a message. */
#define NOT_ENDED_AFTER_S 5

/* How often to search for processes that a killed guardian left, and how long at a time.  Chosen:
 * with the shortest ttl, 500 ms, renewals still come in time. */
#define MOURN_EVERY_S 0.005
#define MOURN_FOR (50 * DRIFT_MS)

/* How often to continue a stopped guardian that must end the command.  Chosen: a fifth of 25 ms,
 * the shortest time between SIGKILL and the end of a lease. */
#define WAKE_EVERY_S 0.005

/* More signals that are passed on to the command; a session watches the others.  A signal that was
 * ignored when we were started is not watched, except SIGCONT. */
static const int more_signals[COMMAND_SIGNALS_LEN] = {SIGCONT, SIGTSTP, SIGWINCH};

static void signal_command(struct command *command, int signal)
{
    const struct leash_order order = {.type = LEASH_SIGNAL, .signal = signal};

    command->signals_sent++;
    (void)leash_order(&command->leash, &order); /* on_reports() notices a dead guardian. */
}

void command_end(struct command *command)
{
    const struct leash_order order = {.type = LEASH_END};

    if (!command->started)
        command->ended = true;
    if (command->ended)
        return;
    leash_renew(&command->leash, command->lease);
    (void)leash_order(&command->leash, &order);
    ev_timer_start(command->session->loop, &command->waking);
}

/* ---- The guardian is dead ---- */

/* Kill the process group of the command.  If its number is unknown, it may not be signalled. */
static struct family_count kill_group(const struct command *command)
{
    pid_t group = command->terminal.command;
    struct family_count count = {.alive = 0};

    if (group != 0 && kill(-group, SIGKILL) == 0)
        count.alive = 1;
    else if (group == 0 || errno == EPERM)
        count.immune = 1;
    return count;
}

/* The guardian ends before `redlock` only if it cannot send its last report. */
static bool say_unreported(struct command *command)
{
    if (command->leash.pid != 0 || !WIFEXITED(command->leash.status))
        return false;
    command->end.code = CLI_INTERNAL;
    cli_say(MSG_SYSTEM, "the command has ended, and the guardian could not report how: send fails");
    return true;
}

static void say_group_dead(const struct family_count *count)
{
    if (count->alive + count->immune > 0)
        cli_say(MSG_GUARDIAN_KILLED,
                "the guardian was killed, and the command could not be killed: it and its "
                "descendants may still run");
    else
        cli_say(MSG_GUARDIAN_KILLED,
                "the guardian was killed, and the command with it; its descendants may still run");
}

static void say_all_dead(struct command *command, const struct family_count *count)
{
    if (!family_is_there()) {
        cli_say(MSG_GUARDIAN_KILLED,
                "the guardian was killed, and the command with all that it had started");
        return;
    }
    command->end.survivors = count->alive + count->immune;
    command->end.hidden = count->hidden;
    cli_say(MSG_GUARDIAN_KILLED,
            "the guardian was killed, and not all that the command had started could be killed: "
            "some of it may still run");
}

/* True: they can be killed, or may still end. */
static bool may_end(const struct command *command, bool only_group,
                    const struct family_count *count, drift_time now)
{
    const drift_time since = command->mourned_at;

    if (!only_group)
        return family_may_end(count, now, since);
    return (count->alive > 0 && now < drift_add(since, FAMILY_LOOK_FOR)) ||
           (count->immune > 0 && now < drift_add(since, FAMILY_WAIT_FOR));
}

/* The guardian was killed, and the kernel killed the command, unless it is a set-user-ID program or
 * has changed its user.  We inherited its orphans, and kill them.  If we had children of another
 * program from the start, or cannot see our processes in /proc, we kill only the group of the
 * command. */
static void on_mourning(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct command *command = timer->data;
    bool only_group = command->leash.had_children || !family_is_known();
    struct family_count count;
    drift_time now;

    (void)events;
    leash_bury(&command->leash);
    if (drift_now(&now) != 0)
        now = DRIFT_NEVER - 1; /* Without a clock the time is over. */
    else if (command->mourned_at == 0)
        command->mourned_at = now;
    count = only_group ? kill_group(command) : family_kill(drift_add(now, MOURN_FOR));
    if (may_end(command, only_group, &count, now))
        return;
    ev_timer_stop(loop, timer);
    command->ended = true;
    command->end.code = CLI_SIGNAL + SIGKILL;
    if (say_unreported(command))
        return;
    if (only_group)
        say_group_dead(&count);
    else
        say_all_dead(command, &count);
}

static void on_guardian_dead(struct command *command)
{
    ev_io_stop(command->session->loop, &command->reports);
    ev_timer_stop(command->session->loop, &command->waking);
    ev_timer_start(command->session->loop, &command->mourning);
    ev_feed_event(command->session->loop, &command->mourning, EV_TIMER);
}

/* ---- Signals ---- */

static bool asks_to_end(int signal)
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

/* The command has got a signal that asks it to end, and works on. */
static void on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
    const struct command *command = timer->data;
    char bound[64] = "";
    drift_time now;

    (void)loop, (void)events;
    if (redlock_remaining_ms(command->lease) == 0)
        return; /* The lock is lost, and the guardian ends the command. */
    if (command->limit != DRIFT_NEVER && drift_now(&now) == 0)
        (void)snprintf(bound, sizeof bound, ", for at most %u s more (--hold-at-most)",
                       drift_to_ms(drift_until(now, command->limit)) / 1000);
    cli_say(MSG_NOT_ENDED,
            "the command got the signal, and has not ended: the lock is held until it ends%s; a "
            "second signal kills it",
            bound);
}

/* The session passes on the signals that would have ended us. */
static void on_ending_signal(struct session *session, int signal)
{
    struct command *command = session->on_signal_arg;
    drift_time now;

    if (command->ended) {
        command->late_signal = signal;
        return;
    }
    command->got[signal] = true;
    command->last_signal = signal;
    command->last_sent = command->signals_sent + 1;
    if (drift_now(&now) != 0)
        now = DRIFT_NEVER - 1; /* If the clock fails, the second signal counts. */
    if (asks_to_end(signal) && command->asked_at != 0 &&
        now > drift_add(command->asked_at, IMPATIENT_AFTER)) {
        ev_timer_stop(session->loop, &command->patience);
        signal_command(command, SIGKILL);
        cli_say(MSG_COMMAND_KILLED,
                "second signal: sent SIGKILL to the command and all its descendants");
        return;
    }
    if (asks_to_end(signal) && command->asked_at == 0) {
        command->asked_at = now;
        ev_timer_start(session->loop, &command->patience);
    }
    signal_command(command, signal);
}

/* Continue the command after a stop.  If the lease has run out, the guardian kills the command. */
static void go_on(struct command *command)
{
    if (redlock_remaining_ms(command->lease) == 0)
        return;
    terminal_give(&command->terminal);
    signal_command(command, SIGCONT);
}

static void on_more_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct command *command = watcher->data;

    (void)loop, (void)events;
    if (command->ended)
        return;
    if (watcher->signum == SIGCONT)
        go_on(command);
    else
        signal_command(command, watcher->signum);
}

/* ---- Stops ---- */

static ev_signal *find_tstp(struct command *command)
{
    for (unsigned i = 0; i < COMMAND_SIGNALS_LEN; i++)
        if (command->signals[i].signum == SIGTSTP && ev_is_active(&command->signals[i]))
            return &command->signals[i];
    return NULL; /* SIGTSTP was ignored from the start. */
}

/* Stop this process, or its process group.  False: it was not stopped.  The kernel drops SIGTSTP if
 * the process group is orphaned, because no shell would continue it.  A process that was stopped
 * has a pending SIGCONT when it runs again. */
static bool stop(struct command *command, bool our_group)
{
    struct ev_loop *loop = command->session->loop;
    ev_signal *tstp = find_tstp(command);
    sigset_t cont, pending;

    if (tstp == NULL)
        return false;
    (void)sigemptyset(&cont);
    (void)sigaddset(&cont, SIGCONT);
    (void)sigprocmask(SIG_BLOCK, &cont, NULL);
    ev_signal_stop(loop, tstp); /* The default action is to stop. */
    (void)kill(our_group ? 0 : getpid(), SIGTSTP);
    (void)sigpending(&pending);
    ev_signal_start(loop, tstp);
    (void)sigprocmask(SIG_UNBLOCK, &cont, NULL); /* on_more_signal() gets it. */
    return sigismember(&pending, SIGCONT) == 1;
}

/*
 * Stop as the command did, so that the shell notices.  While we are stopped, nothing renews the
 * lock, and it is lost unless we are continued in time.  our_group: the command had the terminal,
 * so ^Z did not reach our group.  If we cannot be stopped, the command goes on.
 */
static void stop_as_well(struct command *command, bool our_group)
{
    terminal_take(&command->terminal);
    if (!stop(command, our_group))
        go_on(command);
}

/* A command in the background wants the terminal.  If no shell can bring us to the foreground, the
 * command gets SIGHUP, as the kernel sends to stopped orphans.  The next time it gets SIGKILL. */
static void on_wants_terminal(struct command *command)
{
    if (terminal_we_have_it(&command->terminal)) {
        go_on(command);
    } else if (!stop(command, true)) {
        signal_command(command, command->hung_up ? SIGKILL : SIGHUP);
        command->hung_up = true;
        go_on(command);
    }
}

static void on_stopped(struct command *command, int signal)
{
    if (signal == SIGTSTP)
        stop_as_well(command, terminal_command_has_it(&command->terminal));
    else if ((signal == SIGTTIN || signal == SIGTTOU) && command->terminal.fd >= 0)
        on_wants_terminal(command);
    /* After SIGSTOP, its sender must continue the command. */
}

/* ---- Reports ---- */

/*
 * True: the process numbers of the guardian are ours.  They are not after `unshare --pid`, where
 * our children are in another PID namespace.  There the number of the command may be that of an
 * unrelated process here.  Without these files, before Linux 4.12, they count as ours.
 */
static bool shares_our_numbers(void)
{
    struct stat ours, children;

    return stat("/proc/self/ns/pid", &ours) != 0 ||
           stat("/proc/self/ns/pid_for_children", &children) != 0 ||
           (ours.st_dev == children.st_dev && ours.st_ino == children.st_ino);
}

/* About a third of the ttl is room for the end: see deadline_room(). */
static void say_crowd(const struct command *command, const struct leash_report *crowd)
{
    const uint32_t lead_ms = drift_to_ms(crowd->lead);
    char dead[64] = "";

    if (crowd->dead > 0)
        (void)snprintf(dead, sizeof dead, " (%u are zombies, which nobody has reaped)",
                       crowd->dead);
    cli_say(MSG_CROWD,
            "the command has %u descendants%s: if it must end, that may take %u ms, and --ttl %ums "
            "leaves %u ms for it: another client may get the lock before all of them are dead: use "
            "--ttl %us, or fewer processes",
            crowd->descendants, dead, lead_ms, drift_to_ms(command->ttl), drift_to_ms(crowd->room),
            lead_ms / 1000 * 3 + 3);
}

static void say_immune(const struct leash_report *immune)
{
    const bool is_lost = immune->why == LEASH_TOLD || immune->why == LEASH_AT_DEADLINE;

    cli_say(MSG_NOT_ENDED, "the command runs as another user, so it gets no signal and goes on: %s",
            is_lost ? "another client may get the lock before it ends"
                    : "the lock is held until it ends");
}

static void on_report(struct command *command, const struct leash_report *report)
{
    switch (report->type) {
    case LEASH_STARTED:
        if (shares_our_numbers())
            command->terminal.command = report->pid;
        break;
    case LEASH_FAILED:
        command->failed = report->error;
        command->ended = true;
        break;
    case LEASH_STOPPED:
        on_stopped(command, report->signal);
        break;
    case LEASH_IMMUNE:
        ev_timer_stop(command->session->loop, &command->patience);
        say_immune(report);
        break;
    case LEASH_CROWD:
        say_crowd(command, report);
        break;
    case LEASH_ENDED:
        command->ended = true;
        command->end = *report;
        if (command->last_sent > report->signals)
            command->late_signal = command->last_signal;
        break;
    }
}

static void take_reports(struct command *command)
{
    struct leash_report report;
    int got = 0;

    while (!command->ended && (got = leash_report(&command->leash, &report)) > 0)
        on_report(command, &report);
    if (!command->ended && got < 0)
        on_guardian_dead(command);
}

/* The kernel may refuse to watch the socket (ENOMEM, ENOSPC).  Then the command must end, because
 * its end would not be noticed. */
static void on_reports(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct command *command = watcher->data;

    (void)loop;
    take_reports(command);
    if (command->ended || !(events & EV_ERROR))
        return;
    command->unheard = true;
    cli_say(MSG_SYSTEM,
            "epoll_ctl fails: memory, or fs.epoll.max_user_watches, is used up: the command %s",
            command->started ? "must end" : "is not started");
    command_end(command);
}

/* Each turn of the loop continues the guardian. */
static void on_waking(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct command *command = timer->data;

    (void)loop, (void)events;
    if (command->unheard)
        take_reports(command);
}

/* Watch for reports.  In a turn without sleep libev tells of a refusal. */
static void watch_reports(struct command *command)
{
    struct ev_loop *loop = command->session->loop;

    ev_io_init(&command->reports, on_reports, command->leash.socket, EV_READ);
    ev_timer_init(&command->mourning, on_mourning, MOURN_EVERY_S, MOURN_EVERY_S);
    ev_timer_init(&command->patience, on_patience, NOT_ENDED_AFTER_S, 0);
    ev_timer_init(&command->waking, on_waking, WAKE_EVERY_S, WAKE_EVERY_S);
    command->reports.data = command->mourning.data = command->patience.data = command->waking.data =
        command;
    ev_io_start(loop, &command->reports);
    ev_run(loop, EVRUN_NOWAIT);
}

static void watch_signals(struct command *command)
{
    struct ev_loop *loop = command->session->loop;
    struct sigaction action;

    for (unsigned i = 0; i < COMMAND_SIGNALS_LEN; i++) {
        ev_signal_init(&command->signals[i], on_more_signal, more_signals[i]);
        command->signals[i].data = command;
        (void)sigaction(more_signals[i], NULL, &action);
        if (action.sa_handler == SIG_IGN && more_signals[i] != SIGCONT)
            continue;
        ev_signal_start(loop, &command->signals[i]);
        session_unblock(more_signals[i]);
    }
    command->session->on_signal = on_ending_signal;
    command->session->on_signal_arg = command;
}

static void unwatch(struct command *command)
{
    struct ev_loop *loop = command->session->loop;

    for (unsigned i = 0; i < COMMAND_SIGNALS_LEN; i++)
        ev_signal_stop(loop, &command->signals[i]);
    ev_io_stop(loop, &command->reports);
    ev_timer_stop(loop, &command->mourning);
    ev_timer_stop(loop, &command->waking);
    ev_timer_stop(loop, &command->patience);
}

/* ---- All of it ---- */

int command_open(struct command *command, struct cli *cli, const char *name, char **argv)
{
    if (leash_open(&command->leash, cli, name, argv) == 0)
        return CLI_OK;
    cli_say(MSG_SYSTEM, "cannot start a process: %s", strerror(errno));
    return CLI_INTERNAL;
}

static int start(struct command *command, struct leash_order *order)
{
    order->type = LEASH_START;
    order->gets_tty = terminal_is_free(&command->terminal);
    leash_renew(&command->leash, command->lease);
    command->started = true;
    return leash_order(&command->leash, order);
}

/* The guardian could not begin and has reported why, or it was killed, or the order was not sent.
 */
static void on_no_start(struct command *command, int error)
{
    struct leash_report report;

    command->ended = true;
    command->failed = error == EPIPE || error == ECONNRESET ? 0 : error;
    if (leash_report(&command->leash, &report) > 0 && report.type == LEASH_FAILED)
        command->failed = report.error;
    if (command->failed != 0)
        return;
    command->end.code = CLI_SIGNAL + SIGKILL;
    cli_say(MSG_GUARDIAN_KILLED, "the guardian was killed, and the command is not started");
}

int command_run(struct command *command, struct session *session, struct redlock_lease *lease,
                struct leash_order *order)
{
    command->session = session;
    command->lease = lease;
    command->limit = order->limit.kill;
    command->ttl = order->ttl;
    watch_reports(command);
    if (command->unheard || session->signal != 0) {
        unwatch(command);
        return command->unheard ? CLI_INTERNAL : session_signal_exit(session);
    }
    terminal_open(&command->terminal);
    watch_signals(command);
    cli_never_wait();
    if (!command->ended && start(command, order) != 0)
        on_no_start(command, errno);
    while (!command->ended) {
        leash_renew(&command->leash, lease);
        ev_run(session->loop, EVRUN_ONCE);
    }
    command->had_terminal = terminal_command_has_it(&command->terminal);
    terminal_take(&command->terminal);
    terminal_close(&command->terminal);
    unwatch(command);
    if (command->failed != 0) {
        cli_say(MSG_SYSTEM, "cannot start a process: %s", strerror(command->failed));
        return CLI_INTERNAL;
    }
    return CLI_OK;
}

/* ---- Messages ---- */

uint32_t command_ms(int64_t ns)
{
    return ns > 0 ? drift_to_ms((drift_span)ns) : 0;
}

static void say_killed(const struct leash_report *report, bool lost)
{
    if (!lost || report->ended_ns == LEASH_GONE)
        cli_say(MSG_COMMAND_KILLED, "killed the command");
    else if (report->ended_ns > 0)
        cli_say(MSG_COMMAND_KILLED, "killed the command, %u ms before the lock runs out",
                command_ms(report->ended_ns));
    else
        cli_say(MSG_COMMAND_KILLED, "killed the command, %u ms after the lock ran out",
                command_ms(-report->ended_ns));
}

void command_tell(const struct command *command, bool lost)
{
    const struct leash_report *end = &command->end;

    if (end->killed)
        say_killed(end, lost);
    if (end->cleared)
        cli_say(MSG_LEFT_RUNNING, "ended what the command had left running");
    if (end->survivors > 0)
        cli_say(MSG_LEFT_RUNNING, "%u processes that the command started could not be killed",
                end->survivors);
    if (end->hidden)
        cli_say(MSG_LEFT_RUNNING,
                "processes that could not be seen may be left: /proc does not show them");
}

void command_close(struct command *command)
{
    leash_close(&command->leash);
}
