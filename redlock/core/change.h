/*
 * change.h - the operator that changes the set of masters, as a machine that decides and never
 * acts; pure.
 *
 * It takes one wish, a new list of members, from whatever state the masters are in to the simple
 * configuration of that list (config.h).  Events come in, requests go out.  It may be killed at any
 * time, and any other machine takes over.  Two at once do no harm: the one that is overtaken ends.
 *
 * Masters are numbers of a roster, which the caller stores beside the machine.  The machine adds
 * the masters that it hears of.  A master has one request at a time, on one link.  The caller calls
 * change_on_link() when the link breaks; an answer that comes later is not passed on.
 */
#ifndef REDLOCK_CHANGE_H
#define REDLOCK_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/core/config.h"
#include "redlock/core/roster.h"

/* A ballot: the round in the upper half, a random number in the lower.  0: none. */
typedef uint64_t change_ballot;

enum change_request {
    CHANGE_ASK_NOTHING,
    CHANGE_ASK_LOOK,    /* A query: read the marker, and announce max_ttl_ms. */
    CHANGE_ASK_PREPARE, /* lua/prepare.lua, with the ballot. */
    CHANGE_ASK_ACCEPT,  /* lua/accept.lua, with ballot and value. */
    CHANGE_ASK_WRITE,   /* lua/write.lua, with the newest configuration. */
    CHANGE_ASK_COUNT,   /* lua/count_on.lua, with the number. */
};

/* What a marker says.  config is parsed, and has set and version. */
struct change_look {
    bool ready;                  /* It has an epoch. */
    uint64_t epoch;              /* The epoch.  If the master is not ready: the nonce. */
    uint32_t max_ttl_ms;         /* The longest lease that any client has announced to it. */
    uint64_t high;               /* No fencing token of it is greater. */
    const struct config *config; /* NULL: it belongs to no set. */
};

enum change_answer {
    CHANGE_YES,     /* Promised, accepted, written, counted. */
    CHANGE_BALLOT,  /* A greater ballot was promised before, or the same. */
    CHANGE_CHANGED, /* The master has another epoch, version or set. */
    CHANGE_FAILED,  /* An error: it may or may not have been done. */
};

struct change_reply {
    enum change_answer answer;
    change_ballot ballot;        /* BALLOT: that ballot.  A promise: the ballot of config. */
    const struct config *config; /* A promise: what was accepted, or NULL. */
};

enum change_phase {
    CHANGE_LEARNING, /* Looks for the newest configuration. */
    CHANGE_WATCHING, /* Waits until new members, and Q(L2), have an epoch (M6). */
    CHANGE_CHOOSING, /* A ballot for the next version is out (M3). */
    CHANGE_PAUSING,  /* Between two ballots. */
    CHANGE_SEEING,   /* Until Q(L1) members store the joint version (M5, 1). */
    CHANGE_WAITING,  /* Until all leases from before that time are over (M5, 2). */
    CHANGE_CHECKING, /* Queries the same members again (M5, 3). */
    CHANGE_COUNTING, /* Raises fencing counters (M8). */
    CHANGE_TELLING,  /* Writes the newest configuration to all members, and ends. */
    CHANGE_PHASES_LEN
};

enum change_status {
    CHANGE_GOES_ON,
    CHANGE_DONE,       /* The set has the wished list.  change_missing(): who does not know it. */
    CHANGE_OVERTAKEN,  /* Another operator changed the set meanwhile. */
    CHANGE_TOO_FEW,    /* No majority of a list answers, so nothing was begun. */
    CHANGE_NO_SET,     /* No master that answers belongs to a set. */
    CHANGE_OTHER_SET,  /* culprit belongs to another set. */
    CHANGE_CLOSED,     /* The set is closed: it needs a rescue. */
    CHANGE_REFUSED,    /* The wish is not allowed: problem says why. */
    CHANGE_NO_ROOM,    /* More masters than the roster has room for. */
    CHANGE_IMPOSSIBLE, /* culprit gave an answer that no sound master can give. */
};

/* The least value of max_ttl_ms in queries.  A ballot lasts no longer than max_ttl_ms, and must
 * have the time to succeed.  Chosen: two round trips to a majority, and some more.  A set whose
 * leases are shorter waits for this long, too. */
#define CHANGE_TTL_MIN_MS 1000

struct change_config {
    uint64_t set;        /* The set to change.  0: that of the first master that answers. */
    uint32_t max_ttl_ms; /* The longest lease that queries announce.  A ballot lasts no
                          * longer.  A smaller value is raised to CHANGE_TTL_MIN_MS. */
    /* Give up a joint configuration that another wish has begun.  The command does not: it finishes
     * it, unless the list before it is wished.  The simulator also does the other. */
    bool gives_up;
    bool allows_even;      /* An even number of members is wished. */
    drift_span timeout;    /* How long to wait for masters that do not answer. */
    drift_span look_every; /* The time between two queries of a master that is not ready. */
    drift_span pause_min;  /* The pause before the second ballot.  It doubles each time. */
    drift_span pause_max;  /* The longest pause. */
    struct drift_bound drift;
};

