/*
 * test-syscalls.c - every system call of the library fails, with every error that it may have.
 *
 * Each run is a client's life: on one real master it opens, locks, extends, unlocks, waits for
 * another client's lock, and closes.  The first error of each row fails a call at each moment of
 * such a life, the others at its first three, because the library treats them alike.  Then the call
 * fails always, except with EINTR, which no kernel gives for ever.  A table says what the user must
 * get.  Nothing crashes, hangs or stays open, and the client works when its calls work again.
 * docs/testing.md has the same table.
 */
#include "test/lib/check.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include "live/cluster.h"
#include "live/failing.h"
#include "live/pilot.h"
#include "redlock/io/loop.h"
#include "redlock/redlock.h"

#define TIMEOUT_MS 1500 /* For a connection, and for a reply, if the test waits for its end. */
#define PATIENT_MS 5000 /* Otherwise.  A busy machine must not let either end. */
#define LIFE_MAX_S 20   /* Chosen: far above the sum of the timeouts of a life. */
#define ERRORS_MAX 18
#define MOMENTS_MAX 200 /* Chosen: more calls than a life has. */

/* ---- The expected outcome ---- */

enum outcome {
    NOTHING, /* No effect, even if the call always fails. */
    RETRIED, /* One failure has no effect.  A kernel does not fail like this for ever. */
    DELAYED, /* One failure has no effect.  If the call always fails, no answer comes in time. */
    LINK,    /* The link breaks and is made again, and messages say why. */
    OPEN,    /* The client cannot be opened. */
};

struct row {
    enum call call;
    enum outcome outcome;
    bool named; /* The master is given by a name. */
    enum {
        ALL_KINDS,
        BLOCKING_ONLY,
        LOOP_ONLY,
        POLLABLE_ONLY,
        LIBEV_ONLY
    } only;                 /* The kinds of client it applies to. */
    const char *says;       /* The message contains it; NULL: the text of the error. */
    int errors[ERRORS_MAX]; /* A 0 ends the list. */
};

