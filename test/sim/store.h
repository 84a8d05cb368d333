/*
 * store.h - how a server executes commands and writes answers; a file for each kind.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include "server.h"
#include "redlock/core/quorum.h"
#include "redlock/wire/keys.h"
#include "redlock/wire/reply.h"

struct answer {
    enum reply_type type;
    long long integer;
    const char *text; /* For an array: its last two texts, with a space between. */
};

/* In the text of an answer this stands for a NUL, which the names of groups have. */
#define SIM_NUL '\1'

/* Answers that many commands share. */
extern const struct answer answer_ok, answer_nil, answer_one, answer_zero, answer_wrong_type;

#define COMMAND_ARGS_MAX 16
struct command {
    unsigned argc;
    const char *argv[COMMAND_ARGS_MAX]; /* Each has \r\n behind it. */
    size_t lens[COMMAND_ARGS_MAX];
};

/* ---- RESP (resp.c) ---- */

/* Parse the first command.  Returns its length; 0: it is incomplete. */
size_t resp_command(const char *bytes, size_t len, struct command *ret_command);
/* The most bytes that an answer takes; write it, and return how many it takes. */
size_t resp_answer_max(const struct answer *answer);
size_t resp_write(char *buf, const struct answer *answer);

/* ---- Arguments (args.c) ---- */

#define SEMAPHORE WIRE_PERMIT "s" /* The only semaphore of a run. */

/* Which arguments of a command are the names, the token and the ttl. */
struct parts {
    bool is_other; /* The command is none of the machine's.  Then the rest is 0. */
    enum quorum_command command;
    unsigned name, token, ttl;
    unsigned names; /* The number of names, from argument name on. */
};
struct parts args_parts(const struct command *command);
/* The script that a command runs; SCRIPT_LEN: none. */
enum script_id args_script(const struct command *command);
/* The resources that a command names, as a mask. */
unsigned args_set(const struct command *command);
/* Compare an argument with a text; parse it as a value, or fail. */
bool args_is(const struct command *command, unsigned i, const char *text);
uint64_t args_number(const struct command *command, unsigned i);
uint64_t args_ms(const struct command *command, unsigned i);
uint64_t args_time(const struct command *command, unsigned i);
int args_token(const struct command *command, unsigned i);
/* True of a heartbeat whose token is to wait at the master. */
bool args_stands(const struct command *command);
uint64_t args_hex(const struct command *command, unsigned i);
unsigned args_resource(const struct command *command, unsigned i);

/* ---- Keys, and the scripts of plain locks (store.c) ---- */

struct answer store_execute(struct conn *conn, const struct command *command);
uint64_t store_wall_ms(const struct server *server);
/* The key if it exists now, else NULL. */
struct key *store_key(struct server *server, unsigned resource);
/* The first true instant at which the key is gone. */
sim_time store_key_end(const struct server *server, const struct key *key);
/* Store a token; the answer is OK. */
struct answer store_put(struct server *server, unsigned resource, int token, uint64_t ttl_ms);
/* Delete a key, and announce that it is free. */
void store_drop_key(struct server *server, unsigned resource, int token);
struct answer store_release(struct server *server, unsigned resource, struct key *key, int token);
struct answer store_extend(struct server *server, struct key *key, int token, uint64_t ttl_ms);
/* The error with which the server refuses to write, or NULL.  grows: the command needs memory. */
const struct answer *store_mood(const struct server *server, bool in_script, bool grows);
struct answer store_type_error(const struct server *server);

/* ---- Scripts and commands with files of their own ---- */

/* Execute a command, or fail if its arguments are wrong. */
typedef struct answer store_answer(struct server *server, const struct command *command);

store_answer many_acquire, many_extend, many_release;
store_answer permits_acquire, permits_query;
store_answer queue_acquire, queue_extend, queue_release, queue_leave;
store_answer marker_proof, marker_count, marker_count_many, marker_raise, marker_query;
store_answer sets_claim, sets_found, sets_withdraw;
store_answer ballots_prepare, ballots_accept, ballots_write, ballots_count_on;
store_answer flags_query, readers_execute, witness_execute;

/* Let the counter of a resource count to this number, or by one.  Returns the number that it has
 * reached; 0: it would be days ahead of the clock. */
uint64_t marker_raise_to(struct server *server, unsigned resource, uint64_t least);

/* The reader with that token, or NULL if there is none now; the first instant when it is gone. */
struct reader *store_reader(const struct server *server, struct key *key, int token);
sim_time store_reader_end(const struct server *server, const struct reader *reader);

/* ---- Locks that were revoked (revokes.c) ---- */

/* A server has executed a command. */
void revokes_on_command(struct server *server, const struct command *command);
/* The answer to an extension of a key that holds another token; what to answer if it was not
 * revoked. */
struct answer revokes_refuse(const struct key *key, const struct answer *otherwise);
/* The key was revoked, but still keeps others out for this holder, and no shorter. */
bool revokes_was(const struct key *key, int token);

/* The mark of the master with this name, or NULL. */
struct mark *witness_find(struct marks *marks, const char *name, size_t len);
/* A client has given the master an epoch. */
void witness_on_install(const struct conn *conn);
/* A copy that lives as long as the run.  Equal texts have the same copy. */
const char *sets_text(const char *text, size_t len);
/* Nothing is promised or accepted for the next version any more. */
void ballots_drop(struct marker *marker);
/* The field epoch of a marker that has an epoch; room for its text. */
#define SETS_STATE_ROOM 60
const char *sets_state(const struct marker *marker, char text[SETS_STATE_ROOM]);

struct answer flags_subscribe(struct conn *conn, const struct command *command);
/* The number of the wait flag of a resource.  All slots of a semaphore share one. */
unsigned flags_of(unsigned resource);
/* The name of a wait flag without WIRE_MARK. */
const char *flags_name(unsigned mark);
/* Set the wait flag, as a query does. */
struct answer flags_leave(struct server *server, const struct command *command, uint64_t left_ms,
                          uint64_t value_ms);
bool flags_are_set(const struct server *server, unsigned mark);
/* How long the lock will be held. */
uint64_t flags_left_ms(const struct server *server, const struct key *key);
/* Until when readers are held off, on the server's clock; 0 or 1: they are not. */
uint64_t flags_off_ms(const struct server *server, unsigned resource);
/* True if a query has as many arguments as it should. */
bool flags_is_query(const struct command *command);
/* token: the one that the release names. */
void flags_announce_free(struct server *server, unsigned mark, bool keeps_mark, int token);
/* The digit of a group, or r. */
char flags_digit(unsigned group);

#endif /* SIM_STORE_H */
