/*
 * test-live-interrupt.c - a blocking client: calls that are interrupted, and leases that are given
 * up without waiting.
 */
#include "test/lib/check.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define THREADS 8

static struct cluster three;

static void open_three(struct pilot *pilot)
{
    CHECK(pilot_open_up(pilot, PILOT_BLOCKING, &three, 3));
}

/* A thread that waits for a lock without a limit. */
struct waiting {
    pthread_t thread;
    struct redlock *rl;
    struct redlock_lease *lease;
    int status;
    char message[200];
};

static void *wait_for_lock(void *arg)
{
    struct waiting *self = arg;
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.wait_ms = UINT32_MAX;
    self->status = redlock_lock(self->rl, "x", &opts, &self->lease);
    (void)snprintf(self->message, sizeof self->message, "%s", redlock_errmsg(self->rl));
    return NULL;
}

struct crowd {
    struct pilot *pilot;
    unsigned leases;
};

static bool is_there(void *arg)
{
    const struct crowd *crowd = arg;

    return pilot_stats(crowd->pilot).leases >= crowd->leases;
}

/* Start threads, and wait until all of them are inside their calls. */
static void start(struct pilot *pilot, struct waiting *waiting, unsigned len)
{
    struct crowd crowd = {.pilot = pilot, .leases = len + pilot_stats(pilot).leases};

    for (unsigned i = 0; i < len; i++) {
        waiting[i] = (struct waiting){.rl = pilot->rl, .status = PILOT_NEVER};
        if (pthread_create(&waiting[i].thread, NULL, wait_for_lock, &waiting[i]) != 0)
            cluster_die("no thread");
    }
    CHECK(pilot_until(pilot, is_there, &crowd));
}

static void join_interrupted(struct waiting *waiting, unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        (void)pthread_join(waiting[i].thread, NULL);
        CHECK_INT(waiting[i].status, REDLOCK_INTERRUPTED);
        CHECK_STR(waiting[i].message, "acquire x: redlock_interrupt() ended the call");
        CHECK(waiting[i].lease == NULL);
    }
}

/* The keys of waiters may be left: they expire by themselves. */
static bool is_free(void)
{
    for (unsigned i = 0; i < 3; i++)
        if (server_get(&three.server[i], "x") != NULL)
            return false;
    return true;
}

static void lock_and_unlock(struct pilot *pilot)
{
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock_for(pilot, "x", 30000, false, 30000, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
}

/* ---- Interrupts ---- */

static void occupy(bool is_taken)
{
    for (unsigned i = 0; i < 3; i++)
        (void)server_int(&three.server[i], is_taken ? "SET x other PX 600000" : "DEL x");
}

TEST(all_threads_are_interrupted)
{
    struct waiting waiting[THREADS];
    struct pilot pilot;

    open_three(&pilot);
    occupy(true);
    start(&pilot, waiting, THREADS);
    redlock_interrupt(pilot.rl);
    join_interrupted(waiting, THREADS);
    occupy(false);
    lock_and_unlock(&pilot); /* The interrupt is over. */
    CHECK(pilot_until_leases(&pilot, 0));
    pilot_close(&pilot);
}

/* The masters are stopped, so the round is out, and each may store the token later. */
TEST(the_attempt_is_undone)
{
    struct waiting waiting;
    struct pilot pilot;

    open_three(&pilot);
    for (unsigned i = 0; i < 3; i++)
        server_pause(&three.server[i]);
    start(&pilot, &waiting, 1);
    redlock_interrupt(pilot.rl);
    join_interrupted(&waiting, 1);
    for (unsigned i = 0; i < 3; i++)
        server_resume(&three.server[i]);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK(is_free());
    pilot_close(&pilot);
}

static struct redlock *signalled;

static void on_signal(int number)
{
    (void)number;
    redlock_interrupt(signalled);
}

static void handle_signal(struct pilot *pilot)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    signalled = pilot->rl;
    CHECK_INT(sigaction(SIGUSR1, &action, NULL), 0);
}

