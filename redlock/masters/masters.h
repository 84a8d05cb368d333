/*
 * masters.h - the set of masters: which of them may be asked, and whose yes counts.
 *
 * It owns the links, sorts the answers, and runs the guards: standing.c (the restart guard),
 * clocks.c (the clock guard), and proof.c.  proof.c holds a yes back until the master has shown
 * that it still has its data.  Files outside this folder include this header and no other of the
 * folder.
 */
#ifndef REDLOCK_MASTERS_H
#define REDLOCK_MASTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/outlook.h"
#include "redlock/core/quorum.h"
#include "redlock/masters/clocks.h"
#include "redlock/masters/founding.h"
#include "redlock/masters/links.h"
#include "redlock/masters/peers.h"
#include "redlock/masters/proof.h"
#include "redlock/masters/prospect.h"
#include "redlock/masters/set.h"
#include "redlock/masters/standing.h"
#include "redlock/wire/vote.h"

struct alarm;

/* All but on_done() are called within an event (io/env.h). */
struct masters_events {
    /* An answer to an ask of another folder.  reply NULL: the link broke (ASK_TELL). */
    void (*on_answer)(void *cookie, unsigned m, const struct ask *ask, const struct reply *reply);
    /* A vote that was held back counts now. */
    void (*on_vote)(void *cookie, unsigned m, const struct ask *ask, const struct vote *vote);
    /* The master may take commands now and could not before, or the other way round. */
    void (*on_change)(void *cookie, unsigned m);
    /* A full queue has room again. */
    void (*on_room)(void *cookie, unsigned m);
    /* A link came up or fell.  Called before any other action on this change. */
    void (*on_link)(void *cookie, unsigned m, bool up);
    /* The set has become known, or has changed.  joined: members that were none before.  left:
     * numbers of masters that another master may get next. */
    void (*on_set)(void *cookie, quorum_mask joined, quorum_mask left);
    /* Between events: this number loses its master, and its URI. */
    void (*on_close)(void *cookie, unsigned m);
    /* The event is over.  The callee may free the masters. */
    void (*on_done)(void *cookie);
};

struct masters_config {
    struct env *env;
    const struct uri *uris; /* Must live as long as the masters. */
    unsigned len;
    drift_span connect_timeout, reply_timeout;
    uint32_t max_ttl_ms;
    struct drift_bound drift;
    bool restart_guard;
    enum redlock_clock_guard clock_guard;
};

struct masters {
    const struct masters_events *events;
    void *cookie;
    struct peers peers;
    struct links links;
    struct set set;
    struct founding founding;
    struct standing standing;
    struct clocks clocks;
    struct proof proof;
    struct prospect prospect;
};

/* Make the links, without connecting them.  Returns 0, or -1 if memory runs out; masters_done()
 * is due in both cases. */
int masters_init(struct masters *masters, const struct masters_config *config,
                 const struct masters_events *events, void *cookie);
void masters_start(struct masters *masters);
/* Call it between events.  A zeroed struct is allowed. */
void masters_done(struct masters *masters);

/* Send a command to a master that is up, and count it. */
void masters_send(struct masters *masters, unsigned m, const struct ask *ask, const char *command,
                  size_t command_len);
/* Ask for proof of the yes to a command that was sent to these masters. */
void masters_want_proof(struct masters *masters, enum quorum_command command, quorum_mask sent);
/* Pass in the answer to a lease's command.  Returns true if it is a yes that needs proof:
 * on_vote() reports it later. */
bool masters_hold(struct masters *masters, unsigned m, const struct ask *ask,
                  const struct vote *vote);
/* True if the clock guard counts a yes to a command sent at that time. */
bool masters_count(struct masters *masters, unsigned m, enum quorum_command command,
                   drift_time sent);
/* Masters whose clocks keep their votes from counting now. */
quorum_mask masters_barred(const struct masters *masters);
/* A fencing counter was raised to this number. */
void masters_raised(struct masters *masters, unsigned m, uint64_t number);
/* The field epoch of its marker is another one than we know. */
void masters_look_again(struct masters *masters, unsigned m);
/* The field epoch of its marker, which a command must name. */
const char *masters_state(const struct masters *masters, unsigned m);

/* masters_flush() is called between events: it writes to all masters that need it, closes links
 * that are doomed or break, and opens links to new members.  masters_write() is called within an
 * event and only writes. */
void masters_flush(struct masters *masters);
void masters_write(struct masters *masters);

/* Handle an alarm.  Returns false if the alarm belongs to no master. */
bool masters_on_alarm(struct masters *masters, const struct alarm *alarm);

/* All masters of the list are needed, to found its set. */
bool masters_found(const struct masters *masters);

/* What keeps a majority from voting now, and what keeps each master (outlook.h). */
enum outlook masters_outlook(const struct masters *masters, quorum_mask refused, drift_time now,
                             struct outlook_view *ret_view);
/* What made an operation fail.  failed: masters that were asked, and gave no vote. */
enum outlook masters_outlook_of(const struct masters *masters, quorum_mask failed,
                                quorum_mask refused, drift_time now, struct outlook_view *ret_view);

/* Functions of one link: see link.h. */
void masters_note(struct masters *masters, unsigned m, const struct reason *why);
void masters_relink(struct masters *masters, unsigned m, const struct reason *why);
const char *masters_name(const struct masters *masters, unsigned m);
const struct reason *masters_reason(const struct masters *masters, unsigned m);
/* The reason of this kind that a lease has seen: with the words of the link's latest reason if that
 * is of the same kind, and with the time for which a clock keeps the vote away now. */
void masters_recall(const struct masters *masters, unsigned m, enum why seen,
                    struct reason *ret_why);
/* True if the link is up and has room. */
bool masters_is_linked(const struct masters *masters, unsigned m);
/* True if the link is up, though its queue may be full, or the master may not vote. */
bool masters_link_is_up(const struct masters *masters, unsigned m);
/* False: the master is no member of the set, and nothing that it says makes the list wrong; or
 * there is none of this number. */
bool masters_concern(const struct masters *masters, unsigned m);

#endif /* REDLOCK_MASTERS_H */