static const struct row rows[] = {
    {SOCKET, LINK,
     .errors = {EACCES, EAFNOSUPPORT, EINVAL, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM,
                EPROTONOSUPPORT}},
    {CONNECT, LINK,
     .errors = {EACCES, EPERM, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, EBADF,
                ECONNREFUSED, EFAULT, EHOSTUNREACH, EISCONN, ENETUNREACH, ENOTSOCK, EPROTOTYPE,
                ETIMEDOUT, ENOENT}},
    {CONNECT, NOTHING, .errors = {EINPROGRESS, EINTR}},
    {GETSOCKOPT, LINK, .errors = {EBADF, EFAULT, EINVAL, ENOPROTOOPT, ENOTSOCK, ENOBUFS}},
    {SO_ERROR_OF, LINK,
     .errors = {ECONNREFUSED, ECONNRESET, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT, EHOSTDOWN, EPROTO,
                ENOPROTOOPT, EACCES}},
    {SETSOCKOPT, NOTHING, .errors = {EBADF, EFAULT, EINVAL, ENOPROTOOPT, ENOTSOCK, EDOM, ENOMEM}},
    {SEND, LINK,
     .errors = {EACCES, EALREADY, EBADF, ECONNRESET, EDESTADDRREQ, EFAULT, EINVAL, EISCONN,
                EMSGSIZE, ENOBUFS, ENOMEM, ENOTCONN, ENOTSOCK, EOPNOTSUPP, EPIPE, EHOSTUNREACH,
                ETIMEDOUT}},
    {SEND, RETRIED, .errors = {EINTR}},
    {SEND, DELAYED, .errors = {EAGAIN}},
    {RECV, LINK,
     .errors = {EBADF, ECONNREFUSED, ECONNRESET, EFAULT, EINVAL, ENOMEM, ENOTCONN, ENOTSOCK,
                EHOSTUNREACH, ENETUNREACH, ETIMEDOUT}},
    {RECV, RETRIED, .errors = {EINTR}},
    {RECV, DELAYED, .errors = {EAGAIN}},
    {CLOSE, NOTHING, .errors = {EBADF, EINTR, EIO, ENOSPC, EDQUOT}},
    {TIMERFD_CREATE, OPEN, .errors = {EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM, EPERM}},
    {TIMERFD_SETTIME, NOTHING, .errors = {EBADF, EFAULT, EINVAL, ECANCELED}},
    {EVENTFD, OPEN, .only = BLOCKING_ONLY, .errors = {EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM}},
    {PTHREAD_CREATE, OPEN, .only = BLOCKING_ONLY, .errors = {EAGAIN, EINVAL, EPERM}},
    {EVENTFD, LINK, .named = true, .only = LOOP_ONLY,
     .errors = {EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM}},
    {PTHREAD_CREATE, LINK, .named = true, .only = LOOP_ONLY, .errors = {EAGAIN, EINVAL, EPERM}},
    {WRITE, LINK, .named = true, .says = "timeout while resolving the name",
     .errors = {EAGAIN, EBADF, EINTR, EINVAL, EIO}},
    {EPOLL_CREATE1, OPEN, .only = POLLABLE_ONLY, .errors = {EINVAL, EMFILE, ENFILE, ENOMEM}},
    {EPOLL_CTL_TIMER, OPEN, .only = POLLABLE_ONLY,
     .errors = {EBADF, EEXIST, EINVAL, ELOOP, ENOENT, ENOMEM, ENOSPC, EPERM}},
    {EPOLL_CTL, RETRIED, .only = POLLABLE_ONLY, .errors = {ENOMEM, ENOSPC}},
    {EPOLL_CTL, LINK, .only = POLLABLE_ONLY, .says = "epoll_ctl fails here",
     .errors = {ENOSPC, EBADF, EEXIST, EINVAL, ELOOP, ENOENT, ENOMEM, EPERM}},
    {EPOLL_WAIT, RETRIED, .only = POLLABLE_ONLY, .errors = {EINTR}},
    {EPOLL_WAIT, LINK, .only = POLLABLE_ONLY, .says = "timeout while connecting",
     .errors = {EBADF, EFAULT, EINVAL}},
    {EV_EPOLL_CTL, RETRIED, .only = LIBEV_ONLY, .errors = {ENOMEM, ENOSPC}},
    {EV_EPOLL_CTL, LINK, .only = LIBEV_ONLY, .says = "epoll_ctl fails here",
     .errors = {ENOSPC, ENOMEM}},
    {EV_EPOLL_CTL_TIMER, NOTHING, .only = LIBEV_ONLY, .errors = {ENOMEM, ENOSPC}},
    {EV_EPOLL_CTL_WAKE, OPEN, .only = BLOCKING_ONLY, .errors = {ENOMEM, ENOSPC}},
    {EV_EPOLL_CTL_WAKE, RETRIED, .named = true, .only = LOOP_ONLY, .errors = {ENOMEM, ENOSPC}},
    {EV_EPOLL_CTL_WAKE, LINK, .named = true, .only = LOOP_ONLY, .says = "epoll_ctl fails here",
     .errors = {ENOSPC, ENOMEM}},
    {GETADDRINFO, LINK, .named = true,
     .errors = {EAI_ADDRFAMILY, EAI_AGAIN, EAI_BADFLAGS, EAI_FAIL, EAI_FAMILY, EAI_MEMORY,
                EAI_NODATA, EAI_NONAME, EAI_SERVICE, EAI_SOCKTYPE, /* With EAI_SYSTEM: */
                EMFILE, ENFILE, ENOMEM, EACCES}},
};

static const char *text_of(const struct row *row, int error)
{
    if (row->says != NULL)
        return row->says;
    return error > 0 ? strerror(error) : gai_strerror(error);
}

/* ---- A client's life ---- */

static struct cluster one;
static const char *masters; /* The address of that one. */

static uint32_t timeout_ms = TIMEOUT_MS;

static void tune(struct redlock_options *opts)
{
    opts->connect_timeout_ms = opts->reply_timeout_ms = timeout_ms;
}

