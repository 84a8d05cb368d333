/*
 * oracle.h - the oracle: what must always be true.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "program.h"
#include "test/lib/info.h"

struct answer;
struct ask;
struct command;
struct conn;
struct line;
struct quorum_actions;
struct quorum_event;
struct server;

/* ---- Locks (oracle.c) ---- */

struct token {
    bool is_ours;
    bool is_over;    /* Its round is dead. */
    bool is_excused; /* It may stay behind until it expires. */
    bool is_left;    /* The client that drew it has released it, at least on one master. */
    bool is_dropped; /* The program of another client that had it has released it. */
    unsigned process, client, set;
    uint32_t serial, round;
    quorum_mask deleted; /* Masters that have deleted it, from all resources. */
    bool is_probe;       /* The name of a waiter that asked in good health. */
    char text[REDLOCK_TOKEN_MAX + 1];
};

void oracle_reset(void);
/* The number of a token.  Equal tokens have the same number. */
int oracle_token(const char *text, size_t len);
int oracle_foreign_token(void);
struct token *oracle_token_of(int number);
/* A token of these resources whose round is dead, or NULL. */
const char *oracle_old_token(unsigned set);
void oracle_on_set(const struct ev_loop *process, const struct ask *ask, unsigned set, int number);

/* Before and after a server executes a command. */
void oracle_before(struct server *server, const struct command *command);
void oracle_after(struct conn *conn, const struct command *command, const struct answer *answer);

/* An operator has revoked a key. */
void oracle_on_revoked(void);
/* Check all beliefs of a process for changes. */
void oracle_look(struct ev_loop *process);
uint32_t oracle_remaining_ms(const struct lease_rec *rec, sim_time at);
/* True if a majority stores the token of rec now, as far as its client can know, by the lists that
 * it knows now. */
bool oracle_has_keys(const struct lease_rec *rec);

/* ---- Fencing tokens (fences.c) ---- */

void fences_begin(void);
/* The client of rec believes in its lock from now on. */
void fences_check(const struct lease_rec *rec);
/* An operator that began then was told a number for the holder of this token; -1: for readers. */
void fences_on_number(unsigned resource, uint64_t number, int token, sim_time began);

/* ---- Tokens (claims.c) ---- */

/* A command is handed to a link; its answer is handed to the client. */
void oracle_on_send(struct ev_loop *process, unsigned master, const struct conn *conn,
                    const struct ask *ask, const char *bytes, size_t len);
void oracle_on_answer(struct ev_loop *process, unsigned master, struct conn *conn,
                      const struct ask *ask, const struct answer *answer);
/* The same for answers about sets (sets.c); a client holds a lease. */
void sets_on_belief(const struct ev_loop *process);
void sets_on_answer(const struct ev_loop *process, const struct answer *answer);
void claims_on_turn(struct ev_loop *process);
void claims_on_detach(struct ev_loop *process, uint32_t serial);
void claims_on_close(struct ev_loop *process);
/* A step of the machine: before it, and after one that won an extension. */
void claims_before_step(const struct ev_loop *process, const struct redlock_lease *lease,
                        const struct quorum_event *event);
void claims_on_longer(struct ev_loop *process, const struct redlock_lease *lease,
                      const struct quorum_event *event, const struct quorum_actions *actions);
void claims_on_stored(const struct conn *conn, int token);
/* A server executed a command that may be a count of a fencing counter. */
void claims_on_executed(struct conn *conn, const struct command *command,
                        const struct answer *answer);
/* The end of the quiet phase: check that clients left nothing behind. */
void oracle_on_quiet(void);

/* ---- Operations (judge.c) ---- */

