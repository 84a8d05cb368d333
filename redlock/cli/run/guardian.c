/*
 * guardian.c - starts the command, waits for it, and kills it in time.
 *
 * Every turn of the loop asks deadline_due() what is due, does it, and sleeps.  A renewal moves the
 * end of the lease in shared memory, and does not wake the guardian.  The timer rings at the old
 * deadline, and is then set again.  A longer lease gets longer margins.
 */
#include "redlock/cli/run/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "redlock/cli/run/child.h"
#include "redlock/cli/common/cli.h"
#include "redlock/cli/run/environment.h"
#include "redlock/cli/run/family.h"

/* The name in `ps`.  It does not contain "redlock", so `pkill redlock` does not match it. */
#define NAME "lock-guardian"

/* How long the rest of its group may outlive the command before SIGTERM, and before SIGKILL.  For
 * example, the tee of `exec > >(tee log)` ends a moment later.  Chosen, not measured. */
#define LEFT_ASK (1 * DRIFT_S)
#define LEFT_KILL (1500 * DRIFT_MS)

/* The pause between two searches for processes that should be gone, which doubles each time.
 * Chosen, not measured. */
#define NAP_MIN (5 * DRIFT_MS)
#define NAP_MAX (100 * DRIFT_MS)

#define NO_CLOCK (DRIFT_NEVER - 1) /* Without a clock everything is too late. */

#define REPORTS_MAX 50 /* Attempts to send the last report, a NAP_MAX apart. */

/* The guardian measures how long it takes to find all descendants: once in MEASURE_EVERY times the
 * margin for SIGTERM, for at most 1/MEASURE_SHARE of the time, and after SIGTERM.  Chosen, not
 * measured. */
#define MEASURE_EVERY 2
#define MEASURE_SHARE 100

/* How many orphans to reap at a time, because processes that fork and end all the time always leave
 * one more.  Chosen: it takes a few ms. */
#define REAP_MAX 5000

enum phase {
    IDLE,     /* There is no order to start yet. */
    RUNNING,  /* The command runs. */
    ASKED,    /* It has got SIGTERM. */
    KILLING,  /* It has got SIGKILL. */
    LEAVING,  /* It has ended, the lock is held, and processes are left that must end. */
    CLEARING, /* It has ended, and all that it started must end. */
    OVER      /* The last report is sent. */
};

struct guardian {
    int socket, signals, timer;
    const struct leash_shared *shared;
    const char *name;
    struct child child;
    struct leash_order start;
    enum phase phase;
    bool told_to_end;      /* `redlock` ordered the end, or is dead. */
    bool alone;            /* `redlock` is dead. */
    bool ends_all;         /* A signal asked the command to end, or ended it. */
    pid_t group;           /* The group of the command, also after its end. */
    struct deadline left;  /* LEAVING: when the rest must end. */
    bool left_asked;       /* LEAVING: the rest of the group has got SIGTERM. */
    drift_time cleared_at; /* CLEARING: when it began. */
    drift_span nap;        /* KILLING and later: the time until the next search. */
    drift_span search;     /* How long the last search took that was measured. */
    drift_span lead;       /* How much earlier the deadline is, for the time that the end takes. */
    drift_time measure_at; /* When to measure a search again. */
    bool crowded;          /* It was reported that there are too many descendants. */
    bool immune;           /* It was reported that the command may not be signalled. */
    struct leash_report end;
};

/* ---- Reports to redlock ---- */

/* flags: MSG_DONTWAIT, if the guardian must not wait for a `redlock` that is stopped. */
static void report(const struct guardian *guardian, const struct leash_report *report, int flags)
{
    (void)send(guardian->socket, report, sizeof *report, MSG_NOSIGNAL | flags);
}

/* The end of the lease, minus now. */
static int64_t left_ns(const struct guardian *guardian, drift_time now)
{
    drift_time end = atomic_load(&guardian->shared->end);

    return end != 0 && now != NO_CLOCK ? (int64_t)(end - now) : LEASH_GONE;
}

static void pause_for(drift_span span)
{
    const struct timespec pause = {.tv_nsec = (long)span};

    (void)nanosleep(&pause, NULL);
}

/* `redlock` waits for the last report.  If the kernel has no memory for it, try again.  In the end
 * exit: `redlock` notices that the guardian is dead, and how it ended. */
