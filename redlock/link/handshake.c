/*
 * handshake.c - writes the commands of a greeting, and judges the answers.
 */
#include "redlock/link/handshake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <sodium.h>

#include "redlock/base/text.h"
#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"
#include "redlock/wire/script.h"
#include "redlock/link/reader.h"
#include "redlock/link/uri.h"

/* ---- Asking ---- */

/* Chosen: more than user, password and scripts take at their longest. */
#define BYTES_MAX 8192

/* Of a line of INFO.  Chosen: a password that does not fit is longer than a URI. */
#define LINE_MAX_LEN 2048

/* The commands so far, one after the other. */
struct writer {
    struct handshake *handshake;
    char *bytes;
    size_t len;
    int failed; /* Memory ran out. */
};

static void say(struct writer *writer, enum handshake_step step, int argc, const char **argv)
{
    char *command;
    int len = (int)redisFormatCommandArgv(&command, argc, argv, NULL);

    if (len < 0) {
        writer->failed = 1;
        return;
    }
    assert(writer->len + (size_t)len <= BYTES_MAX);
    memcpy(writer->bytes + writer->len, command, (size_t)len);
    writer->len += (size_t)len;
    sodium_memzero(command, (size_t)len);
    redisFreeCommand(command);
    writer->handshake->steps[writer->handshake->steps_len++] = step;
}

static void say_auth(struct writer *writer, const struct uri *uri)
{
    const char *both[] = {"AUTH", uri->user, uri->password};
    const char *one[] = {"AUTH", uri->password};

    if (uri->password == NULL)
        return;
    if (uri->user != NULL)
        say(writer, HANDSHAKE_AUTH, 3, both);
    else
        say(writer, HANDSHAKE_AUTH, 2, one);
}

static void say_select(struct writer *writer, const struct uri *uri)
{
    char db[12];
    const char *select[] = {"SELECT", db};

    if (uri->db == 0)
        return;
    (void)snprintf(db, sizeof db, "%u", uri->db);
    say(writer, HANDSHAKE_SELECT, 2, select);
}

static void say_load(struct writer *writer, enum handshake_step step, enum script_id script)
{
    const char *load[] = {"SCRIPT", "LOAD", script_all[script].text};

    say(writer, step, 3, load);
}

static void say_config(struct writer *writer, enum handshake_step step, const char *setting)
{
    const char *get[] = {"CONFIG", "GET", setting};

    say(writer, step, 3, get);
}

static size_t finish(struct writer *writer, char **ret_bytes)
{
    if (writer->failed) {
        sodium_memzero(writer->bytes, writer->len);
        free(writer->bytes);
        return 0;
    }
    *ret_bytes = writer->bytes;
    return writer->len;
}

size_t handshake_begin(struct handshake *handshake, const struct uri *uri, bool guarded,
                       char **ret_bytes)
{
    const char *info[] = {"INFO"};
    struct writer writer = {.handshake = handshake, .bytes = malloc(BYTES_MAX)};

    *handshake = (struct handshake){.uri = uri};
    if (writer.bytes == NULL)
        return 0;
    say_auth(&writer, uri);
    say(&writer, HANDSHAKE_INFO, 1, info); /* Before all that a server of another kind lacks. */
    say_select(&writer, uri);
    say_load(&writer, HANDSHAKE_RELEASE, SCRIPT_RELEASE);
    say_load(&writer, HANDSHAKE_EXTEND, SCRIPT_EXTEND);
    if (guarded) {
        say_config(&writer, HANDSHAKE_FSYNC, "appendfsync");
        say_config(&writer, HANDSHAKE_REWRITE, "no-appendfsync-on-rewrite");
    }
    return finish(&writer, ret_bytes);
}

size_t handshake_begin_listening(struct handshake *handshake, const struct uri *uri,
                                 char **ret_bytes)
{
    struct writer writer = {.handshake = handshake, .bytes = malloc(BYTES_MAX)};

    assert(uri->password != NULL);
    *handshake = (struct handshake){.uri = uri};
    if (writer.bytes == NULL)
        return 0;
    say_auth(&writer, uri);
    return finish(&writer, ret_bytes);
}

