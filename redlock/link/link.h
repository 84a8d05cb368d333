/*
 * link.h - one connection to one master: up or down, no more.
 *
 * A link connects, greets, backs off, sends, and hands over the answers.  It decides nothing, and
 * knows no other link.  It has at most one connection or attempt at a time.
 *
 * A link calls its owner within an event (io/env.h).  Only on_done() comes after it: that is the
 * last call of each event that the loop brings.
 */
#ifndef REDLOCK_LINK_H
#define REDLOCK_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "drift/drift.h"
#include "redlock/base/mask.h"
#include "redlock/base/reason.h"
#include "redlock/link/ask.h"
#include "redlock/link/handshake.h"
#include "redlock/link/uri.h"

struct env;
struct link;
struct reply;

/*
 * The most unanswered commands (env->asks_max) and unsent bytes of one link, so that a master that
 * hangs does not grow our memory.  Chosen: far more than a healthy master owes, which is 512
 * answers for 256 locks in flight.  The bytes are as many commands with names of 200 bytes.
 */
#define LINK_ASKS_MAX 32768
#define LINK_UNSENT_MAX (8u << 20)

/* A link fell, or did not come up. */
struct link_fall {
    drift_span retry_in; /* The time until the next attempt. */
    bool is_news;        /* The failure is new, and worth a line of the log. */
};

struct link_events {
    /* The greeting succeeded.  True: the link may come up.  False: *ret_why says why not. */
    bool (*may_serve)(void *cookie, unsigned number, struct reason *ret_why);
    /* fall NULL: the link came up.  Otherwise it fell, or did not come up. */
    void (*on_link)(void *cookie, unsigned number, const struct link_fall *fall);
    /* An answer to an ask, in order.  ask NULL: the reply is a push.  reply NULL: the link broke,
     * and the ask has ASK_TELL. */
    void (*on_reply)(void *cookie, unsigned number, const struct ask *ask,
                     const struct reply *reply);
    /* The queue is full, or has room again. */
    void (*on_room)(void *cookie, unsigned number, bool room);
    /* The event is over.  The callee may free the link. */
    void (*on_done)(void *cookie);
};

struct link_config {
    struct env *env;
    const struct uri *uri; /* Must live as long as the link. */
    unsigned number;       /* The number of the master, from 0. */
    quorum_mask *dirty;    /* The link sets its bit here when it has data to flush. */
    drift_span connect_timeout, reply_timeout;
    bool guarded; /* The greeting asks whether the master keeps its data. */
    bool listens; /* The link sends no asks, and hands over pushes. */
};

/* Make a link that is down and does not connect yet.  NULL: memory ran out. */
struct link *link_new(const struct link_config *config, const struct link_events *events,
                      void *cookie);
/* Between events: close and free the link, without calling its owner. */
void link_free(struct link *link);

/* Let the loop begin to connect. */
void link_start(struct link *link);

/*
 * Append one command, which the next flush writes.  The link must be up.  This does not fail, and
 * calls at most on_room().  If memory runs out, the link is doomed, and on_link() reports its fall.
 */
void link_send(struct link *link, const struct ask *ask, const char *command, size_t command_len);

/* Append one command of a listening link, without an ask.  A link that is down drops it. */
void link_say(struct link *link, const char *command, size_t command_len);

/* Within an event: write the unsent bytes.  A link that breaks is doomed. */
void link_write(struct link *link);
/* Between events: write the unsent bytes, and take the link down if it is doomed. */
void link_flush(struct link *link);

/* Doom the link for this reason.  It goes down and connects anew. */
void link_relink(struct link *link, const struct reason *why);

/* The same for a reason that is a kind alone. */
static inline void link_relink_for(struct link *link, enum why kind)
{
    struct reason why;

    reason_set(&why, kind);
    link_relink(link, &why);
}

/* Set what link_reason() returns, after a refusal.  NULL: nothing is wrong. */
void link_note(struct link *link, const struct reason *why);

bool link_is_up(const struct link *link);
/* True: the link is down between two attempts, and at least two attempts have failed in a row.  A
 * break counts as one.  So it may be down for long. */
bool link_is_given_up(const struct link *link);

/* "host:port". */
const char *link_name(const struct link *link);
/* Why the link is down, or what the master refused last.  NONE: nothing is wrong.  A first attempt
 * that is under way is judged, too: it may hang. */
const struct reason *link_reason(struct link *link);
/* What the master reported about itself at the latest greeting. */
const struct master_info *link_info(const struct link *link);

/* How long until the master's certificate ends: tls_left_s().  False: the link is plain, or not up.
 */
bool link_left_s(const struct link *link, int64_t *ret_left_s);

/* True if the link is up, or was up and may soon be up again.  Then another link to the same server
 * must stay down. */
bool link_claims(const struct link *link);

#endif /* REDLOCK_LINK_H */
