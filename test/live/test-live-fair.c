/*
 * test-live-fair.c - fair locks on real masters: waiters get the lock in the order of the queue.
 * A waiter is notified when its turn has come, and a dead waiter is skipped.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "redlock/wire/script.h"
#include "test/lib/info.h"

#define RESTLESS 3 /* The most clients that never rest. */
#define TURNS 200  /* How often each of them takes the lock. */
#define NAME "line"
#define QUEUE "redlock:queue:" NAME

static struct cluster five;

/* With long delays, a waiter that is not notified comes too late.  Heartbeats are four times less
 * frequent than delay_ms. */
static struct redlock_lock_options options(uint32_t wait_ms, uint32_t delay_ms)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.fair = true;
    opts.wait_ms = wait_ms;
    opts.ttl_ms = 30000;
    opts.retry_delay_min_ms = delay_ms / 2;
    opts.retry_delay_max_ms = delay_ms;
    return opts;
}

/* Load the heartbeat script on all masters.  If a master lacks it, and says so after the round is
 * decided, it queues the waiter only at the next heartbeat.  Some tests wait until all five have
 * queued it, and have heartbeats once an hour. */
static void teach_all(void)
{
    for (unsigned m = 0; m < 5; m++)
        (void)server_text(&five.server[m], "SCRIPT LOAD %s", script_all[SCRIPT_ACQUIRE_FAIR].text);
}

/* Wait until the queue has so many waiters on so many masters. */
static void until_queued(unsigned waiters, unsigned masters)
{
    CHECK(cluster_until_queued(&five, NAME, waiters, masters));
}

/* ---- One at a time ---- */

