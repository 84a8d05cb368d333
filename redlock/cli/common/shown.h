/*
 * shown.h - what a master stores under the name of a lock: the answer to redlock/lua/show.lua.
 */
#ifndef REDLOCK_SHOWN_H
#define REDLOCK_SHOWN_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/redlock.h"
#include "redlock/wire/reply.h"
#include "redlock/wire/script.h"

/* The words of the question, for question_send() and talk_ask().  permits: a text, "0" to "256". */
#define SHOWN_WORDS(name, permits, has_queue)                                                  \
    {                                                                                          \
        "EVAL", script_all[SCRIPT_SHOW].text, "1", (name), (permits), (has_queue) ? "1" : "0", \
            NULL                                                                               \
    }

enum shown_what { SHOWN_NAME = 'N', SHOWN_READER = 'R', SHOWN_PERMIT = 'P', SHOWN_QUEUE = 'Q' };

/* A row of show.lua or scan.lua, whose heads say what it means (redlock/lua/parts/row.lua).  Texts
 * of other programs may contain NULs. */
struct shown_row {
    char what;
    unsigned number;
    long long left_ms, count;
    const char *of; /* show.lua: the type of the key.  scan.lua: the name of the lock. */
    size_t of_len;
    char *text;
    size_t text_len;
};

/* Read the first row of what ends at `end`.  Returns what follows it, or NULL if it is malformed.
 */
char *shown_next(char *text, const char *end, struct shown_row *ret_row);

/* What one master has told. */
struct shown {
    char *text;
    struct shown_row *rows; /* Their texts end in a NUL. */
    size_t len;
};

/* Read the answer.  False: it is none, or memory is exhausted; then there are no rows. */
bool shown_read(struct shown *shown, const struct reply *reply);
void shown_free(struct shown *shown);

/* The first such row.  NULL: there is none. */
const struct shown_row *shown_find(const struct shown *shown, enum shown_what what,
                                   unsigned number);

/* True: the key has this type.  "none": there is no key; "error": it may not be read. */
bool shown_is(const struct shown_row *row, const char *type);

/* The longest answer of shown_foreign(), with the NUL. */
#define SHOWN_FOREIGN_MAX 60

/* What the key is if redlock did not write it, as "a hash without an end".  NULL: it did, or it is
 * not known, or row is NULL.  It may be a key that keeps the name from all clients until somebody
 * deletes it: a lock is a string, readers are a sorted set, and both expire.  A permit is a string
 * that expires.  A queue is a sorted set with two entries for each waiter. */
const char *shown_foreign(const struct shown_row *row, char buf[SHOWN_FOREIGN_MAX]);

#endif /* REDLOCK_SHOWN_H */
