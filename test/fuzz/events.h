/*
 * events.h - the world of fuzz-events, which the input drives, and the shadow beside it.
 */
#ifndef FUZZ_EVENTS_H
#define FUZZ_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "must.h"
#include "redlock/core/quorum.h"

#define START (77 * DRIFT_S) /* Not zero, or an instant might be taken for a span. */
#define QUEUE_MAX 16         /* More waits on no link: it counts as full then. */

enum op { OP_NONE, OP_LOCK, OP_EXTEND, OP_RELEASE };

/* A command on its way to a master, or its answer on the way back. */
struct item {
    uint32_t ask, token;
    enum quorum_command command;
    enum quorum_vote vote; /* Once it is done. */
    drift_span lease;
    drift_time sent;
};

struct master {
    bool up, coming, full;
    struct item queue[QUEUE_MAX]; /* In order; the first `done` wait to be heard. */
    unsigned queue_len, done;
    struct item heard; /* Latest; token 0: none. */

    uint32_t stored;   /* Our token; 0: none. */
    drift_time until;  /* When that expires. */
    bool late;         /* It was obeyed so late that it outlives settle_by. */
    bool excused;      /* Nobody could have it released. */
    bool foreign;      /* Stores somebody else's. */
    struct item ghost; /* Of a link that broke, not obeyed yet; token 0: none. */

    bool in_doubt; /* May store a token of ours, as far as was heard. */
};

struct world {
    const unsigned char *bytes;
    size_t len;
    struct quorum q;
    struct quorum_config config;
    struct quorum_actions act;
    struct quorum twin;
    struct master masters[QUORUM_MASTERS_MAX];
    drift_time now;
    enum op op;
    bool is_adopted, is_detached, was_told, has_been_held;
    /* The shadow's book on the ask whose answers count. */
    uint32_t live;   /* The token held or asked for; 0: none. */
    uint32_t newest; /* Largest token ever used. */
    uint32_t ask;
    drift_time ask_sent;
    drift_span ask_lease;
    quorum_mask ask_yes;
    drift_time deadline;  /* 0: not held. */
    uint32_t releasing;   /* The token of a release under way, */
    quorum_mask released; /* and who said that it was deleted. */
    unsigned rings;       /* Of the alarm, since time went on. */
};

static inline unsigned majority(const struct world *w)
{
    return w->config.masters / 2 + 1;
}

static inline unsigned count(quorum_mask mask)
{
    return (unsigned)__builtin_popcount(mask);
}

static inline bool is_held(const struct quorum *q)
{
    return q->state == QUORUM_HELD || q->state == QUORUM_EXTENDING;
}

/* ---- The masters (events.c) ---- */

/* What a lease loses to the drift of clocks. */
drift_span events_allowance(const struct world *w, drift_span lease);
/* Its link has room for a command. */
bool events_take(const struct master *master);

/* ---- The shadow (events-shadow.c) ---- */

/* Hand an event to the machine and its twin, and check what they do. */
void shadow_step(struct world *w, struct quorum_event *event);
/* Before that: an answer has come, and what it means. */
void shadow_answer(struct world *w, unsigned m, const struct item *item);

#endif /* FUZZ_EVENTS_H */