TEST(alone_it_is_a_lock)
{
    for (unsigned kind = 0; kind < PILOT_KINDS; kind++) {
        struct redlock_lock_options opts = options(0, 50), plain = opts;
        struct redlock_lease *lease, *other;
        struct pilot pilot;

        check_row = pilot_kind_name((enum pilot_kind)kind);
        plain.fair = false;
        CHECK(pilot_open_five(&pilot, (enum pilot_kind)kind, &five));
        for (unsigned m = 0; m < 5; m++)
            (void)server_text(&five.server[m], "SCRIPT FLUSH");
        CHECK_INT(pilot_lock(&pilot, NAME, &opts, &lease), REDLOCK_OK);
        CHECK(cluster_count(&five, NAME, info_token(lease)) >= 3);
        CHECK_INT(pilot_lock(&pilot, NAME, &plain, &other), REDLOCK_CONTENDED);
        CHECK_INT(pilot_lock(&pilot, NAME, &opts, &other), REDLOCK_CONTENDED);
        CHECK_STR(pilot.message,
                  "acquire line: another client holds it, or another lease of this one");
        CHECK_INT(pilot_extend(&pilot, lease, 0), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        until_queued(0, 5); /* A refused lock leaves no queue behind. */
        CHECK_INT(pilot_lock(&pilot, NAME, &plain, &lease), REDLOCK_OK);
        CHECK_INT(pilot_lock(&pilot, NAME, &opts, &other), REDLOCK_CONTENDED);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        pilot_close(&pilot);
    }
    check_row = NULL;
}

TEST(what_it_is_not_for)
{
    struct redlock_lock_options opts = options(0, 50);
    const char *const names[] = {"a", "b"};
    struct redlock_lease *lease;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    CHECK_INT(redlock_lock_many(pilot.rl, names, 2, &opts, &lease), REDLOCK_E_INVAL);
    CHECK_INT(redlock_adopt(pilot.rl, "a", "token", &opts, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(pilot.rl), "adopt: adopt and fair do not go together: an adopted lock "
                                        "takes no turn: adopt it without fair");
    CHECK_INT(redlock_lock(pilot.rl, QUEUE, &opts, &lease), REDLOCK_E_INVAL);
    opts.permits = 2;
    CHECK_INT(redlock_lock(pilot.rl, "a", &opts, &lease), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(pilot.rl), "acquire: fair and permits do not go together: a queue "
                                        "belongs to one key, and each permit has its own");
    pilot_close(&pilot);
}

/* If the queue is full, the message says so. */
TEST(a_full_queue_says_so)
{
    struct redlock_lock_options opts = options(0, 50);
    struct redlock_lease *lease;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    for (unsigned m = 0; m < 5; m++)
        (void)server_int(&five.server[m], "EVAL %s 0",
                         "for i=1,1024 do redis.call('zadd','" QUEUE
                         "',i,i,-4e15,'-'..i) end return 1");
    CHECK_INT(pilot_lock(&pilot, NAME, &opts, &lease), REDLOCK_CONTENDED);
    CHECK_STR(pilot.message, "acquire line: another client holds it: its queue is full: 1024 "
                             "clients wait");
    for (unsigned m = 0; m < 5; m++)
        (void)server_int(&five.server[m], "DEL " QUEUE);
    CHECK_INT(pilot_lock(&pilot, NAME, &opts, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
}

/* ---- Waiting ---- */

struct waiter {
    pthread_t thread;
    struct redlock *rl;
    struct redlock_lease *lease;
    struct redlock_lock_options opts;
    int status;
    unsigned turn, holds, holds_then; /* Its place; its holds after two locks, and one unlock. */
};

static void *wait_for_it(void *arg)
{
    struct waiter *waiter = arg;
    struct redlock_lease *lease;

    waiter->status = redlock_lock(waiter->rl, NAME, &waiter->opts, &lease);
    if (waiter->status == REDLOCK_OK)
        waiter->status = redlock_unlock(lease);
    return NULL;
}

static void begin_wait(struct waiter *waiter, const struct pilot *pilot,
                       const struct redlock_lock_options *opts, void *(*work)(void *arg))
{
    *waiter = (struct waiter){.rl = pilot->rl, .opts = *opts};
    if (pthread_create(&waiter->thread, NULL, work, waiter) != 0)
        cluster_die("no thread");
}

/* Wait until so many connections listen on each master. */
static void until_heard(long long clients)
{
    double began_s = cluster_now_s();
    unsigned heard = 0;

    while (heard < 5 && cluster_now_s() < began_s + CLUSTER_WAIT_S) {
        heard = 0;
        for (unsigned m = 0; m < 5; m++)
            heard += server_listeners(&five.server[m], NAME) == clients;
        cluster_nap();
    }
    CHECK_UINT(heard, 5);
}

static atomic_uint turns;

/* Lock, lock again, and unlock twice.  The thread is the owner. */
static void *wait_and_lock_again(void *arg)
{
    struct waiter *waiter = arg;
    struct redlock_lease *lease, *again;

    waiter->status = redlock_lock(waiter->rl, NAME, &waiter->opts, &lease);
    if (waiter->status != REDLOCK_OK)
        return NULL;
    waiter->turn = ++turns;
    if (redlock_lock(waiter->rl, NAME, &waiter->opts, &again) == REDLOCK_OK && again == lease)
        waiter->holds = info_holds(lease);
    if (redlock_unlock(lease) == REDLOCK_OK)
        waiter->holds_then = info_holds(lease);
    waiter->status = redlock_unlock(lease);
    return NULL;
}

/* The owner locks again without a place in the queue.  Only its last unlock releases the lock. */
TEST(its_owner_locks_it_again_before_those_in_line)
{
    struct redlock_lock_options opts = options(UINT32_MAX, 3600000);
    struct redlock_lease *lease, *again;
    struct waiter waiters[2];
    struct pilot pilot;

    turns = 0;
    opts.reentrant = true;
    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    teach_all();
    CHECK_INT(redlock_lock(pilot.rl, NAME, &opts, &lease), REDLOCK_OK);
    for (unsigned i = 0; i < 2; i++) {
        begin_wait(&waiters[i], &pilot, &opts, wait_and_lock_again);
        until_queued(i + 1, 5);
    }
    until_heard(1);
    for (unsigned i = 2; i <= 3; i++) {
        CHECK_INT(redlock_lock(pilot.rl, NAME, &opts, &again), REDLOCK_OK);
        CHECK(again == lease);
        CHECK_UINT(info_holds(lease), i);
    }
    for (unsigned i = 2; i >= 1; i--) {
        CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
        CHECK_UINT(info_holds(lease), i);
        CHECK(cluster_count(&five, NAME, info_token(lease)) >= 3);
        for (unsigned m = 0; m < 5; m++)
            CHECK_INT(server_queued(&five.server[m], NAME), 2);
    }
    CHECK_UINT(turns, 0);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    for (unsigned i = 0; i < 2; i++) {
        (void)pthread_join(waiters[i].thread, NULL);
        CHECK_INT(waiters[i].status, REDLOCK_OK);
        CHECK_UINT(waiters[i].turn, i + 1);
        CHECK_UINT(waiters[i].holds, 2);
        CHECK_UINT(waiters[i].holds_then, 1);
    }
    until_queued(0, 5);
    pilot_close(&pilot);
}

static void *wait_and_count(void *arg)
{
    (void)wait_for_it(arg);
    turns++;
    return NULL;
}

/* Release the lock as a holder does, when the next waiter's client listens: tell it alone. */
static void release_to_the_next(unsigned master)
{
    static const char script[] =
        "local w=redis.call('zrangebyscore','" QUEUE "','(0','inf','limit',0,1)[1] "
        "local own='redlock:client:'..string.sub(w,1,24) "
        "if redis.call('pubsub','numsub',own)[2]==0 then return 0 end "
        "redis.call('del','" NAME "') "
        "return redis.call('publish',own,'next '..w)";
    double began_s = cluster_now_s();
    long long told = 0;

    while (told == 0 && cluster_now_s() < began_s + CLUSTER_WAIT_S) {
        told = server_int(&five.server[master], "EVAL %s 0", script);
        cluster_nap();
    }
    CHECK_INT(told, 1);
}

static void until_in_line(unsigned master)
{
    double began_s = cluster_now_s();

    while (server_queued(&five.server[master], NAME) == 0 &&
           cluster_now_s() < began_s + CLUSTER_WAIT_S)
        cluster_nap();
    CHECK_INT(server_queued(&five.server[master], NAME), 1);
}

/* Two masters announce the waiter's turn while the round that queued it there still waits for
 * the others.  A third announces it after that round has failed.  The next heartbeat is in an
 * hour. */
TEST(a_turn_is_heard_while_a_round_goes_on)
{
    struct redlock_lock_options opts = options(UINT32_MAX, 3600000), plain = opts;
    struct waiter waiter, listener;
    struct pilot pilot;
    double began_s;

    turns = 0;
    plain.fair = false;
    cluster_ready(&five, 5);
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&five), 10000);
    CHECK(pilot_until_up(&pilot, 5));
    for (unsigned m = 0; m < 5; m++)
        (void)server_text(&five.server[m], "SET " NAME " somebody");
    begin_wait(&listener, &pilot, &plain, wait_for_it);
    until_heard(1);
    for (unsigned m = 2; m < 5; m++)
        server_pause(&five.server[m]);
    begin_wait(&waiter, &pilot, &opts, wait_and_count);
    for (unsigned m = 0; m < 3; m++) {
        if (m == 2)
            server_resume(&five.server[m]);
        until_in_line(m);
        release_to_the_next(m);
    }
    began_s = cluster_now_s();
    while (turns == 0 && cluster_now_s() < began_s + CLUSTER_WAIT_S)
        cluster_nap();
    CHECK_UINT(turns, 1);
    pilot_close(&pilot);
    (void)pthread_join(waiter.thread, NULL);
    (void)pthread_join(listener.thread, NULL);
    CHECK_INT(waiter.status, REDLOCK_OK);
    for (unsigned m = 3; m < 5; m++)
        server_resume(&five.server[m]);
}

static void *take_turns(void *arg)
{
    struct waiter *waiter = arg;

    for (unsigned i = 0; i < TURNS && waiter->status == REDLOCK_OK; i++, turns++)
        (void)wait_for_it(waiter);
    return NULL;
}

/* Joins and releases of several clients meet on the masters.  So a master may grant a round that
 * wins no majority.  A waiter must be notified in any case: heartbeats come once an hour. */
static void never_rest(unsigned clients, bool is_full)
{
    const struct redlock_lock_options opts = options(UINT32_MAX, 3600000);
    struct waiter waiters[RESTLESS];
    struct pilot pilots[RESTLESS];
    double moved_s;

    turns = 0;
    cluster_ready(&five, 5);
    teach_all();
    for (unsigned i = 0; i < clients; i++) {
        pilot_open(&pilots[i], PILOT_BLOCKING, cluster_masters(&five), 0);
        CHECK(pilot_until_up(&pilots[i], 5));
    }
    for (unsigned m = 3; m < 5; m++)
        (void)server_text(&five.server[m], "CONFIG SET maxmemory %d", is_full);
    for (unsigned i = 0; i < clients; i++)
        begin_wait(&waiters[i], &pilots[i], &opts, take_turns);
    moved_s = cluster_now_s();
    while (turns < clients * TURNS && cluster_now_s() < moved_s + CLUSTER_WAIT_S) {
        unsigned before = turns;

        cluster_nap();
        if (turns != before)
            moved_s = cluster_now_s();
    }
    CHECK_UINT(turns, clients * TURNS);
    for (unsigned i = 0; i < clients; i++)
        pilot_close(&pilots[i]);
    for (unsigned i = 0; i < clients; i++) {
        (void)pthread_join(waiters[i].thread, NULL);
        CHECK_INT(waiters[i].status, REDLOCK_OK);
    }
    for (unsigned m = 3; m < 5; m++)
        (void)server_text(&five.server[m], "CONFIG SET maxmemory 0");
}

TEST(two_who_never_rest_are_told_their_turns)
{
    never_rest(2, false);
}

TEST(three_who_never_rest_are_told_their_turns)
{
    never_rest(3, false);
}

/* One no and two errors lose a round before a majority has given out a ticket.  So the next round
 * is a join, too, and the lock is free by then. */
TEST(who_never_rest_are_told_their_turns_though_two_masters_are_full)
{
    never_rest(2, true);
}

/* A waiter with heartbeats once an hour is notified of the release, and then gets the lock. */
static void wait_and_hear(struct pilot *pilot, const struct redlock_lock_options *opts,
                          struct redlock_lease *lease)
{
    struct waiter waiter;

    begin_wait(&waiter, pilot, opts, wait_for_it);
    until_queued(1, 3);
    until_heard(1);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    (void)pthread_join(waiter.thread, NULL);
    CHECK_INT(waiter.status, REDLOCK_OK);
}

/* The release of a plain lock knows of no queue.  It still notifies the waiters in the queue, whose
 * next heartbeat is in an hour. */
TEST(a_plain_holder_lets_go)
{
    struct redlock_lock_options opts = options(UINT32_MAX, 3600000), plain = opts;
    struct redlock_lease *lease;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    plain.fair = false;
    CHECK_INT(redlock_lock(pilot.rl, NAME, &plain, &lease), REDLOCK_OK);
    wait_and_hear(&pilot, &opts, lease);
    pilot_close(&pilot);
}

/* Three masters queue the waiter, but answer after the reply timeout.  The waiter asks again in an
 * hour, so it must be notified. */
TEST(who_is_in_line_too_late_listens)
{
    struct redlock_lock_options opts = options(UINT32_MAX, 3600000);
    struct redlock_lease *lease;
    struct pilot holder, pilot;

    CHECK(pilot_open_five(&holder, PILOT_BLOCKING, &five));
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&five), 1000);
    CHECK(pilot_until_up(&pilot, 5));
    CHECK_INT(redlock_lock(holder.rl, NAME, &opts, &lease), REDLOCK_OK);
    for (unsigned m = 2; m < 5; m++)
        (void)server_text(&five.server[m], "CLIENT PAUSE 2000 WRITE");
    wait_and_hear(&pilot, &opts, lease);
    pilot_close(&holder);
    pilot_close(&pilot);
}

