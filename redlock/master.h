/*
 * master.h - one master: the shell around one connection.
 *
 * It resolves, connects, shakes hands, backs off, sends, and hands over the
 * answers.  It is up or down, no more, and decides nothing.  There is one
 * connection at a time, and one pending attempt at the most.
 *
 * hiredis parses.  Connecting, reading and writing are ours: hiredis' sockets are
 * close-on-exec only after they were opened, and its write() raises SIGPIPE in
 * programs that are not ours to change.
 * Its asynchronous layer is not used at all: it allocates per command, has no
 * timeouts in 0.14, and must not be freed inside its own callbacks.
 */
#ifndef REDLOCK_MASTER_H
#define REDLOCK_MASTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/handshake.h"
#include "redlock/quorum.h"
#include "redlock/uri.h"

struct ev_loop;
struct master;
struct redlock;

/*
 * A master that hangs must not grow our memory: with so many commands
 * unanswered, or bytes unsent, it takes no more.  Far above what a healthy one
 * ever owes (256 locks in flight owe 512); the bytes are what as many commands
 * with names of 200 bytes take.
 */
#define MASTER_ASKS_MAX 32768
#define MASTER_UNSENT_MAX (8u << 20)

/* Whom an answer is for.  An id, not a pointer: the lease may be gone by then. */
struct master_ask {
    uint32_t slot;   /* Of the lease in the client's table. */
    uint32_t serial; /* Low bits of the lease's serial number. */
    uint32_t ask;    /* The machine's number of it. */
    uint8_t command; /* enum quorum_command, or one of the below. */
    bool in_full;    /* The script's text went along. */
};
#define MASTER_LEAVE 0xf9 /* It waits no more: nobody waits for the answer. */
#define MASTER_COUNT 0xfa /* Behind a SET of the same ask: see proof.h. */
#define MASTER_TIME 0xfb  /* What its clock says: see clocks.h. */
#define MASTER_WAIT 0xfc  /* A look at a key that is waited for: see listen.h. */
#define MASTER_PROOF 0xfd /* That it has its memory: see proof.h. */
#define MASTER_LOOK 0xfe  /* At its marker: see standing.h. */
#define MASTER_QUERY 0xff /* Not the machine's: answers go to the client's query hook. */

/* Make a master that is down and tries nothing yet.  uri lives as long as
 * rl; number counts from 0 and is shown from 1.  NULL without memory. */
struct master *master_new(struct redlock *rl, unsigned number, const struct uri *uri,
                          struct ev_loop *loop);
/* Make a link of another kind to the same master, which asks nothing: it is up when it is
 * connected, and what it is told goes to listen_on_push() (listen.h). */
struct master *master_new_listener(struct redlock *rl, unsigned number, const struct uri *uri,
                                   struct ev_loop *loop);
/* Between events: close and free, without any call of the client. */
void master_free(struct master *master);

/* Begin to connect. */
void master_start(struct master *master);

/*
 * Append one command to be written at the next flush.  Only to masters that
 * are up; does not fail, and calls nobody: if the memory is missing, the link
 * goes down at the next flush, and the client hears of that.
 */
void master_send(struct master *master, const struct master_ask *ask, const char *command,
                 size_t command_len);

/* Append one command that is not answered, or so that nobody waits for it: of a listener. */
void master_say(struct master *master, const char *command, size_t command_len);

/* Write what there is.  A link that breaks over it is doomed: it goes down at the next flush. */
void master_write(struct master *master);

/* Between events (client.h): likewise, and take the link down if it is doomed, which calls
 * client_on_link(). */
void master_flush(struct master *master);

/* Take the link down at the next flush, and connect anew, because of reason. */
void master_relink(struct master *master, const char *reason);

/* Remember a refusal, to be shown with the next failure. */
void master_note(struct master *master, const char *error);

/* "host:port"; why it is down, or what it refused last ("" if nothing). */
const char *master_name(const struct master *master);
const char *master_error(const struct master *master);
const struct master_info *master_info(const struct master *master);

#endif /* REDLOCK_MASTER_H */
