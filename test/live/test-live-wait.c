/*
 * test-live-wait.c - waiters wake when a lock is released, when its lease ends, and when a link
 * comes back.  A client listens only while it waits.
 *
 * In most tests the pause between two rounds is longer than the test, so only a wake-up can
 * explain that the waiter gets the lock.
 */
#include <stdlib.h>

#include <ev.h>

#include "test/lib/check.h"
#include "live/cluster.h"
#include "live/party.h"
#include "live/pilot.h"
#include "redlock/lease/lease.h"
#include "redlock/wire/script.h"

#define NEVER_MS 600000 /* Chosen: longer than any test. */
#define PARTIES_MAX 17
#define NAME "jobs/wait"
#define LIMITED "redis://few:pw@127.0.0.1:"

static struct cluster five;
static struct party parties[PARTIES_MAX];

static void begin_kind(struct party *party, bool fair, uint32_t ttl_ms, uint32_t pause_ms)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.fair = fair;
    opts.ttl_ms = ttl_ms;
    opts.wait_ms = UINT32_MAX;
    opts.retry_delay_min_ms = opts.retry_delay_max_ms = pause_ms;
    CHECK_INT(party_lock(party, NAME, &opts), REDLOCK_OK);
}

static void begin(struct party *party, uint32_t ttl_ms, uint32_t pause_ms)
{
    begin_kind(party, false, ttl_ms, pause_ms);
}

static bool either_is_told(void *arg)
{
    (void)arg;
    return party_is_told(&parties[1]) || party_is_told(&parties[2]);
}

static bool is_in_line(void *arg)
{
    const struct party *party = arg;

    return party->lease->waits;
}

/* The number of connections that listen. */
static unsigned listeners_of(struct server *server)
{
    const char *list = server_text(server, "CLIENT LIST TYPE pubsub");
    unsigned lines = 0;

    for (const char *p = list; *p != 0; p++)
        lines += *p == '\n';
    return lines;
}

static unsigned listeners(void)
{
    unsigned count = 0;

    for (unsigned m = 0; m < five.len; m++)
        count += listeners_of(&five.server[m]);
    return count;
}

static bool all_listen(void *arg)
{
    (void)arg;
    for (unsigned m = 0; m < five.len; m++)
        if (server_listeners(&five.server[m], NAME) == 0)
            return false;
    return true;
}

/* All masters that store the lock, and at least a majority, have the wait flag. */
static bool all_marked(void *arg)
{
    unsigned locked = 0, marked = 0;

    (void)arg;
    for (unsigned m = 0; m < five.len; m++) {
        locked += server_get(&five.server[m], NAME) != NULL;
        marked += server_get(&five.server[m], "redlock:wait:" NAME) != NULL;
    }
    return marked >= 3 && marked == locked;
}

/* Two clients are connected to each master, and one of them listens. */
static bool one_listens(void *arg)
{
    (void)arg;
    for (unsigned m = 0; m < five.len; m++)
        if (server_clients(&five.server[m]) != 2 || listeners_of(&five.server[m]) != 1)
            return false;
    return true;
}

static bool nobody_listens(void *arg)
{
    (void)arg;
    return listeners() == 0;
}

/* Start five masters and so many other parties; the first party gets the lock. */
static void set_up(unsigned others, uint32_t ttl_ms)
{
    party_close_all(parties, PARTIES_MAX);
    cluster_ready(&five, 5);
    for (unsigned i = 0; i <= others; i++)
        party_open(&parties[i], cluster_masters(&five), PILOT_REPLY_TIMEOUT_MS);
    begin(&parties[0], ttl_ms, NEVER_MS);
    CHECK(party_until(party_is_told, &parties[0]));
    CHECK_INT(parties[0].status, REDLOCK_OK);
}

static void release(struct party *party)
{
    CHECK_INT(redlock_unlock_async(party->lease, NULL, NULL), REDLOCK_OK);
}

/* ---- Woken ---- */

TEST(a_release_wakes)
{
    set_up(1, 60000);
    begin(&parties[1], 60000, NEVER_MS);
    CHECK(party_until(all_marked, NULL));
    release(&parties[0]);
    CHECK(party_until(party_is_told, &parties[1]));
    CHECK_INT(parties[1].status, REDLOCK_OK);
}

/* The lock is released while the waiter does not listen.  When it listens again, it queries the
 * key. */