/* Lock, and keep the lock. */
static void *wait_and_keep(void *arg)
{
    struct waiter *waiter = arg;

    waiter->status = redlock_lock(waiter->rl, NAME, &waiter->opts, &waiter->lease);
    return NULL;
}

/* At how many masters tokens wait.  The holder's may wait besides, where its lock came too late. */
static unsigned count_standing(void)
{
    unsigned count = 0;

    for (unsigned m = 0; m < 5; m++)
        count += server_int(&five.server[m], "HLEN redlock:next:" NAME) > 0;
    return count;
}

/* A token waits at all masters, and the release of the holder gives it the lock. */
TEST(a_release_passes_the_lock_on)
{
    struct redlock_lock_options opts = options(UINT32_MAX, 500);
    double began_s = cluster_now_s();
    struct redlock_lease *lease;
    struct pilot holder, pilot;
    struct waiter waiter;

    /* Tokens wait if that is above the patience, which grows with the reply timeout. */
    opts.ttl_ms = 60000;
    CHECK(pilot_open_five(&holder, PILOT_BLOCKING, &five));
    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    CHECK_INT(redlock_lock(holder.rl, NAME, &opts, &lease), REDLOCK_OK);
    begin_wait(&waiter, &pilot, &opts, wait_and_keep);
    while (count_standing() < 5 && cluster_now_s() < began_s + CLUSTER_WAIT_S)
        cluster_nap();
    CHECK_UINT(count_standing(), 5);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    (void)pthread_join(waiter.thread, NULL);
    CHECK_INT(waiter.status, REDLOCK_OK);
    CHECK(cluster_count(&five, NAME, info_token(waiter.lease)) >= 3);
    CHECK_INT(redlock_unlock(waiter.lease), REDLOCK_OK);
    until_queued(0, 5);
    CHECK_UINT(count_standing(), 0);
    pilot_close(&holder);
    pilot_close(&pilot);
}

