/*
 * session.c - makes asynchronous calls, waits for them, and handles signals meanwhile.
 */
#include "redlock/cli/common/session.h"

#include <string.h>

#include "redlock/base/error.h"
#include "redlock/cli/common/foreign.h"
#include "redlock/cli/common/loop.h"
#include "redlock/cli/common/question.h"
#include "redlock/cli/common/refusal.h"
#include "redlock/cli/common/remark.h"
#include "redlock/client/inspect.h"

#define TICK (100 * DRIFT_MS) /* Of progress, and of a person who types.  Chosen. */
#define PATIENCE_S 5          /* Of a wait without a message.  Chosen: longer than most restarts. */

/* Signals that end a program.  While a lock is being acquired, each of them cancels this.  While a
 * command runs, the command gets them. */
static const int ending_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/* ---- Signals ---- */

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    struct session *session = watcher->data;

    (void)loop, (void)events;
    if (session->on_signal != NULL) {
        session->on_signal(session, watcher->signum);
        return;
    }
    if (session->signal == 0)
        session->signal = watcher->signum;
}

void session_unblock(int signal)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, signal);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* A signal that was ignored when we were started stays ignored: nohup relies on this, and shells
 * for jobs in the background.  A signal that was blocked is unblocked. */
static void watch_signals(struct session *session)
{
    struct sigaction action;

    for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++) {
        ev_signal *watcher = &session->signals[session->signals_len];

        (void)sigaction(ending_signals[i], NULL, &action);
        if (action.sa_handler == SIG_IGN)
            continue;
        ev_signal_init(watcher, on_signal, ending_signals[i]);
        watcher->data = session;
        ev_signal_start(session->loop, watcher);
        session_unblock(ending_signals[i]);
        session->signals_len++;
    }
}

/* If the reader of our output has ended, or its file may not grow, we must still release the lock.
 * The command does not inherit this, because the guardian was forked before. */
static void outlive_output(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* Block the signals until the program ends, which is next.  They are no longer watched, and would
 * change its exit status. */
static void hold_back_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof ending_signals / sizeof *ending_signals; i++)
        (void)sigaddset(&set, ending_signals[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

int session_signal_exit(const struct session *session)
{
    if (session->signal == 0)
        return CLI_OK;
    session->cli->signal = session->signal;
    return CLI_SIGNAL + session->signal;
}

/* ---- Waiting ---- */

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)timer, (void)events; /* The timer only wakes the loop. */
}

void session_turn(struct session *session, drift_time wake_at)
{
    drift_span left = drift_until(inspect_client(session->rl).now, wake_at);
    ev_timer tick;

    left = left == 0 || left > TICK ? TICK : left;
    ev_now_update(session->loop);
    ev_timer_init(&tick, on_tick, (double)left / (double)DRIFT_S + 1e-4, 0);
    ev_timer_start(session->loop, &tick);
    ev_run(session->loop, EVRUN_ONCE);
    ev_timer_stop(session->loop, &tick);
}

/* Until its witnesses have answered, a warming master seems to need more time than it does. */
static bool masters_are_coming(void *arg)
{
    const struct session *session = arg;
    const struct inspect_client client = inspect_client(session->rl);

    for (unsigned m = 0; m < client.masters; m++)
        if (inspect_master(session->rl, m).is_asked_about)
            return true;
    return client.coming != 0;
}

/* A master that is down is not waited for: a release would not reach it. */
static bool releases_are_due(void *arg)
{
    const struct session *session = arg;

    return inspect_may_hold(session->rl);
}

/* How long until a majority may vote.  0: a majority may vote already, or there are too few warming
 * masters.  A clock that keeps a master from voting is another trouble, and so are the masters of
 * refusing.  *ret_alone: masters cannot
 * report how long others have been warming, so that one client must watch them for all of this time
 * (guard.h). */
