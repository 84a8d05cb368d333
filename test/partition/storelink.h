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
    STORE_REFUSED, /* The request came after its deadline. */
    STORE_SILENT,  /* No connection, or no answer before the deadline.  The result is not known,
                    * but the store cannot accept the write from now on. */
};

/*
 * Ask for one write, and wait for the answer until the deadline, after which the store refuses the
 * write.  The caller must not release the lock before: the store could accept the write without it.
 */
enum store_answer storelink_write(struct storelink *link, const char *lock, const char *id,
                                  const char *by, uint64_t deadline_ns);

void storelink_close(struct storelink *link);

#endif /* PARTITION_STORELINK_H */
