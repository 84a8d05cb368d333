/*
 * sim.h - the simulator, a whole world in one thread: clients, masters, networks, clocks.
 *
 * The clients are the real library but for two files: process.c implements loop.h in virtual time,
 * and transport.c implements transport.h.  The network is made up (net.h), and so are the servers
 * (server.h), which speak RESP.  One 64-bit seed decides everything, and a run of a seed is the
 * same every time.
 *
 * *True time* is a clock that no client or server can read.  It orders the events, and the oracle
 * judges by it.  Every client and every server has a clock of its own, with an origin and a rate
 * of its own.  True time is the slowest that such a clock may be.  That is no loss of generality,
 * since only the ratio of two rates means anything.
 *
 * This header has what all parts need: limits, time, chance, memory, and the record of what
 * happens.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"

#define SIM_CROWD 50        /* Waiters of one name, in the runs that are about them. */
#define SIM_PROCESSES_MAX 5 /* In the other runs. */
#define SIM_OPERATORS_MAX 2 /* Processes that change the set of masters. */
#define SIM_ALL_MAX (SIM_CROWD + SIM_OPERATORS_MAX)
#define SIM_SERVERS_MAX 7
#define SIM_RESOURCES_MAX 3
#define SIM_SETS (1u << SIM_RESOURCES_MAX) /* Sets of resources, as masks. */
#define SIM_LINES (2 * SIM_SETS)           /* Groups of waiters: by set, readers apart. */
#define SIM_READERS_MAX 512                /* Readers of a key, even if their time is up. */
#define SIM_LEASES_MAX 5                   /* Leases that one process uses, without a crowd. */
#define SIM_TTLS_MAX 4                     /* Different ttls of one run. */
#define SIM_TRANSPORTS_MAX (2 * SIM_SERVERS_MAX) /* Links of a process, half of them listen. */
#define SIM_NEVER UINT64_MAX
#define SIM_US UINT64_C(1000)

typedef uint64_t sim_time; /* True time, ns.  Spans of it too. */

static inline uint64_t sim_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t sim_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

struct sim_clock {
    uint64_t origin; /* Its reading when the world began. */
    uint32_t fast_ppm;
    int64_t step; /* The sum of its steps since then. */
};

uint64_t clock_at(const struct sim_clock *clock, sim_time t);
/* The first true instant at which the clock shows reading or more; not before the world began. */
sim_time clock_when(const struct sim_clock *clock, uint64_t reading);

/* ---- Dice (dice.c): SplitMix64, the only source of chance ---- */

void dice_seed(uint64_t seed);
uint64_t dice_next(void);
/* 0 to n - 1. */
uint64_t dice_below(uint64_t n);
/* low to high, both included. */
uint64_t dice_range(uint64_t low, uint64_t high);
/* The same, with all orders of magnitude equally likely.  low > 0. */
uint64_t dice_magnitude(uint64_t low, uint64_t high);
/* True so many times in a thousand. */
bool dice_chance(unsigned permille);

/* ---- Memory (memory.c) ---- */

/* Zeroed memory for the simulator itself.  memory_reset() frees it, and lets all allocations of the
 * library succeed (test/lib/heap.h). */
void *memory_take(size_t size);
void memory_reset(void);

/* ---- Faults, each counted when it hits ---- */

