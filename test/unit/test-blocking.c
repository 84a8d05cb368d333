/*
 * test-blocking.c - which calls an interrupt ends, and the list of the calls under way.
 */
#include "redlock/client/blocking.h"

#include <stddef.h>

#include <ev.h>

#include "test/lib/check.h"

static unsigned interrupts; /* How often the calls under way were ended. */

static bool interrupt(void *cookie)
{
    (void)cookie;
    interrupts++;
    return true;
}

static bool has_callbacks(void *cookie)
{
    (void)cookie;
    return false;
}

static const struct blocking_events events = {
    .interrupt = interrupt,
    .has_callbacks = has_callbacks,
};

static struct blocking *ready(void)
{
    struct blocking *blocking = blocking_new(&events, NULL);

    CHECK(blocking != NULL);
    interrupts = 0;
    return blocking;
}

TEST(an_interrupt_is_taken_once)
{
    struct blocking *blocking = ready();
    struct waiter waiter;

    waiter_init(&waiter);
    CHECK(!blocking_is_interrupted(blocking, &waiter));
    blocking_interrupt(blocking);
    blocking_interrupt(blocking);
    CHECK(blocking_is_interrupted(blocking, &waiter));
    CHECK(!blocking_is_interrupted(blocking, &waiter));
    blocking_free(blocking);
}

TEST(a_call_that_takes_an_interrupt_ends_the_others)
{
    struct blocking *blocking = ready();
    struct waiter waiter;

    waiter_init(&waiter);
    CHECK(!blocking_is_interrupted(blocking, &waiter));
    CHECK_UINT(interrupts, 0);
    blocking_interrupt(blocking);
    CHECK(blocking_is_interrupted(blocking, &waiter));
    CHECK_UINT(interrupts, 1);
    blocking_free(blocking);
}

/* It would keep the interrupt from the calls that were handed in with it, and begin later. */
TEST(a_call_that_was_handed_in_takes_no_interrupt)
{
    struct blocking *blocking = ready();
    struct waiter handed_in, next;

    waiter_init(&handed_in);
    waiter_init(&next);
    handed_in.is_handed_in = true;
    blocking_interrupt(blocking);
    CHECK(!blocking_is_interrupted(blocking, &handed_in));
    handed_in.is_interrupted = true;
    CHECK(blocking_is_interrupted(blocking, &handed_in));
    CHECK(blocking_is_interrupted(blocking, &next));
    blocking_free(blocking);
}

/* Else each turn of the loop would look at all leases of the client. */
TEST(no_call_is_sought_for_an_interrupt_while_none_is_under_way)
{
    struct blocking *blocking = ready();
    struct waiter waiter, next;

    waiter_init(&waiter);
    waiter_init(&next);
    blocking_interrupt(blocking);
    blocking_lock(blocking);
    for (unsigned i = 0; i < 3; i++)
        (void)ev_run(blocking_loop(blocking), EVRUN_NOWAIT);
    CHECK_UINT(interrupts, 0);
    CHECK(blocking_is_interrupted(blocking, &next));
    interrupts = 0;
    blocking_begin_wait(blocking, &waiter);
    blocking_interrupt(blocking);
    (void)ev_run(blocking_loop(blocking), EVRUN_NOWAIT);
    CHECK_UINT(interrupts, 1);
    CHECK(!blocking_is_interrupted(blocking, &next));
    blocking_unlock(blocking);
    blocking_free(blocking);
}

TEST(calls_end_in_any_order)
{
    struct waiters waiters = {.oldest = NULL};
    struct waiter list[3];

    for (unsigned i = 0; i < 3; i++)
        waiters_add(&waiters, &list[i]);
    CHECK(waiters.oldest == &list[0]);
    waiters_remove(&waiters, &list[1]);
    waiters_remove(&waiters, &list[0]);
    CHECK(waiters.oldest == &list[2]);
    CHECK_UINT(waiters.len, 1);
    waiters_add(&waiters, &list[0]);
    waiters_remove(&waiters, &list[2]);
    CHECK(waiters.oldest == &list[0]);
    waiters_remove(&waiters, &list[0]);
    CHECK(waiters.oldest == NULL);
    CHECK(waiters.newest == NULL);
    CHECK_UINT(waiters.len, 0);
}

CHECK_MAIN(RUN(an_interrupt_is_taken_once), RUN(a_call_that_takes_an_interrupt_ends_the_others),
           RUN(a_call_that_was_handed_in_takes_no_interrupt),
           RUN(no_call_is_sought_for_an_interrupt_while_none_is_under_way),
           RUN(calls_end_in_any_order))
