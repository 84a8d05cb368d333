/*
 * exchange.c - one command to a real server, and the queries after it, between two TIMEs.
 */
#include "exchange.h"
#include "fields.h"
#include "oracle.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/wire/wire.h"

static redisContext *redis, *listener;

/* ---- Announcements ---- */

/* Listen by a pattern: PUBSUB NUMSUB does not count such a listener, and the model has none. */
void exchange_begin(redisContext *server)
{
    redis = server;
    listener = redisConnectUnix(redis->unix_sock.path);
    if (listener == NULL || listener->err != 0)
        real_die("no second connection");
    (void)redisAppendCommand(listener, "PSUBSCRIBE " WIRE_MARK "* " WIRE_CLIENT "*");
    for (unsigned pattern = 0; pattern < 2; pattern++)
        freeReplyObject(real_reply_of(listener));
}

void exchange_add_told(char all[TOLD_MAX], const char *mark, const char *text)
{
    size_t len = strlen(all);

    if ((size_t)snprintf(all + len, TOLD_MAX - len, "%s %s\n", mark, text) >= TOLD_MAX - len)
        real_die("too many announcements: %s", all);
}

void exchange_told(char ret_told[TOLD_MAX])
{
    bool is_over = false;

    ret_told[0] = '\0';
    (void)redisAppendCommand(listener, "PING");
    while (!is_over) {
        redisReply *got = real_reply_of(listener);

        is_over = got->elements != 4;
        if (!is_over) {
            const char *name = got->element[2]->str;
            bool is_mark = strncmp(name, WIRE_MARK, WIRE_MARK_LEN) == 0;

            exchange_add_told(ret_told, name + (is_mark ? WIRE_MARK_LEN : 0), got->element[3]->str);
        }
        freeReplyObject(got);
    }
}

/* ---- A command, and the queries ---- */

static void append_questions(void)
{
    for (unsigned k = 0; k < KEYS; k++) {
        const char *mark = world.plan.permits && k == 0 ? WIRE_PERMIT "s" : commands_key(k);

        (void)redisAppendCommand(redis, "GET %s", commands_key(k));
        (void)redisAppendCommand(redis, "PEXPIRETIME %s", commands_key(k));
        (void)redisAppendCommand(redis, "PEXPIRETIME " WIRE_MARK "%s", mark);
        (void)redisAppendCommand(redis, "GET " WIRE_MARK "%s", mark);
        (void)redisAppendCommand(redis, "ZRANGE %s 0 -1 WITHSCORES", commands_key(k));
        (void)redisAppendCommand(redis, "ZRANGE " WIRE_QUEUE "r%u 0 -1 WITHSCORES", k);
        (void)redisAppendCommand(redis, "PEXPIRETIME " WIRE_QUEUE "r%u", k);
        (void)redisAppendCommand(redis, "HGETALL " WIRE_NEXT "r%u", k);
        (void)redisAppendCommand(redis, "PEXPIRETIME " WIRE_NEXT "r%u", k);
    }
    (void)redisAppendCommand(redis, "HMGET " WIRE_MARKER " %u %u high", wire_counter("r0", 2),
                             wire_counter("r1", 2));
    fields_append(redis);
}

static void take_replies(struct exchange *x)
{
    for (unsigned k = 0; k < KEYS; k++)
        for (unsigned question = 0; question < ASKS; question++)
            x->keys[k][question] = real_reply();
    x->counts = real_reply();
    x->fields = real_reply();
}

struct exchange exchange_ask(const char *bytes, size_t len)
{
    struct exchange exchange;

    (void)redisAppendCommand(redis, "TIME");
    (void)redisAppendFormattedCommand(redis, bytes, len);
    append_questions();
    (void)redisAppendCommand(redis, "TIME");
    exchange.before_us = real_time_us();
    exchange.answer = real_reply();
    take_replies(&exchange);
    exchange.after_us = real_time_us();
    return exchange;
}

/* ---- The server's data ---- */

bool exchange_lost_readers(redisReply *const key[ASKS])
{
    return key[ASK_KEY]->type == REDIS_REPLY_ERROR && key[ASK_READERS]->type == REDIS_REPLY_ARRAY &&
           key[ASK_READERS]->elements == 0;
}

uint64_t exchange_number(const redisReply *text)
{
    return text->type == REDIS_REPLY_STRING ? strtoull(text->str, NULL, 10) : 0;
}

uint64_t exchange_reader_end(redisReply *const key[ASKS], size_t reader)
{
    const redisReply *members = key[ASK_READERS];
    long long last = strtoll(members->element[members->elements - 1]->str, NULL, 10);

    return (uint64_t)(key[ASK_END]->integer - last +
                      strtoll(members->element[2 * reader + 1]->str, NULL, 10));
}

