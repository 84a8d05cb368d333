/*
 * heap.c - see heap.h.
 */
#include "test/lib/heap.h"

#include <malloc.h>
#include <stddef.h>
#include <string.h>

#define NOT_PLANNED ((unsigned)-1)

static unsigned allocations;
static unsigned successes_left = NOT_PLANNED;
static bool has_failed;
static long blocks;
static const char *watched;
static unsigned spills;

/* The linker sends calls of malloc() to __wrap_malloc().  __real_malloc() is that of libc. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t len, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t len, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

void heap_reset(void)
{
    allocations = 0;
    successes_left = NOT_PLANNED;
    has_failed = false;
}

void heap_fail_after(unsigned successes)
{
    successes_left = successes;
    has_failed = false;
}

bool heap_has_failed(void)
{
    return has_failed;
}

unsigned heap_allocations(void)
{
    return allocations;
}

long heap_blocks(void)
{
    return blocks;
}

unsigned heap_watch(const char *secret)
{
    const unsigned before = spills;

    watched = secret;
    spills = 0;
    return before;
}

/* The block is about to be given back. */
static void look_into(void *p)
{
    if (p != NULL && watched != NULL)
        spills += memmem(p, malloc_usable_size(p), watched, strlen(watched)) != NULL;
}

static bool must_fail(void)
{
    allocations++;
    if (successes_left == NOT_PLANNED || has_failed)
        return false;
    if (successes_left-- > 0)
        return false;
    has_failed = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    void *p = must_fail() ? NULL : __real_malloc(size);

    blocks += p != NULL;
    return p;
}

void *__wrap_calloc(size_t len, size_t size)
{
    void *p = must_fail() ? NULL : __real_calloc(len, size);

    blocks += p != NULL;
    return p;
}

void *__wrap_realloc(void *p, size_t size)
{
    void *q;

    look_into(p); /* It may move, and leave its bytes behind. */
    q = must_fail() ? NULL : __real_realloc(p, size);

    blocks += p == NULL && q != NULL;
    return q;
}

void __wrap_free(void *p)
{
    blocks -= p != NULL;
    look_into(p);
    __real_free(p);
}
