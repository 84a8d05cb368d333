/*
 * sim.h - a whole world in one thread: clients, masters, networks, clocks.
 *
 * The clients are the real library but for two files: process.c implements loop.h in
 * virtual time, and transport.c implements transport.h.  The network is made up (net.c),
 * and so are the servers (server.c, store.c), which speak RESP (resp.c).  One 64-bit seed
 * decides everything, and a run of a seed is the same every time.
 *
 * *True time* is a clock that nobody in the world can read: what it shows is
 * for the oracle and for the order of events.  Every client and every server
 * has a clock of its own, with an origin and a rate of its own; true time is
 * the slowest that such a clock may be, which is no loss of generality, since
 * only the ratio of two rates means anything.
 *
 * There is one world at a time, and it is global: a run that had two could
 * not be told from one whose seed leaks into the next.
 */
#ifndef TEST_SIM_H
#define TEST_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/masters/peers.h"
#include "redlock/core/quorum.h"
#include "redlock/redlock.h"
#include "redlock/wire/keys.h"
#include "redlock/wire/reply.h"
#include "redlock/wire/script.h"

struct answer;
struct ask;
struct command;
struct conn;
struct link;
struct loop;
struct message;
struct transport;

#define SIM_PROCESSES_MAX 5
#define SIM_SERVERS_MAX 7
#define SIM_RESOURCES_MAX 3
#define SIM_SETS (1u << SIM_RESOURCES_MAX)       /* Of resources, as masks. */
#define SIM_LINES (2 * SIM_SETS)                 /* Those who wait for one, and to read. */
#define SIM_READERS_MAX 256                      /* Of one key, those included whose time is up. */
#define SIM_LEASES_MAX 5                         /* That one process works with at a time. */
#define SIM_TTLS_MAX 4                           /* Different leases asked for in one run. */
#define SIM_TRANSPORTS_MAX (2 * SIM_SERVERS_MAX) /* Of one process: to ask by, and to listen. */
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
    uint64_t origin; /* What it showed when the world began. */
    uint32_t fast_ppm;
    int64_t step; /* By how much it was stepped since. */
};

uint64_t clock_at(const struct sim_clock *clock, sim_time t);
/* The first true instant at which it shows at least reading; never before the world began. */
sim_time clock_when(const struct sim_clock *clock, uint64_t reading);

/* ---- Dice (dice.c): SplitMix64, the only source of chance ---- */

void dice_seed(uint64_t seed);
uint64_t dice_next(void);
/* 0 to n - 1. */
uint64_t dice_below(uint64_t n);
/* low to high, both included. */
uint64_t dice_range(uint64_t low, uint64_t high);
/* The same, but all magnitudes are equally likely.  low > 0. */
uint64_t dice_magnitude(uint64_t low, uint64_t high);
/* True so many times in a thousand. */
bool dice_chance(unsigned permille);

/* ---- Memory (memory.c) ---- */

/* For the simulator's own things: zeroed, gone at the next memory_reset(). */
void *memory_take(size_t size);
void memory_reset(void);
/* For the library's, by way of the linker's --wrap: blocks not freed yet. */
long memory_blocks(void);
/* Fail the library's next allocation but so many; or none at all. */
void memory_fail_after(unsigned successes);
void memory_fail_never(void);
bool memory_has_failed(void);

/* ---- What can go wrong, each counted when it did ---- */