static void report_last(struct guardian *guardian, const struct leash_report *last)
{
    guardian->phase = OVER;
    for (int i = 0; i < REPORTS_MAX; i++) {
        if (send(guardian->socket, last, sizeof *last, MSG_NOSIGNAL) >= 0 || errno == EPIPE)
            return;
        pause_for(NAP_MAX);
    }
    exit(1);
}

/* Report that the command could not be started. */
static void fail(struct guardian *guardian, int error)
{
    const struct leash_report failed = {.type = LEASH_FAILED, .error = error};

    report_last(guardian, &failed);
}

static void finish(struct guardian *guardian, drift_time now)
{
    guardian->end.type = LEASH_ENDED;
    guardian->end.killed = guardian->end.killed && !guardian->immune;
    guardian->end.ended_ns = left_ns(guardian, now);
    report_last(guardian, &guardian->end);
}

/* ---- The end of the command ---- */

/* Report once that the command gets no signal. */
static void check_immune(struct guardian *guardian)
{
    const struct leash_report immune = {.type = LEASH_IMMUNE, .why = guardian->end.why};

    if (!guardian->immune && child_is_immune(&guardian->child)) {
        guardian->immune = true;
        report(guardian, &immune, MSG_DONTWAIT);
    }
}

/* Send SIGTERM to the group of the command at once, and then to the other descendants, which must
 * be found.  Count them anew. */
static void ask(struct guardian *guardian, drift_time now)
{
    guardian->phase = ASKED;
    guardian->measure_at = 0;
    child_signal(&guardian->child, SIGTERM);
    child_signal(&guardian->child, SIGCONT); /* If it is stopped, it handles SIGTERM only then. */
    check_immune(guardian);
    (void)family_signal(SIGTERM, -guardian->group, drift_add(now, FAMILY_SEARCH_FOR));
}

static void begin_clearing(struct guardian *guardian, drift_time now)
{
    guardian->phase = CLEARING;
    guardian->cleared_at = now;
    guardian->nap = NAP_MIN;
}

static struct family_count kill_family(struct guardian *guardian, drift_time now)
{
    const drift_time until = drift_add(now, FAMILY_SEARCH_FOR);
    struct family_count count = family_kill(until);

    if (count.hidden)
        (void)family_signal(SIGKILL, guardian->group, until);
    check_immune(guardian);
    guardian->end.survivors = family_is_there() ? count.alive + count.immune : 0;
    guardian->end.hidden = family_is_there() && count.hidden;
    return count;
}

/* Begin to kill all descendants. */
static void stamp_out(struct guardian *guardian, drift_time now)
{
    if (guardian->phase == LEAVING) {
        begin_clearing(guardian, now);
    } else if (guardian->phase == RUNNING || guardian->phase == ASKED) {
        guardian->nap = NAP_MIN;
        guardian->phase = KILLING;
        child_signal(&guardian->child, SIGSTOP); /* At once, before the others are found. */
        (void)kill_family(guardian, now);
    }
}

static void kill_all(struct guardian *guardian, drift_time now)
{
    guardian->end.killed = true;
    stamp_out(guardian, now);
}

/* True: no process is left that must end, or none that could be killed.  If a signal asked the
 * command to end, or ended it, all descendants must end. */
static bool leave_all(struct guardian *guardian, enum deadline_act act, drift_time now)
{
    const drift_time until = drift_add(now, FAMILY_SEARCH_FOR);
    struct family_count count =
        act == DEADLINE_KILL ? kill_family(guardian, now) : family_signal(0, 0, until);

    if (act != DEADLINE_WAIT && count.alive > 0)
        guardian->end.cleared = true;
    return !family_is_there() ||
           (act == DEADLINE_KILL && !family_may_end(&count, now, guardian->left.kill));
}

/* The same if the command ended by itself.  Then only its group must end. */
static bool leave_group(struct guardian *guardian, enum deadline_act act, drift_time now)
{
    struct family_count count = family_signal(act == DEADLINE_KILL ? SIGKILL : 0, guardian->group,
                                              drift_add(now, FAMILY_SEARCH_FOR));

    if (act != DEADLINE_WAIT && count.alive > 0)
        guardian->end.cleared = true;
    if (act != DEADLINE_WAIT)
        guardian->end.survivors = count.immune + (act == DEADLINE_KILL ? count.alive : 0);
    if (count.alive + count.zombies == 0)
        return count.immune == 0 || act != DEADLINE_WAIT;
    return now >= drift_add(guardian->left.kill, FAMILY_LOOK_FOR);
}

