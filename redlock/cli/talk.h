/*
 * talk.h - a plain conversation with one master: questions, and an answer to each.
 *
 * For commands that want to know more than the links of the library ask.  One
 * time limit bounds all of it, and what a master says takes no more memory than
 * reply.h allows, whatever it says.  What breaks it off once breaks off all that
 * follows, so that only the end needs to be looked at.
 */
#ifndef REDLOCK_TALK_H
#define REDLOCK_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/wire/reply.h"

struct redisReader;
struct uri;

enum {
    TALK_WORDS_MAX = 10,
    TALK_UNSENT_MAX = 16384 /* Bytes of questions that are sent together. */
};

struct talk {
    const struct uri *uri;
    int fd; /* Of the connection; -1: there is none. */
    struct redisReader *reader;
    struct reply reply;
    drift_time until;  /* By when all must have been said. */
    size_t unsent_len; /* Of questions, which are sent when an answer is wanted. */
    char unsent[TALK_UNSENT_MAX];
    bool greeted;     /* For words: what is said of silence. */
    char broken[160]; /* Why it is broken off; "": it is not. */
};

/* Set up all, and connect.  The limit is for this and all that follows. */
void talk_open(struct talk *talk, const struct uri *uri, uint32_t limit_ms);
void talk_close(struct talk *talk);

/* How much of the limit is left; 0: nothing. */
uint32_t talk_left_ms(const struct talk *talk);

void talk_send(struct talk *talk, const char *bytes, size_t len);

/* Ask with words, TALK_WORDS_MAX of them or a NULL after them.  Questions that are said one
 * behind the other arrive together. */
void talk_say(struct talk *talk, const char *const *words);

/* The next answer, in the order of the questions; it lasts until the one after
 * it.  NULL: broken off. */
const struct reply *talk_reply(struct talk *talk);

/* Both: one question, and the answer to it. */
const struct reply *talk_ask(struct talk *talk, const char *const *words);

#endif /* REDLOCK_TALK_H */
