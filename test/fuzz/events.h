/*
 * events.h - the world of fuzz-events, which the input drives, and the shadow beside it.
 */
#ifndef FUZZ_EVENTS_H
#define FUZZ_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "must.h"
#include "redlock/core/quorum.h"

#define START (77 * DRIFT_S) /* Not 0, so that an instant used as a span fails. */
#define QUEUE_MAX 16         /* Chosen: a link with so many commands counts as full. */

enum op { OP_NONE, OP_LOCK, OP_EXTEND, OP_RELEASE };

/* A command on its way to a master, or its answer on the way back. */
struct item {
    uint32_t ask, token;
    uint32_t of; /* The ask for which a yes counts; 0: none. */
    enum quorum_command command;
    enum quorum_vote vote; /* The answer, once it is executed. */
    drift_span lease;
    drift_time sent;
    unsigned round; /* The number of rounds by then. */
};

struct master {
    bool up, coming, full;
    struct item queue[QUEUE_MAX]; /* In order.  The first ones, in number done, are answers. */
    unsigned queue_len, done;
    struct item heard; /* The latest answer that was delivered; token 0: none. */

    uint32_t stored;   /* The client's token that it stores; 0: none. */
    drift_time until;  /* When the token expires. */
    bool late;         /* The token was stored so late that it outlives settle_by. */
    bool excused;      /* The client cannot have the token released. */
    bool foreign;      /* It stores another client's token. */
    struct item ghost; /* A command of a broken link, not executed yet; token 0: none. */
    struct item waits; /* The latest SET whose token waits here for a release; token 0: none. */
    struct item grant; /* The same, when its token was granted, as the message says. */

    bool in_doubt;  /* By its answers, it may store a token of the client. */
    bool undone;    /* A release of its token was sent to it (rule 10). */
    uint32_t asked; /* The latest token of the client that it may store. */
    uint32_t ask;   /* The latest extension, or gift of rule 11, that was sent to it. */
    bool barred;    /* It never regains the live token. */
};

struct world {
    const unsigned char *bytes;
    size_t len;
    struct quorum q;
    struct quorum_config config;
    struct members members;
    unsigned masters_len;
    struct quorum_actions act;
    struct quorum twin;
    struct master masters[QUORUM_MASTERS_MAX];
    drift_time now;
    enum op op;
    bool is_adopted, is_detached, was_told, has_been_held;
    /* The shadow's books on the ask whose answers count. */
    uint32_t live;   /* The token held or asked for; 0: none. */
    uint32_t newest; /* The largest token that was used. */
    uint32_t ask;
    drift_time ask_sent;
    unsigned rounds; /* How many have begun, also with the same token. */
    drift_span ask_lease;
    quorum_mask ask_yes;
    drift_time deadline;  /* The deadline of the hold; 0: the lock is not held. */
    uint32_t releasing;   /* The token of the release under way. */
    quorum_mask released; /* Masters that answered that they deleted it. */
    quorum_mask fresh;    /* Masters that may be given the token that is held. */
    unsigned rings;       /* How often the alarm rang at this instant. */
};

static inline unsigned count(quorum_mask mask)
{
    return (unsigned)__builtin_popcount(mask);
}

static inline bool is_majority(quorum_mask list, quorum_mask votes)
{
    return count(list & votes) >= count(list) / 2 + 1;
}

/* Not that of the machine, which may be wrong. */
static inline bool decides(const struct world *w, quorum_mask votes)
{
    return is_majority(w->members.from, votes) && is_majority(w->members.to, votes);
}

static inline bool is_held(const struct quorum *q)
{
    return q->state == QUORUM_HELD || q->state == QUORUM_EXTENDING;
}

/* ---- The masters (events.c) ---- */

/* The command stores the live token, or deletes it. */
static inline bool events_decides(const struct world *w, const struct item *item)
{
    return item->command != QUORUM_CMD_EXTEND && w->live != 0 && item->token == w->live;
}

/* The answer shows the text of an operator. */
static inline bool events_is_revoked(const struct item *item)
{
    return item->command == QUORUM_CMD_EXTEND && item->vote == QUORUM_VOTE_NO && (item->ask & 2);
}

/* The allowance of a lease. */
drift_span events_allowance(const struct world *w, drift_span lease);
/* True if the master is up and its link has room. */
bool events_take(const struct master *master);

/* ---- The shadow (events-shadow.c) ---- */

/* Hand an event to the machine and its twin, and check what they do. */
void shadow_step(struct world *w, struct quorum_event *event);
/* Book an answer, before the step that delivers it. */
void shadow_answer(struct world *w, unsigned m, const struct item *item);
/* Book a vote that a release has passed on, before the step that delivers it. */
void shadow_grant(struct world *w, unsigned m, const struct item *item);
/* Hand over a change of the members.  left: numbers of masters that others get next. */
void shadow_change(struct world *w, struct members members, quorum_mask left);

#endif /* FUZZ_EVENTS_H */
