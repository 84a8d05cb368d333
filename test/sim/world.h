/*
 * world.h - the world of a run: its plan, its events, its phases.
 *
 * There is one world at a time, in a global variable.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "process.h"
#include "server.h"
#include "redlock/core/quorum.h"

/* ---- The plan of one run (plan.c), drawn before anything happens ---- */

/* A list of masters: consecutive servers.  Number m of its clients is server first + m. */
struct list {
    unsigned first, len;
};

/* The lists of a configuration, as masks of servers.  Equal: it is simple. */
struct lists {
    unsigned from, to;
};

struct plan {
    unsigned processes, servers, resources;
    unsigned leases;    /* That one process uses at a time. */
    bool is_crowd;      /* Most leases wait for long, for one name. */
    unsigned operators; /* Processes that change the set of masters, behind the others. */
    uint32_t drift_ppm, drift_fixed_ms, reply_timeout_ms, connect_timeout_ms;
    struct drift_bound allowance;
    uint32_t ttl_min_ms; /* The shortest legal ttl. */
    uint32_t ttls_ms[SIM_TTLS_MAX], ttl_max_ms;
    uint32_t wait_max_ms, retry_max_ms;
    sim_time hop;   /* A message takes one to two of these, or far longer. */
    sim_time quick; /* A longer delay may make an operation fail. */
    unsigned slow_permille;
    bool enabled[FAULT_LEN];
    bool guarded;           /* All clients use the restart guard. */
    bool seasoned;          /* The masters have an epoch when the run begins. */
    bool founded;           /* And they are a set: that of the first list. */
    struct list lists[2];   /* The first is that of all clients, or of half of them. */
    bool two_lists;         /* The second is that of the others.  Some masters are in both. */
    unsigned fenced;        /* So many of 16 locks draw a fencing token. */
    bool one_counter;       /* All resources share one fencing counter. */
    unsigned floors;        /* Which difference the counters of seasoned masters begin with. */
    bool near_high;         /* Counters soon reach their high-water marks. */
    quorum_mask keep;       /* Masters that keep all their data in a crash. */
    unsigned modest;        /* Processes that ask only for short leases, as a mask. */
    bool reentrant;         /* Owners lock some leases again. */
    unsigned many;          /* So many of 16 locks are for several resources. */
    unsigned shared;        /* So many of 16 locks of one resource are shared. */
    bool permits;           /* All locks are of one semaphore: its slots are the resources. */
    unsigned fair;          /* So many of 16 other locks are fair. */
    bool lasting;           /* Leases are long, and little happens: work for a guard. */
    bool exclusive;         /* Mutual exclusion is promised. */
    quorum_mask may_forget; /* Masters that may lose their keys; see plan.c. */
    quorum_mask may_step;   /* Masters whose clocks may be stepped; see plan.c. */
    drift_span clock_gap;   /* The gap of the clock guard: see drift/node.h. */
    quorum_mask may_copy;   /* Masters that may come back on another's data; see plan.c. */
    enum redlock_clock_guard clock_guard;
    quorum_mask far;       /* Masters whose clocks are always far from those of the others. */
    bool dips;             /* Clocks are set back for a moment only, and are never put forward. */
    sim_time calm_max;     /* Half of the longest time between two faults. */
    sim_time think_max;    /* Longest time between two calls of a program. */
    uint32_t asks_max;     /* A link with so many unanswered commands is full. */
    size_t window;         /* Bytes that a socket takes. */
    unsigned cut_permille; /* So many reads and writes of 1000 end anywhere. */
    bool tls;              /* All connections have TLS. */
    quorum_mask tls_old;   /* Servers that speak TLS 1.2. */
    uint64_t events;       /* Faults stop after so many events. */
    sim_time ends_at;      /* Faults stop then at the latest. */
};

/* Steps never add up to more than this, so that all wall clocks stay near each other
 * (drift/node.h). */
#define PLAN_STEP_MAX (1000 * DRIFT_MS)

/* How far the clocks of some masters are ahead: in no run do rates make up for it.  Chosen. */
#define PLAN_FAR (60 * DRIFT_S)

/* Chosen: so many commands and bytes never wait in a run. */
#define PLAN_ASKS_MAX 32768
#define PLAN_WINDOW (1u << 20)

void plan_draw(void);
/* The validity of a lease with this ttl. */
drift_span plan_validity(uint32_t ttl_ms);

/* ---- The world (world.c) ---- */

/* What the runs of a seed are about: see plan.c.  It is in the first byte of the seed. */
enum theme {
    THEME_ANY,
    THEME_CLOCKS,
    THEME_RESTARTS,
    THEME_STARTS,
    THEME_LINES,
    THEME_SETS,
    THEME_MOVES,
    THEME_CROWDS,
    THEME_TLS,
    THEME_LOSSES,
    THEME_PARTNERS,
    THEME_REVOKES,
    THEME_LEN
};
#define WORLD_SEED_BITS 56
enum theme world_theme(uint64_t seed);
/* "12", or "clocks:12".  The text is valid until the next call. */
const char *world_seed_text(uint64_t seed);
/* Returns false if the text is no seed. */
bool world_parse_seed(const char *text, uint64_t *ret_seed);