TEST(a_release_that_was_missed_is_seen)
{
    set_up(1, 60000);
    begin(&parties[1], 60000, NEVER_MS);
    CHECK(party_until(all_marked, NULL));
    for (unsigned m = 0; m < five.len; m++)
        (void)server_int(&five.server[m], "CLIENT KILL TYPE pubsub");
    release(&parties[0]);
    CHECK(party_until(party_is_told, &parties[1]));
    CHECK_INT(parties[1].status, REDLOCK_OK);
}

TEST(who_was_cut_off_listens_again)
{
    set_up(1, 60000);
    begin(&parties[1], 60000, NEVER_MS);
    CHECK(party_until(all_marked, NULL));
    for (unsigned m = 0; m < five.len; m++)
        (void)server_int(&five.server[m], "CLIENT KILL TYPE pubsub");
    CHECK(party_until(nobody_listens, NULL));
    CHECK(party_until(all_listen, NULL));
    CHECK_INT(parties[1].status, PILOT_NEVER);
    release(&parties[0]);
    CHECK(party_until(party_is_told, &parties[1]));
    CHECK_INT(parties[1].status, REDLOCK_OK);
}

/* A killed holder announces nothing, but the waiter knows when its lease ends. */
TEST(the_end_of_a_killed_holder_wakes)
{
    long long left_ms;
    double end_s;

    set_up(1, 3000);
    begin(&parties[1], 60000, NEVER_MS);
    CHECK(party_until(all_marked, NULL));
    CHECK_INT(redlock_detach(parties[0].lease), REDLOCK_OK); /* No client releases or renews it. */
    end_s = cluster_now_s(); /* Before the query, which may take long. */
    left_ms = server_pttl(&five.server[4], NAME);
    end_s += (double)left_ms / 1000;
    CHECK(party_until(party_is_told, &parties[1]));
    CHECK_INT(parties[1].status, REDLOCK_OK);
    printf("taken %.1f ms after its end\n", (parties[1].at_s - end_s) * 1000);
    CHECK(parties[1].at_s > end_s - 0.1);
}

/* A release without an announcement, as by another program, is noticed by polling. */
TEST(a_release_that_nobody_tells_costs_the_time_between_two_looks)
{
    set_up(1, 60000);
    begin(&parties[1], 60000, 50);
    CHECK(party_until(all_marked, NULL));
    for (unsigned m = 0; m < five.len; m++)
        (void)server_int(&five.server[m], "DEL %s", NAME);
    CHECK(party_until(party_is_told, &parties[1]));
    CHECK_INT(parties[1].status, REDLOCK_OK);
}

TEST(those_of_one_client_have_their_turns_in_order)
{
    set_up(1, 60000);
    for (unsigned i = 2; i < 8; i++) {
        parties[i] = parties[1];
    }
    for (unsigned i = 1; i < 8; i++) {
        begin(&parties[i], 60000, NEVER_MS);
        CHECK(party_until(is_in_line, &parties[i]));
    }
    for (unsigned i = 1; i < 8; i++) {
        release(&parties[i - 1]);
        CHECK(party_until(party_is_told, &parties[i]));
        CHECK_INT(parties[i].status, REDLOCK_OK);
        CHECK_UINT(parties[i].place, i + 1);
    }
}

TEST(who_gives_up_takes_no_turn_along)
{
    set_up(1, 60000);
    parties[2] = parties[1];
    begin(&parties[1], 60000, NEVER_MS);
    begin(&parties[2], 60000, NEVER_MS);
    CHECK(party_until(all_marked, NULL));
    release(&parties[0]);
    redlock_cancel(parties[1].lease);
    CHECK(party_until(party_is_told, &parties[2]));
    CHECK_INT(parties[2].status, REDLOCK_OK);
}

/* The waiter is in the queue, and asks nothing before its next heartbeat. */
static bool is_at_rest(void *arg)
{
    const struct quorum *q = &((const struct party *)arg)->lease->q;

    return q->state == QUORUM_PAUSING && q->owing == 0;
}

/* Do what a waiter does when it gets the lock: set the wait flag on one master that granted it.
 * The other wait flags are deleted, as if they had expired. */
