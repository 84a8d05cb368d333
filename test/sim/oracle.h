/*
 * oracle.h - the oracle: what must be true, whatever happens.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "program.h"

struct answer;
struct ask;
struct command;
struct line;
struct server;

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

#endif /* SIM_ORACLE_H */