/* True if only a timeout shows that this system call failed. */
static bool waits_for_timeout(const struct row *row, bool in_vain)
{
    return row->call == WRITE || ((row->outcome == DELAYED || row->says != NULL) && in_vain);
}

/* A broken link may make any call fail, and its message names the master. */
static void check_step(const struct row *row, int status, const char *message)
{
    if (status == REDLOCK_OK)
        return;
    CHECK(row->outcome == LINK || row->outcome == DELAYED);
    CHECK(failing_happened());
    CHECK_INT(status, REDLOCK_UNREACHABLE);
    CHECK_HAS(message, row->named ? "localhost" : masters);
}

/* Wait for a lock that another client holds for a moment. */
static void wait_for_lock(struct pilot *pilot, const struct row *row)
{
    struct redlock_lease *lease;
    int status = pilot_lock_for(pilot, "taken", 10000, false, PATIENT_MS, &lease);

    if (status == REDLOCK_CONTENDED && row->outcome == LINK)
        return; /* A master may store the token of a lost round until it gets the release. */
    check_step(row, status, pilot->message);
    if (status == REDLOCK_OK)
        check_step(row, pilot_unlock(pilot, lease), pilot->message);
}

static void use(struct pilot *pilot, const struct row *row)
{
    struct redlock_lease *lease;
    int status = pilot_lock(pilot, "x", NULL, &lease);

    check_step(row, status, pilot->message);
    if (status == REDLOCK_OK) {
        check_step(row, pilot_extend(pilot, lease, 0), pilot->message);
        check_step(row, pilot_unlock(pilot, lease), pilot->message);
    }
    wait_for_lock(pilot, row);
}

/* The system call always fails.  The message must say so. */
static void use_in_vain(struct pilot *pilot, const struct row *row, int error)
{
    const char *says = row->outcome == LINK ? text_of(row, error) : "answer";

    CHECK_INT(pilot_until_told(pilot, "vain", says), REDLOCK_UNREACHABLE);
    CHECK_HAS(pilot->message, row->named ? "localhost" : masters);
    CHECK_HAS(pilot->message, says);
}

