/*
 * server.h - simulated masters: their data, and what happens to them.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "sim.h"
#include "redlock/wire/keys.h"
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
    int token;        /* The number of its token (oracle.c). */
    uint64_t end_ms;  /* When it expires, on the server's clock. */
    unsigned readers; /* If not 0, the key has no token, and is no string: wrong_type is set. */
    struct reader reader[SIM_READERS_MAX];
    sim_time revoked_at;  /* An operator has replaced its token or readers then.  0: none has. */
    int was;              /* The token that was replaced. */
    unsigned was_readers; /* The readers that were replaced; they are still in reader. */
};

#define SIM_RUN_OF_ANOTHER UINT32_MAX /* No run of this server. */

/* The marker of a master: see redlock/lua/look.lua. */
struct marker {
    bool exists; /* It has the field id, which comes with most of the others. */
    bool fresh;
    unsigned run;                                      /* The run of the server that wrote it. */
    uint64_t epoch, nonce, max_ttl_ms, since_ms;       /* 0: none. */
    uint64_t floor, high, counters[SIM_RESOURCES_MAX]; /* Fencing counters count from floor. */
    uint64_t set, ver;                                 /* 0: the master is in no set. */
    const char *config, *name;                         /* See sets_text().  NULL: none. */
    uint64_t claim;                                    /* The number of a claim.  0: none. */
    const char *claim_list;
    uint64_t told_floor; /* The floor in the field epoch.  0: there is none. */
    uint64_t ballot;     /* The greatest ballot promised for the next version.  0: none. */
    uint64_t accepted_in;
    const char *accepted; /* What was accepted in that ballot.  NULL: nothing. */
    sim_time warms_since; /* When its nonce was made. */
};

/* Marks of warming masters: see redlock/lua/witness.lua. */
struct marks {
    unsigned len;
    struct mark {
        uint64_t name, text; /* Hashes of the name, and of the nonce and the run that are marked. */
        uint64_t at_ms;
    } all[WIRE_WITNESS_MAX];
};

/* The queue of one resource (line.c).  Chosen: shorter than in the script, so that it is full
 * now and then. */
#define LINE_MAX 64
#define WAITING_MAX 512 /* Chosen: more than wait in a run of many short locks. */
struct line {
    unsigned len;
    uint64_t ends_ms; /* When the whole queue expires. */
    bool was_left;    /* A waiter left, perhaps the first, and no announcement has followed. */
    struct line_place {
        int waiter; /* The number of its name, as for tokens. */
        uint64_t ticket, end_ms;
        bool is_late; /* Only heartbeats that came late put the waiter here: see obeys_late. */
    } places[LINE_MAX];
    /* Tokens that wait: a key of its own, which may have more waiters than the queue. */
    unsigned waiting_len;
    uint64_t waiting_ends_ms;
    struct line_waiting {
        int waiter, token;
        uint64_t ttl_ms, sent;
    } waiting[WAITING_MAX];
};

enum server_mood { MOOD_FINE, MOOD_OOM, MOOD_MISCONF, MOOD_READONLY, MOOD_LOADING };

struct server {
    unsigned number;
    struct sim_clock clock;
    bool alive, hung;
    bool ends_early; /* A key expires in the millisecond of its end, not one later. */
    bool old_style;  /* Errors in scripts have the words of redis 6. */
    enum server_mood mood;
    bool has_script[SCRIPT_LEN];
    struct key keys[SIM_RESOURCES_MAX];
    struct marks marks;
    struct marker marker, saved;              /* saved is the marker some time ago. */
    uint64_t marks_end_ms[SIM_RESOURCES_MAX]; /* When wait flags expire; 0: not set. */
    bool is_teller[SIM_RESOURCES_MAX];        /* The holder set the wait flag: an announcer. */
    struct line lines[SIM_RESOURCES_MAX];
    uint64_t marks_off_ms[SIM_RESOURCES_MAX]; /* Until when wait flags hold off readers, or 1. */
    bool keeps;    /* Its data survive a crash, and its settings say so. */
    unsigned runs; /* How often it was restarted. */
    struct conn *conns;
    bool obeys_late;     /* The command that it executes came over a connection that its client has
                          * given up. */
    uint64_t fault;      /* The number of the latest fault.  Only its own end mends the server. */
    sim_time forward_at; /* When its clock was last put forward; 0: never. */
    bool was_set_back;   /* Its clock was set back at least once. */
    bool is_copy;        /* Its data are a copy of another server's. */
    bool was_copied;     /* Another server has or had a copy of its data. */
};

/* ---- Servers (server.c, store.c) ---- */

void server_init(struct server *server, unsigned number);
void server_set_scripts(struct server *server, bool there);
/* Execute a message and answer; or execute its first bytes without an answer. */
void server_take(struct conn *conn, const struct message *message);
void server_take_some(struct conn *conn, const struct message *message, size_t len);
/* Send one answer or announcement. */
void server_answer(struct conn *conn, const struct answer *answer);
/* A connection with TLS says that nothing follows.  False: it is not up yet. */
bool server_say_goodbye(struct conn *conn);
void server_crash(struct server *server, bool forget);
void server_mend(struct server *server);
bool server_flushall(struct server *server);
void server_copy(struct server *server, const struct server *other);
void server_plant(struct server *server, unsigned resource, bool wrong_type, uint64_t ttl_ms);

#endif /* SIM_SERVER_H */
