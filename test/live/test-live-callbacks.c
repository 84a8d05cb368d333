/*
 * test-live-callbacks.c - a callback runs exactly once, never before the call returns, and never
 * after cancel; and which calls are allowed inside a callback.
 */
#include "test/lib/check.h"

#include <ev.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static struct cluster five;

/* A call whose callback counts its runs, and may act. */
struct call {
    struct pilot *pilot;
    struct redlock_lease *lease;
    unsigned runs, runs_wanted;
    int status;
    char message[512];
    void (*act)(struct call *call); /* The callback calls it; may be NULL. */
    struct call *other;             /* Another call that act uses. */
    bool met;                       /* Set by act: its condition came true in time. */
};

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    struct call *call = arg;

    call->lease = lease;
    call->runs++;
    call->status = status;
    (void)snprintf(call->message, sizeof call->message, "%s", redlock_errmsg(NULL));
    if (call->act != NULL)
        call->act(call);
}

static bool has_run(void *arg)
{
    const struct call *call = arg;

    return call->runs > 0;
}

/* Run the loop long enough for a wrong callback to run. */
static void turn_some_more(struct pilot *pilot)
{
    for (unsigned i = 0; i < 10; i++)
        pilot_turn(pilot);
}

static bool has_run_enough(void *arg)
{
    const struct call *call = arg;

    return call->runs >= call->runs_wanted;
}

/* Wait until the callback has run so often in total; then it must not run again. */
static void check_runs(struct call *call, unsigned runs)
{
    call->runs_wanted = runs;
    CHECK(pilot_until(call->pilot, has_run_enough, call));
    turn_some_more(call->pilot);
    CHECK_UINT(call->runs, runs);
}

/* Open a client that can reach no master, so that each operation ends at once. */
static void open_nowhere(struct pilot *pilot)
{
    static char masters[32];

    (void)snprintf(masters, sizeof masters, "127.0.0.1:%u", cluster_closed_port());
    pilot_open(pilot, PILOT_LOOP, masters, 0);
}

static int start_lock(struct call *call, const char *name)
{
    return redlock_lock_async(call->pilot->rl, name, NULL, on_done, call, &call->lease);
}

/* ---- Once, and later ---- */

TEST(run_once_and_later)
{
    struct pilot pilot;
    struct call call = {.pilot = &pilot};

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    CHECK_INT(start_lock(&call, "x"), REDLOCK_OK);
    CHECK_UINT(call.runs, 0);
    check_runs(&call, 1);
    CHECK_INT(call.status, REDLOCK_OK);
    CHECK_STR(call.message, "");

    CHECK_INT(redlock_extend_async(call.lease, 5000, on_done, &call), REDLOCK_OK);
    CHECK_UINT(call.runs, 1);
    check_runs(&call, 2);
    CHECK_INT(call.status, REDLOCK_OK);

    CHECK_INT(redlock_unlock_async(call.lease, on_done, &call), REDLOCK_OK);
    CHECK_UINT(call.runs, 2);
    check_runs(&call, 3);
    CHECK_INT(call.status, REDLOCK_OK);
    pilot_close(&pilot);
}

TEST(run_once_and_later_even_if_all_is_known_at_once)
{
    struct pilot pilot;
    struct call call = {.pilot = &pilot};

    open_nowhere(&pilot);
    for (unsigned i = 1; i <= 3; i++) {
        CHECK_INT(start_lock(&call, "x"), REDLOCK_OK);
        CHECK_UINT(call.runs, i - 1);
        check_runs(&call, i);
        CHECK_INT(call.status, REDLOCK_UNREACHABLE);
        CHECK_HAS(call.message, "acquire x: too few masters could vote: master 1 (127.0.0.1:");
        CHECK_HAS(call.message, "Connection refused");
    }
    pilot_close(&pilot);
}

/* ---- Never ---- */