#define SIM_FAULTS(X)                                                             \
    X(SLOW, "message slower than the reply timeout")                              \
    X(RESET_BEFORE, "connection reset before its commands arrived")               \
    X(RESET_AFTER, "connection reset after they were executed")                   \
    X(RESET_MIDDLE, "connection reset when some of them were")                    \
    X(SILENCE, "executed, and the answer never came")                             \
    X(CUT, "client and master cut off from each other for a while")               \
    X(HANG, "commands that waited in a hung master")                              \
    X(LATE_OLD, "command of an old connection executed after a new one was made") \
    X(CRASH, "master crashed, and came back with its data")                       \
    X(CRASH_EMPTY, "master crashed, and came back without")                       \
    X(FLUSHALL, "FLUSHALL that deleted a key")                                    \
    X(AMNESIA, "memory that was lost, and found out by its marker")               \
    X(EPOCH, "lock refused for want of its epoch")                                \
    X(OLD_COUNTERS, "counters that went back, in a crash")                        \
    X(RAISED, "counters that were out of step")                                   \
    X(SCRIPT_FLUSH, "script that was gone when it was asked for")                 \
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
    X(WRITE_AFTER_RESET, "write after a reset that had not been read yet")        \
    X(DRIFT, "clocks as far apart as the bound allows")                           \
    X(FOREIGN, "key of a stranger")                                               \
    X(WRONG_TYPE, "key that is not a string")                                     \
    X(CLOSE, "client closed with leases")                                         \
    X(CLOSE_IN_CALLBACK, "client closed in a callback")                           \
    X(NO_MEMORY, "allocation that failed")                                        \
    X(WAKE_LOST, "message to those who wait that got lost")                       \
    X(WAKE_TWICE, "message to those who wait that came twice")                    \
    X(ADOPTED, "lease handed on to another client")                               \
    X(ADOPTED_STALE, "token adopted of a lease that was over")                    \
    X(MISUSE, "call that is not allowed")                                         \
    X(STEP, "wall clock of a master stepped")                                     \
    X(COPY, "master that came back on a copy of another's data")                  \
    X(STEP_SEEN, "turn with a master that did not count since its clock was stepped")

#define SIM_FAULT_NAME(name, text) FAULT_##name,
enum fault { SIM_FAULTS(SIM_FAULT_NAME) FAULT_LEN };

/* How operations ended: these too must all have been seen. */
#define SIM_OUTCOMES(X)                                                         \
    X(LOCK_OK, "lock: OK")                                                      \
    X(LOCK_CONTENDED, "lock: CONTENDED")                                        \
    X(LOCK_UNREACHABLE, "lock: UNREACHABLE")                                    \
    X(LOCK_TOO_LATE, "lock: TOO_LATE")                                          \
    X(EXTEND_OK, "extend: OK")                                                  \
    X(EXTEND_UNREACHABLE, "extend: UNREACHABLE")                                \
    X(EXTEND_TOO_LATE, "extend: TOO_LATE")                                      \
    X(EXTEND_LOST, "extend: LOST")                                              \
    X(UNLOCK_OK, "unlock: OK")                                                  \
    X(UNLOCK_UNREACHABLE, "unlock: UNREACHABLE")                                \
    X(UNLOCK_LOST, "unlock: LOST")                                              \
    X(CANCELLED, "operation cancelled")                                         \
    X(DETACHED, "lease detached")                                               \
    X(LOST_TOLD, "lost told")                                                   \
    X(RENEWED, "lease renewed")                                                 \
    X(LATE_YES, "grant that came too late")                                     \
    X(HEALTHY, "operation in good health, and judged by that")                  \
    X(TOLD_FREE, "release that those who wait were told of")                    \
    X(TOLD_HELD, "holder that those who wait were told of")                     \
    X(TOLD_TAKEN, "holder that told of himself")                                \
    X(AWAKE, "lock that was free in good health, and soon taken by who waited") \
    X(MANY_OK, "lock of several resources: OK")                                 \
    X(MANY_TAKEN, "lock of several resources, one of which was taken")          \
    X(PERMIT_OK, "permit: OK")                                                  \
    X(PERMIT_ELSEWHERE, "permit that was taken, when another was free")         \
    X(PERMITS_GONE, "permit that was taken, as all others were")                \
    X(DETOUR, "round that began at once, for another permit")                   \
    X(FAIR_OK, "fair lock: OK")                                                 \
    X(FAIR_WAITS, "fair lock that has to wait")                                 \
    X(IN_ORDER, "fair lock, for which somebody waits who came later")           \
    X(CALLED, "fair lock, whose turn was told in good health")                  \
    X(SHARED, "reader beside another one")                                      \
    X(HELD_OFF, "reader that was held off, since somebody waits to be alone")

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

