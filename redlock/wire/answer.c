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

bool answer_witness(const struct reply *reply, int64_t *ret_age_ms)
{
    if (reply->type != REPLY_INTEGER || reply->integer < -1)
        return false;
    *ret_age_ms = reply->integer;
    return true;
}

/* ---- The founding of a set ---- */

#define VER_MAX ((UINT64_C(1) << 53) - 1) /* Lua counts exactly up to here. */

/* Read the rest of the reply from p: printable ASCII.  A p of NULL gives false. */
static bool parse_text(const struct reply *reply, const char *p, size_t max,
                       struct founder_answer *answer)
{
    if (p == NULL || *p++ != ' ')
        return false;
    answer->text = p;
    answer->text_len = (size_t)(reply->text + reply->text_len - p);
    for (size_t i = 0; i < answer->text_len; i++)
        if (p[i] < ' ' || p[i] > '~')
            return false;
    return answer->text_len <= max;
}

static bool parse_claim(const struct reply *reply, struct founder_answer *answer)
{
    const char *p = parse_hex(reply->text + 6, &answer->number);

    answer->word = FOUNDER_SAYS_CLAIM;
    return parse_text(reply, p, WIRE_LIST_MAX, answer) && answer->text_len > 0;
}

/* A set without members has an empty configuration. */
static bool parse_member(const struct reply *reply, struct founder_answer *answer)
{
    const char *p = parse_hex(reply->text + 7, &answer->number);

    answer->word = FOUNDER_SAYS_MEMBER;
    p = parse_count(p, VER_MAX, &answer->ver);
    return parse_text(reply, p, WIRE_CONFIG_MAX, answer) && answer->ver > 0;
}

bool answer_claim(const struct reply *reply, struct founder_answer *ret_answer)
{
    static const struct {
        const char *text;
        enum founder_word word;
    } words[] = {
        {"nothing", FOUNDER_SAYS_NOTHING},
        {"new", FOUNDER_SAYS_NEW},
        {"took", FOUNDER_SAYS_TOOK},
    };
    struct founder_answer answer = {.text = ""};
    bool is_read = false;

    if (reply->type != REPLY_TEXT || strlen(reply->text) != reply->text_len)
        return false;
    if (strncmp(reply->text, "claim ", 6) == 0)
        is_read = parse_claim(reply, &answer);
    else if (strncmp(reply->text, "member ", 7) == 0)
        is_read = parse_member(reply, &answer);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(reply->text, words[i].text) == 0) {
            answer.word = words[i].word;
            is_read = true;
        }
    if (is_read)
        *ret_answer = answer;
    return is_read;
}

bool answer_done(const struct reply *reply, struct founder_answer *ret_answer)
{
    if (reply->type != REPLY_INTEGER || (reply->integer != 0 && reply->integer != 1))
        return false;
    *ret_answer = (struct founder_answer){
        .word = reply->integer == 1 ? FOUNDER_SAYS_YES : FOUNDER_SAYS_NO,
        .text = "",
    };
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