static bool leave(struct guardian *guardian, drift_time now)
{
    drift_time wake;
    enum deadline_act act = deadline_due(&guardian->left, now, &wake);

    if (act == DEADLINE_ASK && !guardian->left_asked) {
        guardian->left_asked = true;
        (void)family_signal(SIGTERM, guardian->group, drift_add(now, FAMILY_SEARCH_FOR));
    }
    return guardian->ends_all ? leave_all(guardian, act, now) : leave_group(guardian, act, now);
}

static void on_child_ended(struct guardian *guardian, drift_time now)
{
    if (guardian->phase != RUNNING) {
        begin_clearing(guardian, now);
        return;
    }
    guardian->phase = LEAVING;
    guardian->ends_all = guardian->ends_all || guardian->child.signal != 0;
    guardian->start.limit = (struct deadline){DRIFT_NEVER, DRIFT_NEVER}; /* The limit was kept. */
    guardian->left.ask = drift_add(now, LEFT_ASK);
    guardian->left.kill = drift_add(now, LEFT_KILL);
    guardian->nap = NAP_MIN;
    if (!family_is_there())
        finish(guardian, now);
    else if (guardian->ends_all) /* The signal reached the group at most. */
        (void)family_signal(SIGTERM, -guardian->group, drift_add(now, FAMILY_SEARCH_FOR));
}

/* ---- What is due ---- */

/* The reason to end a command that runs. */
static enum leash_why why_of(const struct guardian *guardian, const struct deadline *lease,
                             drift_time now)
{
    if (guardian->told_to_end)
        return LEASH_TOLD;
    if (now == NO_CLOCK)
        return LEASH_NO_CLOCK;
    return guardian->start.limit.ask < lease->ask ? LEASH_AT_LIMIT : LEASH_AT_DEADLINE;
}

/* True: no deadline and no order has ended the command, or the processes that it left. */
static bool is_wanted(const struct guardian *guardian)
{
    return guardian->end.why == LEASH_BY_ITSELF && guardian->phase != IDLE &&
           guardian->phase != OVER;
}

static void act(struct guardian *guardian, enum deadline_act act, drift_time now)
{
    struct family_count count;

    switch (guardian->phase) {
    case RUNNING:
        if (act == DEADLINE_ASK)
            ask(guardian, now);
        else if (act == DEADLINE_KILL)
            kill_all(guardian, now);
        break;
    case ASKED:
        if (act == DEADLINE_KILL)
            kill_all(guardian, now);
        break;
    case KILLING:
        (void)kill_family(guardian, now); /* Also new descendants. */
        break;
    case LEAVING:
        if (act != DEADLINE_WAIT && guardian->end.why != LEASH_BY_ITSELF)
            begin_clearing(guardian, now);
        else if (leave(guardian, now))
            finish(guardian, now);
        break;
    case CLEARING: /* Kill the rest, until none is left that could be killed. */
        count = kill_family(guardian, now);
        if (!family_may_end(&count, now, guardian->cleared_at))
            finish(guardian, now);
        break;
    case IDLE:
    case OVER:
        break;
    }
}

/* There may be no time to end so many descendants.  Tell `redlock` once.  Only their number counts:
 * a search that a busy machine makes slow may be quick the next time. */
static void report_crowd(struct guardian *guardian, const struct family_count *count)
{
    struct leash_report crowd = {.type = LEASH_CROWD, .dead = count->dead};

    crowd.descendants = count->alive + count->immune + count->dead;
    crowd.lead = deadline_lead(crowd.descendants, 0);
    crowd.room = deadline_room(&guardian->start.margins);
    if (guardian->crowded || crowd.lead <= crowd.room)
        return;
    guardian->crowded = true;
    report(guardian, &crowd, MSG_DONTWAIT);
}

/* Measure how long it takes to find the descendants, until wake at most.  So the deadline is early
 * enough to end them all. */
static void measure(struct guardian *guardian, drift_time wake)
{
    drift_span every = MEASURE_EVERY * guardian->start.margins.ask;
    struct family_count count;
    drift_time before, after;

    if (drift_now(&before) != 0)
        return;
    after = drift_add(before, FAMILY_SEARCH_FOR);
    count = family_signal(0, 0, wake < after ? wake : after);
    if (drift_now(&after) != 0)
        return;
    guardian->search = after - before;
    guardian->lead = deadline_lead(count.alive + count.immune + count.dead, guardian->search);
    report_crowd(guardian, &count);
    if (every < MEASURE_SHARE * guardian->search)
        every = MEASURE_SHARE * guardian->search;
    guardian->measure_at = drift_add(after, every);
}

