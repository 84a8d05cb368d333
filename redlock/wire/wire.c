/*
 * wire.c - writes the commands of the lock as arrays of bulk strings.
 */
#include "redlock/wire/wire.h"

#include <assert.h>
#include <string.h>

#include "redlock/base/token.h"
#include "redlock/wire/put.h"

/* The rest of a command, besides its script and names: a token, numbers, and what Redis puts
 * before each. */
#define COUNTER_MAX 12 /* A counter. */
#define ARGS_MANY_MAX (REDLOCK_TOKEN_MAX + WIRE_STATE_MAX + REDLOCK_NAMES_MAX * COUNTER_MAX + 160)
#define ARGS_MAX (REDLOCK_TOKEN_MAX + TOKEN_LEN + 240)

_Static_assert(SCRIPT_TEXT_MAX_MANY + REDLOCK_NAMES_MAX * (REDLOCK_NAME_MAX + 8) + ARGS_MANY_MAX <=
                   WIRE_MAX,
               "a script that takes several names fits");
_Static_assert(SCRIPT_TEXT_MAX + 2 * (WIRE_MARK_LEN + WIRE_KEY_MAX) + ARGS_MAX <= WIRE_MAX,
               "any other script fits");
_Static_assert(SCRIPT_TEXT_MAX + WIRE_LIST_MAX + WIRE_MEMBER_MAX + 2 * WIRE_NUMBER + 120 <=
                   WIRE_MAX,
               "a script that founds a set fits");
_Static_assert(SCRIPT_TEXT_MAX + WIRE_CONFIG_MAX + WIRE_ACCEPTED_MAX + WIRE_MEMBER_MAX +
                       5 * WIRE_NUMBER + 300 <=
                   WIRE_MAX,
               "a query of the marker fits");
_Static_assert(WIRE_QUEUE_MAX_ENTRIES == 2 * WIRE_QUEUE_MAX, "two entries for each waiter");

