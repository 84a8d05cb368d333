/*
 * server.h - simulated masters: what one stores, and what happens to it.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "sim.h"
#include "redlock/wire/script.h"

struct answer;
struct conn;
struct message;

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

#endif /* SIM_SERVER_H */