/* A waiter has two entries: its name with its ticket, and "-" and its name with minus its end. */
void exchange_line(const redisReply *queue, struct line *ret_line)
{
    ret_line->len = 0;
    for (size_t i = 0; i + 1 < queue->elements; i += 2) {
        const redisReply *name = queue->element[i];
        double score = strtod(queue->element[i + 1]->str, NULL);
        bool is_end = name->str[0] == '-';
        int waiter = oracle_token(name->str + is_end, name->len - is_end);
        struct line_place *place = line_find(ret_line, waiter);

        if (is_end == (score >= 0))
            real_die("the queue has %s with %f", name->str, score);
        if (place == NULL) /* The entry with the end comes first. */
            ret_line->places[ret_line->len++] = (struct line_place){.waiter = waiter};
        place = line_find(ret_line, waiter);
        if (is_end)
            place->end_ms = (uint64_t)-score;
        else
            place->ticket = (uint64_t)score;
    }
}

/* By waiter: TTL SENT TOKEN. */
void exchange_tokens(const redisReply *tokens, struct line *line)
{
    line->waiting_len = 0;
    for (size_t i = 0; i + 1 < tokens->elements; i += 2) {
        const redisReply *waiter = tokens->element[i];
        char *end;
        struct line_waiting *waiting = &line->waiting[line->waiting_len++];

        waiting->waiter = oracle_token(waiter->str, waiter->len);
        waiting->ttl_ms = strtoull(tokens->element[i + 1]->str, &end, 10);
        waiting->sent = strtoull(end, &end, 10);
        waiting->token = oracle_token(end + 1, strlen(end + 1));
    }
}

static void follow_key(redisReply *const replies[ASKS], struct key *key)
{
    const redisReply *get = replies[ASK_KEY], *end = replies[ASK_END];
    const redisReply *members = replies[ASK_READERS];

    /* The key may have expired between the two queries. */
    key->exists =
        get->type != REDIS_REPLY_NIL && end->integer != -2 && !exchange_lost_readers(replies);
    key->wrong_type = get->type == REDIS_REPLY_ERROR;
    if (key->exists && !key->wrong_type)
        key->token = oracle_token(get->str, get->len);
    else if (key->exists)
        key->token = oracle_token("a list", 6);
    key->end_ms = end->integer > 0 ? (uint64_t)end->integer : UINT64_MAX / DRIFT_S;
    key->readers = 0;
    if (!key->exists || members->type != REDIS_REPLY_ARRAY || members->elements == 0)
        return;
    key->token = -1;
    key->readers = (unsigned)members->elements / 2;
    for (unsigned i = 0; i < key->readers; i++) {
        const redisReply *member = members->element[(size_t)2 * i];

        key->reader[i].token = oracle_token(member->str, member->len);
        key->reader[i].end_ms = exchange_reader_end(replies, i);
    }
}

void exchange_follow(struct exchange *x, struct server *model)
{
    for (unsigned k = 0; k < KEYS; k++) {
        redisReply **replies = x->keys[k];
        long long mark_end_ms = replies[ASK_MARK_END]->integer;
        long long queue_end_ms = replies[ASK_QUEUE_END]->integer;

        follow_key(replies, &model->keys[k]);
        model->marks_end_ms[k] = mark_end_ms > 0 ? (uint64_t)mark_end_ms : 0;
        model->marks_off_ms[k] = exchange_number(replies[ASK_MARK]);
        exchange_line(replies[ASK_QUEUE], &model->lines[k]);
        model->lines[k].ends_ms = queue_end_ms > 0 ? (uint64_t)queue_end_ms : 0;
        exchange_tokens(replies[ASK_TOKENS], &model->lines[k]);
        model->lines[k].waiting_ends_ms =
            replies[ASK_TOKENS_END]->integer > 0 ? (uint64_t)replies[ASK_TOKENS_END]->integer : 0;
        for (unsigned question = 0; question < ASKS; question++)
            freeReplyObject(replies[question]);
    }
    for (unsigned k = 0; k < 2; k++)
        if (x->counts->element[k]->str != NULL)
            model->marker.counters[k] = exchange_number(x->counts->element[k]);
    model->marker.high = exchange_number(x->counts->element[2]);
    freeReplyObject(x->counts);
    freeReplyObject(x->fields);
    freeReplyObject(x->answer);
}

void exchange_catch_up(struct server *model)
{
    struct exchange x = {.answer = NULL};

    append_questions();
    take_replies(&x);
    exchange_follow(&x, model);
}
