/*
 * test-live-hung.c - masters that are stopped (SIGSTOP) or hold commands back (CLIENT PAUSE), and
 * then go on.  Late grants are released, memory is bounded, and links come back.
 */
#include "test/lib/check.h"

#include <malloc.h>
#include <stdlib.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

/* Chosen: short, because the client waits as long for hung masters; and long enough for the others
 * to answer.  A link is given up after four times that, and not before 4 s. */
#define REPLY_TIMEOUT_MS 2000

#define CYCLES 20000
#define IN_FLIGHT 64
#define NAME_MAX_LEN 400
#define QUEUE_MAX 32768 /* Commands for one master, as docs/design.md promises. */

static struct cluster five;

static void open_masters(struct pilot *pilot, enum pilot_kind kind, unsigned masters,
                         uint32_t reply_timeout_ms)
{
    cluster_ready(&five, masters);
    pilot_open(pilot, kind, cluster_masters(&five), reply_timeout_ms);
    CHECK(pilot_until_up(pilot, masters));
}

static void open_five(struct pilot *pilot, enum pilot_kind kind, uint32_t reply_timeout_ms)
{
    open_masters(pilot, kind, 5, reply_timeout_ms);
}

/* ---- Late answers ---- */

/* The message says of masters 1 to 3, and of no other, that they did not answer. */
static void check_blamed(const char *message)
{
    char blame[80];

    (void)snprintf(blame, sizeof blame, "): no answer within %d ms", REPLY_TIMEOUT_MS);
    CHECK_HAS(message, "could vote: masters 1 to 3 (127.0.0.1:");
    CHECK_HAS(message, blame);
    CHECK(strstr(message, "; master") == NULL);
}

/* A majority is stopped when the client asks it.  When it goes on, it gets the request and then the
 * release. */
TEST(late_success_is_undone)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        open_five(&pilot, kind, REPLY_TIMEOUT_MS);
        for (unsigned i = 0; i < 3; i++)
            server_pause(&five.server[i]);
        CHECK_INT(pilot_lock_for(&pilot, "x", 60000, true, 0, &lease), REDLOCK_UNREACHABLE);
        check_blamed(pilot.message);
        for (unsigned i = 0; i < 3; i++)
            server_resume(&five.server[i]);
        CHECK(pilot_until_leases(&pilot, 0));
        CHECK(pilot_until(&pilot, cluster_has_no_locks, &five));
        CHECK(pilot_stats(&pilot).late_yes <= 3);
        CHECK_INT(pilot_lock_for(&pilot, "x", 60000, true, 30000, &lease), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

/* Redis itself holds the commands back.  The links stand, so the answers come after the round, but
 * before the links are given up. */
TEST(late_answers_are_undone)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        open_five(&pilot, kind, REPLY_TIMEOUT_MS);
        for (unsigned i = 0; i < 3; i++)
            (void)server_int(&five.server[i], "CLIENT PAUSE 5000 ALL");
        CHECK_INT(pilot_lock_for(&pilot, "x", 60000, true, 0, &lease), REDLOCK_UNREACHABLE);
        CHECK(pilot_until_leases(&pilot, 0));
        CHECK_UINT(pilot_stats(&pilot).late_yes, 3);
        CHECK(pilot_until(&pilot, cluster_has_no_locks, &five));
        CHECK_UINT(pilot_stats(&pilot).connects, 5);
        pilot_close(&pilot);
    }
}

/* All masters grant the lock after its lease is over. */
TEST(too_late_is_told_and_undone)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        open_five(&pilot, kind, 0);
        for (unsigned i = 0; i < 5; i++)
            (void)server_int(&five.server[i], "CLIENT PAUSE 3000 ALL");
        CHECK_INT(pilot_lock_for(&pilot, "x", 300, true, 0, &lease), REDLOCK_TOO_LATE);
        CHECK_STR(pilot.message, "acquire x: no validity left when the majority had answered");
        CHECK(pilot_until_leases(&pilot, 0));
        CHECK(pilot_until(&pilot, cluster_has_no_locks, &five));
        CHECK_UINT(pilot_stats(&pilot).too_late, 1);
        pilot_close(&pilot);
    }
}

