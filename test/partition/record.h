/*
 * record.h - a history: one JSON line for each event, written by one process.
 *
 * {"t": NS, "who": "c3", "event": "ok", ...} - t is the time of the event, by CLOCK_MONOTONIC.
 * Lines of different threads may stand in another order.  Each line is one write(2) at the end of
 * the file, so it stays even if the writer is killed right after.
 */
#ifndef PARTITION_RECORD_H
#define PARTITION_RECORD_H

#include <stdint.h>

#define RECORD_WORD_MAX 63 /* The length of a name in a history. */

struct record {
    int fd;
    char who[RECORD_WORD_MAX + 1];
};

/* Begin a history, or continue an existing file.  These functions end the program if they fail,
 * because a history with gaps is worse than none. */
void record_open(struct record *record, const char *path, const char *who);

/* format gives the fields after "event", each after a comma.  Any thread may call this. */
void record_line(const struct record *record, uint64_t t_ns, const char *event, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

#endif /* PARTITION_RECORD_H */