/* ---- Understanding ---- */

/* Copy the value of "\nkey:value\r\n", or "?" if there is none. */
static void read_field(const char *info, const char *key, char *value, size_t size)
{
    const char *at = strstr(info, key);
    size_t len = 0;

    (void)snprintf(value, size, "?");
    if (at == NULL)
        return;
    at += strlen(key);
    while (len + 1 < size && at[len] != '\r' && at[len] != '\n' && at[len] != 0)
        len++;
    memcpy(value, at, len);
    value[len] = 0;
}

static uint64_t read_number(const char *info, const char *key)
{
    char value[24];

    read_field(info, key, value, sizeof value);
    return strtoull(value, NULL, 10); /* "?" gives 0. */
}

static char read_flag(const char *info, const char *key)
{
    char value[4];

    read_field(info, key, value, sizeof value);
    return strcmp(value, "0") == 0 || strcmp(value, "1") == 0 ? value[0] : '?';
}

/* True: it is what Redis says here, and decides something, whatever the password is. */
static bool is_plain(const char *value)
{
    return strcmp(value, "master") == 0 || strcmp(value, "slave") == 0 ||
           strcmp(value, "noeviction") == 0 || strspn(value, "0123456789.") == strlen(value);
}

/* Read what is shown.  A hostile master may put there what it was told. */
static void read_shown(const char *info, const char *key, const char *password, char *value,
                       size_t size)
{
    char line[LINE_MAX_LEN];

    read_field(info, key, line, sizeof line);
    if (password != NULL && !is_plain(line))
        (void)text_hide(line, password);
    (void)snprintf(value, size, "%.*s", (int)size - 1, text_clean(line));
}

static void read_info(const struct reply *reply, const char *password, struct master_info *info)
{
    const char *text = reply->type == REPLY_TEXT ? reply->text : ""; /* An ACL may forbid INFO. */
    char replid_before[48]; /* The id of its former master.  Zeroes: none. */

    /* Valkey also has redis_version: the Redis that it is compatible with. */
    read_shown(text, "\nvalkey_version:", password, info->version, sizeof info->version);
    if (*info->version == '?')
        read_shown(text, "\nredis_version:", password, info->version, sizeof info->version);
    read_shown(text, "\nrole:", password, info->role, sizeof info->role);
    read_field(text, "\nredis_mode:", info->mode, sizeof info->mode);
    if (*info->mode == '?')
        read_field(text, "\nserver_mode:", info->mode, sizeof info->mode); /* Valkey. */
    read_shown(text, "\nmaxmemory_policy:", password, info->policy, sizeof info->policy);
    read_field(text, "\nrun_id:", info->run_id, sizeof info->run_id);
    read_field(text, "\nmaster_replid2:", replid_before, sizeof replid_before);
    info->promoted = strspn(replid_before, "0?") != strlen(replid_before);
    info->loading = read_flag(text, "\nloading:");
    /* Redis reports 0 until it has loaded its data. */
    info->keeps = info->loading == '1' ? '?' : read_flag(text, "\naof_enabled:");
    info->maxmemory = read_number(text, "\nmaxmemory:");
    info->uptime_s = read_number(text, "\nuptime_in_seconds:");
}

/* Why the server must not vote.  NONE: it may. */
static enum why refusal_of(const struct master_info *info)
{
    if (strcmp(info->mode, "sentinel") == 0)
        return WHY_SENTINEL;
    if (strcmp(info->role, "slave") == 0)
        return WHY_REPLICA;
    if (strcmp(info->mode, "cluster") == 0)
        return WHY_CLUSTER;
    if (info->loading == '1')
        return WHY_LOADING;
    return WHY_NONE;
}

/* What is wrong with an answer that is no error.  NONE: nothing. */
static enum why judge(enum handshake_step step, const struct reply *reply)
{
    const char *sha1 = NULL;

