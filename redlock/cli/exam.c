/*
 * exam.c - connect, greet as the library does, and try all that a lock needs.
 */
#include "redlock/cli/exam.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>
#include <sodium.h>

#include "redlock/cli/marker.h"
#include "redlock/cli/talk.h"
#include "redlock/reply.h"
#include "redlock/uri.h"

#define LOOKS_AT_CLOCK 5 /* The quickest counts; no source. */

/* ---- Findings ---- */

void exam_find(struct exam *exam, const char *name, const char *change, const char *format, ...)
{
    struct exam_finding *finding = &exam->findings[exam->findings_len];
    va_list args;

    if (exam->findings_len == EXAM_FINDINGS_MAX)
        return;
    finding->name = name;
    va_start(args, format);
    (void)vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
    (void)snprintf(finding->change, sizeof finding->change, "%s", change != NULL ? change : "");
    for (unsigned i = 0; i < exam->findings_len; i++) /* Both scripts, say, are forbidden. */
        if (strcmp(exam->findings[i].text, finding->text) == 0)
            return;
    exam->findings_len++;
}

unsigned exam_changes(const struct exam *exam)
{
    unsigned changes = 0;

    for (unsigned i = 0; i < exam->findings_len; i++)
        changes += exam->findings[i].change[0] != 0;
    return changes;
}

static bool has_finding(const struct exam *exam, const char *name)
{
    for (unsigned i = 0; i < exam->findings_len; i++)
        if (strcmp(exam->findings[i].name, name) == 0)
            return true;
    return false;
}

/* ---- Errors, and what to do about them ---- */

static const char *user_of(const struct exam *exam)
{
    return exam->uri->user != NULL ? exam->uri->user : "default";
}

static bool has_code(const char *error, const char *code)
{
    size_t len = strlen(code);

    return strncmp(error, code, len) == 0 && (error[len] == ' ' || error[len] == 0);
}

