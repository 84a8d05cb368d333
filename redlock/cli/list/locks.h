/*
 * locks.h - the locks that masters store, as one scan of each master reports them, and what a
 * majority of the masters agrees on.  Pure: no sockets, no output.
 */
#ifndef REDLOCK_LOCKS_H
#define REDLOCK_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/members.h"
#include "redlock/redlock.h"
#include "redlock/wire/reply.h"

/* The most entries that are kept of one master.  Chosen: far more than anybody reads. */
#define LOCKS_MAX 10000
/* Digits of a cursor of SCAN, which is an unsigned number of 64 bits. */
#define LOCKS_CURSOR_MAX 20

enum locks_shape {
    LOCKS_LOCK,    /* A token, or the text of a revoked lock. */
    LOCKS_READERS, /* count readers. */
    LOCKS_PERMIT,  /* Permit `number` of a semaphore. */
    LOCKS_GUESS,   /* A text that ends, and that redlock did not write. */
    LOCKS_FOREIGN, /* Clients wait for the name, and its key is none that redlock has written. */
    LOCKS_QUEUE,   /* count clients wait in the queue of the name. */
    LOCKS_WAITED   /* Clients wait for the name, or have waited in the last minute. */
};

struct locks_entry {
    char *name; /* Ends in a NUL.  It may contain others, if redlock did not write it. */
    size_t name_len;
    enum locks_shape shape;
    unsigned number;
    unsigned master;
    long long ttl_ms; /* How long the master stores it. */
    long long count;
    char token[REDLOCK_TOKEN_MAX + 1]; /* "" if there is none. */
};

/* What all masters have reported. */
struct locks {
    struct locks_entry *list;
    size_t len, room;
    size_t of[REDLOCK_MASTERS_MAX]; /* Entries by master. */
    /* By master: texts that redlock did not write, and that were not asked for. */
    long long others[REDLOCK_MASTERS_MAX];
};

/* What a scan of a master has come to. */
enum locks_step {
    LOCKS_MORE, /* Ask again, with the cursor. */
    LOCKS_DONE,
    LOCKS_FULL, /* The master stores more than LOCKS_MAX that match. */
    LOCKS_ODD   /* The answer is none, or memory is exhausted. */
};

/* Take what matches `pattern` (fnmatch) of an answer to redlock/lua/scan.lua.  NULL matches all.
 * Writes the next cursor. */
enum locks_step locks_take(struct locks *locks, unsigned master, const char *pattern,
                           const struct reply *reply, char cursor[LOCKS_CURSOR_MAX + 1]);

/* True: the entries, which locks_agree() has sorted, have this holder. */
bool locks_have(const struct locks *locks, const struct locks_entry *entry);

/* Forget all entries, before another scan. */
void locks_clear(struct locks *locks);
void locks_free(struct locks *locks);

/* A lock that masters store.  The texts are those of entries. */
struct locks_row {
    const struct locks_entry *entry; /* shape QUEUE or WAITED: nobody holds the lock. */
    unsigned votes;                  /* Masters that store this holder. */
    bool is_held;                    /* They are a majority. */
    bool is_bare;      /* A majority that is none without any one of them, while others exist. */
    long long ttl_ms;  /* How long a majority stores it.  Without one: how long any. */
    long long count;   /* Of readers. */
    long long waiting; /* A majority has at least so many in the queue. */
    bool is_waited;    /* A majority has reason to announce the release. */
};

/* Sort the entries, and put their rows into ret_rows, by name, shape and number.  up: the masters
 * that count.  Returns how many rows there are; *ret_rows, which the caller frees, is NULL if
 * memory is exhausted. */
size_t locks_agree(struct locks *locks, const struct members *lists, quorum_mask up,
                   struct locks_row **ret_rows);

#endif /* REDLOCK_LOCKS_H */
