/*
 * test-thread.c - threads of the library, in a program with much thread-local data.
 */
#include "test/lib/check.h"

#include <poll.h>
#include <string.h>

#include "redlock/base/reason.h"
#include "redlock/base/thread.h"
#include "redlock/io/resolve.h"

#define LOCAL ((size_t)16 * 1024 * 1024) /* More than the default stack of most systems. */
#define USED ((size_t)200 * 1024)        /* More than a look-up needs. */
#define PATIENCE_MS 120000               /* Chosen: far above what a busy machine needs. */

static _Thread_local volatile char scratch[LOCAL];

static void *use_stack(void *arg)
{
    volatile char stack[USED];

    for (size_t i = 0; i < USED; i += 1024)
        stack[i] = 1;
    scratch[LOCAL - 1] = stack[0];
    *(int *)arg = scratch[LOCAL - 1] + stack[USED - 1024];
    return NULL;
}

TEST(a_thread_has_a_stack_beside_thread_local_data)
{
    pthread_t thread;
    int error, sum = 0;

    scratch[0] = 1;
    error = thread_start(&thread, use_stack, &sum);
    CHECK_INT(error, 0);
    if (error == 0)
        CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(sum, 2);
}

TEST(a_name_is_resolved_beside_thread_local_data)
{
    struct resolve *resolve = resolve_start("localhost");
    char address[RESOLVE_ADDRESS_MAX];
    struct pollfd one = {.events = POLLIN};
    struct reason why;

    CHECK(resolve != NULL);
    if (resolve == NULL)
        return;
    one.fd = resolve_fd(resolve);
    CHECK_INT(poll(&one, 1, PATIENCE_MS), 1);
    CHECK(resolve_is_done(resolve));
    /* A machine that does not know the name ends the look-up, too. */
    if (resolve_take(resolve, 0, address, &why))
        CHECK(resolve_is_address(address));
    resolve_free(resolve);
}

CHECK_MAIN(RUN(a_thread_has_a_stack_beside_thread_local_data),
           RUN(a_name_is_resolved_beside_thread_local_data))