/* What an error says by its code, where it is not about rights. */
static const char *advice_on(const char *error)
{
    static const struct {
        const char *code, *change;
    } rows[] = {
        {"OOM", "give it memory: a larger maxmemory, or fewer keys"},
        {"MISCONF", "see its log: it cannot write to its disk"},
        {"NOREPLICAS", "set min-replicas-to-write 0: masters of a lock need no replicas"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (has_code(error, rows[i].code))
            return rows[i].change;
    if (strstr(error, "unknown command") != NULL)
        return "let it have this command: no rename-command, and Redis 6 or later";
    return "see what this error means to it";
}

/* A command was answered with this error; rule: what would allow it. */
static void find_error(struct exam *exam, const char *command, const char *rule, const char *error)
{
    char change[EXAM_TEXT_MAX];

    if (!has_code(error, "NOPERM")) {
        exam_find(exam, "error", advice_on(error), "%s: %s", command, error);
        return;
    }
    if (strstr(error, " key") != NULL || strstr(error, " channel") != NULL) {
        (void)snprintf(
            change, sizeof change,
            "allow the names of your locks (ACL SETUSER %s ~NAMES), or say how they begin: "
            "redlock doctor NAME",
            user_of(exam));
        exam_find(exam, "acl_keys", change, "names that begin as %s are forbidden by its ACL",
                  exam->key);
        return;
    }
    (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s %s, and in its ACL file)",
                   user_of(exam), rule);
    exam_find(exam, "acl", change, "%s is forbidden by its ACL", command);
}

/* ---- Greeting ---- */

/* What the library would say, and not only the first of it. */
static void find_refusal(struct exam *exam, enum handshake_step step, const struct reply *reply,
                         const char *error)
{
    exam->votes = false;
    if (reply->type == REPLY_ERROR && has_code(reply->text, "NOAUTH")) {
        exam_find(exam, "auth", "put a password into its URI", "%s", error);
        return;
    }
    switch (step) {
    case HANDSHAKE_AUTH:
        exam_find(exam, "auth", "correct user and password in the URI, or on the master", "%s",
                  error);
        return;
    case HANDSHAKE_SELECT:
        exam_find(exam, "select", "correct the number of the database in the URI", "%s", error);
        return;
    case HANDSHAKE_RELEASE:
    case HANDSHAKE_EXTEND:
        if (reply->type == REPLY_ERROR && !has_code(reply->text, "LOADING"))
            find_error(exam, "SCRIPT LOAD", "+script|load", reply->text);
        else if (reply->type == REPLY_ERROR)
            exam_find(exam, "loading", "wait, and look again", "%s", error);
        else
            exam_find(exam, "script", "give the address of a Redis master", "%s", error);
        return;
    case HANDSHAKE_INFO:
    case HANDSHAKE_FSYNC:
    case HANDSHAKE_REWRITE:
    case HANDSHAKE_STEPS:
        break;
    }
    if (strcmp(exam->info.role, "slave") == 0)
        exam_find(
            exam, "replica",
            "give the address of a master, or make it one (REPLICAOF NO ONE, and no replicaof in "
            "redis.conf)",
            "%s", error);
    else if (strcmp(exam->info.mode, "cluster") == 0)
        exam_find(exam, "cluster", "set cluster-enabled no in redis.conf, or give another server",
                  "%s", error);
    else
        exam_find(exam, "loading", "wait, and look again", "%s", error);
}

static void take_greetings(struct exam *exam, struct talk *talk, struct handshake *handshake)
{
    struct reply *reply;
    char error[160];

    while (handshake->steps_done < handshake->steps_len && (reply = talk_reply(talk)) != NULL) {
        enum handshake_step step = handshake->steps[handshake->steps_done];

        if (handshake_on_reply(handshake, reply, &exam->info, error, sizeof error) !=
            HANDSHAKE_FAILED)
            continue;
        find_refusal(exam, step, reply, error);
        if (has_finding(exam, "auth") || has_finding(exam, "select"))
            return; /* As a stranger, or elsewhere: all else is moot. */
    }
    exam->answers = handshake->steps_done == handshake->steps_len;
}

static void greet(struct exam *exam, struct talk *talk)
{
    struct reply reply = {.text = NULL};
    struct handshake handshake;
    char *bytes;
    size_t len = handshake_begin(&handshake, exam->uri, exam->guarded, &bytes);

    talk->reader = reply_reader(&reply);
    if (len > 0 && talk->reader != NULL) {
        exam->votes = true;
        talk_send(talk, bytes, len);
        take_greetings(exam, talk, &handshake);
    }
    if (len > 0) {
        sodium_memzero(bytes, len);
        free(bytes);
    }
    if (talk->reader != NULL)
        redisReaderFree(talk->reader);
    reply_done(&reply);
}

/* ---- What is set ---- */

static void look_at_version(struct exam *exam)
{
    unsigned major = 0, minor = 0, patch = 0;

    if (sscanf(exam->info.version, "%u.%u.%u", &major, &minor, &patch) < 2)
        return;
    if (major < 2 || (major == 2 && (minor < 6 || (minor == 6 && patch < 12))))
        exam_find(exam, "version", "install Redis 6 or later",
                  "version %s has no SET with NX and PX", exam->info.version);
    else if (major < 6)
        exam_find(exam, "version", NULL,
                  "version %s has not been tested with redlock, 6 and later have",
                  exam->info.version);
}

static void look_at_info(struct exam *exam)
{
    char change[EXAM_TEXT_MAX];

    if (!handshake_is_informed(&exam->info)) {
        (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s +info)", user_of(exam));
        exam_find(
            exam, "info", change,
            "INFO is forbidden: whether it is a master, the same as another, and keeps what it "
            "stores is not known%s",
            exam->guarded ? ", and with the restart guard it may not vote" : "");
        exam->votes = exam->votes && !exam->guarded;
        return;
    }
    look_at_version(exam);
    if (handshake_evicts(&exam->info))
        exam_find(exam, "eviction",
                  "set noeviction (CONFIG SET maxmemory-policy noeviction, and in redis.conf)",
                  "maxmemory-policy is %s, so that it drops locks when its memory is full",
                  exam->info.policy);
    if (handshake_forgets(&exam->info))
        exam_find(
            exam, "persistence",
            "set appendonly yes and appendfsync always (both by CONFIG SET, and in redis.conf)",
            "appendonly is no, so that it forgets its locks when it is restarted");
}

/* Copy the value of a setting; false: it is not known. */
static bool read_setting(struct talk *talk, const char *setting, char *value, size_t size)
{
    const char *const words[TALK_WORDS_MAX] = {"CONFIG", "GET", setting};
    redisReply *reply = talk_ask(talk, words);
    bool known = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                 reply->element[1]->type == REDIS_REPLY_STRING;

    (void)snprintf(value, size, "%s", known ? reply->element[1]->str : "?");
    if (reply != NULL)
        freeReplyObject(reply);
    return known;
}

static void look_at_settings(struct exam *exam, struct talk *talk)
{
    char change[EXAM_TEXT_MAX], lax[8];

    if (handshake_forgets(&exam->info))
        return; /* It writes nothing, however often. */
    if (!read_setting(talk, "appendfsync", exam->fsync, sizeof exam->fsync)) {
        if (talk->broken[0] != 0)
            return;
        (void)snprintf(change, sizeof change,
                       exam->guarded
                           ? "allow CONFIG GET (ACL SETUSER %s +config|get)"
                           : "allow CONFIG GET for this look (ACL SETUSER %s +config|get), or see "
                             "yourself that it is always",
                       user_of(exam));
        exam_find(exam, "config", change, "appendfsync is not known, CONFIG GET is forbidden%s",
                  exam->guarded ? ", so that it warms up after each restart" : "");
        return;
    }
    if (strcmp(exam->fsync, "always") != 0)
        exam_find(exam, "fsync", "set always (CONFIG SET appendfsync always, and in redis.conf)",
                  "appendfsync is %s, so that it forgets its latest locks when its power fails",
                  exam->fsync);
    else if (read_setting(talk, "no-appendfsync-on-rewrite", lax, sizeof lax) &&
             strcmp(lax, "yes") == 0)
        exam_find(exam, "fsync",
                  "set no (CONFIG SET no-appendfsync-on-rewrite no, and in redis.conf)",
                  "no-appendfsync-on-rewrite is yes, so that appendfsync is not always in force");
}

/* ---- Its clock ---- */

static int64_t read_wall_clock_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* There is no system without. */
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* A number that leaves room for calculating with it. */
static bool read_count(const redisReply *reply, int64_t *ret_count)
{
    *ret_count = reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10) : -1;
    return *ret_count >= 0 && *ret_count < INT64_C(1000000000000); /* The year 33658. */
}

