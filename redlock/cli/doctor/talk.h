/*
 * talk.h - a blocking conversation with one master: commands and their replies.
 *
 * It is for subcommands that query more than the links of the library do.  One time limit bounds
 * all of it.  A reply takes no more memory than reply.h allows.  After a failure all later calls
 * fail as well, so callers need to check only once, at the end.
 */
#ifndef REDLOCK_TALK_H
#define REDLOCK_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/reason.h"
#include "redlock/wire/reply.h"

struct redisReader;
struct tls;
struct tls_context;
struct uri;

enum {
    TALK_WORDS_MAX = 10,
    TALK_UNSENT_MAX = 16384 /* Bytes of commands that are sent together. */
};

struct talk {
    const struct uri *uri;
    int fd;          /* The connection.  -1: there is none. */
    struct tls *tls; /* NULL: the connection is plain. */
    struct redisReader *reader;
    struct reply reply;
    drift_time until;  /* The end of the time limit. */
    size_t unsent_len; /* Bytes in unsent.  talk_reply() sends them. */
    char unsent[TALK_UNSENT_MAX];
    bool heard;           /* The server has sent a byte. */
    bool is_shaking;      /* TLS is being agreed on. */
    bool greeted;         /* The greeting is done.  For messages. */
    struct reason broken; /* Why the conversation failed.  NONE: it has not. */
};

/* Connect.  The limit is for this and all later calls.  context is for a URI with TLS. */
void talk_open(struct talk *talk, const struct uri *uri, struct tls_context *context,
               uint32_t limit_ms);
void talk_close(struct talk *talk);

/* How long until the master's certificate ends, as tls_left_s().  False: also without TLS. */
bool talk_certificate_left_s(const struct talk *talk, int64_t *ret_left_s);

/* How much of the limit is left. */
uint32_t talk_left_ms(const struct talk *talk);

void talk_send(struct talk *talk, const char *bytes, size_t len);

/* Queue a command of TALK_WORDS_MAX words, or of fewer and a NULL.  Queued commands are sent
 * together. */
void talk_say(struct talk *talk, const char *const *words);

/* Return the next reply, in the order of the commands.  It is valid until the next call.  NULL: the
 * conversation failed. */
const struct reply *talk_reply(struct talk *talk);

/* Send a command, and return its reply. */
const struct reply *talk_ask(struct talk *talk, const char *const *words);

#endif /* REDLOCK_TALK_H */