#define SIM_FAULTS(X)                                                             \
    X(SLOW, "message slower than the reply timeout")                              \
    X(RESET_BEFORE, "connection reset before its commands arrived")               \
    X(RESET_AFTER, "connection reset after its commands were executed")           \
    X(RESET_MIDDLE, "connection reset when some commands were executed")          \
    X(SILENCE, "executed command whose answer never came")                        \
    X(CUT, "client and master cut off from each other for a while")               \
    X(HANG, "commands that waited in a hung master")                              \
    X(LATE_OLD, "command of an old connection executed after a new one was made") \
    X(CRASH, "master crashed, and came back with its data")                       \
    X(CRASH_EMPTY, "master crashed, and came back without its data")              \
    X(FLUSHALL, "FLUSHALL that deleted a key")                                    \
    X(AMNESIA, "master that lost its data, found by its marker")                  \
    X(EPOCH, "lock refused because the epoch was lost")                           \
    X(OLD_COUNTERS, "counters that went back in a crash")                         \
    X(RAISED, "counters that differed")                                           \
    X(SCRIPT_FLUSH, "script that the master did not have any more")               \
    X(REFUSED, "connection refused")                                              \
    X(CONNECT_TIMEOUT, "timeout while connecting")                                \
    X(GREETING_TIMEOUT, "connected, but not greeted in time")                     \
    X(MUTE, "link given up because it was silent")                                \
    X(OOM, "-OOM")                                                                \
    X(MISCONF, "-MISCONF")                                                        \
    X(READONLY, "-READONLY")                                                      \
    X(LOADING, "-LOADING")                                                        \
    X(OLD_STYLE, "an error in a script, in the words of redis 6")                 \
    X(PAUSE, "process stopped, its answers and timers late")                      \
    X(STALL, "process stopped in the middle of its work")                         \
    X(EARLY_WAKE, "loop that woke too early")                                     \
    X(QUEUE_FULL, "link that took no more commands")                              \
    X(WINDOW_FULL, "socket that took no more bytes")                              \
    X(CUT_READ, "read that ended in the middle of an answer")                     \
    X(CUT_WRITE, "write that ended in the middle of a command")                   \
    X(WRITE_FAILS, "write that failed")                                           \
    X(WRITE_AFTER_RESET, "write after a reset that was not read yet")             \
    X(DRIFT, "clocks as far apart as the bound allows")                           \
    X(FOREIGN, "key that belongs to no client")                                   \
    X(WRONG_TYPE, "key that is not a string")                                     \
    X(CLOSE, "client closed with leases")                                         \
    X(CLOSE_IN_CALLBACK, "client closed in a callback")                           \
    X(NO_MEMORY, "allocation that failed")                                        \
    X(WAKE_LOST, "message to a waiter that was lost")                             \
    X(WAKE_TWICE, "message to a waiter that came twice")                          \
    X(ADOPTED, "lease handed to another client")                                  \
    X(ADOPTED_STALE, "token adopted of a lease that was over")                    \
    X(MISUSE, "call that is not allowed")                                         \
    X(STEP, "wall clock of a master stepped")                                     \
    X(COPY, "master that came back on a copy of another's data")                  \
    X(REVOKED, "lock that an operator revoked on a master")                       \
    X(REVOKE_HEARD, "extension of a lock that was revoked")                       \
    X(PARTNER, "token adopted of a lease that another client has")                \
    X(STEP_SEEN, "turn with a master that did not count since its clock was stepped")

#define SIM_FAULT_NAME(name, text) FAULT_##name,
enum fault { SIM_FAULTS(SIM_FAULT_NAME) FAULT_LEN };

