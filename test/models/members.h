/*
 * members.h - a model of the protocol that changes the set of masters while clients hold locks.
 *
 * Words.  A configuration has a version.  It is simple (the members L) or joint (from L1 to L2).
 * Q(L) is a majority of L, N the number of its members.  A master that lost its data is warming
 * until it gets an epoch again; max_ttl is the longest lease.
 *
 * The rules, each next to the code that keeps it:
 *
 *  M1. A vote counts only if the read behind it shows the known epoch and the version that the
 *      client knows (prove).
 *  M2. A lease under a simple configuration needs Q(L) votes.  Under a joint one it needs Q(L1)
 *      and Q(L2); a master in both counts in both (is_quorum).
 *  M3. The members of version v choose version v+1 by Paxos, with quorums as in M2 (prepare,
 *      accept).  From simple(L1) it is joint(L1, L2).  From joint(L1, L2) it is simple(L2), or
 *      simple(L1) to give up.  A ballot ends max_ttl after its first prepare (pass_time).  No
 *      two ballots are equal.  What is chosen may be written to all members of v and v+1, at any
 *      time, by anybody, and only over a smaller version (write_version).
 *  M4. A client that reads a greater version takes it over and drops its votes.  A lease that it
 *      holds keeps its deadline.  The next extension must be good under the new version.  An
 *      extension may store the key on a master that never had it; that is a vote as in M1.
 *  M5. joint(L1, L2) becomes simple(L2) only after one process has (1) seen Q(L1) masters that
 *      store the joint version, (2) then waited max_ttl, (3) then seen the same epochs there
 *      (see_version, pass_time, forget).
 *  M6. A new member is empty.  It is watched before it is added, as after a loss of data.
 *  M7. A warming master is watched for max_ttl.  Then N - Q + 1 others of each list of the
 *      greatest version told, all with epochs, tell their versions and ballots.  It gets back
 *      the greatest version, and the greatest ballots told with that version (read_other,
 *      install).
 *  M8. Fencing: fencing.h is a model of its own.
 *  M9. Removed masters are told the version that removed them (write_version).
 *
 *  Rescue, when a quorum of the newest configuration is gone for good (rescue.c):
 *  R1. An admin says so, names the masters that are gone, and makes sure that they do not
 *      answer anybody from then on.
 *  R2. Every other member of all configurations gets a closed version, one without members
 *      (close_steps).  Reason: if the lost are a quorum of L2 alone, and the joint version was
 *      not written yet, a quorum of L1 still grants leases.
 *  R3. When all of them have it, max_ttl passes.
 *  R4. Then the new configuration is founded, with a greater version.  Both versions are greater
 *      than any that a lost master, or a client, may know (number_of).
 *  R5. A lost master that comes back shows an old version.  So its votes do not count for a
 *      client that knows a newer one.  Nothing protects a client that does not, once so many
 *      have come back untold that they are a quorum of their version.
 *
 * Left out, because it can only forbid something: answers that get lost, and keys of tokens that
 * are dead.  A release deletes a key everywhere at once, which permits the most.  Time goes in
 * whole ticks; all clocks agree.  Not in the model: drift, clock steps, different max_ttl,
 * durable masters, queues, readers, permits, adopted leases, liveness.
 */
#ifndef REDLOCK_TEST_MODELS_MEMBERS_H
#define REDLOCK_TEST_MODELS_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "models/check.h"

enum { MASTERS_MAX = 6, CLIENTS_MAX = 3, ADMINS_MAX = 2, LISTS_MAX = 5, TTL_MAX = 3 };
enum { BALLOTS_MAX = 4 };

/* Versions.  Version 1 is the first list. */
enum { CHOSEN_MAX = 5, CLOSED = 6, RESCUED = 7, VERSIONS_LEN = 8 };

typedef unsigned set; /* Of masters: bit m for master m. */