static void check_recovered(struct pilot *pilot)
{
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock_for(pilot, "after", 10000, true, 30000, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    CHECK(pilot_until_leases(pilot, 0));
}

static void check_not_opened(const struct pilot *pilot, const struct row *row, int error)
{
    CHECK(row->outcome == OPEN);
    CHECK(pilot->rl == NULL);
    CHECK_HAS(pilot->message, "open: ");
    /* The library has its own text for ENOMEM. */
    CHECK_HAS(pilot->message, error == ENOMEM ? "emory" : text_of(row, error));
}

static void live(enum pilot_kind kind, const struct row *row, int error, unsigned moment)
{
    bool in_vain = moment == ALWAYS && row->outcome != NOTHING;
    struct redlock_lease *kept;
    char named[64];
    struct pilot pilot;
    int status;

    (void)snprintf(named, sizeof named, "localhost:%u", one.server[0].port);
    timeout_ms = waits_for_timeout(row, in_vain) ? TIMEOUT_MS : PATIENT_MS;
    failing_start(row->call, error, moment);
    status = pilot_try_open(&pilot, kind, row->named ? named : masters, tune);
    if (status == REDLOCK_OK) {
        CHECK(!failing_happened() || row->outcome != OPEN);
        if (in_vain && row->outcome != OPEN)
            use_in_vain(&pilot, row, error);
        else
            use(&pilot, row);
        if (moment != ALWAYS && !failing_happened()) {
            check_step(row, pilot_lock(&pilot, "kept", NULL, &kept), pilot.message);
        } else {
            if (row->outcome != NOTHING)
                failing_stop();
            check_recovered(&pilot);
        }
        pilot_close(&pilot); /* The last calls of a life release the lease that is kept. */
    } else {
        check_not_opened(&pilot, row, error);
    }
    failing_stop();
}

/* ---- Again and again ---- */

/* A thread that resolves a name may end shortly after the client is closed. */
static bool is_clean(void *arg)
{
    const unsigned *descriptors = arg;

    return cluster_descriptors() == *descriptors;
}

/* False: this life has fewer calls, so none failed. */
static bool live_once(enum pilot_kind kind, const struct row *row, int error, unsigned moment)
{
    struct pilot nobody = {.kind = PILOT_BLOCKING};
    static char text[96];
    unsigned descriptors;
    double begun_s;

    (void)snprintf(text, sizeof text, "%s, %s, %s, call %d", pilot_kind_name(kind),
                   failing_names[row->call], text_of(row, error), (int)moment);
    check_row = text;
    server_forget_locks(&one.server[0]);
    (void)server_int(&one.server[0], "SET taken somebody PX 60");
    descriptors = cluster_descriptors();
    begun_s = cluster_now_s();
    (void)alarm(CLUSTER_WAIT_S + LIFE_MAX_S); /* A call that never returns ends the program. */
    live(kind, row, error, moment);
    CHECK(pilot_until(&nobody, is_clean, &descriptors));
    CHECK(cluster_now_s() - begun_s < LIFE_MAX_S);
    return failing_happened();
}

static void fail_row(enum pilot_kind kind, const struct row *row)
{
    unsigned lives = 0, moment;

    for (unsigned i = 0; i < ERRORS_MAX && row->errors[i] != 0; i++) {
        /* The first error fails at each moment.  The library treats the others alike, so the first
         * three moments are enough for them. */
        unsigned max = i == 0 ? MOMENTS_MAX : 3;

        for (moment = 0; moment < max && live_once(kind, row, row->errors[i], moment); moment++)
            lives++;
        CHECK(moment > 0 && moment < MOMENTS_MAX);
        if (row->outcome != RETRIED)
            CHECK(live_once(kind, row, row->errors[i], ALWAYS));
    }
    printf("%s: %s failed %u times\n", pilot_kind_name(kind), failing_names[row->call], lives);
}

static bool is_for(const struct row *row, enum pilot_kind kind)
{
    bool is_pollable = kind == PILOT_LOOP && pilot_is_pollable();

    if (row->only == POLLABLE_ONLY)
        return is_pollable;
    if (row->call >= EV_EPOLL_CTL && is_pollable)
        return false;
    if (row->only == LIBEV_ONLY)
        return true;
    return row->only == ALL_KINDS || (row->only == BLOCKING_ONLY) == (kind == PILOT_BLOCKING);
}

static void fail_all(enum pilot_kind kind, bool named)
{
    cluster_ready(&one, 1);
    masters = cluster_masters(&one);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].named == named && is_for(&rows[i], kind))
            fail_row(kind, &rows[i]);
}

TEST(on_a_loop)
{
    fail_all(PILOT_LOOP, false);
}

TEST(where_calls_block)
{
    fail_all(PILOT_BLOCKING, false);
}

TEST(with_a_name_to_resolve)
{
    fail_all(PILOT_LOOP, true);
    fail_all(PILOT_BLOCKING, true);
}

static void count_ring(void *cookie)
{
    ++*(unsigned *)cookie;
}

static void before_sleep(void *cookie)
{
    (void)cookie;
}

/* The loop reads the descriptor only when it rings and no alarm is set any more. */
static void ring_unread(int error, unsigned moment)
{
    static const struct loop_events events = {.on_timer = count_ring, .before_sleep = before_sleep};
    struct ev_loop *ev = ev_loop_new(EVFLAG_AUTO);
    unsigned rings = 0;
    struct loop *loop = loop_ev_new(ev, &events, &rings);

    failing_start(READ, error, moment);
    loop_wake_at(loop, loop_now(loop) + 10 * DRIFT_MS);
    loop_wake_at(loop, loop_now(loop));
    while (!failing_happened())
        ev_run(ev, EVRUN_ONCE);
    CHECK_UINT(rings, 1);
    loop_wake_at(loop, loop_now(loop) + 10 * DRIFT_MS);
    while (rings < 2)
        ev_run(ev, EVRUN_ONCE);
    failing_stop();
    loop_free(loop);
    ev_loop_destroy(ev);
}

