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

#include "redlock/wire/keys.h"
#include "redlock/wire/script.h"

#define DECIMAL_MAX 20 /* Digits of UINT64_MAX. */

/* Append a constant piece of a command. */
#define PUT_CONSTANT(p, text) put_bytes((p), (text), sizeof(text) - 1)

static inline char *put_bytes(char *p, const char *bytes, size_t len)
{
    memcpy(p, bytes, len);
    return p + len;
}

static inline unsigned count_digits(uint64_t number)
{
    unsigned count = 1;

    for (; number >= 10; number /= 10)
        count++;
    return count;
}

static inline char *put_digits(char *p, uint64_t number)
{
    char *end = p + count_digits(number);

    for (p = end; number >= 10; number /= 10)
        *--p = (char)('0' + number % 10);
    *--p = (char)('0' + number);
    return end;
}

/* Append one argument: "$3\r\nfoo\r\n". */
static inline char *put_bulk(char *p, const char *bytes, size_t len)
{
    *p++ = '$';
    p = put_digits(p, len);
    p = PUT_CONSTANT(p, "\r\n");
    p = put_bytes(p, bytes, len);
    return PUT_CONSTANT(p, "\r\n");
}

static inline char *put_number(char *p, uint64_t number)
{
    *p++ = '$';
    p = put_digits(p, count_digits(number));
    p = PUT_CONSTANT(p, "\r\n");
    p = put_digits(p, number);
    return PUT_CONSTANT(p, "\r\n");
}

static inline void print_hex(uint64_t number, char ret_digits[WIRE_NUMBER])
{
    for (unsigned i = WIRE_NUMBER; i-- > 0; number >>= 4)
        ret_digits[i] = "0123456789abcdef"[number & 15];
}

static inline char *put_hex(char *p, uint64_t number)
{
    char digits[WIRE_NUMBER];

    print_hex(number, digits);
    return put_bulk(p, digits, sizeof digits);
}

/* Append "*N EVALSHA sha1" or "*N EVAL text".  count: the number of all arguments, the command
 * included. */
static inline char *put_script(char *p, uint32_t count, enum script_id script, bool in_full)
{
    const struct script *s = &script_all[script];

    assert(script < SCRIPT_LEN);
    *p++ = '*';
    p = put_digits(p, count);
    if (in_full) {
        p = PUT_CONSTANT(p, "\r\n$4\r\nEVAL\r\n");
        return put_bulk(p, s->text, s->text_len);
    }
    p = PUT_CONSTANT(p, "\r\n$7\r\nEVALSHA\r\n$40\r\n");
    p = put_bytes(p, s->sha1, 40);
    return PUT_CONSTANT(p, "\r\n");
}

#endif /* REDLOCK_PUT_H */