uint16_t wire_counter(const char *name, size_t name_len)
{
    uint32_t hash = UINT32_C(2166136261);

    for (size_t i = 0; i < name_len; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT32_C(16777619);
    return (uint16_t)(hash ^ hash >> 16);
}

static void check(const struct wire_args *args)
{
    assert(args->name_len >= 1 && args->name_len <= WIRE_KEY_MAX);
    assert(args->token_len >= 1 && args->token_len <= REDLOCK_TOKEN_MAX);
}

size_t wire_set(char *buf, const struct wire_args *args)
{
    char *p = buf;

    assert(args->ttl_ms > 0);
    p = PUT_CONSTANT(p, "*6\r\n$3\r\nSET\r\n");
    check(args);
    p = put_bulk(p, args->name, args->name_len);
    p = put_bulk(p, args->token, args->token_len);
    p = PUT_CONSTANT(p, "$2\r\nNX\r\n$2\r\nPX\r\n");
    p = put_number(p, args->ttl_ms);
    return (size_t)(p - buf);
}

size_t wire_count(char *buf, const struct wire_args *args)
{
    char *p = buf;

    assert(args->name_len >= 1 && args->name_len <= WIRE_KEY_MAX);
    p = PUT_CONSTANT(p, "*4\r\n$7\r\nHINCRBY\r\n$14\r\n" WIRE_MARKER "\r\n");
    p = put_number(p, wire_counter(args->name, args->name_len));
    p = PUT_CONSTANT(p, "$1\r\n1\r\n");
    return (size_t)(p - buf);
}

size_t wire_script(char *buf, enum script_id script, bool in_full, const struct wire_args *args)
{
    bool counts = script == SCRIPT_RAISE;
    bool has_number = script != SCRIPT_RELEASE && script != SCRIPT_RELEASE_PERMIT &&
                      script != SCRIPT_RELEASE_SHARED;
    char *p = put_script(buf, 5u + has_number + 3u * counts, script, in_full);

    assert(script != SCRIPT_LOOK && script != SCRIPT_WAIT);
    check(args);
    p = put_number(p, 1u + counts); /* The keys are the name and, for RAISE, the marker. */
    p = put_bulk(p, args->name, args->name_len);
    if (counts)
        p = PUT_CONSTANT(p, "$14\r\n" WIRE_MARKER "\r\n");
    p = put_bulk(p, args->token, args->token_len);
    if (has_number)
        p = put_number(p, counts ? args->counter : args->ttl_ms);
    if (counts) {
        p = put_number(p, wire_counter(args->name, args->name_len));
        assert(strlen(args->epoch) <= WIRE_STATE_MAX);
        p = put_bulk(p, args->epoch, strlen(args->epoch));
    }
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

unsigned wire_count_names(const char *names, size_t names_len)
{
    unsigned count = 1;

    for (size_t i = 0; i < names_len; i++)
        count += names[i] == '\0';
    return count;
}

/* Call put() for each of several names. */
static char *put_names(char *p, const struct wire_args *args,
                       char *(*put)(char *p, const char *name, size_t name_len))
{
    const char *name = args->name, *end = args->name + args->name_len;

    for (size_t len; name <= end; name += len + 1) {
        len = strnlen(name, (size_t)(end - name));
        p = put(p, name, len);
    }
    return p;
}

static char *put_counter(char *p, const char *name, size_t name_len)
{
    return put_number(p, wire_counter(name, name_len));
}

size_t wire_count_many(char *buf, const struct wire_args *args)
{
    unsigned count = wire_count_names(args->name, args->name_len);
    char *p = put_script(buf, 4u + count, SCRIPT_COUNT_MANY, true);

    p = PUT_CONSTANT(p, "$1\r\n1\r\n$14\r\n" WIRE_MARKER "\r\n");
    p = put_names(p, args, put_counter);
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

size_t wire_many(char *buf, enum script_id script, bool in_full, const struct wire_args *args)
{
    bool raises = script == SCRIPT_RAISE_MANY, has_number = script != SCRIPT_RELEASE_MANY;
    unsigned count = wire_count_names(args->name, args->name_len);
    char *p = put_script(buf, 4u + count + has_number + raises * (2u + count), script, in_full);

    assert(args->name_len <= WIRE_NAMES_MAX && count <= REDLOCK_NAMES_MAX);
    p = put_number(p, count + raises);
    p = put_names(p, args, put_bulk);
    if (raises)
        p = PUT_CONSTANT(p, "$14\r\n" WIRE_MARKER "\r\n");
    p = put_bulk(p, args->token, args->token_len);
    if (has_number)
        p = put_number(p, raises ? args->counter : args->ttl_ms);
    if (raises) {
        p = put_bulk(p, args->epoch, strlen(args->epoch));
        p = put_names(p, args, put_counter);
    }
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

size_t wire_fair(char *buf, enum script_id script, bool in_full, const struct wire_args *args)
{
    static const char *const how[] = {"", "back", "leave", "pass"};
    bool asks = script == SCRIPT_ACQUIRE_FAIR, releases = script == SCRIPT_RELEASE_FAIR;
    bool stands = asks && args->sent != 0;
    char *p = put_script(buf, asks ? 9u + stands : 7u, script, in_full);

    check(args);
    p = put_number(p, 1);
    p = put_bulk(p, args->name, args->name_len);
    p = put_bulk(p, args->token, args->token_len);
    if (!releases)
        p = put_number(p, args->ttl_ms);
    p = put_bulk(p, args->waiter, TOKEN_LEN);
    if (asks) {
        p = put_number(p, args->ticket);
        p = put_number(p, args->patience_ms);
    }
    if (stands)
        p = put_number(p, args->sent);
    if (releases)
        p = put_bulk(p, how[args->how], strlen(how[args->how]));
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

size_t wire_leave(char *buf, const struct wire_args *args)
{
    char queue[WIRE_QUEUE_LEN + REDLOCK_NAME_MAX], end[1 + TOKEN_LEN] = "-";
    char *p = buf;

    memcpy(queue, WIRE_QUEUE, WIRE_QUEUE_LEN);
    memcpy(queue + WIRE_QUEUE_LEN, args->name, args->name_len);
    memcpy(end + 1, args->waiter, TOKEN_LEN);
    p = PUT_CONSTANT(p, "*4\r\n$4\r\nZREM\r\n");
    p = put_bulk(p, queue, WIRE_QUEUE_LEN + args->name_len);
    p = put_bulk(p, args->waiter, TOKEN_LEN);
    p = put_bulk(p, end, sizeof end);
    return (size_t)(p - buf);
}

size_t wire_permit(char *buf, bool in_full, const struct wire_args *args)
{
    char *p = put_script(buf, 8, SCRIPT_ACQUIRE_PERMIT, in_full);

    assert(args->ttl_ms > 0 && args->slot < args->slots);
    check(args);
    p = put_number(p, 1);
    p = put_bulk(p, args->name, args->name_len);
    p = put_bulk(p, args->token, args->token_len);
    p = put_number(p, args->ttl_ms);
    p = put_number(p, args->slot);
    p = put_number(p, args->slots);
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

size_t wire_wait(char *buf, bool in_full, const struct wire_wait *wait)
{
    bool may_be_crowd = wait->groups[0] != '\0';
    char *p = put_script(buf, may_be_crowd ? 9 : 8,
                         wait->slots > 0 ? SCRIPT_WAIT_PERMIT : SCRIPT_WAIT, in_full);

    assert(wait->mark_len > WIRE_MARK_LEN && wait->mark_len <= WIRE_MARK_LEN + WIRE_KEY_MAX);
    p = PUT_CONSTANT(p, "$1\r\n2\r\n");
    p = put_bulk(p, wait->mark + WIRE_MARK_LEN, wait->mark_len - WIRE_MARK_LEN);
    p = put_bulk(p, wait->mark, wait->mark_len);
    p = put_number(p, WIRE_MARK_MS);
    if (wait->slots > 0)
        p = put_number(p, wait->slots);
    else
        p = wait->off_ms != WIRE_READER ? put_number(p, wait->off_ms) : put_bulk(p, "", 0);
    p = wait->is_taken ? put_bulk(p, "taken", 5) : put_bulk(p, "held", 4);
    if (may_be_crowd)
        p = put_bulk(p, wait->groups, strlen(wait->groups));
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

size_t wire_subscribe(char *buf, bool on, const char *channel, size_t channel_len)
{
    char *p = buf;

    p = on ? PUT_CONSTANT(p, "*2\r\n$9\r\nSUBSCRIBE\r\n")
           : PUT_CONSTANT(p, "*2\r\n$11\r\nUNSUBSCRIBE\r\n");
    p = put_bulk(p, channel, channel_len);
    return (size_t)(p - buf);
}

/* Append a text, or nothing. */
static char *put_text(char *p, const char *text)
{
    return text != NULL ? put_bulk(p, text, strlen(text)) : put_bulk(p, "", 0);
}

static char *put_hex_or_none(char *p, uint64_t number)
{
    return number != 0 ? put_hex(p, number) : put_bulk(p, "", 0);
}

size_t wire_look(char *buf, const struct wire_look *look)
{
    char *p = put_script(buf, 16, SCRIPT_LOOK, true);

    assert(!look->is_new || look->set == 0);

    p = PUT_CONSTANT(p, "$1\r\n1\r\n$14\r\n" WIRE_MARKER "\r\n");
    p = put_bulk(p, look->id, strlen(look->id));
    p = put_number(p, !look->keeps ? 0 : look->is_known ? 1 : 2);
    p = put_number(p, look->max_ttl_ms);
    p = put_bulk(p, look->random, WIRE_NUMBER);
    p = put_bulk(p, look->nonce, strlen(look->nonce));
    p = look->is_new ? PUT_CONSTANT(p, "$3\r\nnew\r\n") : put_hex_or_none(p, look->set);
    p = put_number(p, look->floor);
    p = put_number(p, look->version);
    p = put_text(p, look->config);
    p = put_text(p, look->name);
    p = put_hex_or_none(p, look->ballot);
    p = put_text(p, look->accepted);
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

/* The id is in the mark, so that a master with a copy of a warming master's data is not taken for
 * that master. */
size_t wire_witness(char *buf, enum wire_witness mode, const char *name, uint64_t nonce,
                    const char *id)
{
    static const char *const modes[] = {"read", "mark", "anew"};
    char mark[WIRE_NUMBER + WIRE_ID_MAX];
    size_t id_len = strlen(id);
    char *p = put_script(buf, 7, SCRIPT_WITNESS, true);

    assert(id_len <= WIRE_ID_MAX && strlen(name) <= WIRE_MEMBER_MAX);
    print_hex(nonce, mark);
    memcpy(mark + WIRE_NUMBER, id, id_len);
    p = PUT_CONSTANT(p, "$1\r\n1\r\n$15\r\n" WIRE_WITNESS "\r\n");
    p = put_bulk(p, name, strlen(name));
    p = put_bulk(p, mark, WIRE_NUMBER + id_len);
    p = put_bulk(p, modes[mode], 4);
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

size_t wire_founding(char *buf, enum script_id script, const struct wire_founding *founding)
{
    bool is_found = script == SCRIPT_FOUND;
    char *p = put_script(buf, 6u + 2u * is_found, script, true);

    assert(script == SCRIPT_CLAIM || (founding->number != 0 && (!is_found || founding->set != 0)));
    assert(founding->list_len >= 1 && founding->list_len <= WIRE_LIST_MAX);
    p = PUT_CONSTANT(p, "$1\r\n1\r\n$14\r\n" WIRE_MARKER "\r\n");
    p = put_hex_or_none(p, founding->number);
    p = put_bulk(p, founding->list, founding->list_len);
    if (is_found) {
        size_t name_len = strlen(founding->name);

        assert(name_len >= 1 && name_len <= WIRE_MEMBER_MAX);
        p = put_hex(p, founding->set);
        p = put_bulk(p, founding->name, name_len);
    }
    assert((size_t)(p - buf) <= WIRE_MAX);
    return (size_t)(p - buf);
}

size_t wire_permit_key(char *buf, const char *name, size_t name_len, unsigned slot)
{
    char *p = buf;

    assert(slot < REDLOCK_PERMITS_MAX && name_len + 4 <= WIRE_KEY_MAX);
    memcpy(p, name, name_len);
    p += name_len;
    *p++ = ':';
    if (slot >= 100)
        *p++ = (char)('0' + slot / 100);
    if (slot >= 10)
        *p++ = (char)('0' + slot / 10 % 10);
    *p++ = (char)('0' + slot % 10);
    return (size_t)(p - buf);
}
