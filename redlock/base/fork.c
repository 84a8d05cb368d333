/*
 * fork.c - a counter that grows in the child of each fork.
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
    /* This fails only if memory runs out.  Forks then go unnoticed. */
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