/* False: no answer that could be used. */
static bool read_time(struct exam *exam, struct talk *talk, int64_t *ret_us)
{
    const char *const words[TALK_WORDS_MAX] = {"TIME"};
    redisReply *reply = talk_ask(talk, words);
    int64_t s = 0, us = 0;
    bool good = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                read_count(reply->element[0], &s) && read_count(reply->element[1], &us);

    if (good)
        *ret_us = s * 1000000 + us;
    else if (reply != NULL)
        find_error(exam, "TIME", "+time",
                   reply->type == REDIS_REPLY_ERROR ? reply->str : "no time of day");
    if (reply != NULL)
        freeReplyObject(reply);
    return good;
}

/* It read its clock at some instant between our two readings: the difference is
 * known to half of what lies between them. */
static void look_at_clock(struct exam *exam, struct talk *talk)
{
    for (unsigned i = 0; i < LOOKS_AT_CLOCK; i++) {
        int64_t sent_us = read_wall_clock_us(), got_us, there_us = 0;

        if (!read_time(exam, talk, &there_us))
            return;
        got_us = read_wall_clock_us();
        if (got_us < sent_us)
            continue; /* Ours was set back meanwhile. */
        if (exam->has_clock && (got_us - sent_us + 1) / 2 >= exam->error_us)
            continue;
        exam->has_clock = true;
        exam->offset_us = there_us - sent_us - (got_us - sent_us) / 2;
        exam->error_us = (got_us - sent_us + 1) / 2;
    }
    if (exam->has_clock && 2 * exam->error_us > exam->reply_timeout_ms * INT64_C(1000))
        exam_find(exam, "slow", "make reply_timeout_ms or --reply-timeout longer than that",
                  "an answer takes %.1f ms, and would be waited for %u ms",
                  2 * (double)exam->error_us / 1e3, exam->reply_timeout_ms);
}

