/*
 * record.h - a history: one JSON line an event, written by one process.
 *
 * {"t": NS, "who": "c3", "event": "ok", ...} - t is when it happened, by
 * CLOCK_MONOTONIC, and lines of different threads may stand in another order.
 * A line is one write(2) at the end of the file, so that what has been told is
 * told even if the writer is killed right after.
 */
#ifndef PARTITION_RECORD_H
#define PARTITION_RECORD_H

#include <stdint.h>

#define RECORD_WORD_MAX 63 /* Of names in a history. */

struct record {
    int fd;
    char who[RECORD_WORD_MAX + 1];
};

/* Begin, or go on with a file that is there.  These end the program where they
 * fail: a history with holes is worse than none. */
void record_open(struct record *record, const char *path, const char *who);

/* format: the fields after "event", each with a comma before it.  From any thread. */
void record_line(const struct record *record, uint64_t t_ns, const char *event, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

#endif /* PARTITION_RECORD_H */