/* Outcomes of operations.  A long series of runs must see all of them. */
#define SIM_OUTCOMES(X)                                                       \
    X(LOCK_OK, "lock: OK")                                                    \
    X(LOCK_CONTENDED, "lock: CONTENDED")                                      \
    X(LOCK_UNREACHABLE, "lock: UNREACHABLE")                                  \
    X(LOCK_TOO_LATE, "lock: TOO_LATE")                                        \
    X(LOCK_NOT_READY, "lock: NOT_READY")                                      \
    X(LOCK_WRONG_SET, "lock: E_WRONG_SET")                                    \
    X(EXTEND_OK, "extend: OK")                                                \
    X(EXTEND_UNREACHABLE, "extend: UNREACHABLE")                              \
    X(EXTEND_TOO_LATE, "extend: TOO_LATE")                                    \
    X(EXTEND_LOST, "extend: LOST")                                            \
    X(EXTEND_NOT_READY, "extend: NOT_READY")                                  \
    X(UNLOCK_OK, "unlock: OK")                                                \
    X(UNLOCK_UNREACHABLE, "unlock: UNREACHABLE")                              \
    X(UNLOCK_LOST, "unlock: LOST")                                            \
    X(CANCELLED, "operation cancelled")                                       \
    X(DETACHED, "lease detached")                                             \
    X(LOST_TOLD, "lost notice")                                               \
    X(RENEWED, "lease renewed")                                               \
    X(PARTNERS, "lease that two clients hold by one token")                   \
    X(LATE_YES, "grant that came too late")                                   \
    X(HEALTHY, "operation in good health")                                    \
    X(TOLD_FREE, "release that was announced to waiters")                     \
    X(TOLD_HELD, "holder that was announced to waiters")                      \
    X(TOLD_TAKEN, "holder that announced itself")                             \
    X(AWAKE, "lock that was free in good health, and soon taken by a waiter") \
    X(MANY_OK, "lock of several resources: OK")                               \
    X(MANY_TAKEN, "lock of several resources, one of which was taken")        \
    X(MANY_FENCED, "lock of several resources with a fencing token")          \
    X(PERMIT_OK, "permit: OK")                                                \
    X(PERMIT_ELSEWHERE, "permit that was taken while another was free")       \
    X(PERMITS_GONE, "permit that was taken like all others")                  \
    X(PERMIT_FENCED, "permit with a fencing token")                           \
    X(DETOUR, "round that began at once, for another permit")                 \
    X(FAIR_OK, "fair lock: OK")                                               \
    X(FAIR_WAITS, "fair lock that has to wait")                               \
    X(PASSED, "fair lock passed on to the next waiter by a release")          \
    X(IN_ORDER, "fair lock granted while a later waiter waits")               \
    X(FAIR_FENCED, "fair lock with a fencing token")                          \
    X(CALLED, "fair lock whose turn was announced in good health")            \
    X(SHARED, "reader beside another one")                                    \
    X(HELD_OFF, "reader that was held off for a waiting writer")              \
    X(NUMBER_TOLD, "fencing number that a revocation told")                   \
    X(WITNESSED, "master installed by what witnesses said")                   \
    X(SET_FOUNDED, "master that a client made a member of a set")             \
    X(SET_TOLD, "master in no set that was told its set")                     \
    X(SET_HELPED, "member that was away, and got the newest version")         \
    X(SET_CLAIMED, "founding that met the claim of another list")             \
    X(SET_REFUSED, "list that is not that of the set")                        \
    X(SET_CHANGED, "set that was changed")                                    \
    X(CHANGE_DONE, "operator that changed the set")                           \
    X(CHANGE_OVERTAKEN, "operator that another overtook")                     \
    X(CHANGE_DIED, "operator that died while it changed the set")             \
    X(CHANGE_FORGOT, "member that lost its data while the set changed")

#define SIM_OUTCOME_NAME(name, text) OUTCOME_##name,
enum outcome { SIM_OUTCOMES(SIM_OUTCOME_NAME) OUTCOME_LEN };

extern const char *const fault_texts[FAULT_LEN], *const outcome_texts[OUTCOME_LEN];

/* Sums over all runs. */
struct tally {
    uint64_t events, seeds;
    uint64_t faults[FAULT_LEN];
    uint64_t outcomes[OUTCOME_LEN];
    uint64_t grants, checks;
};
extern struct tally tally;

/* ---- The record of what happens (world.c) ---- */

/* Count a fault, or an outcome. */
void world_fault(enum fault fault);
void world_outcome(enum outcome outcome);
/* Note an event in the hash of the run, and in the trace if there is one. */
void world_note(const char *what, uint64_t a, uint64_t b, uint64_t c);
void world_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print that the run has failed, and exit. */
_Noreturn void world_fail(const char *property, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* SIM_SIM_H */