/* ---- Its marker ---- */

static bool is_number(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING && reply->len == WIRE_NUMBER &&
           strspn(reply->str, "0123456789abcdef") == WIRE_NUMBER &&
           strspn(reply->str, "0") < WIRE_NUMBER;
}

static bool is_text(const redisReply *reply, const char *text)
{
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, text) == 0;
}

static bool is_there(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING;
}

/* Whether this is a number that a look can tell (look.lua), if it is there: what is below zero,
 * or has more digits, nobody has counted to. */
static bool can_be_told(const redisReply *reply)
{
    double number = is_there(reply) ? strtod(reply->str, NULL) : 0;

    return number >= 0 && number < 1e19;
}

/* Redlock writes no such marker, and what it makes of one is an answer that is none. */
static bool is_spoilt(redisReply *const *fields, bool has_epoch, bool has_nonce)
{
    const redisReply *epoch = fields[1], *nonce = fields[2], *floor = fields[6], *high = fields[7];

    if (!can_be_told(high))
        return true;
    if (has_epoch)
        return !is_number(epoch) || strspn(floor->str, "0123456789") != floor->len ||
               floor->len == 0 || strtod(floor->str, NULL) > (double)QUORUM_FENCE_MAX;
    return has_nonce && !is_number(nonce);
}

/* As the script of a look has it (look.lua), which would change the marker. */
static void read_marker(struct exam *exam, redisReply *const *fields)
{
    const redisReply *id = fields[0], *epoch = fields[1];
    struct exam_marker *marker = &exam->marker;
    bool keeps = handshake_keeps(&exam->info), is_void, has_epoch, has_nonce;
    int64_t max_ttl_ms = 0, since_ms, now_ms;

    now_ms = (read_wall_clock_us() + (exam->has_clock ? exam->offset_us : 0)) / 1000;
    is_void = is_there(id) && !keeps && !is_text(id, exam->info.run_id);
    has_epoch = is_there(epoch) && !is_void && is_there(fields[6]) && is_there(fields[7]);
    has_nonce = is_there(fields[2]) && !is_void;
    if (is_spoilt(fields, has_epoch, has_nonce)) {
        exam->votes = false;
        exam_find(exam, "marker", "delete this key, and let redlock init watch it",
                  "somebody has written to the key " WIRE_MARKER
                  ", its marker, what redlock cannot read");
        return;
    }
    marker->known = true;
    marker->ready = has_epoch;
    marker->ahead_us = has_epoch ? strtoll(fields[7]->str, NULL, 10) - now_ms * 1000 : 0;
    if (has_epoch)
        (void)snprintf(marker->epoch, sizeof marker->epoch, "%s", epoch->str);
    else if (has_nonce)
        marker->fresh = is_text(fields[4], "1");
    else
        marker->fresh = keeps && !is_there(id);
    if (!has_epoch && has_nonce && is_there(fields[5])) {
        since_ms = strtoll(fields[5]->str, NULL, 10);
        if (since_ms > 0 && since_ms < now_ms)
            marker->age_ms = (uint64_t)(now_ms - since_ms);
    }
    if (read_count(fields[3], &max_ttl_ms) && max_ttl_ms <= UINT32_MAX)
        marker->max_ttl_ms = (uint32_t)max_ttl_ms;
}