TEST(never_run_after_cancel)
{
    struct pilot pilot;

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    for (unsigned turns = 0; turns < 8; turns++) { /* Each time the test cancels later. */
        struct call call = {.pilot = &pilot};

        CHECK_INT(start_lock(&call, "x"), REDLOCK_OK);
        for (unsigned i = 0; i < turns && call.runs == 0; i++)
            ev_run(pilot.ev, EVRUN_NOWAIT);
        redlock_cancel(call.lease);
        unsigned runs = call.runs;
        CHECK(pilot_until_leases(&pilot, 0));
        turn_some_more(&pilot);
        CHECK_UINT(call.runs, runs);
        CHECK_UINT(cluster_count(&five, "x", NULL), 0);
    }
    pilot_close(&pilot);
}

TEST(never_run_for_an_extension_after_cancel)
{
    struct pilot pilot;
    struct redlock_lease *lease;
    struct call call = {.pilot = &pilot};

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
    CHECK_INT(redlock_extend_async(lease, 0, on_done, &call), REDLOCK_OK);
    redlock_cancel(lease);
    CHECK(pilot_until_leases(&pilot, 0));
    turn_some_more(&pilot);
    CHECK_UINT(call.runs, 0);
    CHECK_UINT(cluster_count(&five, "x", NULL), 0);
    pilot_close(&pilot);
}

TEST(never_run_for_an_extension_after_unlock)
{
    struct pilot pilot;
    struct redlock_lease *lease;
    struct call extend = {.pilot = &pilot}, unlock = {.pilot = &pilot};

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_OK);
    CHECK_INT(redlock_extend_async(lease, 0, on_done, &extend), REDLOCK_OK);
    CHECK_INT(redlock_unlock_async(lease, on_done, &unlock), REDLOCK_OK);
    check_runs(&unlock, 1);
    CHECK_INT(unlock.status, REDLOCK_OK);
    CHECK_UINT(extend.runs, 0);
    pilot_close(&pilot);
}

static void count_lost(struct redlock_lease *lease, void *arg)
{
    (void)lease;
    ++*(unsigned *)arg;
}

/* A lease that was detached, cancelled or unlocked gives no lost notice, even when it expires. */
TEST(never_say_lost_after_the_lease_was_given_up)
{
    struct pilot pilot;
    struct redlock_lock_options opts;
    struct redlock_lease *leases[3], *last;
    unsigned losses = 0;

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    redlock_lock_options_init(&opts);
    opts.ttl_ms = 4000; /* Chosen: far longer than it takes to lock three and give them up. */
    opts.no_renew = true;
    opts.lost = count_lost;
    opts.lost_arg = &losses;
    CHECK_INT(pilot_lock(&pilot, "detached", &opts, &leases[0]), REDLOCK_OK);
    CHECK_INT(pilot_lock(&pilot, "cancelled", &opts, &leases[1]), REDLOCK_OK);
    CHECK_INT(pilot_lock(&pilot, "unlocked", &opts, &leases[2]), REDLOCK_OK);
    CHECK_INT(redlock_detach(leases[0]), REDLOCK_OK);
    redlock_cancel(leases[1]);
    CHECK_INT(redlock_unlock_async(leases[2], NULL, NULL), REDLOCK_OK);
    /* This lease is the last to expire.  When it is lost, the others would have been, too. */
    CHECK_INT(pilot_lock(&pilot, "lost", &opts, &last), REDLOCK_OK);
    while (redlock_remaining_ms(last) > 0)
        pilot_turn(&pilot);
    turn_some_more(&pilot);
    CHECK_UINT(losses, 1);
    CHECK_INT(pilot_unlock(&pilot, last), REDLOCK_LOST);
    pilot_close(&pilot);
}

/* Both callbacks are due in the same turn of the loop, the first before the second. */
static void run_both(struct call *first, struct call *second)
{
    first->other = second;
    CHECK_INT(start_lock(second, "warm up"), REDLOCK_OK);
    CHECK(pilot_until(second->pilot, has_run, second));
    second->runs = 0;
    CHECK_INT(start_lock(first, "x"), REDLOCK_OK);
    CHECK_INT(start_lock(second, "y"), REDLOCK_OK);
    check_runs(first, 1);
}

/* The first callback cancels the second call. */
static void cancel_other(struct call *call)
{
    redlock_cancel(call->other->lease);
}

TEST(never_run_after_cancel_by_another_callback)
{
    struct pilot pilot;
    struct call first = {.pilot = &pilot, .act = cancel_other};
    struct call second = {.pilot = &pilot};

    open_nowhere(&pilot);
    run_both(&first, &second);
    CHECK_UINT(second.runs, 0);
    pilot_close(&pilot);
}

