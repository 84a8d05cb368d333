/*
 * test-live-writers.c - writers that wait for a shared lock, on real masters: a waiting writer goes
 * before new readers, and its release wakes all waiting readers.
 *
 * In most tests the pause between two rounds is longer than the test, so only a wake-up can
 * explain that the waiter gets the lock.
 */
#include "test/lib/check.h"

#include "live/cluster.h"
#include "live/party.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

#define NAME "jobs/read"
#define NEVER_MS 600000 /* Chosen: longer than any test. */
#define TTL_MS 50000    /* Chosen: no lock runs out. */
#define PARTIES_MAX 9

static struct cluster five;
static struct party parties[PARTIES_MAX];
static bool is_fair; /* Writers wait in the queue of a fair lock. */

static void begin(struct party *party, bool shared, uint32_t wait_ms, uint32_t pause_ms)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = TTL_MS;
    opts.shared = shared;
    opts.fair = !shared && is_fair;
    opts.wait_ms = wait_ms;
    opts.retry_delay_min_ms = opts.retry_delay_max_ms = pause_ms;
    CHECK_INT(party_lock(party, NAME, &opts), REDLOCK_OK);
}

static int lock_now(struct party *party, bool shared)
{
    begin(party, shared, 0, 50);
    CHECK(party_until(party_is_told, party));
    return party->status;
}

static void unlock(struct party *party)
{
    CHECK_INT(redlock_unlock_async(party->lease, NULL, NULL), REDLOCK_OK);
    party->lease = NULL;
}

/* All masters that store the lock, and at least a majority, have a wait flag of at least min_len
 * bytes.  The client may have asked the others too late. */
static bool are_marked(size_t min_len)
{
    unsigned locked = 0, marked = 0;

    for (unsigned m = 0; m < 5; m++) {
        const char *mark = server_get(&five.server[m], "redlock:wait:" NAME);

        marked += mark != NULL && strlen(mark) >= min_len;
        locked += server_int(&five.server[m], "EXISTS " NAME) == 1;
    }
    return marked >= 3 && marked >= locked;
}

/* A wait flag that holds readers off contains the time until when. */
static bool is_off(void *arg)
{
    (void)arg;
    return are_marked(13);
}

static bool is_marked(void *arg)
{
    (void)arg;
    return are_marked(1);
}

static void set_up(unsigned parties_len, uint32_t reply_timeout_ms)
{
    is_fair = false;
    cluster_ready(&five, 5);
    for (unsigned i = 0; i < parties_len; i++)
        party_open(&parties[i], cluster_masters(&five), reply_timeout_ms);
}

static bool both_have_links(void *arg)
{
    struct redlock_stats stats = {.size = sizeof stats};
    unsigned up = 0;

    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(redlock_stats(parties[i].rl, &stats), REDLOCK_OK);
        up += stats.masters_up;
    }
    return up == 10;
}

/* Party 0 reads, and party 1 waits to write.  New readers are refused, but party 0 may extend. */
static void check_comes_first(bool in_line)
{
    struct redlock_lease *reader;

    set_up(3, PILOT_REPLY_TIMEOUT_MS);
    is_fair = in_line;
    CHECK(party_until(both_have_links, NULL));
    CHECK_INT(lock_now(&parties[0], true), REDLOCK_OK);
    reader = parties[0].lease;
    begin(&parties[1], false, UINT32_MAX, NEVER_MS);
    CHECK(party_until(is_off, NULL));
    CHECK_INT(lock_now(&parties[0], true), REDLOCK_CONTENDED);
    parties[0].status = PILOT_NEVER;
    CHECK_INT(redlock_extend_async(reader, 0, party_on_end, &parties[0]), REDLOCK_OK);
    CHECK(party_until(party_is_told, &parties[0]));
    CHECK_INT(parties[0].status, REDLOCK_OK);
    CHECK_INT(parties[1].status, PILOT_NEVER);
    parties[0].lease = reader;
    unlock(&parties[0]);
    CHECK(party_until(party_is_told, &parties[1])); /* It was notified. */
    CHECK_INT(parties[1].status, REDLOCK_OK);
    CHECK_INT(lock_now(&parties[0], true), REDLOCK_CONTENDED);

    begin(&parties[0], true, UINT32_MAX, NEVER_MS);
    CHECK(party_until(is_marked, NULL));
    unlock(&parties[1]);
    CHECK(party_until(party_is_told, &parties[0])); /* No writer holds readers off any more. */
    CHECK_INT(parties[0].status, REDLOCK_OK);
    unlock(&parties[0]);
    party_close_all(parties, PARTIES_MAX);
}

TEST(who_waits_to_be_alone_comes_first)
{
    check_comes_first(false);
}

