/*
 * storelink.h - a client's connection to the store; see store.c.
 */
#ifndef PARTITION_STORELINK_H
#define PARTITION_STORELINK_H

#include <stdint.h>

struct storelink {
    const char *path;
    int fd; /* -1: not connected. */
};

enum store_answer {
    STORE_OK,
    STORE_REFUSED, /* It came when the deadline had passed. */
    STORE_SILENT,  /* Not known: no connection, or no answer before the deadline.  From then on
                    * it cannot be accepted any more. */
};

/*
 * Ask for one write, and wait for the answer, but not longer than it matters:
 * whoever gave up the lock while the write is under way, and could still be
 * accepted, would have written without it.
 */
enum store_answer storelink_write(struct storelink *link, const char *lock, const char *id,
                                  const char *by, uint64_t deadline_ns);

void storelink_close(struct storelink *link);

#endif /* PARTITION_STORELINK_H */
