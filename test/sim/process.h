/*
 * process.h - the processes that clients live in, and their transports.
 */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "sim.h"
#include "redlock/base/mask.h"
#include "redlock/core/members.h"
#include "redlock/redlock.h"

struct asks;
struct conn;
struct link;
struct list;
struct lists;
struct loop;
struct transport;

/* How many more commands there were than pauses allow, since what is waited for was got last. */
struct storm {
    unsigned len;
    uint64_t at;   /* Until when pauses are accounted for, on the client's clock. */
    uint64_t wins; /* How often somebody had got it by then. */
};

/* The process that a client lives in, and the loop that it runs on. */
struct ev_loop {
    unsigned number;
    bool is_operator; /* It changes the set of masters, and takes no locks (operators.c). */
    struct sim_clock clock;
    uint32_t max_ttl_ms; /* The option of its clients. */
    struct redlock *rl;  /* NULL: no client is open. */
    struct transport *transports[SIM_TRANSPORTS_MAX];
    uint64_t version; /* Of the configuration that its client knew at the end of the last turn. */
    unsigned servers[QUORUM_MASTERS_MAX]; /* Which server has this number in its client. */
    unsigned listed; /* The servers in the list of its client, as a mask, if the set changes. */
    unsigned client; /* Number of the client: raised at every open and close. */

    sim_time wake_at; /* When client_on_timer() is due. */
    sim_time act_at;  /* When its program does something. */
    sim_time turn_at; /* When the loop turns next, by the event with turn_tag. */
    uint64_t turn_tag;
    bool in_turn;
    bool observed;                      /* The oracle reads the clock, which changes nothing. */
    sim_time ahead;                     /* Time that has passed within this turn. */
    sim_time stopped_until;             /* The process does nothing before. */
    sim_time stopped_total;             /* The sum of all stops. */
    sim_time stopped_last;              /* End of the latest stop that matters. */
    sim_time sick_until;                /* Until then, more than links that are down was faulty. */
    sim_time cut[SIM_SERVERS_MAX];      /* No byte gets through until then. */
    struct claim *claims;               /* Tokens that masters may store. */
    struct asks *asks;                  /* The latest commands of each lease. */
    struct lease_rec *recs[SIM_CROWD];  /* The first of them: see plan.leases. */
    char handed[REDLOCK_TOKEN_MAX + 1]; /* A token to adopt; "": none. */
    unsigned handed_set;
    bool handed_shared;
    sim_time handed_at; /* When the token arrives. */
    bool handed_stale;
    struct sleep {
        unsigned heard;         /* How many rounds may begin early. */
        uint32_t rounds;        /* The sum of the waiters' rounds; it changes when one begins. */
        sim_time since;         /* No round has begun since; SIM_NEVER: there is no waiter. */
        drift_span longest;     /* The longest time between two queries without announcements. */
        sim_time patience;      /* How long it may pause since, after rounds that it lost. */
        sim_time lot;           /* How long it may leave it to others to try first. */
        sim_time waits_since;   /* There is a waiter since; SIM_NEVER: there is none. */
        sim_time queued_since;  /* Likewise, a waiter in the masters' queue. */
        sim_time grouped_since; /* Likewise, any other waiter. */
    } sleeps[SIM_LINES];        /* By sets of resources; see line_of() in waits.c. */
    struct troubles {
        quorum_mask near;       /* Masters whose links were up when the turn began, or came up. */
        quorum_mask unready;    /* Masters that could not vote then, by what the client was told. */
        struct members members; /* By which the client counted then. */
    } troubles[2];              /* Of this turn, and of the one before. */
    struct {
        int waiter; /* 0: none. */
        unsigned resource;
        sim_time at;
    } detached; /* The place of the fair lock that was detached last. */
    struct {
        unsigned members; /* By the version that its client knows. */
        unsigned masters; /* Those that it found removed, and could send a command. */
        uint64_t conns[SIM_SERVERS_MAX]; /* The numbers of their connections. */
        sim_time at;
    } removed;
    bool has_probed; /* It got the lock that proves that locks can be had again. */
    struct storm queries[SIM_SERVERS_MAX][SIM_RESOURCES_MAX]; /* Queries of waiters (storms.c). */
    sim_time heard_at;     /* The last announcement, or answer to a query. */
    sim_time deaf_until;   /* Until then, it may have missed announcements. */
    sim_time told_left;    /* The longest time left that it heard of in this turn. */
    sim_time misled_until; /* Until then, what it heard late may say that a lock is held. */
};

/* ---- Processes (process.c) ---- */

void process_init(struct ev_loop *process, unsigned number);
struct ev_loop *process_of_loop(const struct loop *loop);
/* Let the loop turn at this instant, or as soon as it can. */
void process_poke(struct ev_loop *process, sim_time at);
void process_turn(struct ev_loop *process, uint64_t tag);
/* Stop the process for so long, from now on. */
void process_pause(struct ev_loop *process, sim_time span);
/* The true time of the process, which is ahead of world.now within a turn. */
sim_time process_now(const struct ev_loop *process);
uint64_t process_clock(const struct ev_loop *process);
/* What the library reads on its clock at that instant. */
uint64_t process_reading(struct ev_loop *process, sim_time at);
/* Something is faulty for the process until then. */
void process_sicken(struct ev_loop *process, sim_time until);
/* Nothing was faulty for the process since then. */
bool process_is_healthy(const struct ev_loop *process, sim_time since);
bool process_is_linked(const struct ev_loop *process);
/* The connection of the link to this server; NULL: the link is not up. */
const struct conn *process_conn(const struct ev_loop *process, unsigned server);
/* The number of a server in the client of a process; QUORUM_MASTERS_MAX: it has none. */
unsigned process_master(const struct ev_loop *process, unsigned server);
/* The list of its client; that of the set that the client obeys; the lists by which the client
 * counts now. */
const struct list *process_own_list(const struct ev_loop *process);
const struct list *process_list(const struct ev_loop *process);
struct lists process_lists(const struct ev_loop *process);

/* ---- Transports (transport.c): what processes need beside transport.h ---- */

/* At the end of a turn: a transport that said that it ended must be closed. */
void sim_transport_rest(const struct transport *transport);
void sim_transport_on_io(struct transport *transport);
bool sim_transport_has_io(const struct transport *transport);
/* When the timer rings, on the process' clock; DRIFT_NEVER: it is not set. */
uint64_t sim_transport_timer(const struct transport *transport);
void sim_transport_on_timer(struct transport *transport);
/* The socket takes bytes again. */
void sim_transport_on_space(struct transport *transport);
/* A transport without an owner is that of this link, which is new. */
void sim_transport_own(const struct ev_loop *process, const struct link *link);
/* The link got an answer by which its pauses begin anew. */
void sim_transport_served(const struct ev_loop *process, const struct link *link);
/* The connection of a link, or NULL if it has none or there is no such link. */
struct conn *conn_of(const struct ev_loop *process, const struct link *link);

#endif /* SIM_PROCESS_H */