static drift_span warm_up(const struct session *session, quorum_mask refusing,
                          unsigned *ret_warming, bool *ret_alone)
{
    const struct inspect_client client = inspect_client(session->rl);
    const quorum_mask members = members_all(&client.lists);
    unsigned majority = mask_count(members) / 2 + 1, voters = 0, warming = 0;
    drift_span left[REDLOCK_MASTERS_MAX], longest = 0;

    for (unsigned m = 0; m < client.masters && client.restart_guard; m++) {
        const struct inspect_master master = inspect_master(session->rl, m);

        if (!(members & mask_of(m)) || !master.is_linked || master.look.number == 0 ||
            master.is_barred || (refusing & mask_of(m)) != 0)
            continue;
        voters += master.look.ready;
        *ret_alone = *ret_alone || (!master.look.ready && !master.has_witnesses);
        if (!master.look.ready)
            left[warming++] = master.warming_left;
    }
    *ret_warming = warming;
    if (client.set == 0 || client.has_forgotten) /* Its masters say why. */
        return 0;
    if (voters >= majority || voters + warming < majority)
        return 0;
    for (unsigned need = majority - voters; need > 0; need--) { /* The shortest one left. */
        unsigned best = 0;

        for (unsigned i = 1; i < warming; i++)
            if (left[i] < left[best])
                best = i;
        longest = left[best];
        left[best] = DRIFT_NEVER;
    }
    return longest;
}

/* While too few masters may vote, none is asked for its vote: it may be full, too. */
static void try_writes(const struct session *session, struct question *ret_trial)
{
    *ret_trial = (struct question){
        .rl = session->rl,
        .loop = session->loop,
        .cli = session->cli,
        .limit_ms = session->cli->reply_timeout_ms,
        .left_out = (quorum_mask)~inspect_client(session->rl).linked,
        .tries = true,
    };
    question_ask(ret_trial);
}

static void tell_of_refusing(const struct session *session, const struct question *trial)
{
    for (unsigned m = 0; m < trial->masters; m++)
        if (question_refusing(trial) & mask_of(m))
            cli_say(trial->of[m].refusal.message, "master %u (%s): %s", m + 1,
                    inspect_master(session->rl, m).name, trial->of[m].refusal.text);
    refusal_tell(session->cli, session->rl, false, NULL, session->doctor, session->has_more_names);
}

static void tell_of_warming(const struct session *session)
{
    unsigned warming;
    bool alone = false;
    drift_span left = warm_up(session, 0, &warming, &alone);
    struct question trial;
    const struct inspect_client client = inspect_client(session->rl);
    unsigned masters = mask_count(members_all(&client.lists));
    char wait[40] = "";

    /* If the library does not say that time helps, some masters that are ready gave no vote: they
     * are full, say, or hang. */
    if (left == 0 || session->status != REDLOCK_NOT_READY)
        return;
    try_writes(session, &trial);
    left = warm_up(session, question_refusing(&trial), &warming, &alone);
    if (left == 0) {
        tell_of_refusing(session, &trial);
        return;
    }
    /* All hosts would wait.  If the hold ends first, each of them runs the job. */
    if (!session->cli->holds_at_least)
        (void)snprintf(wait, sizeof wait, ", or use --wait %us", (unsigned)(left / DRIFT_S) + 2);
    cli_say(MSG_WARMING,
            "%u of %u masters are warming up: a majority may vote %s at most %.1f s: run "
            "`redlock init%s`%s",
            warming, masters, alone ? "when one client has watched them for" : "in",
            (double)left / (double)DRIFT_S, session->cli->masters_option, wait);
}

/* With per_vote, a master's vote counts after the client has watched its clock. */
static void tell_of_clocks(const struct session *session)
{
    const struct inspect_client client = inspect_client(session->rl);
    quorum_mask voters = 0, unwatched = 0;

    if (client.clock_guard != REDLOCK_CLOCK_GUARD_PER_VOTE)
        return;
    for (unsigned m = 0; m < client.masters; m++) {
        const struct inspect_master master = inspect_master(session->rl, m);

        if (master.is_linked && master.clock_why == WHY_NONE)
            voters |= mask_of(m);
        if (master.is_linked && master.clock_why == WHY_CLOCK_NEW)
            unwatched |= mask_of(m);
    }
    if (members_decide(&client.lists, voters) || !members_decide(&client.lists, voters | unwatched))
        return;
    cli_say(MSG_CLOCK,
            "with --clock-guard per_vote, a client first watches the clocks of masters: use --wait "
            "%us%s, or --clock-guard periodic in all clients",
            (unsigned)(client.clock_window / DRIFT_S) + 2,
            session->cli->holds_at_least ? " and a --hold-at-least longer than that" : "");
}

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    struct session *session = arg;
    struct error said;

    (void)lease;
    session->done = true;
    session->status = status;
    if (status == REDLOCK_OK || session->quiet)
        return;
    if (session->is_locking && status == REDLOCK_CONTENDED) {
        error_save(&session->held); /* It may be a foreign key that keeps it: await_lock(). */
        return;
    }
    error_save(&said);
    cli_say_why(message_of_status(status), "", said.text, &said.parts);
    if (session->cli->json)
        cli_print_failure_json(session->names, session->rl, message_of_status(status), said.text);
    if (cli_lacks_votes(status)) /* Now, because more masters may answer before ended(). */
        refusal_tell(session->cli, session->rl, status == REDLOCK_NOT_READY, &said.blame,
                     session->doctor, session->has_more_names);
}

