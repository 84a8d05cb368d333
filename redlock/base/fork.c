/*
 * fork.c - a counter that each fork raises in the child.
 */
#include "redlock/base/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch(void)
{
    /* This fails only without memory.  Then forks go unnoticed, as in a library that does not
     * look. */
    (void)pthread_atfork(NULL, NULL, on_fork);
}

void fork_watch(void)
{
    (void)pthread_once(&once, watch);
}

unsigned fork_count(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
