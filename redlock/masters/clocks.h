/*
 * clocks.h - the clock guard: masters whose wall clock was stepped do not vote.
 *
 * Redis drops a lock when its wall clock says so.  Put forward, it drops locks
 * that are held, and whoever asks next is given them: it is the one that has to
 * notice.  So each client asks every master for its TIME, as soon as a link is
 * up and then once a second, and has drift/node.h say what its clock did.  To
 * that file this one is what standing.c is to guard.c.
 *
 * Periodic.  A master's yes counts unless something stands against its clock:
 * a step forward, or back, that was seen for certain, a rate beyond the drift, or
 * a clock far off all others.  What is not known is trusted, at first sight too,
 * so that nobody ever waits for the guard; what it leaves open is in safety.md.
 *
 * Per vote.  A yes, to a SET and to an extension, counts only if the clock is
 * shown to be steady by a TIME that was asked for behind it, on the same link:
 * proof.h holds it back until then.  What is not known does not count, so a
 * client watches a master for as long as the longest lease lasts before it does.
 *
 * A yes that does not count is VOID to quorum.h: the key is there, and released.
 */
#ifndef REDLOCK_CLOCKS_H
#define REDLOCK_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/node.h"
#include "redlock/base/alarm.h"
#include "redlock/core/quorum.h"

struct ask;
struct peers;
struct reply;
struct standing;

/* How often a master is asked, and for how long what it said is good. */
#define CLOCKS_EVERY DRIFT_S
#define CLOCKS_GAP (10 * CLOCKS_EVERY)

/* Why a master's votes do not count; the latest, if there are several. */
enum clocks_reason {
    CLOCKS_NOTHING,
    CLOCKS_NOT_KNOWN,
    CLOCKS_FORWARD,
    CLOCKS_BACKWARD,
    CLOCKS_FAST,
    CLOCKS_OUTLIER,
};

/* What is known of one master's clock. */
struct clocks_node {
    struct drift_node node;
    enum drift_place place;
    enum clocks_reason reason;
    int64_t amount; /* Of a step, or off the others, ns: at least. */
    bool asked;     /* A TIME is on its way that was not asked for by a proof. */
};

struct clocks {
    struct peers *peers;
    struct standing *standing;
    struct drift_guard guard;
    struct alarm alarm;
    struct clocks_node nodes[QUORUM_MASTERS_MAX];
};

/* 0, or -1 without memory. */
int clocks_init(struct clocks *clocks, struct peers *peers, struct standing *standing);

/* A link came up, before anything else is sent there, or went down; a TIME was
 * answered; the alarm rang. */
void clocks_on_link(struct clocks *clocks, unsigned master, bool up);
/* True: votes wait for this TIME, and were not told (proof.h). */
bool clocks_on_time(struct clocks *clocks, unsigned master, const struct ask *ask,
                    const struct reply *reply);
void clocks_on_alarm(struct clocks *clocks);

/* Ask behind votes, which wait for it in proof.h. */
void clocks_ask(struct clocks *clocks, unsigned master);

/* Whether a yes to a command counts that was asked for then; per vote, as the latest
 * TIME says, which was asked for behind it.  If not, the master's note says why. */
bool clocks_count(struct clocks *clocks, unsigned master, enum quorum_command command,
                  drift_time sent);

/* A master's clock against the median of all; 0, or 1 if that is not known now. */
int clocks_offset(const struct clocks *clocks, unsigned master, drift_time now,
                  struct drift_range *ret_offset);

/* Why its votes do not count now, as the end of a sentence; false: they do. */
bool clocks_explain(const struct clocks *clocks, unsigned master, drift_time now, char *text,
                    size_t size);

#endif /* REDLOCK_CLOCKS_H */
