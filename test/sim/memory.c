/*
 * memory.c - an arena for the simulator, and a heap for the library that counts blocks.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK (1u << 20)

struct block {
    struct block *next;
    size_t used;
    max_align_t bytes[ARENA_BLOCK / sizeof(max_align_t)];
};

static struct block *blocks, *current;
static long live;
static unsigned successes_left;
static bool is_planned, has_failed;

/* The linker sends calls of malloc() to __wrap_malloc().  __real_malloc() is that of libc. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t len, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t len, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

/* ---- The arena ---- */

static void next_block(void)
{
    struct block *block = current != NULL ? current->next : blocks;

    if (block == NULL) {
        block = __real_malloc(sizeof *block);
        if (block == NULL)
            abort();
        block->next = NULL;
        if (current != NULL)
            current->next = block;
        else
            blocks = block;
    }
    block->used = 0;
    current = block;
}

void *memory_take(size_t size)
{
    size_t rounded = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    char *p;

    if (rounded > ARENA_BLOCK)
        abort();
    if (current == NULL || ARENA_BLOCK - current->used < rounded)
        next_block();
    p = (char *)current->bytes + current->used;
    current->used += rounded;
    return memset(p, 0, size);
}

void memory_reset(void)
{
    current = NULL;
    memory_fail_never();
}

/* ---- The heap ---- */

long memory_blocks(void)
{
    return live;
}

void memory_fail_after(unsigned successes)
{
    successes_left = successes;
    is_planned = true;
    has_failed = false;
}

void memory_fail_never(void)
{
    is_planned = false;
}

bool memory_has_failed(void)
{
    return has_failed;
}

static bool must_fail(void)
{
    if (!is_planned || successes_left-- > 0)
        return false;
    is_planned = false;
    has_failed = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    void *p = must_fail() ? NULL : __real_malloc(size);

    live += p != NULL;
    return p;
}

void *__wrap_calloc(size_t len, size_t size)
{
    void *p = must_fail() ? NULL : __real_calloc(len, size);

    live += p != NULL;
    return p;
}

void *__wrap_realloc(void *p, size_t size)
{
    void *q = must_fail() ? NULL : __real_realloc(p, size);

    live += p == NULL && q != NULL;
    return q;
}

void __wrap_free(void *p)
{
    live -= p != NULL;
    __real_free(p);
}
