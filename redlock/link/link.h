/*
 * link.h - one connection to one master: up or down, no more.
 *
 * It connects, greets, backs off, sends, and hands over the answers.  It decides nothing, and
 * knows no other link.  There is one connection at a time, and one attempt at the most.
 *
 * Events.  A link calls its owner within an event (io/env.h), but for on_done(), which is the
 * last act of each event of the loop.
 */
#ifndef REDLOCK_LINK_H
#define REDLOCK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/mask.h"
#include "redlock/link/ask.h"
#include "redlock/link/handshake.h"
#include "redlock/link/uri.h"

struct env;
struct link;
struct reply;

/*
 * A master that hangs must not grow our memory: with so many commands unanswered (env->asks_max),
 * or bytes unsent, the link takes no more.  Chosen: far above what a healthy master ever owes (256
 * locks in flight owe 512); the bytes are what as many commands with names of 200 bytes take.
 */
#define LINK_ASKS_MAX 32768
#define LINK_UNSENT_MAX (8u << 20)

/* How a link fell, or did not come up. */
struct link_fall {
    drift_span retry_in; /* The next attempt. */
    bool is_news;        /* Nobody has been told of this yet. */
};

struct link_events {
    /* It was greeted.  NULL: it may come up; or why it must stay down. */
    const char *(*may_serve)(void *cookie, unsigned number);
    /* It is up (fall NULL); or it fell, or did not come up. */
    void (*on_link)(void *cookie, unsigned number, const struct link_fall *fall);
    /* An answer to an ask, in order; or a push, with an ask of NULL.  A reply of NULL: the link
     * broke, and this ask has ASK_TELL. */
    void (*on_reply)(void *cookie, unsigned number, const struct ask *ask,
                     const struct reply *reply);
    /* Its queue is full, or has room again. */
    void (*on_room)(void *cookie, unsigned number, bool room);
    /* The event is over.  The link may be gone when this returns. */
    void (*on_done)(void *cookie);
};

struct link_config {
    struct env *env;
    const struct uri *uri; /* Lives as long as the link. */
    unsigned number;       /* Of the master, from 0. */
    quorum_mask *dirty;    /* The link sets its bit there when it has something to flush. */
    drift_span connect_timeout, reply_timeout;
    bool guarded; /* It asks what the master keeps. */
    bool listens; /* It asks nothing, and hands over pushes. */
};

/* A link that is down and tries nothing yet; NULL without memory. */
struct link *link_new(const struct link_config *config, const struct link_events *events,
                      void *cookie);
/* Between events: close and free it, without any call of the owner. */
void link_free(struct link *link);

/* Begin to connect, from the loop. */
void link_start(struct link *link);

/*
 * Append one command to be written at the next flush.  Only to a link that is up.  It does not
 * fail, and calls nobody but on_room(): if memory is missing, the link goes down at the next
 * flush, and the owner hears of that.
 */
void link_send(struct link *link, const struct ask *ask, const char *command, size_t command_len);

/* Append one command that is not answered, or so that nobody waits for it: of a listener.
 * A link that is down drops it. */
void link_say(struct link *link, const char *command, size_t command_len);

/* Within an event: write what there is.  A link that breaks over it is doomed: it goes down at
 * the next flush. */
void link_write(struct link *link);
/* Between events: likewise, and take the link down if it is doomed. */
void link_flush(struct link *link);

/* Take the link down at the next flush, and connect anew, because of reason. */
void link_relink(struct link *link, const char *reason);

/* Remember a refusal, to be shown with the next failure; "": nothing is wrong. */
void link_note(struct link *link, const char *error);

bool link_is_up(const struct link *link);

/* "host:port". */
const char *link_name(const struct link *link);
/* Why it is down, or what the master refused last; "": nothing. */
const char *link_error(const struct link *link);
/* What the master told of itself at the last greeting. */
const struct master_info *link_info(const struct link *link);

/* Whether the link is up, or was and may soon be again: then another link to the same server
 * must stay down. */
bool link_claims(const struct link *link);

#endif /* REDLOCK_LINK_H */
