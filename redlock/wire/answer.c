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

bool answer_state(const char *text, size_t text_len, struct answer_state *ret_state)
{
    struct answer_state state = {.floor = 0};
    const char *p;

    if (text_len > WIRE_STATE_MAX || strlen(text) < text_len)
        return false;
    p = parse_hex(text, &state.epoch);
    if (p == NULL || *p != '.')
        return false;
    p = parse_digits(p + 1, CONFIG_VERSION_MAX, &state.version);
    if (p != NULL && *p == '.')
        p = parse_digits(p + 1, QUORUM_FENCE_MAX, &state.floor);
    if (p != text + text_len)
        return false;
    *ret_state = state;
    return true;
}

/* A word has no blank and no control character.  Returns what follows, or NULL. */
static const char *parse_word(const char *p, size_t max, size_t *ret_len)
{
    size_t len = 0;

    while (len <= max && p[len] > ' ' && p[len] <= '~')
        len++;
    *ret_len = len;
    return len > 0 && len <= max ? p + len : NULL;
}

/* "-", or "SET VER NAME", or "SET VER NAME CONFIG", up to the end. */
static bool parse_set(const char *p, const char *end, struct answer_set *set)
{
    if (p == NULL || *p++ != ' ')
        return false;
    set->name = "";
    if (*p == '-' && p + 1 == end)
        return true;
    p = parse_count(parse_hex(p, &set->set), CONFIG_VERSION_MAX, &set->version);
    if (p == NULL || *p != ' ' || set->version == 0)
        return false;
    set->name = p + 1;
    p = parse_word(set->name, CONFIG_PLACE_MAX, &set->name_len);
    if (set->name_len == 1 && set->name[0] == '-')
        set->name_len = 0;
    if (p == NULL || p == end)
        return p == end;
    set->config = p + 1;
    set->config_len = (size_t)(end - set->config);
    return *p == ' ' && set->config_len <= CONFIG_TEXT_MAX;
}

/* "BALLOT", or "BALLOT ACCEPTED", behind the newline at p, up to the end of the reply. */
static bool parse_ballot(const struct reply *reply, const char *p, struct recall_told *told,
                         struct answer_set *set)
{
    const char *end = reply->text + reply->text_len;

    p = parse_hex(p + 1, &told->ballot);
    if (p == NULL || p == end)
        return p == end;
    if (*p++ != ' ')
        return false;
    set->accepted = p;
    set->accepted_len = (size_t)(end - p);
    p = parse_hex(p, &told->accepted);
    return p != NULL && *p == ' ' && set->accepted_len <= WIRE_ACCEPTED_MAX &&
           told->accepted <= told->ballot;
}

/* The field epoch of a ready master.  Returns what follows, or NULL. */
static const char *parse_state(const char *p, struct guard_look *look, struct answer_set *set,
                               uint64_t *ret_version)
{
    struct answer_state state;

    set->state = p;
    set->state_len = strcspn(p, " ");
    if (!answer_state(p, set->state_len, &state))
        return NULL;
    look->number = state.epoch;
    *ret_version = state.version;
    return p + set->state_len;
}

/* What is wrong with an answer that has no fields. */
static const char garbage[] = "";

/* The fields that only a ready master has.  Returns what follows, or NULL and the field that is
 * malformed.  look.lua writes the field ver behind the epoch. */
static const char *parse_ready(const char *p, struct guard_look *look, struct answer_set *set,
                               uint64_t *ret_version, const char **ret_fault)
{
    uint64_t max_ttl_ms, number;

    *ret_fault = parse_hex(p, &number) != NULL ? "ver or epoch" : "epoch";
    p = parse_state(p, look, set, ret_version);
    if (p == NULL)
        return NULL;
    *ret_fault = "max";
    p = parse_count(p, WIRE_TTL_MAX_MS, &max_ttl_ms);
    if (p == NULL)
        return NULL;
    look->max_ttl_ms = (uint32_t)max_ttl_ms;
    *ret_fault = "floor";
    return parse_count(p, QUORUM_FENCE_MAX, &look->floor);
}

static const char *parse_warming(const char *p, struct guard_look *look, const char **ret_fault)
{
    uint64_t max_ttl_ms, fresh, age_ms;

    *ret_fault = "nonce";
    p = parse_hex(p, &look->number);
    if (p == NULL)
        return NULL;
    *ret_fault = "max";
    p = parse_count(p, WIRE_TTL_MAX_MS, &max_ttl_ms);
    if (p == NULL)
        return NULL;
    look->max_ttl_ms = (uint32_t)max_ttl_ms;
    *ret_fault = "fresh";
    p = parse_count(p, 1, &fresh);
    if (p == NULL)
        return NULL;
    look->fresh = fresh == 1;
    *ret_fault = "since";
    return parse_count(p, UINT64_MAX, &age_ms);
}

/* Returns NULL, or the field that is wrong. */
static const char *parse_look(const struct reply *reply, struct guard_look *look,
                              struct answer_set *set)
{
    uint64_t version = 0;
    const char *p, *end, *fault;

    if (reply->type != REPLY_TEXT || strlen(reply->text) != reply->text_len)
        return garbage;
    look->ready = strncmp(reply->text, "ready ", 6) == 0;
    if (!look->ready && strncmp(reply->text, "warming ", 8) != 0)
        return garbage;
    p = look->ready ? parse_ready(reply->text + 6, look, set, &version, &fault)
                    : parse_warming(reply->text + 8, look, &fault);
    if (p == NULL)
        return fault;
    p = parse_count(parse_count(p, UINT64_MAX, &look->high), QUORUM_FENCE_MAX, &look->time_us);
    if (p == NULL)
        return "high";
    end = strchr(reply->text, '\n');
    if (!parse_set(p, end != NULL ? end : reply->text + reply->text_len, set))
        return "set, ver, config or name";
    if (end != NULL && (!look->ready || !parse_ballot(reply, end, &look->told, set)))
        return "ballot or accepted";
    if (look->ready && set->version != version)
        return "ver or epoch";
    look->told.version = look->ready ? set->version : 0;
    return NULL;
}

bool answer_look(const struct reply *reply, struct guard_look *ret_look, struct answer_set *ret_set)
{
    struct guard_look look = {.ready = false};
    struct answer_set set = {.set = 0};

    if (parse_look(reply, &look, &set) != NULL)
        return false;
    *ret_look = look;
    if (ret_set != NULL)
        *ret_set = set;
    return true;
}

static void explain_field(struct reason *ret_why, const char *field)
{
    reason_quote(ret_why, WHY_BAD_FIELD, field, WIRE_MARKER);
}

void answer_config_fault(struct reason *ret_why)
{
    explain_field(ret_why, "config");
}

void answer_look_fault(const struct reply *reply, struct reason *ret_why)
{
    struct guard_look look = {.ready = false};
    struct answer_set set = {.set = 0};
    const char *fault = parse_look(reply, &look, &set);

    if (fault == NULL)
        answer_config_fault(ret_why);
    else if (fault == garbage)
        reason_set(ret_why, WHY_GARBAGE);
    else
        explain_field(ret_why, fault);
}

bool answer_witness(const struct reply *reply, int64_t *ret_age_ms)
{
    if (reply->type != REPLY_INTEGER || reply->integer < -1)
        return false;
    *ret_age_ms = reply->integer;
    return true;
}

/* ---- The founding of a set ---- */

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
    p = parse_count(p, CONFIG_VERSION_MAX, &answer->ver);
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