struct master {
    unsigned memory : 1; /* It has an epoch.  0: it is warming. */
    unsigned watch : 2;  /* Ticks for which it must still be watched. */
    unsigned version : 3;
    unsigned ballot : 3; /* The greatest ballot promised for the next version. */
    unsigned accepted_ballot : 3;
    unsigned accepted : 1; /* The value accepted in that ballot. */
    unsigned owner : 2;    /* 1 + the client whose key it stores, or 0. */
    unsigned left : 2;     /* Ticks for which the key lives, at least. */
    unsigned told : 6;     /* While warming: the masters that have told what they know. */
};

struct client {
    unsigned version : 3;
    unsigned asking : 1; /* A round or an extension is under way. */
    unsigned age : 2;    /* Ticks since its first request. */
    unsigned left : 2;   /* Ticks for which the lease is held, or 0. */
    unsigned stored : 6; /* Masters that set the key, and gave no proof yet. */
    unsigned good : 6;   /* Masters whose votes count. */
    unsigned known : 6;  /* BUG_EARLY_PROOF: masters that gave a proof at some time. */
};

enum phase { IDLE, SEEING, WAITING, PREPARING, ACCEPTING };

/* One that changes the set.  It knows what is chosen and may lag behind: it works on any version.
 */
struct admin {
    unsigned version : 3; /* It works on what comes next. */
    unsigned phase : 3;
    unsigned seen : 6; /* Masters that answered in this phase. */
    unsigned ballot : 3;
    unsigned found_ballot : 3; /* The greatest accepted ballot that a promise told, or 0. */
    unsigned found : 1;        /* Its value. */
    unsigned value : 1;        /* What it proposed. */
    unsigned wait : 2;         /* Ticks that M5 still takes. */
    unsigned age : 2;          /* Ticks since the first prepare. */
    unsigned ready : 1;        /* M5 is done. */
    unsigned spoilt : 1;       /* A master that was seen lost its data: M5 (3) will fail. */
};

enum rescue { NO_RESCUE, LOST, CLOSING_WAIT, FOUNDED };

/* What no single process knows. */
struct history {
    uint32_t proposed;      /* 2 bits for each version and ballot: 1 + the value proposed. */
    unsigned chosen : 8;    /* 2 bits for each version: 1 + the value chosen. */
    unsigned drawn : 16;    /* Ballots that were used, of all versions. */
    unsigned forgotten : 3; /* How often a master lost its data. */
    unsigned rescue : 2;    /* enum rescue. */
    unsigned wait : 2;      /* Ticks that R3 still takes. */
    unsigned : 0;
    unsigned lost : 6;      /* Masters that do not answer. */
    unsigned returned : 3;  /* How many of them came back. */
    unsigned closed_as : 5; /* The number of version CLOSED, see number_of(). */
};

struct world {
    struct history history;
    struct admin admins[ADMINS_MAX];
    struct master masters[MASTERS_MAX];
    struct client clients[CLIENTS_MAX];
};

/* How large the world is, and what may happen in it. */
struct bounds {
    unsigned lists_len;
    set lists[LISTS_MAX]; /* A configuration of list i may be followed by one of list i+1. */
    unsigned clients, admins, ttl;
    unsigned versions; /* The greatest version. */
    unsigned ballots;  /* For each version. */
    unsigned paxos;    /* 0: a version is chosen in one step. */
    unsigned choices;  /* 2: list i may also be followed by list i+2. */
    unsigned give_up;  /* A joint configuration may go back. */
    unsigned forgets, forgets_at_once;
    unsigned chosen;   /* 2: version 2 is chosen and accepted at the start, and written nowhere. */
    unsigned split;    /* 0: the proof is read in the same step as the key is set. */
    unsigned laggards; /* 1: a vote at a smaller version than the client's counts, too. */
    unsigned keep;     /* 1: votes are kept when a version is taken over. */
    unsigned numbers;  /* Fencing: the greatest number. */
    unsigned rivals;   /* Fencing: others count up to this number. */
    unsigned again;    /* Fencing: 1: a client has any number of rounds. */
    unsigned overlap;  /* Fencing: 0: the second round begins when the first has its token. */
    unsigned kills;    /* Fencing: 1: the admin may be killed. */
    unsigned clock_steps; /* Fencing: 1: the clocks of masters are stepped. */
    set lose;             /* Rescue: the masters that are lost. */
    set rescue_list;      /* The list that is founded. */
    unsigned returns;     /* How many of the lost may come back. */
    unsigned masters;     /* Derived: 1 + the greatest master in any list. */
};
extern struct bounds bounds;