/* A master, as this machine knows it. */
struct change_master {
    bool linked;
    bool known;   /* It answered a query on this link. */
    bool ready;   /* It has an epoch. */
    bool ours;    /* It belongs to our set. */
    bool foreign; /* It belongs to another set. */
    enum change_request asked;
    change_ballot asked_ballot; /* The ballot of a PREPARE or ACCEPT. */
    uint64_t asked_version;     /* The newest version when the request was sent. */
    drift_time asked_at;
    drift_time look_at;  /* When the next query is due. */
    drift_time looked;   /* When the latest query was sent. */
    uint64_t epoch;      /* The epoch in the latest answer. */
    uint64_t version;    /* The version that it stores.  0: none, or of another set. */
    uint64_t high;       /* The high-water mark in the latest answer. */
    uint64_t seen_epoch; /* The epoch that it had in M5 (1).  0: it was not seen there. */
};

/* Visible so that it can be embedded and hashed.  Only change.c writes it. */
struct change {
    struct change_config config;
    struct roster *roster;
    roster_mask wish;
    enum change_status status;
    enum change_phase phase;
    enum change_status verdict;  /* TELLING: how it will end. */
    unsigned culprit;            /* OTHER_SET, IMPOSSIBLE: the master that is the reason. */
    enum config_problem problem; /* REFUSED: why. */
    uint32_t longest_ms;         /* The longest lease that any master reported, or our own. */
    struct roster_lists newest;  /* The newest configuration that is known. */
    struct roster_lists base;    /* The configuration that is to change.  Version 0: not known. */
    drift_time until;            /* The time limit of LEARNING, PAUSING, WAITING and TELLING. */
    /* The ballot. */
    change_ballot ballot; /* 0: none is out. */
    uint32_t round;       /* The greatest round that is known. */
    unsigned ballots;     /* How many ballots this machine has begun for this version. */
    drift_time ballot_end;
    bool accepting;     /* A quorum has promised, so the value is being proposed. */
    roster_mask voters; /* Masters whose epoch was known when the ballot began, and is the same. */
    roster_mask promised, accepted, refused;
    change_ballot found_ballot; /* The greatest ballot of a value that a promise reported. */
    struct roster_lists found;  /* The value that was accepted in found_ballot. */
    struct roster_lists value;  /* The value that is proposed. */
    /* M5 and M8, for the newest version. */
    roster_mask seen;        /* Members that stored the joint version in M5 (1). */
    drift_time since;        /* When M5 (1) was reached. */
    drift_time checked_from; /* M5 (3): only queries sent from then on count. */
    uint64_t number;         /* M8: the number to count on to. */
    roster_mask counted;
    bool settled; /* M5 and M8 are done for the newest version. */
    struct change_master masters[ROSTER_MAX];
};

/* What to send.  The machine takes it as sent. */
struct change_actions {
    roster_mask look, prepare, accept, write, count;
    drift_time wake_at; /* DRIFT_NEVER: no timer. */
};

/* The wish is a simple configuration; its set and version do not count.  Masters of the wish are
 * added to the roster.  The first call is change_next(). */
void change_init(struct change *c, const struct change_config *config, struct roster *roster,
                 const struct config *wish, drift_time now);

/* Events.  After each, change_next() says what to do. */
void change_on_link(struct change *c, unsigned master, bool up);
void change_on_look(struct change *c, unsigned master, const struct change_look *look,
                    drift_time now);
/* The answer to PREPARE, ACCEPT, WRITE or COUNT. */
void change_on_reply(struct change *c, unsigned master, const struct change_reply *reply,
                     drift_time now);
/* A master answered a request with an error, or with what cannot be read. */
void change_on_failure(struct change *c, unsigned master, drift_time now);

/* A master may have changed: query it again, but no more often than one that is not ready. */
void change_look_again(struct change *c, unsigned master, drift_time now);

/* What is due now.  Call it after each event and when the timer fires.  random: any value. */
void change_next(struct change *c, drift_time now, uint32_t random,
                 struct change_actions *ret_actions);

/* The newest configuration, and what is proposed: for WRITE and for ACCEPT. */
void change_newest(const struct change *c, struct config *ret_config);
void change_value(const struct change *c, struct config *ret_config);

/* The name under which WRITE makes a master a member.  NULL: it is none in the newest
 * configuration. */
const char *change_name(const struct change *c, unsigned master);

/* Masters without an epoch that M6 waits for. */
roster_mask change_awaited(const struct change *c);

/* Masters that the machine waits for in this phase.  At its end: those that do not know the newest
 * configuration. */
roster_mask change_missing(const struct change *c);

/* Words for people.  Constant texts. */
const char *change_phase_text(enum change_phase phase);
const char *change_status_text(enum change_status status);

#endif /* REDLOCK_CHANGE_H */
