/*
 * exchange.h - the parts of test-sim-store: random commands, and what a real server has after each.
 */
#ifndef SIM_EXCHANGE_H
#define SIM_EXCHANGE_H

#include "real.h"
#include "server.h"

#define KEYS 2 /* r0 and r1, of which most commands are about the first; or two slots. */
#define EPOCH "0123456789abcdef" /* In the marker. */
#define TOLD_MAX 512

/* ---- Random commands (commands.c) ---- */

const char *commands_key(unsigned k);
/* Write one that suits what the model has, and a NUL; returns its length.  The patience in it is
 * UINT32_MAX if it is none of a fair lock. */
size_t commands_draw(const struct server *model, char *buf, uint32_t *ret_patience_ms);

/* ---- The real server (exchange.c) ---- */

/* What is asked about each key after a command. */
enum { ASK_KEY, ASK_END, ASK_MARK_END, ASK_MARK, ASK_READERS, ASK_QUEUE, ASK_QUEUE_END, ASKS };

/* One command, the answers, and the time on both sides. */
struct exchange {
    uint64_t before_us, after_us;
    redisReply *answer, *counts;
    redisReply *keys[KEYS][ASKS];
};

/* Announcements are heard from here on. */
void exchange_begin(redisContext *redis);
struct exchange exchange_ask(const char *bytes, size_t len);
/* Give the model what the server has, so that both go on from the same; and free the replies. */
void exchange_follow(struct exchange *x, struct server *model);
/* The same, when something other than a command has changed the server. */
void exchange_catch_up(struct server *model);
/* All that was announced up to now: flags and texts, a line each. */
void exchange_told(char ret_told[TOLD_MAX]);
void exchange_add_told(char all[TOLD_MAX], const char *mark, const char *text);

/* What a reply says. */
void exchange_line(const redisReply *queue, struct line *ret_line);
uint64_t exchange_number(const redisReply *text);
/* The key was there when it was asked for, and was gone when its readers were. */
bool exchange_lost_readers(redisReply *const key[ASKS]);

#endif /* SIM_EXCHANGE_H */
