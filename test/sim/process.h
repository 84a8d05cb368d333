/*
 * process.h - the processes that clients live in, and their transports.
 */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "sim.h"
#include "redlock/redlock.h"

struct conn;
struct link;
struct loop;
struct transport;

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

#endif /* SIM_PROCESS_H */