    switch (step) {
    case HANDSHAKE_AUTH:
    case HANDSHAKE_SELECT:
        return reply->type == REPLY_STATUS ? WHY_NONE : WHY_GARBAGE;
    case HANDSHAKE_RELEASE:
        sha1 = script_all[SCRIPT_RELEASE].sha1;
        break;
    case HANDSHAKE_EXTEND:
        sha1 = script_all[SCRIPT_EXTEND].sha1;
        break;
    case HANDSHAKE_INFO:
    case HANDSHAKE_FSYNC:
    case HANDSHAKE_REWRITE:
    case HANDSHAKE_STEPS:
        return WHY_NONE;
    }
    return reply->type == REPLY_TEXT && strcmp(reply->text, sha1) == 0 ? WHY_NONE : WHY_DIGEST;
}

/* Store what the server reports about itself.  An ACL may forbid each of these. */
static void learn(enum handshake_step step, const struct reply *reply, const char *password,
                  struct master_info *info)
{
    bool told = reply->type == REPLY_ARRAY;

    if (step == HANDSHAKE_INFO) {
        info->syncs = false;
        info->forbids =
            reply->type == REPLY_ERROR && reason_refuses_user(redis_error_kind(reply->text));
        read_info(reply, password, info);
    } else if (step == HANDSHAKE_FSYNC) {
        info->syncs = told && strcmp(reply->text, "always") == 0;
    } else if (step == HANDSHAKE_REWRITE) {
        info->syncs = info->syncs && told && strcmp(reply->text, "no") == 0;
    }
}

/*
 * How much of the answer to AUTH may be shown.  It ends before the first quote: "unknown command
 * 'AUTH', with args beginning with: 'user' 'password'".  A proxy may repeat the password without
 * quotes.  What Redis itself says stays, so that the reason is known with any password.
 */
static int shown_len(const char *answer, const char *password)
{
    const char *secret = strstr(answer + reader_known_len(answer), password);
    size_t len = strcspn(answer, "'\"`");

    if (secret != NULL && (size_t)(secret - answer) < len)
        len = (size_t)(secret - answer);
    return (int)len;
}

static enum reason_at at_step(enum handshake_step step)
{
    switch (step) {
    case HANDSHAKE_AUTH:
        return AT_LOGIN;
    case HANDSHAKE_SELECT:
        return AT_SELECT;
    case HANDSHAKE_RELEASE:
    case HANDSHAKE_EXTEND:
        return AT_SCRIPT;
    case HANDSHAKE_INFO:
    case HANDSHAKE_FSYNC:
    case HANDSHAKE_REWRITE:
    case HANDSHAKE_STEPS:
        break;
    }
    return AT_ANYTHING;
}

/* An error with the code ERR, and of no other kind, refuses the password: each version says it
 * otherwise. */
static void explain_login(const struct handshake *handshake, enum why why, const char *error,
                          struct reason *ret_why)
{
    const bool is_plain = strncmp(error, "ERR ", 4) == 0;
    char shown[REASON_WORDS_MAX];

    (void)snprintf(shown, sizeof shown, "%.*s", shown_len(error, handshake->uri->password), error);
    redis_error_reason(ret_why, shown);
    ret_why->why = why == WHY_ERROR && is_plain ? WHY_ERROR_LOGIN : why;
}

/* The server answered a step with this error. */
static void explain_error(const struct handshake *handshake, enum handshake_step step,
                          const char *error, struct reason *ret_why)
{
    const enum why why = redis_error_kind(error);

    if (why == WHY_ERROR_LOADING) {
        reason_set(ret_why, WHY_LOADING);
    } else if (step == HANDSHAKE_AUTH) {
        explain_login(handshake, why, error, ret_why);
        reason_answers(ret_why, AT_LOGIN);
    } else if (why == WHY_ERROR_LOGIN) {
        redis_error_reason(ret_why, error);
        ret_why->why = handshake->uri->tls ? WHY_NO_LOGIN_TLS : WHY_NO_LOGIN;
    } else {
        redis_error_reason(ret_why, error);
        reason_answers(ret_why, at_step(step));
    }
}

/* An ACL may forbid these steps, and nothing depends on them but the restart guard. */
static bool is_optional(enum handshake_step step)
{
    return step == HANDSHAKE_INFO || step == HANDSHAKE_FSYNC || step == HANDSHAKE_REWRITE;
}