static void look_at_marker(struct exam *exam, struct talk *talk)
{
    const char *const words[TALK_WORDS_MAX] = {"HMGET", WIRE_MARKER, "id",    "epoch", "nonce",
                                               "max",   "fresh",     "since", "floor", "high"};
    redisReply *reply = talk_ask(talk, words);
    bool is_marker = reply != NULL && reply->type == REDIS_REPLY_ARRAY &&
                     reply->elements == 8; /* Or forbidden. */

    if (is_marker && handshake_is_known(&exam->info))
        read_marker(exam, reply->element);
    if (reply != NULL)
        freeReplyObject(reply);
}

/* ---- What it allows ---- */

#define KEY "<key>" /* In place of the name to try it with. */
#define SCRIPT "return 1"
#define NO_SCRIPT "0000000000000000000000000000000000000000" /* The SHA-1 of none: NOSCRIPT. */

/* Every command that a lock needs, SCRIPT LOAD and INFO aside, which are part of
 * the greeting.  In this order: what SET stores, DEL takes away, and if it is not
 * allowed to, the key expires. */
static const struct probe {
    const char *command, *rule;
    const char *words[TALK_WORDS_MAX];
} probes[] = {
    {"SET", "+set", {"SET", KEY, "probe", "NX", "PX", "10000"}},
    {"GET", "+get", {"GET", KEY}},
    {"PTTL", "+pttl", {"PTTL", KEY}},
    {"PEXPIRE", "+pexpire", {"PEXPIRE", KEY, "10000"}},
    {"EVAL", "+eval", {"EVAL", SCRIPT, "0"}},
    {"EVALSHA", "+evalsha", {"EVALSHA", NO_SCRIPT, "0"}},
    {"DEL", "+del", {"DEL", KEY}},
};

static void try_command(struct exam *exam, struct talk *talk, const struct probe *probe)
{
    const char *words[TALK_WORDS_MAX] = {NULL};
    redisReply *reply;

    for (unsigned i = 0; i < TALK_WORDS_MAX && probe->words[i] != NULL; i++)
        words[i] = strcmp(probe->words[i], KEY) == 0 ? exam->key : probe->words[i];
    reply = talk_ask(talk, words);
    /* NOSCRIPT: the command is allowed. */
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR && !has_code(reply->str, "NOSCRIPT")) {
        find_error(exam, probe->command, probe->rule, reply->str);
        if (probe == &probes[0])
            exam->votes = false;
    }
    if (reply != NULL)
        freeReplyObject(reply);
}

/* What the guard's scripts do with the marker, in ways that change nothing: HSET's
 * number of arguments is wrong, which comes after the question of rights. */
static const struct probe guard_probes[] = {
    {"HGET", "+hget", {"HGET", WIRE_MARKER, "epoch"}},
    {"HMGET", "+hmget", {"HMGET", WIRE_MARKER, "epoch", "nonce"}},
    {"HSET", "+hset", {"HSET", WIRE_MARKER, "epoch", "nonce", "max"}},
    {"HDEL", "+hdel", {"HDEL", WIRE_MARKER, "redlock-doctor"}},
};

/* What keeps the guard from its marker; not what SET has met as well. */
static void find_guard_error(struct exam *exam, const struct probe *probe, const char *error)
{
    char change[EXAM_TEXT_MAX];

    if (has_code(error, "WRONGTYPE")) {
        exam_find(exam, "marker", "delete this key, which is not of redlock's making",
                  "the key " WIRE_MARKER ", its marker, is no hash: WRONGTYPE");
    } else if (has_code(error, "NOPERM") && strstr(error, " key") != NULL) {
        (void)snprintf(change, sizeof change, "allow it (ACL SETUSER %s ~" WIRE_MARKER ")",
                       user_of(exam));
        exam_find(exam, "acl_marker", change,
                  "the key " WIRE_MARKER ", its marker, is forbidden by its ACL");
    } else if (has_code(error, "NOPERM") || strstr(error, "unknown command") != NULL) {
        find_error(exam, probe->command, probe->rule, error);
    } else {
        return;
    }
    exam->votes = false;
}