/* ---- Hung and resumed ---- */

TEST(three_of_three_hang_and_resume)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease, *held;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&five, 3);
        pilot_open(&pilot, kind, cluster_masters(&five), 800);
        CHECK(pilot_until_up(&pilot, 3));
        CHECK_INT(pilot_lock_for(&pilot, "held", 60000, true, 30000, &held), REDLOCK_OK);
        for (unsigned i = 0; i < 3; i++)
            server_pause(&five.server[i]);
        for (unsigned i = 0; i < 3; i++) /* This is too short to give up links. */
            CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
        CHECK_INT(pilot_extend(&pilot, held, 0), REDLOCK_UNREACHABLE);
        CHECK(redlock_remaining_ms(held) > 0);
        for (unsigned i = 0; i < 3; i++)
            server_resume(&five.server[i]);
        CHECK_INT(pilot_lock_for(&pilot, "x", 10000, true, 30000, &lease), REDLOCK_OK);
        CHECK(pilot_until_up(&pilot, 3)); /* On a busy machine one may have been given up. */
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        CHECK_INT(pilot_extend(&pilot, held, 0), REDLOCK_OK);
        CHECK_INT(pilot_unlock(&pilot, held), REDLOCK_OK);
        CHECK(pilot_until(&pilot, cluster_has_no_locks, &five));
        pilot_close(&pilot);
    }
}

/* ---- Given up ---- */

static void set_impatience(struct redlock_options *opts)
{
    opts->reply_timeout_ms = 1000; /* A link that owes answers is checked as often (link.c). */
}

/* The client replaces a link whose master does not answer.  It releases the locks that it asked for
 * on the old link. */
TEST(a_link_that_stays_silent_is_given_up)
{
    const char *why = "takes commands and does not answer";

    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&five, 3);
        CHECK_INT(pilot_try_open(&pilot, kind, cluster_masters(&five), set_impatience), REDLOCK_OK);
        CHECK(pilot_until_up(&pilot, 3));
        for (unsigned i = 0; i < 2; i++)
            server_pause(&five.server[i]);
        CHECK_INT(pilot_until_told(&pilot, "x", why), REDLOCK_UNREACHABLE);
        CHECK_HAS(pilot.message, why);
        CHECK(pilot_until_up(&pilot, 1)); /* Both links must be down. */
        for (unsigned i = 0; i < 2; i++)
            server_resume(&five.server[i]);
        CHECK(pilot_until_connects(&pilot, 5));
        CHECK(pilot_until_up(&pilot, 3));
        CHECK(pilot_until(&pilot, cluster_has_no_locks, &five));
        CHECK_UINT(pilot_stats(&pilot).connects, 5);
        pilot_close(&pilot);
    }
}

/* ---- Memory ---- */

/* The bytes in use in the whole process, in small and large blocks. */
static long heap(void)
{
    struct mallinfo2 info = mallinfo2();

    return (long)(info.uordblks + info.hblkhd);
}

/* Cycles of lock and unlock on a loop, many at once. */
struct cycles {
    struct pilot *pilot;
    int name_len;
    unsigned begun, ended, failed;
    long peak; /* The largest heap(), sampled every 100 cycles. */
};

static void begin_cycle(struct cycles *cycles);

static void on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    struct cycles *cycles = arg;

    (void)lease;
    cycles->ended++;
    cycles->failed += status != REDLOCK_OK;
    if (cycles->ended % 100 == 0 && heap() > cycles->peak)
        cycles->peak = heap();
    begin_cycle(cycles);
}

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    struct cycles *cycles = arg;

    if (status == REDLOCK_OK && redlock_unlock_async(lease, on_unlocked, arg) == REDLOCK_OK)
        return;
    cycles->ended++;
    cycles->failed++;
    begin_cycle(cycles);
}

static void begin_cycle(struct cycles *cycles)
{
    struct redlock_lock_options opts;
    char name[NAME_MAX_LEN + 1];

    if (cycles->begun == CYCLES)
        return;
    redlock_lock_options_init(&opts);
    opts.ttl_ms = 2000; /* After that, a lock that the hung master may still grant is over. */
    (void)snprintf(name, sizeof name, "cycle %0*u", cycles->name_len - (int)sizeof "cycle",
                   cycles->begun++);
    if (redlock_lock_async(cycles->pilot->rl, name, &opts, on_locked, cycles, NULL) != REDLOCK_OK)
        cluster_die("lock: %s", redlock_errmsg(cycles->pilot->rl));
}