/* False: a signal came first. */
static bool wait_until_done(struct session *session)
{
    while (!session->done && session->signal == 0)
        ev_run(session->loop, EVRUN_ONCE);
    return session->done;
}

/* Report that the call itself failed. */
static int refused(const struct session *session, int status, const char *why)
{
    cli_say(message_of_status(status), "%s", why);
    if (status == REDLOCK_E_INVAL)
        cli_hint("see `redlock %s --help`", session->cli->command->name);
    return cli_exit_of(status);
}

/* ---- The lock ---- */

static const char *kind_option(const struct redlock_lock_options *opts)
{
    return opts->fair          ? " --fair"
           : opts->permits > 0 ? " --permits"
           : opts->shared      ? " --shared"
                               : "";
}

/* Note the arguments with which `redlock doctor` examines masters for this lock. */
static void note_lock(struct session *session, const struct cli_names *names,
                      const struct redlock_lock_options *opts)
{
    char name[CLI_NAMES_SHOWN_MAX];

    session->names = names;
    (void)snprintf(session->name, sizeof session->name, "%s",
                   cli_quote_name(names->list[0], name, "NAME"));
    (void)snprintf(session->doctor, sizeof session->doctor, "%s%s %s", kind_option(opts),
                   opts->fence ? " --fence" : "", session->name);
    session->has_more_names = names->len > 1;
}

/* The exit code of the operation that was waited for. */
static int ended(const struct session *session)
{
    if (!session->done)
        return session_signal_exit(session);
    if (session->status == REDLOCK_TOO_LATE && !session->quiet)
        cli_hint("use a longer --ttl, for the masters answered too late for this one");
    if (session->status == REDLOCK_LOST && session->may_lack_kind && !session->quiet)
        cli_hint("if it was taken with --permits or --shared, give the same option here");
    if (session->status == REDLOCK_LOST && session->is_adopted && !session->quiet)
        cli_hint("`redlock status%s %s` shows whether another token holds it",
                 session->cli->masters_option, session->name);
    if (session->is_foreign)
        return CLI_CHANGE;
    return cli_exit_of(session->status);
}

/* ---- Operations ---- */

/* Another client has it.  The message was kept until it was known that this is so. */
static void tell_of_holder(struct session *session, const struct foreign *foreign)
{
    (void)error_pass_on(session->status, &session->held);
    cli_say_why(MSG_HELD, "", session->held.text, &session->held.parts);
    if (session->cli->json)
        cli_print_failure_json(session->names, session->rl, MSG_HELD, session->held.text);
    foreign_tell_holder(foreign);
}

/* If a foreign key stands in place of the lock, say so.  If it stands in place of the queue,
 * masters answer with an error, and are no majority. */
static void await_lock(struct session *session, const struct cli_names *names,
                       const struct redlock_lock_options *opts)
{
    bool is_held;
    struct foreign foreign;

    foreign_wait(&foreign, session->cli, session->loop, session->rl, names, opts);
    (void)wait_until_done(session);
    is_held = session->done && session->status == REDLOCK_CONTENDED;
    if (is_held || (session->done && cli_lacks_votes(session->status) && opts->fair))
        session->is_foreign = foreign_find(&foreign);
    if (is_held && !session->is_foreign && !session->quiet)
        tell_of_holder(session, &foreign);
    else if (is_held && session->is_foreign && session->cli->json && !session->quiet)
        cli_print_failure_json(names, session->rl, MSG_FOREIGN_KEY, foreign.said);
    foreign_done(&foreign);
}

/* Report the masters that keep a lock from being acquired.  Report nothing if another client has
 * it: that is what --wait is for. */