/* ---- Inside of callbacks ---- */

static void close_client(struct call *call)
{
    call->pilot->rl = redlock_close(call->pilot->rl);
}

TEST(close_in_done)
{
    for (unsigned open = 0; open < 2; open++) {
        struct pilot pilot;
        struct call closing = {.pilot = &pilot, .act = close_client};
        struct call others[5];

        check_row = open ? "masters" : "nowhere";
        if (open)
            CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
        else
            open_nowhere(&pilot);
        CHECK_INT(start_lock(&closing, "closing"), REDLOCK_OK);
        for (unsigned i = 0; i < 5; i++) {
            char name[16];

            others[i] = (struct call){.pilot = &pilot};
            (void)snprintf(name, sizeof name, "other %u", i);
            CHECK_INT(start_lock(&others[i], name), REDLOCK_OK);
        }
        check_runs(&closing, 1);
        for (unsigned i = 0; i < 5; i++)
            CHECK_UINT(others[i].runs, 0);
        pilot_close(&pilot);
    }
}

static bool is_released(void *arg)
{
    const char **name = arg;

    return cluster_count(&five, *name, NULL) == 0;
}

/* A client that closes does not wait for answers, so its releases may still be on their way. */
static void check_released(const char *name)
{
    struct pilot none = {.kind = PILOT_BLOCKING};

    CHECK(pilot_until(&none, is_released, &name));
}

static void close_on_lost(struct redlock_lease *lease, void *arg)
{
    struct call *call = arg;

    (void)lease;
    call->runs++;
    close_client(call);
}

TEST(close_in_lost)
{
    struct pilot pilot;
    struct call call = {.pilot = &pilot};
    struct redlock_lock_options opts;
    struct redlock_lease *lease, *other;

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    redlock_lock_options_init(&opts);
    CHECK_INT(pilot_lock(&pilot, "other", &opts, &other), REDLOCK_OK);
    opts.ttl_ms = 2000;
    opts.no_renew = true;
    opts.lost = close_on_lost;
    opts.lost_arg = &call;
    CHECK_INT(pilot_lock(&pilot, "x", &opts, &lease), REDLOCK_OK);
    check_runs(&call, 1);
    check_released("other");
    pilot_close(&pilot);
}

/* Each callback locks again.  The loop must still turn between callbacks, though two of them may
 * run in one turn. */
static void lock_again(struct call *call)
{
    char name[16];

    (void)snprintf(name, sizeof name, "chain %u", call->runs);
    if (call->status == REDLOCK_OK && redlock_unlock_async(call->lease, NULL, NULL) != REDLOCK_OK)
        call->status = PILOT_NEVER;
    if (call->runs < 200 && start_lock(call, name) != REDLOCK_OK)
        call->status = PILOT_NEVER;
}

static bool has_run_often(void *arg)
{
    const struct call *call = arg;

    return call->runs >= 200;
}

static void count_turn(struct ev_loop *ev, ev_prepare *prepare, int events)
{
    (void)ev, (void)events;
    ++*(unsigned *)prepare->data;
}

TEST(lock_in_done)
{
    for (unsigned open = 0; open < 2; open++) {
        struct pilot pilot;
        struct call call = {.pilot = &pilot, .act = lock_again};
        unsigned turns = 0;
        ev_prepare prepare;

        check_row = open ? "masters" : "nowhere";
        if (open)
            CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
        else
            open_nowhere(&pilot);
        ev_prepare_init(&prepare, count_turn);
        prepare.data = &turns;
        ev_prepare_start(pilot.ev, &prepare);
        CHECK_INT(start_lock(&call, "chain"), REDLOCK_OK);
        CHECK(pilot_until(&pilot, has_run_often, &call));
        CHECK_INT(call.status, open ? REDLOCK_OK : REDLOCK_UNREACHABLE);
        CHECK(pilot_until_leases(&pilot, 0));
        CHECK(turns >= 100);
        ev_prepare_stop(pilot.ev, &prepare);
        pilot_close(&pilot);
    }
}