/* It happened. */
void world_fault(enum fault fault);
void world_outcome(enum outcome outcome);
/* For the hash, and for a reader of the trace if there is one. */
void world_note(const char *what, uint64_t a, uint64_t b, uint64_t c);
void world_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The run has failed: say so, and exit. */
_Noreturn void world_fail(const char *property, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The process that a client lives in, and the loop that it runs on. */
struct ev_loop {
    unsigned number;
    struct sim_clock clock;
    uint32_t max_ttl_ms; /* Of its clients. */
    struct redlock *rl;  /* NULL: none open. */
    struct transport *transports[SIM_TRANSPORTS_MAX];
    unsigned client; /* Number of the client: raised at every open and close. */

    sim_time wake_at; /* When client_on_timer() is due. */
    sim_time act_at;  /* When its program does something. */
    sim_time turn_at; /* When the loop turns next; the event with turn_tag is for that. */
    uint64_t turn_tag;
    bool in_turn;
    bool observed;                 /* The oracle looks: reading the clock changes nothing. */
    sim_time ahead;                /* Time that has gone by within this turn. */
    sim_time stopped_until;        /* Paused; nothing is done before. */
    sim_time stopped_total;        /* Time not given to it, in all. */
    sim_time stopped_last;         /* End of the latest stop that matters. */
    sim_time sick_until;           /* Up to when anything was wrong, but for links that are down. */
    sim_time cut[SIM_SERVERS_MAX]; /* No byte gets through until then. */
    struct claim *claims;          /* That may be stored somewhere. */
    struct lease_rec *recs[SIM_LEASES_MAX];
    char handed[REDLOCK_TOKEN_MAX + 1]; /* A token for it to adopt; "": none. */
    unsigned handed_set;
    bool handed_shared;
    sim_time handed_at; /* When it comes. */
    bool handed_stale;
    struct sleep {
        unsigned heard;       /* Things told or seen that may make rounds begin early. */
        uint32_t rounds;      /* Of all that wait, summed up: */
        sim_time since;       /* none has begun since; SIM_NEVER: nobody waits. */
        drift_span longest;   /* Between two looks, if nothing is heard. */
        sim_time waits_since; /* Somebody is in line; SIM_NEVER: nobody. */
    } sleeps[SIM_LINES];      /* By what is waited for. */
    bool has_probed;          /* It has got the lock that it was to get in the end. */
    sim_time heard_at;        /* When something was told or seen last. */
    sim_time deaf_until;      /* Up to when something was wrong with what it is told. */
};

/* ---- Processes (process.c) ---- */

void process_init(struct ev_loop *process, unsigned number);
struct ev_loop *process_of_loop(const struct loop *loop);
/* Have the loop turn at this instant, or when it may. */
void process_poke(struct ev_loop *process, sim_time at);
void process_turn(struct ev_loop *process, uint64_t tag);
/* Stop it for so long, from now. */
void process_pause(struct ev_loop *process, sim_time span);
/* The true instant that it is at. */
sim_time process_now(const struct ev_loop *process);
uint64_t process_clock(const struct ev_loop *process);
/* What the library would read on its clock at that instant. */
uint64_t process_reading(struct ev_loop *process, sim_time at);
/* Something is wrong for it until then. */
void process_sicken(struct ev_loop *process, sim_time until);
/* All was well since then. */
bool process_is_healthy(const struct ev_loop *process, sim_time since);
bool process_is_linked(const struct ev_loop *process);

/* ---- Transports (transport.c): what processes need beside transport.h ---- */

void sim_transport_on_io(struct transport *transport);
bool sim_transport_has_io(const struct transport *transport);
/* On the process' clock; DRIFT_NEVER: none. */
uint64_t sim_transport_timer(const struct transport *transport);
void sim_transport_on_timer(struct transport *transport);
/* The socket takes bytes again. */
void sim_transport_on_space(struct transport *transport);
/* The connection of a link; NULL: it has none, or there is no such link. */
struct conn *conn_of(const struct ev_loop *process, const struct link *link);

/* ---- Programs (actor.c), and the calls that they make (calls.c) ---- */

enum rec_state {
    REC_LOCKING,
    REC_HELD,    /* Was granted; LOST, perhaps, by now. */
    REC_ADOPTED, /* Not extended yet. */
    REC_GONE,    /* Not the program's any more. */
};

/* A lease as its program knows it.  Never used twice in one run. */
struct lease_rec {
    unsigned number;
    struct ev_loop *process;
    unsigned place; /* In process->recs. */
    struct redlock_lease *lease;
    unsigned set;      /* Of resources; */
    unsigned resource; /* one of them. */
    enum rec_state state;
    struct op *op;       /* Under way. */
    uint32_t ttl_ms;     /* The latest asked for, */
    uint32_t ttl_low_ms; /* and the shortest. */
    drift_span margin;   /* Between lost and the deadline, if the lease allows. */
    drift_span pause;    /* The least between two rounds. */
    drift_span wait;     /* No new round later, or only one. */
    drift_span hold_max; /* No renewal later; 0: no limit. */
    bool renews;         /* For as long as it can. */
    bool is_extended;    /* By the program. */
    bool hears_lost;     /* Has a callback. */
    bool is_reentrant;   /* Its owner, which is this record, may lock it again. */
    bool is_again;       /* He has just done so, and done is to come. */
    unsigned holds;      /* Locks of it that were not unlocked. */
    bool is_probe;
    bool is_stale; /* Its token is one that was given up: nothing is promised of it. */
    bool lost_told;
    unsigned silent_turns; /* Since it was lost, and nobody said so. */
    /* The oracle's: */
    int token;           /* Of the latest belief; -1: none. */
    uint64_t deadline;   /* On the client's clock: of the belief; 0: none. */
    uint64_t over;       /* The deadline of a belief that ended unasked. */
    sim_time published;  /* When it began, or grew. */
    uint64_t asked;      /* On the client's clock: when the lock was asked for. */
    uint64_t granted;    /* Likewise, when it was seen to be held first. */
    bool is_fenced;      /* It is to have a fencing token. */
    bool is_shared;      /* As one of several readers. */
    sim_time round_sent; /* When the latest round was asked for. */
    uint32_t round;      /* The latest, */
    uint64_t round_at;   /* when it began, */
    bool heard_no;       /* and a master has said no in it, */
    bool heard_hint;     /* and that another permit is free; */
    unsigned detours;    /* so many began at once for that. */
    /* Of a fair lock: */
    bool is_fair;
    unsigned hurries;       /* Rounds to tell masters its ticket, and for nothing that was heard. */
    int waiter;             /* Its name in queues; -1: not known. */
    sim_time called;        /* When it was asked for. */
    quorum_mask in_line;    /* Masters that have it in line with one ticket since */
    sim_time in_line_since; /* then; 0: it is not. */
    uint64_t ticket;
    quorum_mask named; /* Masters where it is its turn, and it was told so, or knows. */
    sim_time named_at, hears_since;
};

enum op_kind { OP_LOCK, OP_EXTEND, OP_UNLOCK };
enum op_state { OP_CALLING, OP_PENDING, OP_DONE, OP_DROPPED };

struct op {
    enum op_kind kind;
    enum op_state state;
    struct ev_loop *process;
    struct lease_rec *rec;
    struct redlock_lease *lease;
    sim_time began, stopped_total; /* When it began. */
    sim_time span;         /* It ends in so long, if never stopped; SIM_NEVER: it may not. */
    uint32_t remaining_ms; /* When it began. */
    bool was_held;
    bool lost_told;
    int token; /* Of an unlock; -1: none. */
    struct op *next;
};

void actor_act(struct ev_loop *process);
/* In a callback: do something, perhaps. */
void actor_on_done(struct ev_loop *process, struct lease_rec *rec, enum op_kind kind, int status);
void actor_on_lost(struct ev_loop *process, struct lease_rec *rec);

void calls_reset(void);
/* There is room for more leases in this run. */
bool calls_have_room(void);
void calls_open(struct ev_loop *process);
void calls_close(struct ev_loop *process);
void calls_lock(struct ev_loop *process, unsigned resource, bool is_probe);
void calls_extend(struct lease_rec *rec, uint32_t ttl_ms);
void calls_unlock(struct lease_rec *rec);
bool calls_may_lock_again(const struct lease_rec *rec);
void calls_lock_again(struct lease_rec *rec);
void calls_cancel(struct lease_rec *rec);
/* Hand it on to another process; NULL: to nobody. */
void calls_detach(struct lease_rec *rec, struct ev_loop *to);
void calls_adopt(struct ev_loop *process, unsigned set, bool shared, const char *token,
                 bool is_stale);
void calls_misuse(struct ev_loop *process);
/* No operation is late. */
void calls_check_ends(void);

struct reader {
    int token;
    uint64_t end_ms;
};

struct key {
    bool exists, wrong_type;
    int token;        /* Its number (oracle.c). */
    uint64_t end_ms;  /* On the server's clock. */
    unsigned readers; /* If there are any it has no token, and is no string: wrong_type. */
    struct reader reader[SIM_READERS_MAX];
};

#define SIM_RUN_OF_ANOTHER UINT32_MAX /* No run of this server. */

/* Of a master, for the restart guard: see redlock/core/guard.h. */
struct marker {
    bool exists, fresh;
    unsigned run;                                      /* Of the server that wrote it. */
    uint64_t epoch, nonce, max_ttl_ms, since_ms;       /* 0: none. */
    uint64_t floor, high, counters[SIM_RESOURCES_MAX]; /* Of fencing; counters from floor. */
};

/* Who waits for one resource (line.c); fewer than the script has room for, so that it is
 * full now and then. */
#define LINE_MAX 64
struct line {
    unsigned len;
    uint64_t ends_ms; /* All of it. */
    bool was_left;    /* By somebody who may have been the first, and has not told so yet. */
    struct line_place {
        int waiter; /* Number of its name, as of tokens. */
        uint64_t ticket, end_ms;
    } places[LINE_MAX];
};

enum server_mood { MOOD_FINE, MOOD_OOM, MOOD_MISCONF, MOOD_READONLY, MOOD_LOADING };

struct server {
    unsigned number;
    struct sim_clock clock;
    bool alive, hung;
    bool ends_early; /* A key is gone when its time has come, not one millisecond later. */
    bool old_style;  /* Words errors in scripts as redis 6 did. */
    enum server_mood mood;
    bool has_script[SCRIPT_LEN];
    struct key keys[SIM_RESOURCES_MAX];
    struct marker marker, saved;              /* saved: as it was some time ago. */
    uint64_t marks_end_ms[SIM_RESOURCES_MAX]; /* Of those who wait; 0: none. */
    bool is_teller[SIM_RESOURCES_MAX];        /* Its mark is of who has the lock. */
    struct line lines[SIM_RESOURCES_MAX];
    uint64_t marks_off_ms[SIM_RESOURCES_MAX]; /* Until when these hold off readers, or less. */
    bool keeps;    /* Whatever it has answered for survives a crash, and it says so. */
    unsigned runs; /* How often it was started. */
    struct conn *conns;
    uint64_t fault;      /* Number of the latest fault, which alone may end it. */
    sim_time forward_at; /* When its clock was put forward last; 0: never. */
    bool was_set_back;   /* Its clock, at any time. */
    bool is_copy;        /* Its data are of another, */
    bool was_copied;     /* or another's are of it, or were. */
};

/* ---- Servers (server.c, store.c) ---- */

void server_init(struct server *server, unsigned number);
void server_set_scripts(struct server *server, bool there);
/* Execute what came, and answer; or what the first bytes say, without an answer. */
void server_take(struct conn *conn, const struct message *message);
void server_take_some(struct conn *conn, const struct message *message, size_t len);
/* Send one answer, or what nobody asked for. */
void server_answer(struct conn *conn, const struct answer *answer);
void server_crash(struct server *server, bool forget);
void server_mend(struct server *server);
bool server_flushall(struct server *server);
void server_copy(struct server *server, const struct server *other);
void server_plant(struct server *server, unsigned resource, bool wrong_type, uint64_t ttl_ms);

/* ---- The network (net.c) ---- */

enum message_kind {
    MESSAGE_BYTES,     /* Both ways. */
    MESSAGE_CONNECTED, /* To a client. */
    MESSAGE_REFUSED,
    MESSAGE_RESET,
};

struct message {
    struct message *next;
    sim_time sent, at; /* at: it arrives. */
    enum message_kind kind;
    size_t len, read; /* Bytes, and how many of them the client has read. */
    size_t room;
    char *bytes;
};

struct queue {
    struct message *first, **end;
    sim_time last;          /* Nothing arrives before what was sent earlier. */
    sim_time blocked_until; /* Nothing arrives before; SIM_NEVER: for ever. */
};

struct conn {
    uint64_t number;
    struct server *server;
    struct ev_loop *process;
    struct transport *client; /* NULL: closed by the client; its commands may be on their way. */
    unsigned master;          /* Number of the server, as the client counts. */
    bool accepted;            /* The server was there when the client connected. */
    bool spoken;              /* The client has sent something on it. */
    bool reset;               /* The server does not know it any more. */
    bool mute;                /* Its answers do not come. */
    sim_time mute_until;      /* Then the client's kernel gives it up. */
    enum fault doom;          /* The next commands bring it about; FAULT_LEN: nothing. */
    size_t unread;            /* Bytes on their way to the server, or in its socket. */
    char *inbox;              /* A command of which not all has come. */
    size_t inbox_len, inbox_room;
    unsigned hears; /* Resources of which it is told: a mask. */
    struct queue to_server, to_client;
    struct conn *next; /* Of the same server. */
};

/* A client's kernel gives up a connection at most this long after the server's last packet.
 * set_socket() in redlock/link/master.c sets the parts: the first probe after 15 s, the second
 * after 5 s more, and 15 s for data sent in between.  The rest is for late timers of the kernel. */
#define NET_SILENCE_MAX (40 * DRIFT_S)
/* The longest pause between two attempts to connect, as in redlock/link/master.c. */
#define NET_RETRY_LAST (2 * DRIFT_S)

void net_begin(void);
struct conn *net_connect(struct ev_loop *process, struct transport *client, unsigned server);
/* The client closes it.  What it sent may arrive or not, now or later. */
void net_close(struct conn *conn);
struct message *net_message(enum message_kind kind, size_t room);
void net_to_server(struct conn *conn, struct message *message);
void net_to_client(struct conn *conn, struct message *message);
/* What has arrived for the client first; NULL: nothing.  To take it out. */
struct message *net_peek(struct conn *conn);
struct message *net_take(struct conn *conn);
bool net_has_arrived(const struct conn *conn);
/* A reset has arrived for the client, perhaps behind what it has not read. */
bool net_was_reset(const struct conn *conn);
/* So many bytes may be written now. */
size_t net_room(const struct conn *conn);
void net_done(struct message *message);
/* Hand over to the server what has arrived there; have the client look. */
void net_deliver(struct conn *conn);
void net_arrive(struct conn *conn);
/* The connection is gone: the client will be told. */
void net_reset(struct conn *conn);
/* From now on the server's packets do not reach the client. */
void net_silence(struct conn *conn);
/* The client's kernel gives up a connection that is still silent. */
void net_give_up(struct conn *conn);
/* Everything arrives now, whatever held it up. */
void net_hurry(struct conn *conn);

struct answer {
    enum reply_type type;
    long long integer;
    const char *text; /* Constant.  Of an array: its last two texts, and a space between. */
};

/* Answers to many commands. */
extern const struct answer answer_ok, answer_nil, answer_one, answer_zero, answer_wrong_type;

#define COMMAND_ARGS_MAX 11
struct command {
    unsigned argc;
    const char *argv[COMMAND_ARGS_MAX]; /* Each with \r\n behind it. */
    size_t lens[COMMAND_ARGS_MAX];
};

/* ---- RESP (resp.c) ---- */

/* Parse the first command.  Returns its length; 0: not all of it has come. */
size_t resp_command(const char *bytes, size_t len, struct command *ret_command);
/* Write an answer, which takes no more bytes than that; returns how many. */
size_t resp_answer_max(const struct answer *answer);
size_t resp_write(char *buf, const struct answer *answer);

/* ---- Arguments (args.c) ---- */

#define SEMAPHORE WIRE_PERMIT "s" /* The only one that there is. */

/* What a command is about, by the numbers of its arguments. */
struct parts {
    bool is_other; /* None of the machine's commands; else: */
    enum quorum_command command;
    unsigned name, token, ttl;
    unsigned names; /* So many, from name on. */
};
struct parts args_parts(const struct command *command);
/* The script that it runs; SCRIPT_LEN: none. */
enum script_id args_script(const struct command *command);
/* The resources that it names. */
unsigned args_set(const struct command *command);
/* Whether one is this; what is in it, if it can be that, else fail. */
bool args_is(const struct command *command, unsigned i, const char *text);
uint64_t args_number(const struct command *command, unsigned i);
uint64_t args_ms(const struct command *command, unsigned i);
int args_token(const struct command *command, unsigned i);
unsigned args_resource(const struct command *command, unsigned i);

/* ---- Keys, and the scripts of plain locks (store.c) ---- */

struct answer store_execute(struct conn *conn, const struct command *command);
uint64_t store_wall_ms(const struct server *server);
/* The key if it is there now, else NULL. */
struct key *store_key(struct server *server, unsigned resource);
/* The first true instant at which it is gone. */
sim_time store_key_end(const struct server *server, const struct key *key);
/* Store a token; the answer is OK. */
struct answer store_put(struct server *server, unsigned resource, int token, uint64_t ttl_ms);
/* Delete it, and announce that. */
void store_drop_key(struct server *server, unsigned resource);
struct answer store_release(struct server *server, unsigned resource, struct key *key, int token);
struct answer store_extend(struct server *server, struct key *key, int token, uint64_t ttl_ms);
/* Why it does not obey now; NULL: it does. */
const struct answer *store_mood(const struct server *server, bool in_script, bool grows);
struct answer store_type_error(const struct server *server);

/* ---- Scripts and commands with files of their own ---- */

/* The answer to a command that it can be; else fail. */
typedef struct answer store_answer(struct server *server, const struct command *command);

store_answer many_acquire, many_extend, many_release;
store_answer permits_acquire, permits_query;
store_answer queue_acquire, queue_release, queue_leave;
store_answer marker_proof, marker_count, marker_raise, marker_look;
store_answer flags_query, readers_execute;

/* The reader with that token, if it is one now, else NULL; and when it is none any more, first. */
struct reader *store_reader(const struct server *server, struct key *key, int token);
sim_time store_reader_end(const struct server *server, const struct reader *reader);

struct answer flags_subscribe(struct conn *conn, const struct command *command);
/* The number of the wait flag of a resource: all slots of a semaphore have one. */
unsigned flags_of(unsigned resource);
/* What comes behind WIRE_MARK in its name. */
const char *flags_name(unsigned mark);
/* Set it, as a query does. */
struct answer flags_leave(struct server *server, const struct command *command, uint64_t left_ms,
                          uint64_t value_ms);
bool flags_are_set(const struct server *server, unsigned mark);
/* For how long the lock is held. */
uint64_t flags_left_ms(const struct server *server, const struct key *key);
/* Until when readers are held off, if they are; on the server's clock. */
uint64_t flags_off_ms(const struct server *server, unsigned resource);
void flags_announce_free(struct server *server, unsigned mark, bool keeps_mark);

/* ---- The oracle: of locks (oracle.c) ---- */

struct token {
    bool is_ours;
    bool is_over;    /* Its round is dead. */
    bool is_excused; /* May stay behind until it runs out. */
    unsigned process, client, set;
    uint32_t serial, round;
    quorum_mask deleted; /* Masters that have deleted it, from all resources. */
    bool is_probe;       /* The name in queues of one that asked when all was well. */
    char text[REDLOCK_TOKEN_MAX + 1];
};

void oracle_reset(void);
/* The number of a token, the same for equal ones. */
int oracle_token(const char *text, size_t len);
int oracle_foreign_token(void);
struct token *oracle_token_of(int number);
/* A token of those resources whose round is dead; NULL: none. */
const char *oracle_old_token(unsigned set);
void oracle_on_set(const struct ev_loop *process, const struct ask *ask, unsigned set, int number);

/* A command begins on a server, and has been executed. */
void oracle_before(struct server *server, const struct command *command);
void oracle_after(struct conn *conn, const struct command *command, const struct answer *answer);

/* Look at all beliefs of a process: they may have changed. */
void oracle_look(struct ev_loop *process);
uint32_t oracle_remaining_ms(const struct lease_rec *rec, sim_time at);
/* A majority stores its token now. */
bool oracle_has_keys(const struct lease_rec *rec);

/* ---- of tokens (claims.c) ---- */

/* A command is handed to a link; and its answer to the client. */
void oracle_on_send(struct ev_loop *process, unsigned master, const struct ask *ask,
                    const char *bytes, size_t len);
void oracle_on_answer(struct ev_loop *process, unsigned master, const struct ask *ask,
                      const struct answer *answer);
void claims_on_turn(struct ev_loop *process);
void claims_on_detach(struct ev_loop *process, uint32_t serial);
void claims_on_close(struct ev_loop *process);
void claims_on_stored(const struct conn *conn, int token);
/* All is quiet, and nothing of ours is left behind. */
void oracle_on_quiet(void);

/* ---- and of operations (judge.c) ---- */

/* It is done: exactly once, in time, and what status says is true. */
void judge_on_done(struct op *op, const struct redlock_lease *lease, int status);
void judge_on_lost(struct lease_rec *rec);
void judge_on_turn(struct ev_loop *process);
/* Not too late yet. */
void judge_time(const struct op *op);
/* A round, and a master that says no in it. */
void judge_on_set(struct ev_loop *process, uint32_t serial, uint32_t round);
void judge_on_no(struct ev_loop *process, uint32_t serial, uint32_t round, bool hints);
/* It names who waits, if it is a heartbeat. */
void judge_on_waiter(struct ev_loop *process, uint32_t serial, const struct command *command);

/* ---- Who waits (waits.c) ---- */

void waits_begin(void);
/* Time for a round that is out, for a query, for all that is drawn in between, and for the next
 * round to begin. */
sim_time waits_slack(void);
void waits_on_turn(struct ev_loop *process);
/* Something is wrong with what it is told. */
void waits_on_trouble(struct ev_loop *process);
/* Whether all masters can tell it of this mark. */
bool waits_hears_all(const struct ev_loop *process, unsigned mark);
/* It was told something, or has looked; so may begin a round early, which uses that up. */
void waits_on_heard(struct ev_loop *process);
bool waits_may_hurry(struct ev_loop *process, const struct lease_rec *rec);
/* A new reader has come in, by a round that began then. */
void waits_on_reader(unsigned resource, sim_time round_sent);
/* A server tells all who listen; returns how many do. */
unsigned waits_count(const struct server *server, unsigned mark);
void waits_publish(struct server *server, unsigned mark, const char *text);

/* ---- Queues (line.c) ---- */

/* The dead leave; returns how many. */
unsigned line_purge(struct line *line, uint64_t now_ms);
struct line_place *line_find(struct line *line, int waiter);
/* NULL: nobody waits. */
const struct line_place *line_first(const struct line *line);
uint64_t line_put(struct line *line, int waiter, uint64_t ticket, uint64_t end_ms);
bool line_remove(struct line *line, int waiter);
/* A server's has changed; all of a server's are gone. */
void line_on_change(struct server *server, unsigned resource);
void line_forget(struct server *server);
/* It is this waiter's turn: a server announces that, or must, or the waiter has seen to it itself.
 * A round of a waiter begins.  A waiter believes that it has the lock. */
void line_on_turn_of(const struct server *server, unsigned resource, int waiter, bool is_told);
void line_on_round(struct lease_rec *rec);
void line_on_held(const struct lease_rec *rec);
void line_on_turn(struct ev_loop *process);
void line_on_quiet(void);

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

#endif /* TEST_SIM_H */