/* A client that has only the token does not know the place of the one that got the lock. */
TEST(a_lock_that_is_detached_keeps_no_place)
{
    struct redlock_lock_options opts = options(0, 500);
    struct redlock_lease *lease;
    struct pilot pilot;

    opts.ttl_ms = 60000;
    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    CHECK_INT(redlock_lock(pilot.rl, NAME, &opts, &lease), REDLOCK_OK);
    until_queued(1, 3);
    CHECK_INT(redlock_detach(lease), REDLOCK_OK);
    until_queued(0, 5);
    CHECK(cluster_count(&five, NAME, NULL) >= 3);
    pilot_close(&pilot);
    for (unsigned m = 0; m < 5; m++)
        (void)server_text(&five.server[m], "DEL " NAME);
}

/* A waiter that gives up leaves the queue, and the one behind it is next. */
TEST(who_gives_up_leaves)
{
    struct redlock_lock_options slow = options(UINT32_MAX, 3600000);
    struct redlock_lock_options brief = options(300, 50);
    struct redlock_lease *lease;
    struct waiter first, second;
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    CHECK_INT(redlock_lock(pilot.rl, NAME, &slow, &lease), REDLOCK_OK);
    begin_wait(&first, &pilot, &brief, wait_for_it);
    until_queued(1, 3);
    begin_wait(&second, &pilot, &slow, wait_for_it);
    (void)pthread_join(first.thread, NULL);
    CHECK_INT(first.status, REDLOCK_CONTENDED);
    until_queued(1, 3);
    until_heard(1);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    (void)pthread_join(second.thread, NULL);
    CHECK_INT(second.status, REDLOCK_OK);
    until_queued(0, 5);
    pilot_close(&pilot);
}