TEST(a_signal_handler_interrupts)
{
    struct waiting waiting[THREADS];
    struct pilot pilot;

    open_three(&pilot);
    handle_signal(&pilot);
    occupy(true);
    for (unsigned i = 0; i < THREADS; i++) { /* Every thread is hit: one of them runs the loop. */
        start(&pilot, waiting, THREADS);
        CHECK_INT(pthread_kill(waiting[i].thread, SIGUSR1), 0);
        join_interrupted(waiting, THREADS);
        CHECK(pilot_until_leases(&pilot, 0)); /* start() counts them. */
    }
    occupy(false);
    lock_and_unlock(&pilot);
    pilot_close(&pilot);
}

/* ---- Beside other calls ---- */

static bool is_over(void *arg)
{
    struct crowd *crowd = arg;

    return pilot_stats(crowd->pilot).leases <= crowd->leases;
}

static void lock_free(struct redlock *rl, const char *name, int *ret_status)
{
    struct redlock_lease *lease;

    *ret_status = redlock_lock(rl, name, NULL, &lease);
    if (*ret_status == REDLOCK_OK)
        *ret_status = redlock_unlock(lease);
}

/* The next call mostly begins before the thread that runs the loop has read the interrupt. */
TEST(the_next_call_does_not_take_the_interrupt_of_another)
{
    struct waiting waiting;
    struct pilot pilot;
    struct crowd none = {.pilot = &pilot};
    int status;

    open_three(&pilot);
    occupy(true);
    for (unsigned i = 0; i < 10; i++) {
        start(&pilot, &waiting, 1);
        redlock_interrupt(pilot.rl);
        lock_free(pilot.rl, "free", &status);
        CHECK(status == REDLOCK_OK || status == REDLOCK_INTERRUPTED);
        CHECK(pilot_until(&pilot, is_over, &none));
        join_interrupted(&waiting, 1);
    }
    occupy(false);
    pilot_close(&pilot);
}

struct busy {
    struct waiting waiting;
    atomic_bool *stop;
};

static void *lock_until_stopped(void *arg)
{
    struct busy *self = arg;
    char name[32];

    (void)snprintf(name, sizeof name, "busy %p", arg);
    while (!atomic_load(self->stop)) {
        lock_free(self->waiting.rl, name, &self->waiting.status);
        if (self->waiting.status != REDLOCK_OK && self->waiting.status != REDLOCK_INTERRUPTED)
            return self;
    }
    return NULL;
}

/* Waits for a name of its own, so that its subscription shows that it waits. */
struct ending {
    pthread_t thread;
    struct redlock *rl;
    char name[32];
    int status;
    atomic_bool is_over;
};

static void *lock_named(void *arg)
{
    struct ending *self = arg;
    struct redlock_lock_options opts;
    struct redlock_lease *lease;

    redlock_lock_options_init(&opts);
    opts.wait_ms = UINT32_MAX;
    self->status = redlock_lock(self->rl, self->name, &opts, &lease);
    atomic_store(&self->is_over, true);
    return NULL;
}

static bool has_ended(void *arg)
{
    struct ending *self = arg;

    return atomic_load(&self->is_over);
}

static bool is_listening(void *arg)
{
    const struct ending *self = arg;

    return server_listeners(&three.server[0], self->name) > 0;
}

static void interrupt_one(struct pilot *pilot, unsigned number)
{
    struct ending ending = {.rl = pilot->rl, .status = PILOT_NEVER};

    (void)snprintf(ending.name, sizeof ending.name, "taken %u", number);
    for (unsigned i = 0; i < 3; i++)
        (void)server_int(&three.server[i], "SET %s other PX 600000", ending.name);
    CHECK_INT(pthread_create(&ending.thread, NULL, lock_named, &ending), 0);
    CHECK(pilot_until(pilot, is_listening, &ending));
    redlock_interrupt(pilot->rl);
    CHECK(pilot_until(pilot, has_ended, &ending));
    (void)pthread_join(ending.thread, NULL);
    CHECK_INT(ending.status, REDLOCK_INTERRUPTED);
}

