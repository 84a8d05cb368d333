/*
 * put.h - appends pieces of a command to a buffer; for the writers of commands only.
 */
#ifndef REDLOCK_PUT_H
#define REDLOCK_PUT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "redlock/wire/script.h"

#define DECIMAL_MAX 20 /* Digits of UINT64_MAX. */

/* Append a constant piece of a command. */
#define PUT_CONSTANT(p, text) put_bytes((p), (text), sizeof(text) - 1)

static inline char *put_bytes(char *p, const char *bytes, size_t len)
{
    memcpy(p, bytes, len);
    return p + len;
}

/* Write the digits of number at the end of buf.  Returns the first digit. */
static inline const char *decimal(uint64_t number, char buf[DECIMAL_MAX])
{
    char *p = buf + DECIMAL_MAX;

    do {
        *--p = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    return p;
}

/* Append one argument: "$3\r\nfoo\r\n". */
static inline char *put_bulk(char *p, const char *bytes, size_t len)
{
    char buf[DECIMAL_MAX];
    const char *digits = decimal((uint32_t)len, buf);

    *p++ = '$';
    p = put_bytes(p, digits, (size_t)(buf + DECIMAL_MAX - digits));
    p = PUT_CONSTANT(p, "\r\n");
    p = put_bytes(p, bytes, len);
    return PUT_CONSTANT(p, "\r\n");
}

static inline char *put_number(char *p, uint64_t number)
{
    char buf[DECIMAL_MAX];
    const char *digits = decimal(number, buf);

    return put_bulk(p, digits, (size_t)(buf + DECIMAL_MAX - digits));
}

/* Append "*N EVALSHA sha1" or "*N EVAL text".  count: the number of all arguments, the command
 * included. */
static inline char *put_script(char *p, uint32_t count, enum script_id script, bool in_full)
{
    const struct script *s = &script_all[script];
    char buf[DECIMAL_MAX];
    const char *digits = decimal(count, buf);

    assert(script < SCRIPT_LEN);
    *p++ = '*';
    p = put_bytes(p, digits, (size_t)(buf + DECIMAL_MAX - digits));
    if (in_full) {
        p = PUT_CONSTANT(p, "\r\n$4\r\nEVAL\r\n");
        return put_bulk(p, s->text, s->text_len);
    }
    p = PUT_CONSTANT(p, "\r\n$7\r\nEVALSHA\r\n$40\r\n");
    p = put_bytes(p, s->sha1, 40);
    return PUT_CONSTANT(p, "\r\n");
}

#endif /* REDLOCK_PUT_H */