/* True: the greeting ends with this error.  After others, INFO may still tell the kind. */
static bool is_end(enum handshake_step step, enum why why)
{
    return why == WHY_ERROR_LOADING || !(step == HANDSHAKE_AUTH || is_optional(step));
}

/* True: after this error the server may close, or refuse the rest.  An ACL may forbid INFO, and
 * rename-command may take it away. */
static bool is_complaint(enum handshake_step step, enum why why)
{
    return step == HANDSHAKE_AUTH ||
           (step == HANDSHAKE_INFO && why != WHY_ERROR_RIGHT && why != WHY_ERROR_COMMAND);
}

/* True: that was the end. */
static bool on_error(struct handshake *handshake, enum handshake_step step, const char *error,
                     struct reason *ret_why)
{
    const enum why why = redis_error_kind(error);

    if (is_end(step, why) || (!handshake->complains && is_complaint(step, why))) {
        explain_error(handshake, step, error, ret_why);
        handshake->complains = true;
    }
    return is_end(step, why);
}

enum handshake_result handshake_on_reply(struct handshake *handshake, const struct reply *reply,
                                         struct master_info *info, struct reason *ret_why)
{
    enum handshake_step step = handshake->steps[handshake->steps_done++];
    const bool is_error = reply->type == REPLY_ERROR,
               is_last = handshake->steps_done == handshake->steps_len,
               is_refused = step == HANDSHAKE_INFO ? handshake->complains
                                                   : step == HANDSHAKE_AUTH && is_error && is_last;
    enum why wrong = is_error ? WHY_NONE : judge(step, reply);

    assert(handshake->steps_done <= handshake->steps_len);
    if (is_error && on_error(handshake, step, reply->text, ret_why))
        return HANDSHAKE_FAILED;
    if (wrong != WHY_NONE) {
        reason_set(ret_why, wrong);
        ret_why->at = at_step(step);
        return HANDSHAKE_FAILED;
    }
    learn(step, reply, handshake->uri->password, info);
    wrong = step == HANDSHAKE_INFO ? refusal_of(info) : WHY_NONE;
    if (wrong != WHY_NONE) {
        reason_set(ret_why, wrong);
        return HANDSHAKE_FAILED;
    }
    if (is_refused) /* By AUTH. */
        return HANDSHAKE_FAILED;
    return is_last ? HANDSHAKE_DONE : HANDSHAKE_GOES_ON;
}

bool handshake_may_be_tls(const struct handshake *handshake)
{
    const struct uri *uri = handshake->uri;

    return handshake->steps_done == 0 && !uri->tls && uri->path == NULL;
}

/* ---- Judging ---- */

bool handshake_is_informed(const struct master_info *info)
{
    return info->version[0] != 0 && strcmp(info->version, "?") != 0;
}

/* A run_id has 40 hexadecimal digits, and is not zero.  A proxy or an imitation may report some
 * other text, which all of its kind share. */
static bool is_run_id(const char *text)
{
    return strlen(text) == 40 && strspn(text, "0123456789abcdef") == 40 && strspn(text, "0") < 40;
}

bool handshake_is_same(const struct master_info *a, const struct master_info *b)
{
    return is_run_id(a->run_id) && strcmp(a->run_id, b->run_id) == 0;
}

enum why handshake_refuses(const struct master_info *info)
{
    if (is_run_id(info->run_id))
        return WHY_NONE;
    return info->forbids ? WHY_NO_INFO : WHY_NO_RUN_ID;
}

bool handshake_is_durable(const struct master_info *info)
{
    return info->keeps == '1' && info->syncs;
}

bool handshake_keeps(const struct master_info *info)
{
    return handshake_is_durable(info) && !info->promoted;
}

bool handshake_evicts(const struct master_info *info)
{
    return info->maxmemory > 0 && strcmp(info->policy, "noeviction") != 0 &&
           strcmp(info->policy, "?") != 0;
}

bool handshake_forgets(const struct master_info *info)
{
    return info->keeps == '0';
}
