/*
 * program.h - the programs that use the library, their leases, and their calls.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "process.h"
#include "redlock/core/quorum.h"

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
void calls_on_lost(struct redlock_lease *lease, void *arg);

/* ---- Options (options.c) ---- */

/* Draw what else is asked for, and note in the record what the oracle has to know. */
void options_of_lock(struct lease_rec *rec, struct redlock_lock_options *ret_opts);
void options_of_adopted(struct lease_rec *rec, const char *token,
                        struct redlock_lock_options *ret_opts);
/* It is of several resources at once. */
bool options_are_many(const struct lease_rec *rec);
/* As much of it as the client may ask for. */
uint32_t options_cut_ttl(const struct ev_loop *process, uint32_t ttl_ms);

#endif /* SIM_PROGRAM_H */