static void tell_taken(void)
{
    struct server *teller = NULL;

    for (unsigned m = 0; m < five.len; m++) {
        (void)server_int(&five.server[m], "DEL redlock:wait:" NAME);
        if (teller == NULL && server_get(&five.server[m], NAME) != NULL)
            teller = &five.server[m];
    }
    CHECK(server_int(teller, "EVAL %s 2 " NAME " redlock:wait:" NAME " 60000 0 taken",
                     script_all[SCRIPT_WAIT].text) > 0);
}

/* If only one master announces the release, that is enough for all waiters of one client: plain
 * ones, and those in the queue of the masters. */
TEST(in_line_or_in_a_queue_they_have_one_teller)
{
    struct party *first, *second;

    set_up(1, 60000);
    parties[2] = parties[1];
    begin(&parties[1], 60000, NEVER_MS);
    CHECK(party_until(all_marked, NULL));
    begin_kind(&parties[2], true, 60000, NEVER_MS);
    CHECK(party_until(is_at_rest, &parties[2]));
    tell_taken();
    release(&parties[0]);
    CHECK(party_until(either_is_told, NULL));
    first = party_is_told(&parties[1]) ? &parties[1] : &parties[2];
    second = first == &parties[1] ? &parties[2] : &parties[1];
    CHECK_INT(first->status, REDLOCK_OK);
    release(first);
    CHECK(party_until(party_is_told, second));
    CHECK_INT(second->status, REDLOCK_OK);
}

/* ---- What it costs ---- */

TEST(who_does_not_wait_does_not_listen)
{
    set_up(0, 60000);
    release(&parties[0]);
    for (unsigned i = 0; i < 20; i++) {
        begin(&parties[0], 60000, NEVER_MS);
        CHECK(party_until(party_is_told, &parties[0]));
        release(&parties[0]);
    }
    CHECK_UINT(listeners(), 0);
    for (unsigned m = 0; m < five.len; m++)
        CHECK(server_clients(&five.server[m]) <= 1);
}

TEST(one_more_connection_as_long_as_somebody_waits)
{
    set_up(1, 60000);
    parties[2] = parties[3] = parties[1];
    for (unsigned i = 1; i < 4; i++)
        begin(&parties[i], 60000, NEVER_MS);
    CHECK(party_until(all_marked, NULL));
    CHECK(party_until(one_listens, NULL));
    for (unsigned i = 0; i < 200; i++) /* This must not change later. */
        ev_run(party_loop, EVRUN_NOWAIT);
    CHECK(one_listens(NULL));
    for (unsigned i = 1; i < 4; i++)
        redlock_cancel(parties[i].lease);
    CHECK(party_until(nobody_listens, NULL));
}

static long long calls(struct server *server, const char *command)
{
    const char *info = server_text(server, "INFO commandstats");
    char field[64];
    const char *at;

    (void)snprintf(field, sizeof field, "cmdstat_%s:calls=", command);
    at = strstr(info, field);
    return at != NULL ? atoll(at + strlen(field)) : 0;
}

/* The number of commands that clients have sent.  INFO also counts those within scripts.  A script
 * that sets a wait flag publishes that, unless it was set already, so that can be subtracted. */
static long long commands_sent(struct server *server)
{
    return calls(server, "set") + calls(server, "eval") + calls(server, "evalsha") +
           calls(server, "hget") + calls(server, "subscribe") + calls(server, "unsubscribe") -
           (calls(server, "publish") - calls(server, "pubsub|numsub"));
}

static bool somebody_is_told(void *arg)
{
    unsigned *which = arg;

    for (*which = 0; *which < PARTIES_MAX; ++*which)
        if (parties[*which].status != PILOT_NEVER)
            return true;
    return false;
}

static bool has_released(void *arg)
{
    struct party *party = arg;

    return redlock_remaining_ms(party->lease) == 0;
}

static bool is_gone(void *arg)
{
    (void)arg;
    for (unsigned m = 0; m < five.len; m++)
        if (server_get(&five.server[m], NAME) != NULL)
            return false;
    return true;
}

static long long messages(void)
{
    long long count = 0;

    for (unsigned m = 0; m < five.len; m++)
        count += calls(&five.server[m], "publish");
    return count;
}

/* Two clients wait; one gets the lock, and the other gives up.  Then the first takes the lock once
 * more, without waiting, and releases it.  Returns the number of messages of this second time. */
