/*
 * heap.h - a heap that counts allocations and blocks, and fails on request.
 *
 * The linker's --wrap sends the allocations of the static library and of the test
 * here.  Those of other libraries are not affected.  One thread only.
 */
#ifndef TEST_HEAP_H
#define TEST_HEAP_H

#include <stdbool.h>

/* Let all allocations succeed, and count from 0. */
void heap_reset(void);

/* The next allocations succeed, so many.  The one after them fails; all later ones succeed. */
void heap_fail_after(unsigned successes);

/* True once the allocation that heap_fail_after() planned to fail has failed. */
bool heap_has_failed(void);

/* Allocations since heap_reset(), the failed one included. */
unsigned heap_allocations(void);

/* The blocks that are not freed yet. */
long heap_blocks(void);

/* Watch for this text; NULL: for none.  It must not be in a block that is freed.  Returns how many
 * blocks had it since the last call. */
unsigned heap_watch(const char *secret);

#endif /* TEST_HEAP_H */
