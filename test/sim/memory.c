/*
 * memory.c - an arena for the simulator.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "test/lib/heap.h"

/* Chosen: a client may send hundreds of scripts in full in one write, after a SCRIPT FLUSH. */
#define ARENA_BLOCK (1u << 23)

struct block {
    struct block *next;
    size_t used;
    max_align_t bytes[ARENA_BLOCK / sizeof(max_align_t)];
};

static struct block *blocks, *current;

/* The arena is not a part of what heap.c counts. */
void *__real_malloc(size_t size);

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
    heap_reset();
}