/* Calls are handed in all the time.  One of them must not take the interrupt for itself. */
TEST(a_crowd_does_not_take_the_interrupt_of_another)
{
    struct busy busy[THREADS];
    atomic_bool stop = false;
    struct pilot pilot;
    void *failed = NULL;

    open_three(&pilot);
    for (unsigned i = 0; i < THREADS; i++) {
        busy[i] = (struct busy){.waiting.rl = pilot.rl, .stop = &stop};
        CHECK_INT(pthread_create(&busy[i].waiting.thread, NULL, lock_until_stopped, &busy[i]), 0);
    }
    for (unsigned i = 0; i < 50; i++)
        interrupt_one(&pilot, i);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(busy[i].waiting.thread, &failed);
        CHECK(failed == NULL);
    }
    pilot_close(&pilot);
}

TEST(an_early_interrupt_ends_the_next_call)
{
    struct redlock_lease *held, *lease = NULL;
    struct pilot pilot;
    uint64_t rounds;

    open_three(&pilot);
    CHECK_INT(pilot_lock_for(&pilot, "held", 30000, false, 0, &held), REDLOCK_OK);
    rounds = pilot_stats(&pilot).rounds;
    errno = ENOTTY;
    redlock_interrupt(pilot.rl);
    redlock_interrupt(pilot.rl);
    CHECK_INT(errno, ENOTTY);
    CHECK_INT(pilot_extend(&pilot, held, 0), REDLOCK_OK);
    CHECK(redlock_remaining_ms(held) > 0);
    CHECK_INT(pilot_unlock(&pilot, held), REDLOCK_OK);
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_INTERRUPTED);
    CHECK_STR(pilot.message, "acquire: redlock_interrupt() ended the call");
    CHECK(lease == NULL);
    CHECK_UINT(pilot_stats(&pilot).rounds, rounds);
    lock_and_unlock(&pilot);
    pilot_close(&pilot);
}

TEST(a_loop_client_is_not_interrupted)
{
    struct pilot pilot;

    cluster_ready(&three, 3);
    pilot_open(&pilot, PILOT_LOOP, cluster_masters(&three), 0);
    redlock_interrupt(NULL);
    redlock_interrupt(pilot.rl);
    lock_and_unlock(&pilot);
    pilot_close(&pilot);
}

/* An interrupt hits at any point of a call.  Each call is interrupted or gets the lock. */
static void *lock_often(void *arg)
{
    struct waiting *self = arg;

    for (unsigned i = 0; i < 50; i++) {
        wait_for_lock(self);
        if (self->status == REDLOCK_OK)
            self->status = redlock_unlock(self->lease);
        if (self->status != REDLOCK_OK && self->status != REDLOCK_INTERRUPTED)
            return self;
    }
    return NULL;
}

TEST(interrupts_at_any_time)
{
    struct waiting waiting[THREADS];
    struct pilot pilot;
    void *failed = NULL;

    open_three(&pilot);
    handle_signal(&pilot);
    for (unsigned i = 0; i < THREADS; i++) {
        waiting[i] = (struct waiting){.rl = pilot.rl};
        if (pthread_create(&waiting[i].thread, NULL, lock_often, &waiting[i]) != 0)
            cluster_die("no thread");
    }
    for (unsigned i = 0; i < 200; i++) {
        if (i % 2 == 0)
            redlock_interrupt(pilot.rl);
        else
            (void)raise(SIGUSR1);
        pilot_turn(&pilot);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(waiting[i].thread, &failed);
        CHECK(failed == NULL);
    }
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK(is_free());
    pilot_close(&pilot);
}

/* ---- Giving up ---- */