/* The keys end without an announcement.  The first waiter leaves before it asks again, and so
 * must notify the second. */
TEST(who_leaves_while_nobody_has_it_tells_the_next)
{
    struct redlock_lock_options opts = options(UINT32_MAX, 3600000);
    struct waiter first, second;
    struct pilot pilots[2];

    cluster_ready(&five, 5);
    for (unsigned i = 0; i < 2; i++) {
        pilot_open(&pilots[i], PILOT_BLOCKING, cluster_masters(&five), 0);
        CHECK(pilot_until_up(&pilots[i], 5));
    }
    teach_all();
    for (unsigned m = 0; m < 5; m++)
        (void)server_text(&five.server[m], "SET " NAME " somebody");
    begin_wait(&first, &pilots[0], &opts, wait_for_it);
    until_queued(1, 5);
    begin_wait(&second, &pilots[1], &opts, wait_for_it);
    until_queued(2, 5);
    until_heard(2);
    for (unsigned m = 0; m < 5; m++) {
        (void)server_int(&five.server[m], "DEL " NAME);
        (void)server_text(&five.server[m], "SCRIPT FLUSH"); /* A closed client resends nothing. */
    }
    pilot_close(&pilots[0]);
    (void)pthread_join(first.thread, NULL);
    CHECK_INT(first.status, REDLOCK_E_STATE);
    (void)pthread_join(second.thread, NULL);
    CHECK_INT(second.status, REDLOCK_OK);
    pilot_close(&pilots[1]);
}