static bool is_over(void *arg)
{
    const struct cycles *cycles = arg;

    return cycles->ended == CYCLES;
}

/* Sanitizers have allocators of their own, and give no numbers. */
static bool heap_is_known(void)
{
    void *block = malloc(1 << 20);
    bool known = heap() >= 1 << 20;

    free(block);
    return known;
}

/* Returns the most heap that was in use meanwhile. */
static long run_cycles(struct pilot *pilot, int name_len)
{
    struct cycles cycles = {.pilot = pilot, .name_len = name_len};

    for (unsigned i = 0; i < IN_FLIGHT; i++)
        begin_cycle(&cycles);
    CHECK(pilot_until(pilot, is_over, &cycles));
    CHECK(cycles.failed < CYCLES / 100); /* Some may be too late on a busy machine. */
    return cycles.peak;
}

/*
 * The commands for the hung master are 25 MB.  Of these 8 MiB may wait, in a buffer that grows by
 * doubling.  Each waiting command also keeps its lease, which is 1 KB with its name.  Together
 * this is 31 MB, and 55 MB without a bound.  When the link breaks, all of it is freed.  The reply
 * timeout is long, so that the link does not break sooner.  There are three masters, because each
 * cycle needs two answers.  Of five, another one that is merely slow could fall behind as well.
 */
TEST(a_hung_master_does_not_grow_our_memory)
{
    struct pilot pilot;
    long before, well, hung, broken;

    before = heap();
    open_masters(&pilot, PILOT_LOOP, 3, CLUSTER_WAIT_S * 1000);
    (void)run_cycles(&pilot, NAME_MAX_LEN);
    CHECK(pilot_until_leases(&pilot, 0));
    well = heap();
    server_pause(&five.server[2]);
    hung = run_cycles(&pilot, NAME_MAX_LEN);
    server_kill(&five.server[2]);
    CHECK(pilot_until_leases(&pilot, 0));
    broken = heap();
    printf("heap: %ld before, %ld well, %ld hung, %ld broken\n", before, well, hung, broken);
    if (heap_is_known()) {
        CHECK(hung - well > 8 << 20); /* Otherwise the test proves nothing. */
        CHECK(hung - well < 44 << 20);
        CHECK(broken - well < 3 << 20);
    }
    server_restart(&five.server[2]);
    server_season(&five.server[2]);
    CHECK(pilot_until_up(&pilot, 3));
    CHECK(pilot_until(&pilot, cluster_has_no_locks, &five));
    pilot_close(&pilot);
    CHECK(heap() - before < 1 << 20);
}

/* With short names, the bound is the number of commands. */
TEST(a_hung_master_is_not_asked_for_ever)
{
    struct pilot pilot;
    uint64_t before;

    open_five(&pilot, PILOT_LOOP, 0);
    server_pause(&five.server[2]);
    before = pilot_stats(&pilot).commands;
    (void)run_cycles(&pilot, 16);
    /* Each cycle sends each of the other four at most a SET, a proof and a release. */
    CHECK(pilot_stats(&pilot).commands - before <= CYCLES * 3 * 4 + QUEUE_MAX + CYCLES / 100);
    CHECK_UINT(pilot_stats(&pilot).connects, 5);
    pilot_close(&pilot);
}

CHECK_MAIN({"late_success_is_undone", late_success_is_undone},
           {"late_answers_are_undone", late_answers_are_undone},
           {"too_late_is_told_and_undone", too_late_is_told_and_undone},
           {"three_of_three_hang_and_resume", three_of_three_hang_and_resume},
           {"a_link_that_stays_silent_is_given_up", a_link_that_stays_silent_is_given_up},
           {"a_hung_master_does_not_grow_our_memory", a_hung_master_does_not_grow_our_memory},
           {"a_hung_master_is_not_asked_for_ever", a_hung_master_is_not_asked_for_ever})