/* When to search again for processes that do not end. */
static drift_time nap(struct guardian *guardian, drift_time now)
{
    drift_time wake = drift_add(now, guardian->nap);

    guardian->nap = guardian->nap < NAP_MAX / 2 ? 2 * guardian->nap : NAP_MAX;
    return wake;
}

/* Do what is due.  Returns when to do this again. */
static drift_time look(struct guardian *guardian, drift_time now)
{
    drift_time end = atomic_load(&guardian->shared->end), wake;
    struct deadline lease, deadline;
    enum deadline_act due;

    if (is_wanted(guardian)) /* After SIGTERM, SIGKILL must not come earlier. */
        deadline_grow_margins(&guardian->start.margins, guardian->start.ttl, end, now);
    lease = deadline_earlier(deadline_before(end, &guardian->start.margins), guardian->lead,
                             &guardian->start.margins);
    deadline = deadline_sooner(lease, guardian->start.limit);
    if (guardian->told_to_end)
        deadline.ask = 0;
    due = deadline_due(&deadline, now, &wake);
    if (due != DEADLINE_WAIT && is_wanted(guardian)) {
        guardian->end.why = why_of(guardian, &lease, now);
        guardian->end.asked_ns = left_ns(guardian, now);
        guardian->start.limit = deadline; /* A renewal that comes now is too late. */
    }
    act(guardian, due, now);
    switch (guardian->phase) {
    case RUNNING:
    case ASKED:
        if (now >= guardian->measure_at && drift_add(now, guardian->search) < wake) {
            measure(guardian, wake);
            return now;
        }
        return guardian->measure_at > now && guardian->measure_at < wake ? guardian->measure_at
                                                                         : wake;
    case KILLING:
    case LEAVING:
    case CLEARING:
        return nap(guardian, now);
    case IDLE:
    case OVER:
        break;
    }
    return DRIFT_NEVER;
}

/* ---- What happens ---- */

static void look_at_child(struct guardian *guardian, drift_time now)
{
    struct leash_report stopped = {.type = LEASH_STOPPED};
    bool is_lost = guardian->phase != RUNNING;
    siginfo_t info;
    int status;

    for (;;) {
        switch (child_look(&guardian->child, is_lost, &status)) {
        case CHILD_STOPPED:
            stopped.signal = status;
            report(guardian, &stopped, MSG_DONTWAIT);
            continue;
        case CHILD_ENDED:
            guardian->end.code = status;
            guardian->end.signal = guardian->child.signal;
            on_child_ended(guardian, now);
            break;
        case CHILD_NOTHING:
            break;
        }
        break;
    }
    /* Reap the orphans, which we inherit.  child_look() reaps the command. */
    for (unsigned i = 0; i < REAP_MAX; i++) {
        info.si_pid = 0;
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
            info.si_pid == guardian->child.pid)
            break;
        (void)waitpid(info.si_pid, NULL, WNOHANG);
    }
}

static void start(struct guardian *guardian, drift_time now)
{
    struct deadline lease =
        deadline_before(atomic_load(&guardian->shared->end), &guardian->start.margins);
    struct leash_report started = {.type = LEASH_STARTED};
    struct leash_order *order = &guardian->start;
    drift_time wake;

    if (deadline_due(&lease, now, &wake) != DEADLINE_WAIT) {
        guardian->end.why = now == NO_CLOCK ? LEASH_NO_CLOCK : LEASH_AT_DEADLINE;
        guardian->end.asked_ns = left_ns(guardian, now);
        finish(guardian, now);
        return;
    }
    guardian->child.gets_tty = order->gets_tty;
    guardian->child.envp =
        environment_make(guardian->name, order->token, order->fence, order->permit);
    if (guardian->child.envp == NULL || child_start(&guardian->child) != 0) {
        fail(guardian, errno);
        return;
    }
    guardian->phase = RUNNING;
    guardian->group = started.pid = guardian->child.pid;
    child_drop_descriptors((int[]){guardian->socket, guardian->signals, guardian->timer}, 3);
    report(guardian, &started, 0);
}

/* Pass a signal on to the command.  A command that dies of a signal cannot end its descendants, so
 * all of them must end with it.  After SIGKILL they are killed at once. */
