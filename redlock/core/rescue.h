/*
 * rescue.h - founds a set anew that has lost a majority for good, as a machine that decides and
 * never acts; pure.
 *
 * An operator says which members are lost, and which masters the set is to have.  The machine first
 * closes the set: the masters that are left get a version without members.  It waits until all
 * leases have ended that they may have granted.  Then it founds the set with the new list and a
 * greater version.  test/models/rescue.c is the model.
 *
 * Masters are the numbers of a client.  A master has one request at a time.
 */
#ifndef REDLOCK_RESCUE_H
#define REDLOCK_RESCUE_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/core/guard.h"

/* The ballot in which a closed master accepts the list.  Any would do, since closing deletes all.
 */
#define RESCUE_BALLOT (UINT64_C(1) << 32)

enum rescue_request {
    RESCUE_ASK_NOTHING,
    RESCUE_ASK_LOOK,    /* Read the marker. */
    RESCUE_ASK_CLOSE,   /* lua/write.lua, with the version closed, and no member. */
    RESCUE_ASK_NOTE,    /* lua/accept.lua: the list, with RESCUE_BALLOT. */
    RESCUE_ASK_COUNT,   /* lua/count_on.lua, with the number. */
    RESCUE_ASK_FOUND,   /* lua/write.lua, with the version founded, and the list. */
    RESCUE_ASK_INSTALL, /* lua/look.lua: an epoch, together with the version founded. */
};

enum rescue_phase {
    RESCUE_CLOSING,  /* Until all masters are closed, and have noted the list. */
    RESCUE_WAITING,  /* Until all earlier leases have ended. */
    RESCUE_CHECKING, /* Queries all masters again. */
    RESCUE_FOUNDING, /* Until all masters of the list store the new version. */
};

enum rescue_status {
    RESCUE_GOES_ON,
    RESCUE_DONE,
    RESCUE_STRANGER,  /* culprit belongs to another set. */
    RESCUE_OVERTAKEN, /* culprit stores a version that is neither old nor ours. */
    RESCUE_AHEAD,     /* The fencing counters are days ahead of the clocks. */
};

struct rescue_config {
    quorum_mask masters; /* The masters that answer: members that are left, and new ones. */
    quorum_mask list;    /* The members of the new list. */
    uint64_t closed;     /* The version without members. */
    uint64_t founded;    /* The version of the new list.  Greater than closed. */
    uint32_t max_ttl_ms;
    drift_span look_every; /* The time between two queries of a master that is warming. */
    struct drift_bound drift;
};

/* A master, as this machine knows it. */
struct rescue_master {
    bool linked;
    bool known; /* The master answered a query on this link. */
    enum rescue_request asked;
    drift_time asked_at;
    drift_time look_at; /* When the next query is due. */
    drift_time looked;  /* When the latest query was sent. */
    drift_time since;   /* Warming: since when this client has seen this nonce. */
    struct guard_look look;
};

/* Visible so that it can be embedded.  Only rescue.c writes it. */
struct rescue {
    struct rescue_config config;
    enum rescue_status status;
    enum rescue_phase phase;
    unsigned culprit;
    uint32_t longest_ms;     /* The longest lease that any master reported, or our own. */
    quorum_mask closed;      /* Masters that are closed and have noted the list, or have nothing to
                              * close. */
    drift_time closed_at;    /* When all masters were in closed. */
    drift_time checked_from; /* CHECKING: only queries sent from then on count. */
    uint64_t number;         /* All fencing tokens of the new set are greater. */
    quorum_mask counted;
    struct rescue_master masters[QUORUM_MASTERS_MAX];
};

/* What to send.  The machine takes it as sent. */
struct rescue_actions {
    quorum_mask look, close, note, count, found, install;
    drift_time wake_at; /* DRIFT_NEVER: no timer. */
};

/* The version that closes a set: greater than any that a lost master may store.  newest: the
 * greatest that is known.  random: any value; two rescues of one set get two versions. */
uint64_t rescue_version(uint64_t newest, uint32_t random);

void rescue_init(struct rescue *r, const struct rescue_config *config);

/* Events.  After each, rescue_next() says what to do.  INSTALL is answered as LOOK is, so its
 * answer goes to rescue_on_look().  done: the master did what it was asked to do. */
void rescue_on_link(struct rescue *r, unsigned master, bool up);
void rescue_on_look(struct rescue *r, unsigned master, const struct guard_look *look,
                    drift_time now);
void rescue_on_reply(struct rescue *r, unsigned master, bool done, drift_time now);

void rescue_next(struct rescue *r, drift_time now, struct rescue_actions *ret_actions);

/* When the phase WAITING ends, and when this master will have been watched for the same time. */
drift_time rescue_due_at(const struct rescue *r);
drift_time rescue_watched_at(const struct rescue *r, unsigned master);

/* Masters that the machine waits for in this phase. */
quorum_mask rescue_missing(const struct rescue *r);

/* Words for people.  Constant texts. */
const char *rescue_phase_text(enum rescue_phase phase);
const char *rescue_status_text(enum rescue_status status);

#endif /* REDLOCK_RESCUE_H */