TEST(a_ring_that_is_not_read)
{
    static const int errors[] = {EAGAIN, EBADF, ECANCELED, EFAULT, EINTR, EINVAL, EIO};

    (void)alarm(3 * LIFE_MAX_S);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        check_row = strerror(errors[i]);
        ring_unread(errors[i], 0);
        ring_unread(errors[i], ALWAYS);
    }
}

#define OPEN_READS 8 /* Chosen: more reads of the clock than redlock_open() makes. */

static unsigned check_moment;

/* After one failure the library never trusts the clock again, so each test has its own process. */
static int without_clock(void *arg)
{
    struct pilot pilot;

    failing_clock(0);
    if (pilot_try_open(&pilot, *(enum pilot_kind *)arg, masters, tune) != REDLOCK_E_SYSTEM)
        return 1;
    return strstr(pilot.message, "CLOCK_BOOTTIME") != NULL ? 0 : 2;
}

static int lose_clock(void *arg)
{
    struct pilot_loss loss = {0};
    struct redlock_lock_options opts;
    struct redlock_lease *lease;
    struct pilot pilot;

    if (pilot_try_open(&pilot, *(enum pilot_kind *)arg, masters, tune) != REDLOCK_OK)
        return 1;
    redlock_lock_options_init(&opts);
    opts.ttl_ms = 3000; /* Chosen: longer than it takes to lock on a busy machine. */
    opts.lost = pilot_on_lost;
    opts.lost_arg = &loss;
    if (pilot_lock(&pilot, "clock", &opts, &lease) != REDLOCK_OK)
        return 2;
    failing_clock(0);
    if (redlock_remaining_ms(lease) != 0)
        return 3;
    if (!pilot_until(&pilot, pilot_is_lost, &loss))
        return 4;
    (void)pilot_unlock(&pilot, lease);
    if (pilot_lock(&pilot, "clock", NULL, &lease) == REDLOCK_OK)
        return 5;
    pilot_close(&pilot);
    return 0;
}

/* The clock fails before a round, and no master answers it. */
static int never_answered(void *arg)
{
    struct redlock_lease *lease;
    struct pilot pilot;
    int status;

    if (pilot_try_open(&pilot, *(enum pilot_kind *)arg, masters, tune) != REDLOCK_OK ||
        !pilot_until_up(&pilot, 1))
        return 1;
    (void)kill(one.server[0].pid, SIGSTOP);
    failing_clock(0);
    status = pilot_lock(&pilot, "clock", NULL, &lease);
    (void)kill(one.server[0].pid, SIGCONT);
    pilot_close(&pilot);
    return status != REDLOCK_OK && status != PILOT_NEVER ? 0 : 2;
}

/* The clock fails while the client is opened, so it has no timeout that could ring. */
static int never_time_out(void *arg)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    failing_clock(check_moment);
    if (pilot_try_open(&pilot, *(enum pilot_kind *)arg, masters, tune) != REDLOCK_OK)
        return 1;
    if (!pilot_lacks_votes(pilot_lock(&pilot, "clock", NULL, &lease)))
        return 2;
    pilot_close(&pilot);
    return 0;
}

TEST(without_a_clock)
{
    enum pilot_kind kind;

    cluster_ready(&one, 1);
    masters = cluster_masters(&one);
    for (kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        check_row = pilot_kind_name(kind);
        CHECK_INT(cluster_join(cluster_spawn(without_clock, &kind)), 0);
        CHECK_INT(cluster_join(cluster_spawn(lose_clock, &kind)), 0);
        CHECK_INT(cluster_join(cluster_spawn(never_answered, &kind)), 0);
        for (check_moment = 1; check_moment < OPEN_READS; check_moment++)
            CHECK_INT(cluster_join(cluster_spawn(never_time_out, &kind)), 0);
    }
}

CHECK_MAIN({"on_a_loop", on_a_loop}, {"where_calls_block", where_calls_block},
           {"with_a_name_to_resolve", with_a_name_to_resolve},
           {"a_ring_that_is_not_read", a_ring_that_is_not_read},
           {"without_a_clock", without_a_clock})