static void tell_of_waiting(struct session *session, const char *before)
{
    int status = session->done ? REDLOCK_OK : inspect_wait(session->rl, session->wanted);

    if (status == REDLOCK_OK)
        return;
    cli_say_why(message_of_status(status), before, redlock_errmsg(session->rl), error_parts());
    ev_timer_stop(session->loop, &session->patience);
}

static void on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    tell_of_waiting(timer->data, "still waiting: ");
}

int session_lock(struct session *session, const struct cli_names *names,
                 const struct redlock_lock_options *opts, struct redlock_lease **ret_lease)
{
    struct redlock_lease *lease;
    int status;

    session->done = false;
    session->is_locking = true;
    note_lock(session, names, opts);
    if (names->len == 1)
        status = redlock_lock_async(session->rl, names->list[0], opts, on_done, session, &lease);
    else
        status = redlock_lock_many_async(session->rl, names->list, names->len, opts, on_done,
                                         session, &lease);
    if (status != REDLOCK_OK)
        return refused(session, status, redlock_errmsg(session->rl));
    session->wanted = lease;
    ev_timer_init(&session->patience, on_patience, PATIENCE_S, 1);
    session->patience.data = session;
    ev_timer_start(session->loop, &session->patience);
    await_lock(session, names, opts);
    session->is_locking = false;
    ev_timer_stop(session->loop, &session->patience);
    cli_tell_founded(session->rl);
    if (session->done && cli_lacks_votes(session->status)) {
        tell_of_warming(session);
        tell_of_clocks(session);
    }
    if (session->done && session->status != REDLOCK_OK)
        return ended(session);
    if (session->signal != 0) {
        tell_of_waiting(session, "a signal ended the wait: ");
        redlock_cancel(lease);
        return session_signal_exit(session);
    }
    *ret_lease = lease;
    return CLI_OK;
}

int session_adopt(struct session *session, const struct cli_names *names, const char *token,
                  const struct redlock_lock_options *opts, struct redlock_lease **ret_lease)
{
    int status;

    note_lock(session, names, opts);
    session->is_adopted = true;
    session->may_lack_kind = names->len == 1 && opts->permits == 0 && !opts->shared;
    if (names->len == 1)
        status = redlock_adopt(session->rl, names->list[0], token, opts, ret_lease);
    else
        status = redlock_adopt_many(session->rl, names->list, names->len, token, opts, ret_lease);
    /* Without "adopt", which is a word of the library. */
    return status == REDLOCK_OK ? CLI_OK : refused(session, status, error_inner());
}

/* status: that of the call which has begun the operation. */
static int finish(struct session *session, int status)
{
    session->done = false;
    if (status != REDLOCK_OK)
        return refused(session, status, redlock_errmsg(session->rl));
    (void)wait_until_done(session);
    return ended(session);
}

int session_extend(struct session *session, struct redlock_lease *lease, uint32_t ttl_ms)
{
    return finish(session, redlock_extend_async(lease, ttl_ms, on_done, session));
}

int session_unlock(struct session *session, struct redlock_lease *lease)
{
    return finish(session, redlock_unlock_async(lease, on_done, session));
}

/* ---- Open and close ---- */

int session_open(struct session *session, struct cli *cli)
{
    int code;

    memset(session, 0, sizeof *session);
    session->cli = cli;
    session->loop = loop_new();
    if (session->loop == NULL)
        return CLI_INTERNAL;
    outlive_output();
    code = cli_open(cli, session->loop, &session->rl);
    if (code != CLI_OK) {
        session_close(session);
        return code;
    }
    watch_signals(session); /* Not before: a file of TLS may be a pipe that nobody writes to. */
    /* Wait for the links of all masters.  A lock is granted at the majority's last yes, and masters
     * that are not connected by then do not store it.  The more masters store a lock, the more
     * failures it survives. */
    cli_linger(session->loop, masters_are_coming, session, cli->reply_timeout_ms);
    return CLI_OK;
}

void session_close(struct session *session)
{
    if (session->rl != NULL) {
        cli_linger(session->loop, releases_are_due, session, session->cli->reply_timeout_ms);
        session->rl = redlock_close(session->rl);
    }
    hold_back_signals();
    for (unsigned i = 0; i < session->signals_len; i++)
        ev_signal_stop(session->loop, &session->signals[i]);
    ev_loop_destroy(session->loop);
    session->loop = NULL;
}
