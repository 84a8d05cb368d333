/*
 * talk.h - a plain conversation with one master: one question, one answer.
 *
 * Blocking, each step within a time limit, for commands that want to know more
 * than the links of the library ask.  What breaks it off once breaks off all
 * that follows, so that only the end needs to be looked at.
 */
#ifndef REDLOCK_TALK_H
#define REDLOCK_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"

struct redisContext;
struct redisReader;
struct redisReply;
struct uri;

enum { TALK_WORDS_MAX = 10 };

struct talk {
    const struct uri *uri;
    uint32_t timeout_ms;          /* To resolve and connect; then for each answer. */
    struct redisContext *context; /* Its socket; the reader in it is not used. */
    struct redisReader *reader;   /* The caller's; answers are what it makes of them. */
    drift_time until;             /* By when what is waited for must have come. */
    bool greeted;                 /* For words: what is said of silence. */
    char broken[160];             /* Why it is broken off; "": it is not. */
};

/* Set up all, and connect. */
void talk_open(struct talk *talk, const struct uri *uri, uint32_t timeout_ms);
void talk_close(struct talk *talk);

/* Anew so much time from now on. */
void talk_give_time(struct talk *talk);

void talk_send(struct talk *talk, const char *bytes, size_t len);

/* The next answer, of the reader's making; NULL: broken off. */
void *talk_reply(struct talk *talk);

/* Send the words, TALK_WORDS_MAX or a NULL after them, and take the answer, for
 * freeReplyObject(); with a reader that is hiredis' own.  NULL: broken off. */
struct redisReply *talk_ask(struct talk *talk, const char *const *words);

#endif /* REDLOCK_TALK_H */
