/*
 * program.h - the programs that use the library, their leases, and their calls.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "process.h"
#include "world.h"
#include "redlock/core/quorum.h"

/* ---- Programs (actor.c), and the calls that they make (calls.c) ---- */

enum rec_state {
    REC_LOCKING,
    REC_HELD,    /* It was granted, and may be lost by now. */
    REC_ADOPTED, /* It is adopted, and not extended yet. */
    REC_GONE,    /* The program does not have it any more. */
};

/* A lease as its program knows it.  A run never reuses one. */
struct lease_rec {
    unsigned number;
    struct ev_loop *process;
    unsigned place; /* Its index in process->recs. */
    struct redlock_lease *lease;
    unsigned set;      /* Its resources, as a mask. */
    unsigned resource; /* One of its resources. */
    enum rec_state state;
    struct op *op;       /* The operation under way, or NULL. */
    uint32_t ttl_ms;     /* The latest ttl asked for. */
    uint32_t ttl_low_ms; /* The shortest ttl asked for. */
    drift_span margin;   /* From lost to the deadline, if the lease is long enough. */
    drift_span pause;    /* The shortest pause between two rounds. */
    drift_span wait;     /* After so long, at most one round begins. */
    drift_span hold_max; /* After so long, no renewal begins; 0: no limit. */
    bool renews;         /* It is renewed without a limit. */
    bool is_extended;    /* The program has extended it. */
    bool hears_lost;     /* It has a lost callback. */
    bool is_reentrant;   /* Its owner, which is this record, may lock it again. */
    bool is_again;       /* An inner lock waits for its done callback. */
    unsigned holds;      /* Locks that were not unlocked yet. */
    bool is_probe;
    bool is_stale;   /* Its token was given up before, so nothing is promised. */
    bool is_partner; /* Its token is that of a lease that another client had (partners.c). */
    bool lost_told;
    /* Masters that said, when asked to extend it, that they do not store it.  If the token is
     * adopted, its client does not get them back: it cannot know that another client gave it to
     * them. */
    quorum_mask refused;
    unsigned silent_turns; /* Turns since it was over, without a lost notice. */
    /* What the oracle notes: */
    int token;               /* The token of the latest belief, or adopted; -1: none. */
    struct lists lists;      /* By which it was counted. */
    uint64_t deadline;       /* The deadline of the belief, on the client's clock; 0: no belief. */
    uint64_t over;           /* The deadline of a belief that ended by itself. */
    sim_time published;      /* When the belief began or grew. */
    uint64_t asked;          /* When the lock was asked for, on the client's clock. */
    uint64_t granted;        /* When it was first held, on the client's clock. */
    uint64_t revoked;        /* When a majority was revoked at once, likewise; 0: never. */
    int revoked_token;       /* The token then. */
    bool is_fenced;          /* The lock draws a fencing token. */
    bool is_shared;          /* The lock is for reading. */
    quorum_mask round_asked; /* Masters that the latest round asked. */
    sim_time round_sent;     /* When the latest round began, in true time. */
    uint32_t round;          /* The number of the latest round. */
    uint64_t round_at;       /* When the latest round began, on the client's clock. */
    uint32_t raise;          /* The number of its latest raise, */
    unsigned raises;         /* and how many it has had. */
    bool heard_no;           /* A master said no in the latest round. */
    bool heard_hint;         /* A master said that another permit is free. */
    unsigned detours;        /* Rounds that began at once because of such hints. */
    struct storm storm;      /* Its rounds (storms.c). */
    /* The same for fair locks: */
    bool is_fair;
    unsigned hurries;       /* Rounds that began early without an announcement. */
    int waiter;             /* The waiter's name in queues; -1: not known. */
    sim_time called;        /* When the lock was asked for, in true time. */
    quorum_mask in_line;    /* Masters that have the waiter in the queue with its ticket. */
    sim_time in_line_since; /* Since when they are a majority; 0: they are none. */
    uint64_t ticket;
    quorum_mask named; /* Masters where it is the waiter's turn. */
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
    sim_time began, stopped_total; /* When it began, and the process' stops before. */
    sim_time span;         /* It must end in so long, stops not counted; SIM_NEVER: no limit. */
    uint32_t remaining_ms; /* What was left of the lease when it began. */
    bool was_held;
    bool lost_told;
    int token;          /* The token that an unlock releases; -1: none. */
    struct lists lists; /* By which the client counted when it began. */
    struct op *next;
};

void actor_act(struct ev_loop *process);
/* A callback runs, and its program may make a call. */
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
/* Detach a lease, and hand its token to another process.  NULL: hand it to none. */
void calls_detach(struct lease_rec *rec, struct ev_loop *to);
/* Returns NULL if there is no memory. */
struct lease_rec *calls_adopt(struct ev_loop *process, unsigned set, bool shared, const char *token,
                              bool is_stale);
void calls_misuse(struct ev_loop *process);
/* Check that no operation is late. */
void calls_check_ends(void);
void calls_on_lost(struct redlock_lease *lease, void *arg);

/* ---- Clients that share a token (partners.c) ---- */

void partners_reset(void);
/* A client holds a lease: others may get its token. */
void partners_on_held(const struct lease_rec *rec);
/* Adopt such a token.  Returns false if there is none. */
bool partners_adopt(struct ev_loop *process);
/* A client sends the release of a token. */
void partners_on_release(const struct ev_loop *process, uint32_t serial, int token);
/* Nothing is promised to this holder: its token was given up by another one. */
bool partners_are_done(const struct lease_rec *rec);

/* ---- Options (options.c) ---- */

/* Draw the options of a lock, and note in the record those that the oracle needs. */
void options_of_lock(struct lease_rec *rec, struct redlock_lock_options *ret_opts);
void options_of_adopted(struct lease_rec *rec, const char *token,
                        struct redlock_lock_options *ret_opts);
/* True if the lease is for several resources. */
bool options_are_many(const struct lease_rec *rec);
/* The ttl, or the longest that the client may ask for. */
uint32_t options_cut_ttl(const struct ev_loop *process, uint32_t ttl_ms);

#endif /* SIM_PROGRAM_H */