static void try_guard_command(struct exam *exam, struct talk *talk, const struct probe *probe)
{
    redisReply *reply = talk_ask(talk, probe->words);

    if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
        find_guard_error(exam, probe, reply->str);
    if (reply != NULL)
        freeReplyObject(reply);
}

/* Without it locks are had, but no fencing tokens.  The number is none, which comes after
 * the question of rights as well. */
static void look_at_fencing(struct exam *exam, struct talk *talk)
{
    static const struct probe probe = {
        "HINCRBY", "+hincrby", {"HINCRBY", WIRE_MARKER, "redlock-doctor", "one"}};
    bool votes = exam->votes;

    try_guard_command(exam, talk, &probe);
    exam->votes = votes;
}

static void look_at_guard(struct exam *exam, struct talk *talk)
{
    for (size_t i = 0; i < sizeof guard_probes / sizeof guard_probes[0]; i++)
        try_guard_command(exam, talk, &guard_probes[i]);
    look_at_fencing(exam, talk);
    look_at_marker(exam, talk);
}

/* ---- What those who wait need ---- */

#define MARK "<mark>" /* In place of the mark beside that name. */

/* What SCRIPT_RELEASE and SCRIPT_WAIT do besides, and SUBSCRIBE, after which nothing else
 * can be asked.  Without them locks are had, but who waits has to ask again and again. */
static const struct probe wait_probes[] = {
    {"SET", "+set", {"SET", MARK, "1", "NX", "PX", "1000"}},
    {"DEL", "+del", {"DEL", MARK}},
    {"PUBLISH", "+publish", {"PUBLISH", MARK, "redlock-doctor"}},
    {"PUBSUB NUMSUB", "+pubsub|numsub", {"PUBSUB", "NUMSUB", MARK}},
    {"TYPE", "+type", {"TYPE", MARK}},
    {"SUBSCRIBE", "+subscribe", {"SUBSCRIBE", MARK}},
};

static void find_wait_error(struct exam *exam, const struct probe *probe, const char *error)
{
    bool is_key = strstr(error, " key") != NULL;
    char change[EXAM_TEXT_MAX];

    if (has_finding(exam, "acl_keys") ||
        (!has_code(error, "NOPERM") && strstr(error, "unknown command") == NULL))
        return; /* SET has met it. */
    if (!is_key && strstr(error, " channel") == NULL) {
        find_error(exam, probe->command, probe->rule, error);
        return;
    }
    (void)snprintf(change, sizeof change, "allow them (ACL SETUSER %s %s" WIRE_MARK "*)",
                   user_of(exam), is_key ? "~" : "&");
    exam_find(exam, "acl_wait", change,
              "%s " WIRE_MARK "*, by which those who wait are told, are forbidden by its ACL: "
              "they have to ask again and again",
              is_key ? "keys" : "channels");
}

/* ---- What those who wait in a queue need ---- */

#define QUEUE "<queue>" /* In place of the queue beside that name. */

/* What SCRIPT_ACQUIRE_FAIR does besides, in ways that change nothing.  Many never need it. */
static const struct probe queue_probes[] = {
    {"ZADD", "+zadd", {"ZADD", QUEUE, "no-number", "redlock-doctor"}},
    {"ZREM", "+zrem", {"ZREM", QUEUE, "redlock-doctor"}},
    {"ZSCORE", "+zscore", {"ZSCORE", QUEUE, "redlock-doctor"}},
    {"ZCARD", "+zcard", {"ZCARD", QUEUE}},
    {"ZREVRANGE", "+zrevrange", {"ZREVRANGE", QUEUE, "0", "0"}},
    {"ZRANGEBYSCORE", "+zrangebyscore", {"ZRANGEBYSCORE", QUEUE, "0", "0"}},
};

