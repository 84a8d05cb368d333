/*
 * question.h - one question to all masters.  It is sent to each when its link is up, the answers
 * are gathered, and a time limit or a signal ends it.
 *
 * A question may have several queries, and the answer to one may lead to another.  It may also try
 * whether masters that may vote would give their votes now: they take writes of this user, and
 * answer within the reply timeout.  A lock needs no such trial, since a master that refuses a SET
 * says so itself, and a late one is late.  But a command that only reads would call both up.
 */
#ifndef REDLOCK_QUESTION_H
#define REDLOCK_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/reason.h"
#include "redlock/client/inspect.h"
#include "redlock/redlock.h"

struct ev_loop;
struct cli;

/* What became of the question to one master. */
struct question_master {
    bool asked;
    bool over;         /* No more answers are awaited. */
    bool moved;        /* An answer has come since the limit began. */
    unsigned owed;     /* Answers that are to come. */
    struct reason why; /* Why not all have come.  NONE: all have. */
    /* The trial. */
    unsigned tries; /* How often a write was tried. */
    drift_time tried_at;
    drift_span round_trip; /* The shortest of them. */
    struct remark refusal; /* It refuses writes, or an ACL forbids this user what each lock needs.
                            * MSG_NONE: neither was found. */
};

struct question {
    struct redlock *rl;
    struct ev_loop *loop;
    const struct cli *cli;
    const int *signal;    /* The question ends when a signal is here.  NULL: no signal ends it. */
    uint32_t limit_ms;    /* 0: the connect timeout and the reply timeout. */
    unsigned limits;      /* A master that goes on answering has so many limits.  0: one. */
    quorum_mask left_out; /* Masters that are not asked. */
    bool tries;           /* The trial is made. */
    void *asker;
    /* Send the queries, by question_send() and question_write().  NULL: there are none. */
    void (*send)(void *asker, unsigned m);
    /* Take an answer.  More queries may be sent. */
    void (*take)(void *asker, unsigned m, uint32_t query, const struct reply *reply);
    /* All answers are here.  True: something else of this master is awaited.  NULL: nothing is. */
    bool (*waits)(void *asker, unsigned m);
    /* It is over for all masters. */
    void (*end)(void *asker);

    unsigned masters; /* Members that the list does not name come later. */
    unsigned limits_passed;
    bool ended; /* end() was called. */
    struct question_master of[REDLOCK_MASTERS_MAX];
};

/* Begin to ask: answers are taken while the loop runs, until there is another question. */
void question_begin(struct question *question);

/* Ask, and wait until it is over for each master.  Only a signal leaves some for which it is not.
 * Answers that come later are dropped. */
void question_ask(struct question *question);

/* Send a command of these words, and then NULL; or one that is written already.  Numbers of queries
 * from QUESTION_TRIES on are those of the trial. */
enum { QUESTION_TRIES = 0x10000 };
void question_send(struct question *question, unsigned m, uint32_t query, const char *const *words);
void question_write(struct question *question, unsigned m, uint32_t query, const char *command,
                    size_t command_len);

/* Why not all answers have come, in words.  MSG_NONE: all have. */
struct remark question_why(const struct question *question, unsigned m);

/* True: answers come too late for a lock.  In words: of a master whose round trip is too long. */
static inline bool question_is_late(drift_span round_trip, uint32_t reply_timeout_ms)
{
    return round_trip > (drift_span)reply_timeout_ms * DRIFT_MS;
}
struct remark question_lateness(const struct question *question, unsigned m);

/* Masters that refuse writes, or forbid this user what each lock needs. */
quorum_mask question_refusing(const struct question *question);

/* Why the master, which may vote, gives no vote now: it refuses writes, is late, or has a wrong
 * clock.  MSG_NONE: none of this was found. */
struct remark question_no_vote(const struct question *question, unsigned m);

/* True: no set is known, and none can be founded, so no lock is granted, whatever a majority says:
 * all masters of the list must answer and take writes.  A lock founds the set; a question does not.
 */
bool question_founds_none(const struct question *question);

/* True: a master has said that it is in no set. */
bool question_finds_no_set(const struct question *question);

/* True: all masters are new and durable, so the first client that wants a lock gets it at once. */
bool question_finds_new(const struct question *question);

/* The identifier of what has to end before a majority gives votes. */
enum msg question_decides(const struct question *question);

#endif /* REDLOCK_QUESTION_H */
