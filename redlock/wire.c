/*
 * wire.c - the commands of the lock as arrays of bulk strings.
 */
#include "redlock/wire.h"

#include <assert.h>
#include <string.h>

#define DECIMAL_MAX 10 /* Digits of UINT32_MAX. */

/* A constant piece of a command. */
#define PUT_CONSTANT(p, text) put_bytes((p), (text), sizeof(text) - 1)

static char *put_bytes(char *p, const char *bytes, size_t len)
{
    memcpy(p, bytes, len);
    return p + len;
}

/* Write the digits of number at the end of buf; returns the first. */
static const char *decimal(uint32_t number, char buf[DECIMAL_MAX])
{
    char *p = buf + DECIMAL_MAX;

    do {
        *--p = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return p;
}

/* One argument: "$3\r\nfoo\r\n". */
static char *put_bulk(char *p, const char *bytes, size_t len)
{
    char buf[DECIMAL_MAX];
    const char *digits = decimal((uint32_t)len, buf);

    *p++ = '$';
    p = put_bytes(p, digits, (size_t)(buf + DECIMAL_MAX - digits));
    p = PUT_CONSTANT(p, "\r\n");
    p = put_bytes(p, bytes, len);
    return PUT_CONSTANT(p, "\r\n");
}

static char *put_number(char *p, uint32_t number)
{
    char buf[DECIMAL_MAX];
    const char *digits = decimal(number, buf);

    return put_bulk(p, digits, (size_t)(buf + DECIMAL_MAX - digits));
}

static char *put_name_and_token(char *p, const struct wire_args *args)
{
    assert(args->name_len >= 1 && args->name_len <= REDLOCK_NAME_MAX);
    assert(args->token_len >= 1 && args->token_len <= REDLOCK_TOKEN_MAX);
    p = put_bulk(p, args->name, args->name_len);
    return put_bulk(p, args->token, args->token_len);
}

size_t wire_set(char *buf, const struct wire_args *args)
{
    char *p = buf;

    assert(args->ttl_ms > 0);
    p = PUT_CONSTANT(p, "*6\r\n$3\r\nSET\r\n");
    p = put_name_and_token(p, args);
    p = PUT_CONSTANT(p, "$2\r\nNX\r\n$2\r\nPX\r\n");
    p = put_number(p, args->ttl_ms);
    return (size_t)(p - buf);
}

size_t wire_script(char *buf, enum script_id script, bool in_full, const struct wire_args *args)
{
    const struct script *s = &script_all[script];
    bool has_ttl = script == SCRIPT_EXTEND;
    char *p = buf;

    assert(script < SCRIPT_LEN);
    p = has_ttl ? PUT_CONSTANT(p, "*6\r\n") : PUT_CONSTANT(p, "*5\r\n");
    if (in_full) {
        p = PUT_CONSTANT(p, "$4\r\nEVAL\r\n");
        p = put_bulk(p, s->text, s->text_len);
    } else {
        p = PUT_CONSTANT(p, "$7\r\nEVALSHA\r\n$40\r\n");
        p = put_bytes(p, s->sha1, 40);
        p = PUT_CONSTANT(p, "\r\n");
    }
    p = PUT_CONSTANT(p, "$1\r\n1\r\n"); /* One key: the name. */
    p = put_name_and_token(p, args);
    if (has_ttl) {
        assert(args->ttl_ms > 0);
        p = put_number(p, args->ttl_ms);
    }
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}