static long long messages_of_the_next_time(void)
{
    struct party *winner, *loser;
    long long before;

    set_up(2, 60000);
    begin(&parties[1], 60000, NEVER_MS);
    begin(&parties[2], 60000, NEVER_MS);
    CHECK(party_until(all_marked, NULL));
    release(&parties[0]);
    CHECK(party_until(either_is_told, NULL));
    winner = party_is_told(&parties[1]) ? &parties[1] : &parties[2];
    loser = party_is_told(&parties[1]) ? &parties[2] : &parties[1];
    redlock_cancel(loser->lease);
    release(winner);
    CHECK(party_until(is_gone, NULL));
    before = messages();
    begin(winner, 60000, NEVER_MS);
    CHECK(party_until(party_is_told, winner));
    CHECK_INT(winner->status, REDLOCK_OK);
    for (unsigned i = 0; i < 20; i++) /* Let it announce the lock before it is released. */
        ev_run(party_loop, EVRUN_NOWAIT);
    release(winner);
    CHECK(party_until(is_gone, NULL));
    return messages() - before;
}

/* A client that still listens announces also a lock without a wait.  Otherwise other listeners
 * would try in vain, query, and set wait flags on all masters.  (It listens for a second.  On a
 * busy machine that may be too short, so the test repeats.) */
TEST(who_has_not_waited_tells_while_it_listens)
{
    long long count = 0;

    for (unsigned i = 0; i < 10 && count == 0; i++)
        count = messages_of_the_next_time();
    CHECK_INT(count, 2); /* One master announces "taken", and then "free". */
}

static long long all_commands_sent(void)
{
    long long count = 0;

    for (unsigned m = 0; m < five.len; m++)
        count += commands_sent(&five.server[m]);
    return count;
}

/* So many holders in turn hold the lock for 2 ms, release it and wait again.  Returns the next. */
static unsigned take_turns(unsigned holder, unsigned locks)
{
    for (unsigned n = 0; n < locks; n++) {
        double now_s = cluster_now_s();

        while (cluster_now_s() < now_s + 0.002)
            ev_run(party_loop, EVRUN_NOWAIT);
        release(&parties[holder]);
        begin(&parties[holder], 60000, 50);
        CHECK(party_until(somebody_is_told, &holder));
        CHECK_INT(parties[holder].status, REDLOCK_OK);
        parties[holder].status = PILOT_NEVER;
    }
    return holder;
}

/* Each waiter tries after a random delay (redlock/core/wait.h).  A busy machine runs several at
 * once, which then take votes from each other.  So the bound holds for the calmest of ten passes.
 * On average it is half of what all sixteen would need: a lock, a release and a query each. */
TEST(sixteen_who_wait_ask_for_little)
{
    const unsigned passes = 10, locks = 30;
    long long first, before, fewest = INT64_MAX;
    unsigned holder = 0;

    set_up(16, 60000);
    for (unsigned i = 1; i <= 16; i++)
        begin(&parties[i], 60000, 50);
    parties[0].status = PILOT_NEVER;
    CHECK(party_until(all_marked, NULL));
    first = before = all_commands_sent();
    for (unsigned i = 0; i < passes; i++) {
        long long after;

        holder = take_turns(holder, locks);
        after = all_commands_sent();
        fewest = after - before < fewest ? after - before : fewest;
        before = after;
    }
    printf("%.1f commands a lock and master, %.1f at best\n",
           (double)(before - first) / 5 / locks / passes, (double)fewest / 5 / locks);
    CHECK(fewest <= 12LL * 5 * locks);
    CHECK(before - first <= 24LL * 5 * locks * passes);
}

/* ---- What is not allowed ---- */

static void check_polling(const char *rights)
{
    party_close_all(parties, PARTIES_MAX);
    cluster_ready(&five, 5);
    for (unsigned m = 0; m < five.len; m++)
        (void)server_int(&five.server[m], rights);
    for (unsigned i = 0; i < 2; i++)
        party_open(&parties[i], cluster_masters_by(&five, LIMITED, ""), PILOT_REPLY_TIMEOUT_MS);
    for (unsigned round = 0; round < 3; round++) {
        begin(&parties[0], 60000, 20);
        CHECK(party_until(party_is_told, &parties[0]));
        CHECK_INT(parties[0].status, REDLOCK_OK);
        begin(&parties[1], 60000, 20);
        for (unsigned i = 0; i < 20; i++) /* Give it time to begin to wait. */
            ev_run(party_loop, EVRUN_NOWAIT);
        CHECK_INT(parties[1].status, PILOT_NEVER);
        release(&parties[0]);
        CHECK(party_until(party_is_told, &parties[1]));
        CHECK_INT(parties[1].status, REDLOCK_OK);
        release(&parties[1]);
        CHECK(party_until(has_released, &parties[1]));
    }
}

