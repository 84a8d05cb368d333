/*
 * inspect.h - what the `redlock` command may see and do beyond redlock.h.  Private: not installed.
 *
 * Every result is a copy of the present state.  Any thread may call inspect_client(),
 * inspect_master() and inspect_quarantine().  The other functions are for the thread of a loop
 * client.  A client that is being closed returns zeroes.
 */
#ifndef REDLOCK_INSPECT_H
#define REDLOCK_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "drift/node.h"
#include "redlock/base/mask.h"
#include "redlock/base/message.h"
#include "redlock/client/options.h"
#include "redlock/core/guard.h"
#include "redlock/core/members.h"
#include "redlock/link/handshake.h"
#include "redlock/redlock.h"

struct config;
struct config_member;
struct error;
struct reply;
struct uri;

/* As redlock_open(), with other names for options. */
int inspect_open(const struct redlock_options *opts, const struct option_names *names,
                 struct redlock **ret_rl);

#define INSPECT_IN_FLIGHT_MAX 16384 /* Locks in flight: a link takes twice as many commands. */

struct tls_context;

struct inspect_client {
    drift_time now;
    unsigned masters;
    quorum_mask up;         /* Masters that may vote. */
    quorum_mask coming;     /* Masters that may vote soon, for the first time. */
    quorum_mask linked;     /* Masters whose links are up. */
    quorum_mask connecting; /* Masters whose first attempt to connect is under way. */
    quorum_mask unlinked;   /* Their links are down after an attempt, and none is about to come. */
    uint32_t max_ttl_ms;
    drift_span connect_timeout;
    drift_span quarantine;   /* How long a master without its data is watched. */
    drift_span clock_window; /* How long a clock is watched before it counts. */
    bool restart_guard;
    enum redlock_clock_guard clock_guard;
    uint64_t set;         /* The set of masters that the client obeys.  0: none is known. */
    uint64_t set_version; /* The version of its configuration. */
    unsigned refuser;     /* The master that shows that the list is wrong.  masters: none does. */
    quorum_mask members;  /* Masters that said that they are in this set. */
    /* Which masters decide: the lists of the set, which differ while it changes.  If no set is
     * known, all masters. */
    struct members lists;
    bool has_forgotten; /* Too few members that answer remember the set. */
    bool is_closed;     /* The set has no members until a rescue gives it some. */
    bool has_founded;   /* This client founded the set, or finished its founding. */
    uint32_t leases;    /* Leases in memory. */
    uint64_t commands;
};
struct inspect_client inspect_client(struct redlock *rl);

/* True: a master that is not down may store a token of a lease. */
bool inspect_may_hold(struct redlock *rl);

/* What is wrong with a master: what people read, and look up.  MSG_NONE, "": nothing. */
struct remark {
    enum msg message;
    char text[REASON_TEXT_MAX];
};

struct inspect_master {
    const struct uri *uri; /* Lives as long as the client. */
    const char *name;      /* "host:port".  Lives as long as the client. */
    struct reason why;     /* Why its link is down or it is a copy, or what it refused last. */
    struct remark remark;  /* The same in words. */
    struct master_info info;
    bool is_linked;
    bool has_certificate;
    int64_t certificate_left_s; /* Until a certificate of its chain ends. */
    bool is_elsewhere;          /* It is a member that has another number, too. */
    bool is_copy;               /* Another member has its epoch, so it has no vote: see why. */
    struct guard_look look;     /* The marker when last read.  A number of 0: not read yet. */
    bool is_looked_at;          /* A read of the marker is on its way. */
    drift_span
        warming_left;    /* How long it still is warming, while witnesses or a client watch it. */
    bool is_asked_about; /* Witnesses were asked how long it has been warming, and have not
                            answered. */
    bool has_witnesses;  /* Enough masters keep the time, so no client has to stay while it is
                            warming. */
    bool is_witnessed;   /* A majority of the masters reported how long it has been warming. */
    bool has_offset, has_rate;
    struct drift_range offset;   /* The offset of its clock from the median of all. */
    struct drift_range rate_ppm; /* The rate of its clock against ours. */
    bool is_barred;              /* Its clock is known to be wrong. */
    enum why clock_why;          /* Why its clock makes its votes not count.  NONE: they count. */
    struct remark clock;         /* The same for people. */
};
struct inspect_master inspect_master(struct redlock *rl, unsigned m);

/* Write the members of the set, and the reason why the list is refused.  Each is "" if there is
 * none.  True: the list has masters of two sets, and it was chance which the client obeys. */
bool inspect_set(struct redlock *rl, char *members, size_t members_size, char *why,
                 size_t why_size);

/* How long a master warms up if leases last up to max_ttl_ms: that time, plus twice the drift
 * allowance.  A value below the client's own counts as the client's own. */
drift_span inspect_quarantine(struct redlock *rl, uint32_t max_ttl_ms);

/* If masters keep a waiting lease from its lock, set the thread's message, which says which.
 * Returns the status that the wait would end with, and REDLOCK_OK if no master is at fault. */
int inspect_wait(struct redlock *rl, const struct redlock_lease *lease);

/* Write why a lease is lost, or will be: see explain_loss(). */
enum msg inspect_loss(struct redlock *rl, const struct redlock_lease *lease,
                      struct error *ret_list);

/* Read markers, but install no epoch and found no set: the client may know only some of the
 * masters. */
void inspect_look_only(struct redlock *rl);

/* Read markers, and obey no set: a list may then have masters of any set or of none.  No master
 * votes.  Call it before the loop runs. */
void inspect_obey_none(struct redlock *rl);

/* After inspect_obey_none(): give epochs to guests, which are no members yet.  newest: the present
 * configuration.  from and to: the masters of its lists. */
void inspect_watch(struct redlock *rl, const struct config *newest, quorum_mask from,
                   quorum_mask to, quorum_mask guests);

/* The place of a master as a configuration writes it, and the name that the URI gives it, or the
 * place.  False: no configuration can have such a place. */
bool inspect_place(const struct uri *uri, struct config_member *ret_member);

/* The URI of a member that the list lacks, with the user and password that this client would send
 * there.  The caller calls uri_done().  False: no such place can be reached, or memory ran out. */
bool inspect_uri(struct redlock *rl, const char *place, struct uri *ret_uri);

/* The number of the master in the list whose user and password this client would send there.  The
 * number of masters in the list: it would send none. */
unsigned inspect_login(struct redlock *rl, const struct uri *uri);

/* The TLS context for connections that the command opens itself.  Lives as long as the client.
 * NULL: no master is reached by TLS. */
struct tls_context *inspect_tls(struct redlock *rl);

/* The answer to a query.  reply is NULL if the link broke, and is valid until this returns. */
typedef void inspect_answer_fn(void *cookie, unsigned m, uint32_t query, const struct reply *reply);

/* Send the answers to later queries to on_answer.  NULL: drop them.  Answers to earlier queries are
 * dropped: they belong to another listener, whose numbers may be the same. */
void inspect_listen(struct redlock *rl, inspect_answer_fn *on_answer, void *cookie);

/* Send any command to a master whose link is up. */
void inspect_query(struct redlock *rl, unsigned m, uint32_t query, const char *command,
                   size_t command_len);

#endif /* REDLOCK_INSPECT_H */