/* Bugs that can be planted: each leaves out one rule, of this file or of fencing.h. */
enum bug {
    NO_BUG,
    /* Locks. */
    BUG_NO_PROOF,
    BUG_NO_VERSION,
    BUG_EARLY_PROOF,
    BUG_ONE_QUORUM,
    BUG_NO_JOINT,
    BUG_LATE_DEADLINE,
    BUG_OLD_EXTENSION,
    BUG_UNPROVED_KEY,
    BUG_NO_WAIT,
    BUG_EARLY_WAIT,
    BUG_WRONG_LIST,
    BUG_NO_SECOND_LOOK,
    BUG_NO_WATCH,
    BUG_WRITE_BACK,
    /* Decrees. */
    BUG_ONE_QUORUM_CHOOSES,
    BUG_NO_PREPARE,
    BUG_EQUAL_BALLOTS,
    BUG_NO_BALLOT_LIMIT,
    BUG_FEW_TELL,
    BUG_BALLOTS_LOST,
    BUG_WARMING_TELLS,
    /* Rescue. */
    BUG_RESCUE_NO_CLOSE,
    BUG_RESCUE_NO_WAIT,
    BUG_RESCUE_NEXT_VERSION,
    BUG_RESCUE_STALE,
    BUG_NO_PROMISE, /* None: what cannot be promised. */
    /* Fencing. */
    BUG_NO_RAISE,
    BUG_RAISE_EARLY,
    BUG_RAISE_FEW,
    BUG_RAISE_EVEN,
    BUG_READ_FEW,
    BUG_READ_UNSEEN,
    BUG_TOKEN_ONE_QUORUM,
    BUG_TOKEN_NO_VERSION,
    BUG_NUMBERS_KEPT,
    BUG_FLOOR_FEW,
    BUGS_LEN,
};

struct configuration {
    set from, to; /* Equal if it is simple. */
};

/* world.c */
void world_read(const struct world *world); /* Before any of the others. */
struct configuration configuration_of(unsigned version);
unsigned newest_version(void);
bool is_joint(unsigned version);
set members_of(unsigned version);
unsigned next_list(unsigned version, unsigned value); /* LISTS_MAX: there is none. */
unsigned list_of(unsigned version);
bool is_majority(set list, set of);
bool is_quorum(unsigned version, set votes);          /* M2. */
bool is_choosing_quorum(unsigned version, set votes); /* M3. */
unsigned number_of(const struct world *world, unsigned version);
bool answers(const struct world *world, unsigned master);
const char *find_revival(const struct world *world);
void world_begin(void *world);
void world_rename(void *world);
uint32_t world_words_used(void);
static inline set bit_of(unsigned master)
{
    return 1u << master;
}

/* Steps out of a world: each function takes those of one actor. */
void world_steps(const void *world);
void client_steps(const struct world *world, unsigned client);
void client_end(struct world *world, unsigned client);
void admin_steps(const struct world *world, unsigned admin);
void admin_end(struct admin *admin, bool keeps_ready);
void accept_steps(const struct world *world, unsigned master);
void master_steps(const struct world *world, unsigned master);
void rescue_steps(const struct world *world);

/* telling.c */
void world_tell(const void *before, const void *after, struct move move);

extern const char two_hold[], two_chosen[], revived[];

#endif
