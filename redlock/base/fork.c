/*
 * fork.c - a counter that grows in the child of each fork.
 *
 * The kernel clears a page in every child (MADV_WIPEONFORK, Linux 4.14), however it was forked.
 * Without such a page, pthread_atfork() sees fork(), but not _Fork() or a system call.
 */
#include "redlock/base/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

static atomic_uint forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(atomic_uint *) page; /* Its first word is 0 in a child that has not counted yet. */

static void on_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch(void)
{
    atomic_uint *word =
        mmap(NULL, sizeof *word, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (word != MAP_FAILED && madvise(word, sizeof *word, MADV_WIPEONFORK) == 0) {
        atomic_init(word, 1);
        atomic_store(&page, word);
        return;
    }
    if (word != MAP_FAILED)
        (void)munmap(word, sizeof *word);
    /* This fails only if memory runs out.  Forks then go unnoticed. */
    (void)pthread_atfork(NULL, NULL, on_fork);
}

void fork_watch(void)
{
    (void)pthread_once(&once, watch);
}

unsigned fork_count(void)
{
    atomic_uint *word = atomic_load_explicit(&page, memory_order_relaxed);

    if (word != NULL && atomic_load_explicit(word, memory_order_relaxed) == 0 &&
        atomic_exchange(word, 1) == 0)
        on_fork();
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