/* Check that done is called once and in time, and that the status is true. */
void judge_on_done(struct op *op, const struct redlock_lease *lease, int status);
void judge_on_lost(struct lease_rec *rec);
void judge_on_turn(struct ev_loop *process);
/* Check that an operation is not too late. */
void judge_time(const struct op *op);
/* A round sends a command; it raises the counters; a master says no to it. */
void judge_on_set(struct ev_loop *process, unsigned master, uint32_t serial, uint32_t round);
void judge_on_raise(struct ev_loop *process, uint32_t serial, uint32_t raise);
void judge_on_no(struct ev_loop *process, uint32_t serial, uint32_t round, bool hints);
/* Note the name of the waiter, if the command is a heartbeat. */
void judge_on_waiter(struct ev_loop *process, uint32_t serial, const struct command *command);

/* ---- Too few votes (troubles.c) ---- */

void troubles_on_turn(struct ev_loop *process);
/* Check that the status says why too few masters voted. */
void troubles_check(const struct op *op, int status);

/* ---- Clocks that are outvoted (outliers.c) ---- */

/* The client has read this master's clock, and compared all. */
void outliers_on_time(const struct ev_loop *process, unsigned master);

/* ---- How often a client asks (storms.c) ---- */

void storms_begin(void);
/* Somebody got what others may wait for. */
void storms_on_win(const struct lease_rec *rec);
/* A lease begins a round; a waiter queries a master. */
void storms_on_round(struct lease_rec *rec, uint64_t now);
void storms_on_query(struct ev_loop *process, unsigned master, const struct command *command);

/* ---- Waiters (waits.c) ---- */

void waits_begin(void);
/* Time for a round under way, for a query, for random delays between them, and for the next round
 * to begin. */
sim_time waits_slack(void);
void waits_on_turn(struct ev_loop *process);
/* The process may miss announcements until now. */
void waits_on_trouble(struct ev_loop *process);
/* True if the process listens to all masters for this wait flag. */
bool waits_hears_all(const struct ev_loop *process, unsigned mark);
/* True if the process hears its own channel at all masters. */
bool waits_hears_own(const struct ev_loop *process);
/* An announcement, or the answer to a query: the key has so much time left, or 0.  It lets one
 * round begin early: waits_may_hurry() uses it up. */
void waits_on_heard(struct ev_loop *process, sim_time left);
bool waits_may_hurry(struct ev_loop *process, const struct lease_rec *rec);
/* A reader got the lock, by a round that began then. */
void waits_on_reader(unsigned resource, sim_time round_sent);
/* How many connections listen at a server; publish to all of them. */
unsigned waits_count(const struct server *server, unsigned mark);
void waits_publish(struct server *server, unsigned mark, const char *text);
/* Publish to a group of a crowd; returns how many hear it. */
unsigned waits_publish_group(struct server *server, unsigned mark, unsigned group,
                             const char *text);
/* Publish to the client of this waiter alone. */
void waits_publish_own(struct server *server, const char *waiter, const char *text);

/* ---- Queues (line.c) ---- */

/* Remove the waiters that are dead; returns how many. */
unsigned line_purge(struct line *line, uint64_t now_ms);
struct line_place *line_find(struct line *line, int waiter);
/* NULL: the queue is empty. */
const struct line_place *line_first(const struct line *line);
/* ticket 0: a join.  Returns the ticket of the place; 0: there is no room. */
uint64_t line_put(struct line *line, int waiter, uint64_t ticket, uint64_t end_ms, bool is_late);
bool line_remove(struct line *line, int waiter);
/* The token that waits with a waiter, or NULL. */
struct line_waiting *line_waiting(struct line *line, int waiter);
void line_stop_waiting(struct line *line, int waiter);
/* A queue of a server has changed; all queues of a server are lost. */
void line_on_change(struct server *server, unsigned resource);
void line_forget(struct server *server);
/* The set has changed. */
void line_on_version(void);
/* It is this waiter's turn at a server.  is_told: the server announces it, or must.  Else the
 * waiter's own command made it due. */
void line_on_turn_of(const struct server *server, unsigned resource, int waiter, bool is_told);
void line_on_round(struct lease_rec *rec);
void line_on_held(const struct lease_rec *rec);
void line_on_detach(const struct lease_rec *rec);
void line_on_turn(struct ev_loop *process);
void line_on_quiet(void);

#endif /* SIM_ORACLE_H */
