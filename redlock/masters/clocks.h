/*
 * clocks.h - the clock guard: a master whose wall clock was stepped does not vote.
 *
 * Redis expires a lock by its wall clock.  A clock that is stepped forward expires locks that are
 * held, and the master grants them to the next client.  The next client must notice the step.  So
 * each client asks every master for TIME when a link comes up, and then once a second. drift/node.h
 * judges the samples.  This file relates to drift/node.h as standing.c relates to guard.c.
 *
 * Periodic guard.  A yes counts unless the master's clock is known to be wrong.  It is wrong after
 * a certain step forward or back, at a rate beyond the drift, or far from all other clocks.  A
 * clock that is not known yet is trusted, so that no client waits for the guard.  docs/safety.md
 * says what this leaves open.
 *
 * Guard per vote.  A yes to a SET or to an extension counts only if a TIME shows a steady clock.
 * The client sends that TIME after the command, on the same link; proof.h holds the yes back until
 * then.  A clock that is not known does not count.  So a client watches a master for the longest
 * lease before it counts that master's votes.
 *
 * A yes that does not count is QUORUM_VOTE_VOID: the master stores the key, and the client releases
 * it.
 */
#ifndef REDLOCK_CLOCKS_H
#define REDLOCK_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/node.h"
#include "redlock/base/reason.h"
#include "redlock/base/alarm.h"
#include "redlock/core/quorum.h"

struct ask;
struct peers;
struct reply;
struct standing;

/* How long an answer may be used, and how often a master is asked in that time. */
#define CLOCKS_GAP (10 * DRIFT_S)
#define CLOCKS_SAMPLES 10

/* The state of one master's clock. */
struct clocks_node {
    struct drift_node node;
    enum drift_place place;
    enum why why;   /* The latest reason why its votes do not count: WHY_CLOCK_*, or NONE. */
    int64_t amount; /* The least size of the step or of the offset from the others, in ns. */
    bool asked;     /* A TIME that no proof asked for is on its way. */
};

struct clocks {
    struct peers *peers;
    struct standing *standing;
    struct drift_guard guard;
    struct alarm alarm;
    struct clocks_node nodes[QUORUM_MASTERS_MAX];
};

/* Returns 0, or -1 if memory runs out. */
int clocks_init(struct clocks *clocks, struct peers *peers, struct standing *standing);

/* Events: a link went up or down, a TIME was answered, the alarm rang.  A link that came up is
 * reported before anything else is sent on it. */
void clocks_on_link(struct clocks *clocks, unsigned master, bool up);
/* The number belongs to another master from now on. */
void clocks_on_left(struct clocks *clocks, unsigned master);
/* Returns true if votes wait for this TIME; the caller passes them on (proof.h). */
bool clocks_on_time(struct clocks *clocks, unsigned master, const struct ask *ask,
                    const struct reply *reply);
void clocks_on_alarm(struct clocks *clocks);

/* Send a TIME after the votes that wait for it in proof.h. */
void clocks_ask(struct clocks *clocks, unsigned master);

/* True if a yes to a command sent at that time counts.  With the guard per vote the latest TIME
 * decides, which was sent after the command.  If the yes does not count, the link's error says
 * why. */
bool clocks_count(struct clocks *clocks, unsigned master, enum quorum_command command,
                  drift_time sent);

/* Masters of which no yes to a command sent now will count, whatever the next TIME shows. */
quorum_mask clocks_barred(const struct clocks *clocks, drift_time now);

/* The offset of a master's clock from the median of the members'.  Returns 0, or 1 if the offset is
 * not known now. */
int clocks_offset(const struct clocks *clocks, unsigned master, drift_time now,
                  struct drift_range *ret_offset);

/* How long until the clock lets the master's votes count.  0: they count.  DRIFT_NEVER: it cannot
 * be read well enough. */
drift_span clocks_left(const struct clocks *clocks, unsigned master, drift_time now);

/* True: it is off those of the others now, so no time lets it vote before somebody sets it right.
 */
bool clocks_is_off(const struct clocks *clocks, unsigned master);

/* Write why the master's votes do not count now, as the end of a sentence.  Returns false if they
 * count. */
bool clocks_explain(const struct clocks *clocks, unsigned master, drift_time now,
                    struct reason *ret_why);

#endif /* REDLOCK_CLOCKS_H */