static void pass_on(struct guardian *guardian, int signal, drift_time now)
{
    guardian->ends_all = guardian->ends_all || signal == SIGTERM || signal == SIGINT ||
                         signal == SIGHUP || signal == SIGQUIT || signal == SIGKILL;
    guardian->end.signals += child_runs(&guardian->child);
    child_signal(&guardian->child, signal);
    if (guardian->ends_all)
        check_immune(guardian);
    if (signal != SIGKILL)
        return;
    guardian->start.limit = (struct deadline){DRIFT_NEVER, DRIFT_NEVER}; /* The limit was kept. */
    stamp_out(guardian, now);
}

static void obey(struct guardian *guardian, const struct leash_order *order, drift_time now)
{
    switch (order->type) {
    case LEASH_START:
        guardian->start = *order;
        start(guardian, now);
        break;
    case LEASH_SIGNAL:
        pass_on(guardian, order->signal, now);
        break;
    case LEASH_END:
        guardian->told_to_end = true;
        break;
    }
}

/* If `redlock` is dead, nothing renews the lock, so the command must end.  False: nothing is left
 * to do. */
static bool take_orders(struct guardian *guardian, drift_time now)
{
    struct leash_order order;
    ssize_t len;

    while ((len = recv(guardian->socket, &order, sizeof order, MSG_DONTWAIT)) ==
           (ssize_t)sizeof order)
        obey(guardian, &order, now);
    if (len < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOMEM))
        return true;
    guardian->told_to_end = guardian->alone = true;
    return guardian->phase != IDLE && guardian->phase != OVER;
}

/* ---- The process ---- */

static int open_descriptors(struct guardian *guardian)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    guardian->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (guardian->signals < 0)
        return -1;
    guardian->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return guardian->timer >= 0 ? 0 : -1;
}

/* Setting the timer also clears its last expiration.  Returns the timeout of poll(), in ms: none,
 * or a short one if the timer could not be set: poll() does not count the time of a suspend. */
static int set_timer(const struct guardian *guardian, drift_time wake)
{
    struct itimerspec when = {.it_value = {0, 0}};
    drift_time now = 0; /* If the clock fails, poll() takes as long as it may. */

    if (wake != DRIFT_NEVER) {
        when.it_value.tv_sec = (time_t)(wake / DRIFT_S);
        when.it_value.tv_nsec = (long)(wake % DRIFT_S) + (wake == 0); /* 0 would turn it off. */
    }
    if (timerfd_settime(guardian->timer, TFD_TIMER_ABSTIME, &when, NULL) == 0)
        return -1;
    (void)drift_now(&now);
    return deadline_poll_ms(now, wake, NAP_MAX);
}

/* Sleep until something happens. */
static void doze(struct guardian *guardian, drift_time wake)
{
    struct pollfd all[] = {
        {.fd = guardian->timer, .events = POLLIN},
        {.fd = guardian->signals, .events = POLLIN},
        /* If `redlock` is dead, the socket is always readable. */
        {.fd = guardian->alone && guardian->phase != OVER ? -1 : guardian->socket,
         .events = POLLIN},
    };
    int limit_ms = set_timer(guardian, wake);
    struct signalfd_siginfo info;

    if (poll(all, sizeof all / sizeof *all, limit_ms) < 0)
        pause_for(NAP_MIN); /* No memory, or a debugger interrupted it. */
    while (read(guardian->signals, &info, sizeof info) > 0)
        continue; /* The loop checks the child in any case. */
}

static void loop(struct guardian *guardian)
{
    drift_time now = 0;

    for (;;) {
        if (drift_now(&now) != 0)
            now = NO_CLOCK;
        if (!take_orders(guardian, now))
            return;
        look_at_child(guardian, now);
        doze(guardian, look(guardian, now));
    }
}

void guardian_main(const struct guardian_job *job)
{
    static struct guardian guardian; /* Zeroes. */

    cli_forget_masters(job->cli);
    guardian.socket = job->socket;
    guardian.shared = job->shared;
    guardian.name = job->name;
    guardian.child.argv = job->argv;
    guardian.child.mask = job->mask;
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, NAME);
    /* If SIGCHLD were ignored, the kernel would reap our children. */
    (void)sigaction(SIGCHLD, NULL, &guardian.child.chld_after);
    (void)signal(SIGCHLD, SIG_DFL);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && open_descriptors(&guardian) == 0)
        loop(&guardian);
    else
        fail(&guardian, errno);
    exit(0);
}
