/*
 * answer.c - reads the texts of a marker, and the answer to TIME.
 */
#include "redlock/wire/answer.h"

#include <stdlib.h>
#include <string.h>

#include "redlock/wire/wire.h"

#define US_PER_S 1000000
#define TIME_S_MAX UINT32_MAX /* The year 2106.  A larger number is no time of day. */

/* ---- The marker ---- */

/* Parse 16 hexadecimal digits that are not all 0.  Returns what follows, or NULL. */
static const char *parse_hex(const char *p, uint64_t *ret_number)
{
    if (strspn(p, "0123456789abcdef") != WIRE_NUMBER)
        return NULL;
    *ret_number = strtoull(p, NULL, 16);
    return *ret_number != 0 ? p + WIRE_NUMBER : NULL;
}

#define COUNT_DIGITS_MAX 19 /* The most digits that always fit strtoull(). */

/* Parse a decimal number.  Returns what follows, or NULL. */
static const char *parse_digits(const char *p, uint64_t max, uint64_t *ret_count)
{
    size_t digits = strspn(p, "0123456789");

    if (digits == 0 || digits > COUNT_DIGITS_MAX)
        return NULL;
    *ret_count = strtoull(p, NULL, 10);
    return *ret_count <= max ? p + digits : NULL;
}

/* Parse a space and a decimal number.  Returns what follows, or NULL.  A p of NULL gives NULL. */
static const char *parse_count(const char *p, uint64_t max, uint64_t *ret_count)
{
    return p != NULL && p[0] == ' ' ? parse_digits(p + 1, max, ret_count) : NULL;
}

bool answer_max(const char *text, uint32_t *ret_max_ttl_ms)
{
    uint64_t max_ttl_ms;
    const char *end = parse_digits(text, WIRE_TTL_MAX_MS, &max_ttl_ms);

    if (end == NULL || *end != '\0')
        return false;
    *ret_max_ttl_ms = (uint32_t)max_ttl_ms;
    return true;
}

bool answer_look(const struct reply *reply, struct guard_look *ret_look)
{
    struct guard_look look = {.ready = false};
    uint64_t max_ttl_ms = 0, fresh = 0, age_ms;
    const char *p;

    if (reply->type != REPLY_TEXT)
        return false;
    look.ready = strncmp(reply->text, "ready ", 6) == 0;
    if (!look.ready && strncmp(reply->text, "warming ", 8) != 0)
        return false;
    p = parse_hex(reply->text + (look.ready ? 6 : 8), &look.number);
    p = parse_count(p, WIRE_TTL_MAX_MS, &max_ttl_ms);
    if (!look.ready)
        p = parse_count(parse_count(p, 1, &fresh), UINT64_MAX, &age_ms);
    else
        p = parse_count(p, QUORUM_FENCE_MAX, &look.floor);
    p = parse_count(p, UINT64_MAX, &look.high);
    p = parse_count(p, QUORUM_FENCE_MAX, &look.time_us);
    if (p == NULL || *p != '\0')
        return false;
    look.max_ttl_ms = (uint32_t)max_ttl_ms;
    look.fresh = fresh == 1;
    *ret_look = look;
    return true;
}

/* ---- TIME ---- */

/* Read a number without a sign, of at most digits_max digits.  Returns false if the text is no
 * such number. */
static bool read_number(const char *text, size_t digits_max, uint64_t *ret_number)
{
    size_t digits = text != NULL ? strspn(text, "0123456789") : 0;

    if (digits == 0 || digits > digits_max || text[digits] != '\0')
        return false;
    *ret_number = strtoull(text, NULL, 10);
    return true;
}

/* The answer has two texts: seconds and microseconds. */
bool answer_time(const struct reply *reply, uint64_t *ret_us)
{
    uint64_t s, us;

    if (reply->type != REPLY_ARRAY || !read_number(reply->before, 10, &s) ||
        !read_number(reply->text, 6, &us) || s > TIME_S_MAX)
        return false;
    *ret_us = s * US_PER_S + us;
    return true;
}