static void cancel_self(struct call *call)
{
    redlock_cancel(call->lease);
}

static void detach_self(struct call *call)
{
    call->status = redlock_detach(call->lease);
}

static void extend_self(struct call *call)
{
    if (call->runs == 1)
        call->status = redlock_extend_async(call->lease, 0, on_done, call);
}

TEST(give_up_in_done)
{
    struct pilot pilot;
    struct call cancel = {.pilot = &pilot, .act = cancel_self};
    struct call detach = {.pilot = &pilot, .act = detach_self};
    struct call extend = {.pilot = &pilot, .act = extend_self};

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    CHECK_INT(start_lock(&cancel, "cancelled"), REDLOCK_OK);
    CHECK_INT(start_lock(&detach, "detached"), REDLOCK_OK);
    CHECK_INT(start_lock(&extend, "extended"), REDLOCK_OK);
    check_runs(&cancel, 1);
    check_runs(&detach, 1);
    CHECK_INT(detach.status, REDLOCK_OK);
    check_runs(&extend, 2);
    CHECK_INT(extend.status, REDLOCK_OK);
    CHECK(pilot_until_leases(&pilot, 1));
    CHECK_UINT(cluster_count(&five, "cancelled", NULL), 0);
    CHECK(cluster_count(&five, "detached", NULL) >= 3);
    CHECK(cluster_count(&five, "extended", NULL) >= 3);
    pilot_close(&pilot);
    check_released("extended");
    CHECK(cluster_count(&five, "detached", NULL) >= 3);
}

/* A lease that did not get its lock is freed when its callback returns.  Already in the callback
 * the caller does not own it. */
static void use_what_failed(struct call *call)
{
    struct redlock_lease_info info = {.size = sizeof info};

    CHECK_INT(redlock_lease_info(call->lease, &info), REDLOCK_OK); /* It may still say which. */
    CHECK_STR(info.resource, "x");
    CHECK_UINT(info.holds, 0);
    redlock_cancel(call->lease);
    call->status = redlock_unlock_async(call->lease, NULL, NULL);
}

TEST(a_failed_lease_is_nobodys)
{
    struct pilot pilot;
    struct call call = {.pilot = &pilot, .act = use_what_failed};

    open_nowhere(&pilot);
    CHECK_INT(start_lock(&call, "x"), REDLOCK_OK);
    CHECK(pilot_until(&pilot, has_run, &call));
    CHECK_INT(call.status, REDLOCK_E_STATE);
    CHECK(pilot_until_leases(&pilot, 0));
    pilot_close(&pilot);
}

/* ---- A loop within a callback ---- */

static void await_other(struct call *call)
{
    call->met = pilot_until(call->pilot, has_run, call->other);
}

/* The first waits for the second. */
TEST(a_callback_waits_for_another)
{
    struct pilot pilot;
    struct call first = {.pilot = &pilot, .act = await_other};
    struct call second = {.pilot = &pilot};

    open_nowhere(&pilot);
    run_both(&first, &second);
    CHECK(first.met);
    CHECK_UINT(second.runs, 1);
    CHECK(pilot_until_leases(&pilot, 0));
    pilot_close(&pilot);
}

/* Also wait until the last masters have answered; the lease could be freed then. */
static void unlock_and_await(struct call *call)
{
    if (redlock_unlock_async(call->lease, on_done, call->other) == REDLOCK_OK)
        await_other(call);
    turn_some_more(call->pilot);
}

TEST(a_callback_waits_for_its_unlock)
{
    struct pilot pilot;
    struct redlock_lease *leases[2];
    struct call unlock = {.pilot = &pilot};
    struct call lock = {.pilot = &pilot, .act = unlock_and_await, .other = &unlock};

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    CHECK_INT(start_lock(&lock, "x"), REDLOCK_OK);
    check_runs(&lock, 1);
    CHECK(lock.met);
    CHECK_INT(unlock.status, REDLOCK_OK);
    CHECK(pilot_until_leases(&pilot, 0));
    /* A lease that was freed twice would now be given out twice. */
    CHECK_INT(pilot_lock(&pilot, "y", NULL, &leases[0]), REDLOCK_OK);
    CHECK_INT(pilot_lock(&pilot, "z", NULL, &leases[1]), REDLOCK_OK);
    CHECK_UINT(pilot_stats(&pilot).leases, 2);
    CHECK_INT(pilot_unlock(&pilot, leases[0]), REDLOCK_OK);
    CHECK_INT(pilot_unlock(&pilot, leases[1]), REDLOCK_OK);
    CHECK(pilot_until_leases(&pilot, 0));
    pilot_close(&pilot);
}