TEST(who_waits_in_line_to_be_alone_comes_first)
{
    check_comes_first(true);
}

/* Each reader comes before the one before it goes, so there is no gap.  The waiting writer must
 * hold new readers off. */
static void check_does_not_starve(bool in_line)
{
    double began_s = cluster_now_s();
    struct redlock_lease *before;

    set_up(2, PILOT_REPLY_TIMEOUT_MS);
    is_fair = in_line;
    CHECK(party_until(both_have_links, NULL));
    CHECK_INT(lock_now(&parties[0], true), REDLOCK_OK);
    begin(&parties[1], false, UINT32_MAX, 50);
    while (parties[0].status == REDLOCK_OK && cluster_now_s() < began_s + CLUSTER_WAIT_S) {
        before = parties[0].lease;
        (void)lock_now(&parties[0], true);
        CHECK_INT(redlock_unlock_async(before, NULL, NULL), REDLOCK_OK);
    }
    CHECK_INT(parties[0].status, REDLOCK_CONTENDED);
    CHECK(party_until(party_is_told, &parties[1]));
    CHECK_INT(parties[1].status, REDLOCK_OK);
    unlock(&parties[1]);
    party_close_all(parties, PARTIES_MAX);
}

TEST(who_waits_to_be_alone_does_not_starve)
{
    check_does_not_starve(false);
}

TEST(who_waits_in_line_to_be_alone_does_not_starve)
{
    check_does_not_starve(true);
}

/* Party 0 reads all the time.  Party 1 waits to write, and gives up.  Then party 2 may read. */
TEST(who_gave_up_holds_nobody_off)
{
    set_up(3, 1000);
    CHECK(party_until(both_have_links, NULL));
    CHECK_INT(lock_now(&parties[0], true), REDLOCK_OK);
    begin(&parties[1], false, UINT32_MAX, 10);
    CHECK(party_until(is_off, NULL));
    begin(&parties[2], true, UINT32_MAX, 50);
    redlock_cancel(parties[1].lease);
    CHECK(party_until(party_is_told, &parties[2]));
    CHECK_INT(parties[2].status, REDLOCK_OK);
    unlock(&parties[0]);
    unlock(&parties[2]);
    party_close_all(parties, PARTIES_MAX);
}

static bool all_others_are_in(void *arg)
{
    unsigned in = 0;

    (void)arg;
    for (unsigned i = 1; i < PARTIES_MAX; i++)
        in += parties[i].status == REDLOCK_OK && redlock_remaining_ms(parties[i].lease) > 0;
    return in == PARTIES_MAX - 1;
}

static bool all_others_wait(void *arg)
{
    (void)arg;
    for (unsigned m = 0; m < 5; m++) {
        long long listen = server_listeners(&five.server[m], NAME);

        if (listen != (parties[1].rl == parties[2].rl ? 1 : PARTIES_MAX - 1))
            return false;
    }
    return is_marked(NULL);
}

/* Party 0 writes, and all others wait to read, with a client each or with one for all. */
static void wake_readers(bool as_one)
{
    set_up(as_one ? 2 : PARTIES_MAX, PILOT_REPLY_TIMEOUT_MS);
    for (unsigned i = 2; i < PARTIES_MAX && as_one; i++)
        parties[i] = (struct party){.rl = parties[1].rl, .status = PILOT_NEVER};
    CHECK(party_until(both_have_links, NULL));
    CHECK_INT(lock_now(&parties[0], false), REDLOCK_OK);
    for (unsigned i = 1; i < PARTIES_MAX; i++)
        begin(&parties[i], true, UINT32_MAX, NEVER_MS);
    CHECK(party_until(all_others_wait, NULL));
    unlock(&parties[0]);
    CHECK(party_until(all_others_are_in, NULL));
    for (unsigned i = 1; i < PARTIES_MAX; i++)
        unlock(&parties[i]);
    party_close_all(parties, PARTIES_MAX);
}

TEST(all_readers_are_woken)
{
    wake_readers(false);
}

TEST(all_readers_of_one_client_are_woken)
{
    wake_readers(true);
}

CHECK_MAIN({"who_waits_to_be_alone_comes_first", who_waits_to_be_alone_comes_first},
           {"who_waits_in_line_to_be_alone_comes_first", who_waits_in_line_to_be_alone_comes_first},
           {"who_waits_to_be_alone_does_not_starve", who_waits_to_be_alone_does_not_starve},
           {"who_waits_in_line_to_be_alone_does_not_starve",
            who_waits_in_line_to_be_alone_does_not_starve},
           {"who_gave_up_holds_nobody_off", who_gave_up_holds_nobody_off},
           {"all_readers_are_woken", all_readers_are_woken},
           {"all_readers_of_one_client_are_woken", all_readers_of_one_client_are_woken})
