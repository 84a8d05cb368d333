/*
 * foreign.h - finds keys in place of locks that redlock did not write.
 */
#ifndef REDLOCK_FOREIGN_H
#define REDLOCK_FOREIGN_H

#include <stdbool.h>

#include <ev.h>

#include "redlock/base/mask.h"
#include "redlock/cli/common/cli.h"
#include "redlock/cli/common/question.h"

/* Scripts that say what a key is if redlock did not write it, as "a hash", or nil.  They only read.
 * KEYS[1] is the name of a lock, and that of a queue. */
#define FOREIGN_NAME FOREIGN_KEY "return false"
#define FOREIGN_KEY                                                                 \
    "local t=redis.call('type',KEYS[1]).ok if t=='none' then return false end "     \
    "if redis.call('pttl',KEYS[1])==-1 then return 'a '..t..' without an end' end " \
    "if t~='string' and t~='zset' then return 'a '..t end "
#define FOREIGN_QUEUE                                  \
    "local k=KEYS[1] local t=redis.call('type',k).ok " \
    "if t=='none' then return false end "              \
    "if t~='zset' then return 'a '..t end "            \
    "if redis.call('zcount',k,'(0','inf')~="           \
    "redis.call('zcount',k,'-inf','(0') then "         \
    "return 'a zset with entries that are no waiters' end return false"

/* The same for the permits of a semaphore.  KEYS[1] is what the keys of all permits begin with, and
 * ARGV[1] how many there are.  The answer has 0 or 1 for each of them, 1 if its key is foreign, and
 * then says what the first such key is. */
#define FOREIGN_SLOTS                                                               \
    "local s,first={},'' for i=1,tonumber(ARGV[1]) do local k,w=KEYS[1]..(i-1),'' " \
    "local t=redis.call('type',k).ok "                                              \
    "if t~='none' and redis.call('pttl',k)==-1 then w='a '..t..' without an end' "  \
    "elseif t~='none' and t~='string' then w='a '..t end "                          \
    "s[i]=w=='' and '0' or '1' if first=='' then first=w end end return table.concat(s)..first"

/* True: the text is an answer to FOREIGN_NAME or FOREIGN_QUEUE. */
bool foreign_is_type(const char *text);

/* What the first foreign key is, from an answer to FOREIGN_SLOTS.  NULL: there is none. */
const char *foreign_slots(const char *text, unsigned slots);

/* The longest such text, with the NUL.  Chosen: more than any type needs. */
#define FOREIGN_TYPE_MAX 60

#define FOREIGN_SAID_MAX (CLI_NAMES_SHOWN_MAX + CLI_MASTERS_SHOWN_MAX + 200)

/* The token and note that masters store for a name. */
struct foreign_holder {
    char stored[REDLOCK_TOKEN_MAX + 1];
    quorum_mask masters; /* Masters that store it.  0: none is known. */
};

/* One search on all masters. */
struct foreign {
    struct question question;
    const struct cli_names *names;
    bool has_queue;
    unsigned slots; /* The slots of a semaphore.  0: it is a lock. */
    /* For each name and then the queue, or for each slot: masters that have another key. */
    quorum_mask found[REDLOCK_PERMITS_MAX];
    char types[REDLOCK_NAMES_MAX + 1]
              [FOREIGN_TYPE_MAX];                     /* What this key is; of slots: the first. */
    struct foreign_holder holders[REDLOCK_NAMES_MAX]; /* The holder of each name. */
    bool keeps;   /* The latest search has found one that keeps the lock from all clients. */
    bool is_told; /* It was reported. */
    char said[FOREIGN_SAID_MAX]; /* The report. */
    ev_timer timer;
};

/* Begin a search when a lock has been waited for for a while.  A foreign key is reported once, if
 * so many masters have it that the others are no majority.  Otherwise a client may hold the lock on
 * the others. */
void foreign_wait(struct foreign *foreign, const struct cli *cli, struct ev_loop *loop,
                  struct redlock *rl, const struct cli_names *names,
                  const struct redlock_lock_options *opts);

/* The call has ended.  Search once more, and wait for the answers, but at most the reply timeout.
 * True: a foreign key keeps the lock from all clients now, and this was reported: foreign->said. */
bool foreign_find(struct foreign *foreign);

/* After that: if a majority stores one holder with a note, report this note. */
void foreign_tell_holder(const struct foreign *foreign);

/* End the search. */
void foreign_done(struct foreign *foreign);

#endif /* REDLOCK_FOREIGN_H */
