/*
 * heap.h - a heap that counts, and fails when it is told to.
 *
 * Stands between the code of the library and malloc(): the linker's --wrap
 * sends here what the static library and the test ask for, and leaves alone
 * what other libraries ask for.  One thread only.
 */
#ifndef TEST_HEAP_H
#define TEST_HEAP_H

/* Let all allocations succeed, and count from 0. */
void heap_reset(void);

/* Let that many succeed from now on, and the next one, and only this, fail. */
void heap_fail_after(unsigned successes);

/* Whether it has failed. */
int heap_has_failed(void);

/* Allocations since heap_reset(), the failed one included. */
unsigned heap_allocations(void);

#endif /* TEST_HEAP_H */
