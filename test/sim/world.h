/*
 * world.h - the one world that there is at a time: its plan, its events, its phases.
 *
 * It is global: a run that had two worlds could not be told from one whose seed leaks into the
 * next.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "process.h"
#include "server.h"
#include "redlock/core/quorum.h"

/* ---- The plan of one run (plan.c), drawn before anything happens ---- */

struct plan {
    unsigned processes, servers, resources;
    uint32_t drift_ppm, drift_fixed_ms, reply_timeout_ms, connect_timeout_ms;
    struct drift_bound allowance;
    uint32_t ttl_min_ms; /* The shortest that is legal. */
    uint32_t ttls_ms[SIM_TTLS_MAX], ttl_max_ms;
    uint32_t wait_max_ms, retry_max_ms;
    sim_time hop;   /* A message takes one to two of these, or far longer. */
    sim_time quick; /* What takes longer may make an operation fail. */
    unsigned slow_permille;
    bool enabled[FAULT_LEN];
    bool guarded;           /* All clients use the restart guard: */
    bool seasoned;          /* the masters have been there for long, */
    unsigned fenced;        /* so many of 16 locks draw a fencing token, */
    bool one_counter;       /* and all resources have the same counter; */
    unsigned floors;        /* how far apart the counters of seasoned masters are, */
    bool near_high;         /* and whether they soon come to their high-water marks; */
    quorum_mask keep;       /* and these keep all that they are told; */
    unsigned modest;        /* these processes ask for no long leases. */
    bool reentrant;         /* Some leases are locked again by their owners. */
    unsigned many;          /* So many of 16 locks are of several resources; */
    unsigned shared;        /* and of the others so many are shared. */
    bool permits;           /* All locks are of one semaphore: its slots are the resources. */
    unsigned fair;          /* So many of 16 others are fair. */
    bool lasting;           /* Leases are long, and little happens: what a guard is for. */
    bool exclusive;         /* Mutual exclusion is promised. */
    quorum_mask may_forget; /* Masters that may lose their keys; see plan.c. */
    quorum_mask may_step;   /* Masters whose clocks may be stepped; likewise. */
    quorum_mask may_copy;   /* Masters that may come back on the data of another; likewise. */
    enum redlock_clock_guard clock_guard;
    bool dips;          /* Clocks are put back for a moment only, and never forward. */
    sim_time calm_max;  /* Longest time between two faults. */
    sim_time think_max; /* Longest time between two calls of a program. */
    uint32_t asks_max;  /* A link with so many unanswered commands is full. */
    size_t window;      /* Bytes that a socket takes. */
    uint64_t events;    /* Faults stop after so many, */
    sim_time ends_at;   /* and then at the latest. */
};

/* A wall clock is never further off what it would show without steps, so that with its
 * rate it is not far off the others either (drift/node.h). */
#define PLAN_STEP_MAX (1000 * DRIFT_MS)

/* So many commands and bytes are never waiting in a run. */
#define PLAN_ASKS_MAX 32768
#define PLAN_WINDOW (1u << 20)

void plan_draw(void);
/* For how long a client may rely on such a lease. */
drift_span plan_validity(uint32_t ttl_ms);

/* ---- The world (world.c) ---- */

enum event_type {
    EVENT_TURN,
    EVENT_TO_SERVER,
    EVENT_TO_CLIENT,
    EVENT_FAULT,
    EVENT_MEND,
    EVENT_GIVE_UP,
    EVENT_PHASE
};

enum phase { PHASE_CHAOS, PHASE_HEAL, PHASE_PROBE, PHASE_QUIET, PHASE_OVER };

struct world {
    uint64_t seed;
    bool verbose;
    sim_time now, began;
    enum phase phase;
    struct plan plan;
    struct ev_loop processes[SIM_PROCESSES_MAX];
    struct server servers[SIM_SERVERS_MAX];
    uint64_t hash;   /* Of everything that happened. */
    uint64_t events; /* Of this run. */
};
extern struct world world;

/* Empty, at a random instant. */
void world_begin(uint64_t seed, bool verbose);
void world_post(sim_time at, enum event_type type, void *what, uint64_t tag);
/* Take the next event; false: there is none. */
struct event {
    sim_time at;
    uint64_t number; /* Breaks ties. */
    enum event_type type;
    void *what;
    uint64_t tag;
};
bool world_next(struct event *ret_event);

/* ---- One run (run.c) ---- */

/* Returns the hash of all that happened. */
uint64_t run_seed(uint64_t seed, bool verbose);
/* Longest pause between two tries of the probe. */
uint32_t run_probe_retry_ms(void);
/* A program got the lock that it was to get in the end. */
void run_on_probe(void);

/* ---- Faults (nemesis.c) ---- */

void nemesis_begin(void);
void nemesis_strike(void);
void nemesis_mend(void *what, uint64_t tag);
void nemesis_end(void);

#endif /* SIM_WORLD_H */