enum event_type {
    EVENT_TURN,
    EVENT_TO_SERVER,
    EVENT_TO_CLIENT,
    EVENT_FAULT,
    EVENT_REVOKE,
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
    struct ev_loop processes[SIM_ALL_MAX]; /* First the clients', then operators. */
    struct server servers[SIM_SERVERS_MAX];
    uint64_t hash;       /* A hash of all events noted. */
    uint64_t events;     /* The number of events so far. */
    bool was_founded[2]; /* So was the set of each list, now or before. */
    struct text *texts;  /* Configurations, lists and names of masters (sets.c). */
};
extern struct world world;

static inline unsigned world_all_processes(void)
{
    return world.plan.processes + world.plan.operators;
}

/* Begin an empty world at a random instant. */
void world_begin(uint64_t seed, bool verbose);
void world_post(sim_time at, enum event_type type, void *what, uint64_t tag);
/* Take the next event.  Returns false if there is none. */
struct event {
    sim_time at;
    uint64_t number; /* Breaks ties. */
    enum event_type type;
    void *what;
    uint64_t tag;
};
bool world_next(struct event *ret_event);

/* ---- One run (run.c) ---- */

/* Run a seed.  Returns the hash of all events noted. */
uint64_t run_seed(uint64_t seed, bool verbose);
/* Longest pause between two rounds of a probe. */
uint32_t run_probe_retry_ms(void);
/* The client of a probe can be expected to get a lock. */
bool run_expects(const struct ev_loop *process);
/* A probe got its lock; an operator is done. */
void run_on_probe(void);
void run_on_operator(void);

/* ---- Sets of masters (sets.c) ---- */

/* The text of a list, and the name of a server: its place. */
const char *sets_list(const struct list *list);
uint64_t sets_number(const struct list *list); /* Of its set. */
const char *sets_name(unsigned server);
/* Make a server a member of the first list's set. */
void sets_join(struct server *server);
/* A master became a member. */
void sets_on_member(void);
/* Most masters of the list are members of its set. */
bool sets_are_founded(const struct list *list);
/* They were, at some time.  A client without leases does not notice that they forgot. */
bool sets_were_founded(const struct list *list);

/* ---- Sets that change (moves.c), and who changes them (operators.c) ---- */

void moves_begin(void);
/* A server stores something that clients do not know yet. */
void moves_on_news(void);
/* A server stores another version. */
void moves_on_version(const struct server *server);
/* The greatest version that any server has stored. */
uint64_t moves_newest(void);
/* The lists of a version that a server has stored. */
struct lists moves_lists(uint64_t version);
struct lists moves_parse(const char *text, uint64_t version);
bool moves_are_quorum(const struct lists *lists, unsigned servers);
/* The server may lose its data now: enough others remember the set for it to come back.  While a
 * change is under way, they are all others, as each may be a member of the next version. */
bool moves_may_forget(const struct server *server);
/* The server is about to forget. */
void moves_on_loss(const struct server *server);
bool moves_remembers(const struct server *server);

/* What is chosen, and since when servers store it (stored.c). */
#define MOVES_VERSIONS_MAX 256 /* Of one run.  Chosen: a change has two. */
void stored_begin(void);
/* A server stores a version, or has an epoch again; it is about to forget. */
void stored_on_version(const struct server *server);
void stored_on_loss(const struct server *server);
/* An operator knows a version. */
void stored_on_choice(uint64_t version, struct lists lists);
/* Servers that have stored it for as long as the longest lease lasts. */
unsigned stored_for_long(uint64_t version, sim_time now);
/* The server has got an epoch from a client that knows this version. */
void stored_on_epoch(const struct server *server, uint64_t version);
/* It ends a joint one.  waited: those servers, when it began to look at the members again. */
void stored_on_end(uint64_t version, struct lists lists, unsigned waited);

/* Clients try to get locks; the turn of one is over. */
void moves_on_probe(void);
/* The members whose clocks are near each other and outvote the others, if there are as many; these
 * can decide. */
unsigned moves_agreeing(void);
bool moves_clocks_decide(void);
void moves_on_turn(const struct ev_loop *process);
void moves_on_held(const struct lease_rec *rec);

void operators_begin(void);
/* Some begin although the faults are over; one of them is not done. */
void operators_on_probe(void);
bool operators_are_busy(void);
/* It proposes a configuration. */
bool operators_is_accepting(const struct ev_loop *process);
/* The process is due; its turn is nearly over. */
void operators_act(struct ev_loop *process);
void operators_on_turn(struct ev_loop *process);
void operators_end(void);

/* ---- Faults (nemesis.c) ---- */

void nemesis_begin(void);
void nemesis_strike(void);
void nemesis_mend(void *what, uint64_t tag);
void nemesis_end(void);
/* A server accepted a configuration; an operator waits for leases, and saw these servers.  In
 * THEME_LOSSES a server may soon forget that. */
void nemesis_on_accept(struct server *server);
void nemesis_on_wait(struct ev_loop *process, unsigned seen);

/* ---- Operators that revoke locks (revokes.c) ---- */

void revokes_reset(void);
/* An operator begins to revoke a lock.  Its next step, or what it sent arrives at a server. */
void revokes_begin(const struct server *first, unsigned resource);
void revokes_on_event(void *what, uint64_t number);

#endif /* SIM_WORLD_H */