TEST(without_channels_it_polls)
{
    check_polling("ACL SETUSER few on >pw resetkeys ~* +@all resetchannels");
}

TEST(without_publish_and_subscribe_it_polls)
{
    check_polling("ACL SETUSER few on >pw resetkeys ~* &* +@all -publish -subscribe");
}

TEST(without_the_right_to_marks_it_polls)
{
    check_polling("ACL SETUSER few on >pw resetkeys ~jobs/* ~redlock:master &* +@all");
}

static bool all_refused(void *arg)
{
    (void)arg;
    for (unsigned m = 0; m < five.len; m++)
        if (strstr(server_text(&five.server[m], "INFO commandstats"), "cmdstat_subscribe:") == NULL)
            return false;
    return true;
}

TEST(who_was_refused_listens_when_it_may)
{
    party_close_all(parties, PARTIES_MAX);
    cluster_ready(&five, 5);
    for (unsigned m = 0; m < five.len; m++) {
        (void)server_int(&five.server[m],
                         "ACL SETUSER few on >pw resetkeys ~* &* +@all -subscribe");
        (void)server_int(&five.server[m], "CONFIG RESETSTAT");
    }
    for (unsigned i = 0; i < 2; i++)
        party_open(&parties[i], cluster_masters_by(&five, LIMITED, ""), PILOT_REPLY_TIMEOUT_MS);
    begin(&parties[0], 60000, 20);
    CHECK(party_until(party_is_told, &parties[0]));
    begin(&parties[1], 60000, 20);
    CHECK(party_until(all_refused, NULL));
    for (unsigned m = 0; m < five.len; m++)
        (void)server_int(&five.server[m], "ACL SETUSER few +subscribe");
    CHECK(party_until(all_listen, NULL));
    CHECK_INT(parties[1].status, PILOT_NEVER);
    release(&parties[0]);
    CHECK(party_until(party_is_told, &parties[1]));
    CHECK_INT(parties[1].status, REDLOCK_OK);
}

TEST(all_is_closed)
{
    party_close_all(parties, PARTIES_MAX);
    /* A master may not have noticed yet that the connections ended. */
    CHECK(party_until(nobody_listens, NULL));
    ev_loop_destroy(party_loop);
    party_loop = NULL;
}

CHECK_MAIN({"a_release_wakes", a_release_wakes},
           {"a_release_that_was_missed_is_seen", a_release_that_was_missed_is_seen},
           {"who_was_cut_off_listens_again", who_was_cut_off_listens_again},
           {"the_end_of_a_killed_holder_wakes", the_end_of_a_killed_holder_wakes},
           {"a_release_that_nobody_tells_costs_the_time_between_two_looks",
            a_release_that_nobody_tells_costs_the_time_between_two_looks},
           {"those_of_one_client_have_their_turns_in_order",
            those_of_one_client_have_their_turns_in_order},
           {"who_gives_up_takes_no_turn_along", who_gives_up_takes_no_turn_along},
           {"in_line_or_in_a_queue_they_have_one_teller",
            in_line_or_in_a_queue_they_have_one_teller},
           {"who_does_not_wait_does_not_listen", who_does_not_wait_does_not_listen},
           {"one_more_connection_as_long_as_somebody_waits",
            one_more_connection_as_long_as_somebody_waits},
           {"who_has_not_waited_tells_while_it_listens", who_has_not_waited_tells_while_it_listens},
           {"sixteen_who_wait_ask_for_little", sixteen_who_wait_ask_for_little},
           {"without_channels_it_polls", without_channels_it_polls},
           {"without_publish_and_subscribe_it_polls", without_publish_and_subscribe_it_polls},
           {"without_the_right_to_marks_it_polls", without_the_right_to_marks_it_polls},
           {"who_was_refused_listens_when_it_may", who_was_refused_listens_when_it_may},
           {"all_is_closed", all_is_closed})