static void await_and_close(struct call *call)
{
    unlock_and_await(call);
    close_client(call);
}

static bool is_closed(void *arg)
{
    const struct call *call = arg;

    return call->pilot->rl == NULL;
}

static void await_close(struct call *call)
{
    if (redlock_unlock_async(call->lease, on_done, call->other) == REDLOCK_OK)
        call->met = pilot_until(call->pilot, is_closed, call);
}

TEST(a_callback_within_another_closes)
{
    for (unsigned inner = 0; inner < 2; inner++) {
        struct pilot pilot;
        struct call unlock = {.pilot = &pilot, .act = inner ? close_client : NULL};
        struct call lock = {
            .pilot = &pilot, .act = inner ? await_close : await_and_close, .other = &unlock};

        check_row = inner ? "the inner one" : "the outer one";
        CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
        CHECK_INT(start_lock(&lock, "x"), REDLOCK_OK);
        check_runs(&lock, 1);
        CHECK(lock.met);
        CHECK_UINT(unlock.runs, 1);
        CHECK(pilot.rl == NULL);
        pilot_close(&pilot);
    }
}

/* ---- Out of turn ---- */

TEST(calls_out_of_turn)
{
    struct pilot pilot;
    struct call lock = {.pilot = &pilot}, call = {.pilot = &pilot};

    CHECK(pilot_open_five(&pilot, PILOT_LOOP, &five));
    CHECK_INT(start_lock(&lock, "x"), REDLOCK_OK);
    CHECK_INT(redlock_extend_async(lock.lease, 0, on_done, &call), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "extend: the lease is not held yet, or is busy");
    CHECK_INT(redlock_unlock_async(lock.lease, on_done, &call), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "release: not held yet; cancel it instead");
    CHECK_INT(redlock_detach(lock.lease), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "detach: a call with the lease is under way");
    CHECK(pilot_until(&pilot, has_run, &lock));
    CHECK_INT(lock.status, REDLOCK_OK);

    CHECK_INT(redlock_extend_async(lock.lease, 0, on_done, &lock), REDLOCK_OK);
    CHECK_INT(redlock_extend_async(lock.lease, 0, on_done, &call), REDLOCK_E_STATE);
    CHECK_STR(redlock_errmsg(NULL), "extend: the lease is not held yet, or is busy");
    check_runs(&lock, 2);
    CHECK_INT(lock.status, REDLOCK_OK);
    CHECK_UINT(call.runs, 0);
    CHECK_INT(pilot_unlock(&pilot, lock.lease), REDLOCK_OK);
    pilot_close(&pilot);
}

CHECK_MAIN({"run_once_and_later", run_once_and_later},
           {"run_once_and_later_even_if_all_is_known_at_once",
            run_once_and_later_even_if_all_is_known_at_once},
           {"never_run_after_cancel", never_run_after_cancel},
           {"never_run_for_an_extension_after_cancel", never_run_for_an_extension_after_cancel},
           {"never_run_for_an_extension_after_unlock", never_run_for_an_extension_after_unlock},
           {"never_say_lost_after_the_lease_was_given_up",
            never_say_lost_after_the_lease_was_given_up},
           {"never_run_after_cancel_by_another_callback",
            never_run_after_cancel_by_another_callback},
           {"close_in_done", close_in_done}, {"close_in_lost", close_in_lost},
           {"lock_in_done", lock_in_done}, {"give_up_in_done", give_up_in_done},
           {"a_failed_lease_is_nobodys", a_failed_lease_is_nobodys},
           {"a_callback_waits_for_another", a_callback_waits_for_another},
           {"a_callback_waits_for_its_unlock", a_callback_waits_for_its_unlock},
           {"a_callback_within_another_closes", a_callback_within_another_closes},
           {"calls_out_of_turn", calls_out_of_turn})
