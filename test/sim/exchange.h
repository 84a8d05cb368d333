/*
 * exchange.h - the parts of test-sim-store: random commands, and a real server's data after each.
 */
#ifndef SIM_EXCHANGE_H
#define SIM_EXCHANGE_H

#include "real.h"
#include "server.h"

#define KEYS 2                   /* r0 and r1, or two slots.  Most commands name r0. */
#define EPOCH "0123456789abcdef" /* The epoch in the marker. */
#define TOLD_MAX 512

/* ---- Random commands (commands.c) ---- */

const char *commands_key(unsigned k);
/* Write a command that suits the model's data, and a NUL; returns its length.  *ret_patience_ms
 * is UINT32_MAX if the command is not one of a fair lock. */
size_t commands_draw(const struct server *model, char *buf, uint32_t *ret_patience_ms);

/* ---- The real server (exchange.c) ---- */

/* The queries about each key after a command. */
enum {
    ASK_KEY,
    ASK_END,
    ASK_MARK_END,
    ASK_MARK,
    ASK_READERS,
    ASK_QUEUE,
    ASK_QUEUE_END,
    ASK_TOKENS,
    ASK_TOKENS_END,
    ASKS
};

/* The answers to one command and its queries, and the time before and after. */
struct exchange {
    uint64_t before_us, after_us;
    redisReply *answer, *counts, *fields;
    redisReply *keys[KEYS][ASKS];
};

/* From here on, announcements are collected. */
void exchange_begin(redisContext *redis);
struct exchange exchange_ask(const char *bytes, size_t len);
/* Copy the server's data to the model, so that both continue from the same; free the replies. */
void exchange_follow(struct exchange *x, struct server *model);
/* The same, when something other than a command has changed the server. */
void exchange_catch_up(struct server *model);
/* All announcements up to now, each as a line of flag and text. */
void exchange_told(char ret_told[TOLD_MAX]);
void exchange_add_told(char all[TOLD_MAX], const char *mark, const char *text);

/* Parse a reply. */
void exchange_line(const redisReply *queue, struct line *ret_line);
/* Add the tokens that wait to a queue. */
void exchange_tokens(const redisReply *tokens, struct line *line);
uint64_t exchange_number(const redisReply *text);
/* When a reader ends, on the server's clock: the key ends with the reader of the greatest score. */
uint64_t exchange_reader_end(redisReply *const key[ASKS], size_t reader);
/* The key existed at the first query, and was gone at the query of its readers. */
bool exchange_lost_readers(redisReply *const key[ASKS]);

#endif /* SIM_EXCHANGE_H */