static void find_queue_error(struct exam *exam, const struct probe *probe, const char *error)
{
    if (!has_code(error, "NOPERM"))
        return;
    if (strstr(error, " key") == NULL)
        exam_find(exam, "acl_queue", NULL,
                  "%s is forbidden by its ACL (ACL SETUSER %s %s): no locks with --fair",
                  probe->command, user_of(exam), probe->rule);
    else if (!has_finding(exam, "acl_queue") && !has_finding(exam, "acl_keys"))
        exam_find(exam, "acl_queue", NULL,
                  "keys " WIRE_QUEUE "* are forbidden by its ACL (ACL SETUSER %s ~" WIRE_QUEUE
                  "*): no locks with --fair",
                  user_of(exam));
}

/* A probe of one of these two kinds. */
static void try_beside(struct exam *exam, struct talk *talk, const struct probe *probe,
                       void (*find)(struct exam *, const struct probe *, const char *))
{
    const char *words[TALK_WORDS_MAX] = {NULL};
    char mark[sizeof exam->key + WIRE_MARK_LEN], queue[sizeof exam->key + WIRE_QUEUE_LEN];
    redisReply *reply;

    (void)snprintf(mark, sizeof mark, WIRE_MARK "%s", exam->key);
    (void)snprintf(queue, sizeof queue, WIRE_QUEUE "%s", exam->key);
    for (unsigned i = 0; i < TALK_WORDS_MAX && probe->words[i] != NULL; i++)
        words[i] = strcmp(probe->words[i], MARK) == 0    ? mark
                   : strcmp(probe->words[i], QUEUE) == 0 ? queue
                                                         : probe->words[i];
    reply = talk_ask(talk, words);
    if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
        find(exam, probe, reply->str);
    if (reply != NULL)
        freeReplyObject(reply);
}

/* ---- All of it ---- */

static void examine(struct exam *exam, struct talk *talk)
{
    bool stores = !has_finding(exam, "replica") && !has_finding(exam, "cluster") &&
                  !has_finding(exam, "loading");

    talk->reader = redisReaderCreate();
    if (talk->reader == NULL)
        return;
    look_at_info(exam);
    look_at_settings(exam, talk);
    look_at_clock(exam, talk);
    for (size_t i = 0; i < sizeof probes / sizeof probes[0] && stores; i++)
        try_command(exam, talk, &probes[i]);
    if (stores && exam->guarded)
        look_at_guard(exam, talk);
    for (size_t i = 0; i < sizeof queue_probes / sizeof queue_probes[0] && stores; i++)
        try_beside(exam, talk, &queue_probes[i], find_queue_error);
    for (size_t i = 0; i < sizeof wait_probes / sizeof wait_probes[0] && stores; i++)
        try_beside(exam, talk, &wait_probes[i], find_wait_error);
    redisReaderFree(talk->reader);
}

void exam_master(struct exam *exam)
{
    struct talk talk;

    (void)snprintf(exam->fsync, sizeof exam->fsync, "?");
    talk_open(&talk, exam->uri, exam->connect_timeout_ms);
    if (talk.broken[0] == 0)
        greet(exam, &talk);
    talk.greeted = exam->answers;
    if (exam->answers)
        examine(exam, &talk);
    if (talk.broken[0] != 0 && exam->answers)
        exam_find(exam, "silent", "see whether it hangs, and what its log says", "broke off: %s",
                  talk.broken);
    else if (!exam->answers && exam->findings_len == 0)
        exam_find(exam, "unreachable", "start it, let this machine reach it, or correct its URI",
                  "%s", talk.broken[0] != 0 ? talk.broken : "out of memory");
    talk_close(&talk);
}
