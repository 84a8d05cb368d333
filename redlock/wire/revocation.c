/*
 * revocation.c - writes EVAL of revoke.lua, and reads replies.
 */
#include "redlock/wire/revocation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/wire/answer.h"
#include "redlock/wire/put.h"

_Static_assert(REDLOCK_TOKEN_MAX + 1 == 129, "what revoke.lua reads of a string");

size_t revocation_write(char *buf, const struct revocation *revocation)
{
    bool has_marker = revocation->state[0] != '\0';
    char *p = put_script(buf, 8u + has_marker, SCRIPT_REVOKE, true);

    assert(revocation->key_len <= WIRE_KEY_MAX);
    assert(strlen(revocation->token) <= REDLOCK_TOKEN_MAX);
    assert(strlen(revocation->text) <= REDLOCK_TOKEN_MAX);
    p = put_number(p, 1u + has_marker);
    p = put_bulk(p, revocation->key, revocation->key_len);
    if (has_marker)
        p = PUT_CONSTANT(p, "$14\r\n" WIRE_MARKER "\r\n");
    p = put_bulk(p, revocation->token, strlen(revocation->token));
    p = put_bulk(p, revocation->state, strlen(revocation->state));
    p = put_number(p, wire_counter(revocation->key, revocation->key_len));
    p = put_bulk(p, revocation->text, strlen(revocation->text));
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

/* "123 " or "-1 ".  Returns what follows, or NULL. */
static const char *parse_number(const char *p, int64_t *ret_number)
{
    char *end;

    if (p == NULL || (*p != '-' && (*p < '0' || *p > '9')))
        return NULL;
    *ret_number = strtoll(p, &end, 10);
    return *end == ' ' ? end + 1 : NULL;
}

/* PTTL.  A key without an end stays for as long as can be said. */
static uint32_t left_of(int64_t left)
{
    if (left == -2)
        return 0;
    return left < 0 || left >= UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

static enum revoke_what kind_of(const char *type, size_t type_len, int64_t left, const char *value,
                                size_t value_len)
{
    bool is_text = type_len == 6 && strncmp(type, "string", 6) == 0;

    if (type_len == 4 && strncmp(type, "none", 4) == 0)
        return REVOKE_FREE;
    if (left < 0)
        return REVOKE_FOREIGN;
    if (type_len == 4 && strncmp(type, "zset", 4) == 0)
        return REVOKE_READERS;
    if (!is_text || value_len == 0 || value_len > REDLOCK_TOKEN_MAX || strlen(value) != value_len)
        return REVOKE_FOREIGN;
    return strncmp(value, WIRE_REVOKED, WIRE_REVOKED_LEN) == 0 ? REVOKE_REVOKED : REVOKE_TOKEN;
}

/* "STATE ", or "- ". */
static const char *parse_state(const char *p, char state[WIRE_STATE_MAX + 1],
                               struct revoke_seen *seen)
{
    size_t len = strcspn(p, " ");
    struct answer_state found = {.version = 0};

    if (len > WIRE_STATE_MAX || p[len] != ' ')
        return NULL;
    memcpy(state, p, len);
    state[len] = '\0';
    if (strcmp(state, "-") != 0 && !answer_state(state, len, &found))
        return NULL;
    seen->version = found.version;
    return p + len + 1;
}

bool revocation_read(const struct reply *reply, char state[WIRE_STATE_MAX + 1],
                     struct revoke_seen *ret_seen)
{
    struct revoke_seen seen = {.version = 0};
    int64_t left;
    const char *p, *type;
    size_t type_len, value_len;

    if (reply->type != REPLY_TEXT)
        return false;
    p = parse_state(reply->text, state, &seen);
    if (p == NULL)
        return false;
    p = parse_number(p, &left);
    if (p == NULL)
        return false;
    type = p;
    type_len = strcspn(type, " ");
    if (type[type_len] != ' ')
        return false;
    p = type + type_len + 1;
    value_len = reply->text_len - (size_t)(p - reply->text);
    seen.left_ms = left_of(left);
    seen.what = kind_of(type, type_len, left, p, value_len);
    if (seen.what == REVOKE_TOKEN || seen.what == REVOKE_REVOKED)
        memcpy(seen.text, p, value_len + 1);
    *ret_seen = seen;
    return true;
}

bool revocation_done(const struct reply *reply, struct revoke_done *ret_done)
{
    struct revoke_done done = {.left_ms = 0};
    int64_t left;
    const char *p;
    char *end;

    if (reply->type != REPLY_TEXT)
        return false;
    done.is_revoked = strncmp(reply->text, "revoked ", 8) == 0;
    if (!done.is_revoked && strncmp(reply->text, "gone ", 5) != 0)
        return false;
    p = parse_number(strchr(reply->text, ' ') + 1, &left);
    if (p == NULL || *p < '0' || *p > '9')
        return false;
    done.number = strtoull(p, &end, 10);
    if (*end != '\0' || done.number > QUORUM_FENCE_MAX)
        return false;
    done.left_ms = left_of(left);
    *ret_done = done;
    return true;
}