static int wait_for_ever(void *arg)
{
    const struct redlock_lock_options opts = options(UINT32_MAX, 50);
    struct redlock_lease *lease;
    struct pilot pilot;
    const int *gate = arg;
    char byte;

    if (read(gate[0], &byte, 1) != 1)
        return 1;
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters(&five), 0);
    return redlock_lock(pilot.rl, NAME, &opts, &lease) == REDLOCK_OK ? 0 : 1;
}

/* A killed waiter stays first in the queue until its patience is over; then it is skipped.  It is
 * started before this process has threads, because ThreadSanitizer wants it so. */
TEST(who_is_dead_is_passed)
{
    const struct redlock_lock_options opts = options(UINT32_MAX, 50);
    struct redlock_lease *lease;
    struct waiter second;
    struct pilot pilot;
    int gate[2];
    pid_t pid;

    CHECK_INT(pipe(gate), 0);
    pid = cluster_spawn(wait_for_ever, gate);
    CHECK(pilot_open_five(&pilot, PILOT_BLOCKING, &five));
    CHECK_INT(redlock_lock(pilot.rl, NAME, &opts, &lease), REDLOCK_OK);
    CHECK_INT(write(gate[1], "", 1), 1);
    until_queued(1, 5);
    begin_wait(&second, &pilot, &opts, wait_for_it);
    until_queued(2, 5);
    cluster_end(pid);
    CHECK_INT(redlock_unlock(lease), REDLOCK_OK);
    (void)pthread_join(second.thread, NULL);
    CHECK_INT(second.status, REDLOCK_OK);
    pilot_close(&pilot);
    (void)close(gate[0]);
    (void)close(gate[1]);
}

CHECK_MAIN(RUN(alone_it_is_a_lock), RUN(what_it_is_not_for), RUN(a_full_queue_says_so),
           RUN(its_owner_locks_it_again_before_those_in_line),
           RUN(a_turn_is_heard_while_a_round_goes_on), RUN(two_who_never_rest_are_told_their_turns),
           RUN(three_who_never_rest_are_told_their_turns),
           RUN(who_never_rest_are_told_their_turns_though_two_masters_are_full),
           RUN(a_plain_holder_lets_go), RUN(who_is_in_line_too_late_listens),
           RUN(a_release_passes_the_lock_on), RUN(a_lock_that_is_detached_keeps_no_place),
           RUN(who_gives_up_leaves), RUN(who_leaves_while_nobody_has_it_tells_the_next),
           RUN(who_is_dead_is_passed))