/* The masters are stopped, so a call that waited for them would not return. */
TEST(a_cancel_does_not_wait)
{
    struct redlock_lease *lease;
    struct pilot pilot;

    open_three(&pilot);
    CHECK_INT(pilot_lock_for(&pilot, "x", 60000, true, 30000, &lease), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        server_pause(&three.server[i]);
    redlock_cancel(lease);
    CHECK_STR(redlock_errmsg(pilot.rl), "");
    CHECK_UINT(redlock_remaining_ms(lease), 0); /* It is not freed yet: no master answers. */
    for (unsigned i = 0; i < 3; i++)
        server_resume(&three.server[i]);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK(is_free());
    pilot_close(&pilot);
}

struct extending {
    pthread_t thread;
    struct redlock_lease *lease;
    int status;
};

static void *extend(void *arg)
{
    struct extending *self = arg;

    self->status = redlock_extend(self->lease, 0);
    return NULL;
}

static bool has_sent(void *arg)
{
    const struct crowd *crowd = arg;

    return pilot_stats(crowd->pilot).commands >= crowd->leases;
}

TEST(a_cancel_ends_an_extend)
{
    struct extending self = {.status = PILOT_NEVER};
    struct crowd sent;
    struct pilot pilot;

    open_three(&pilot);
    CHECK_INT(pilot_lock_for(&pilot, "x", 60000, false, 30000, &self.lease), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++)
        server_pause(&three.server[i]);
    sent = (struct crowd){&pilot, (unsigned)pilot_stats(&pilot).commands + 3};
    CHECK_INT(pthread_create(&self.thread, NULL, extend, &self), 0);
    CHECK(pilot_until(&pilot, has_sent, &sent));
    redlock_cancel(self.lease);
    (void)pthread_join(self.thread, NULL);
    CHECK_INT(self.status, REDLOCK_LOST);
    for (unsigned i = 0; i < 3; i++)
        server_resume(&three.server[i]);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK(is_free());
    pilot_close(&pilot);
}

static void *cancel(void *arg)
{
    redlock_cancel(arg);
    return NULL;
}

TEST(a_thread_does_not_cancel_the_lock_of_another)
{
    struct redlock_lock_options opts;
    struct redlock_lease *lease, *again;
    struct pilot pilot;
    pthread_t other;

    open_three(&pilot);
    redlock_lock_options_init(&opts);
    opts.ttl_ms = 60000;
    opts.reentrant = true;
    CHECK_INT(redlock_lock(pilot.rl, "x", &opts, &lease), REDLOCK_OK);
    CHECK_INT(redlock_lock(pilot.rl, "x", &opts, &again), REDLOCK_OK);
    CHECK_INT(pthread_create(&other, NULL, cancel, lease), 0);
    (void)pthread_join(other, NULL);
    CHECK_UINT(info_holds(lease), 2);
    CHECK(redlock_remaining_ms(lease) > 0);
    redlock_cancel(lease);
    CHECK(pilot_until_leases(&pilot, 0));
    CHECK(is_free());
    pilot_close(&pilot);
}

CHECK_MAIN({"all_threads_are_interrupted", all_threads_are_interrupted},
           {"the_attempt_is_undone", the_attempt_is_undone},
           {"a_signal_handler_interrupts", a_signal_handler_interrupts},
           RUN(the_next_call_does_not_take_the_interrupt_of_another),
           RUN(a_crowd_does_not_take_the_interrupt_of_another),
           {"an_early_interrupt_ends_the_next_call", an_early_interrupt_ends_the_next_call},
           {"a_loop_client_is_not_interrupted", a_loop_client_is_not_interrupted},
           {"interrupts_at_any_time", interrupts_at_any_time},
           {"a_cancel_does_not_wait", a_cancel_does_not_wait},
           {"a_cancel_ends_an_extend", a_cancel_ends_an_extend},
           {"a_thread_does_not_cancel_the_lock_of_another",
            a_thread_does_not_cancel_the_lock_of_another})
