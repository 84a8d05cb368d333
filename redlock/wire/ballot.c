/*
 * ballot.c - writes EVAL of prepare.lua, accept.lua, write.lua and count_on.lua, and reads replies.
 */
#include "redlock/wire/ballot.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/core/quorum.h"
#include "redlock/wire/put.h"
#include "redlock/wire/wire.h"

/* EVAL, the text, the number of keys, the marker, EPOCH.VER, SET; and the most that may follow. */
#define ARGS_MIN 6
#define NUMBERS_MAX (2 * (DECIMAL_MAX + WIRE_NUMBER + 1) + 4 * (WIRE_NUMBER + 1))
#define FRAMES_MAX (9 * 16) /* "$4000", and two line ends, for each argument. */

_Static_assert(SCRIPT_TEXT_MAX + CONFIG_TEXT_MAX + CONFIG_PLACE_MAX + NUMBERS_MAX + FRAMES_MAX <=
                   BALLOT_MAX,
               "the longest request fits");
_Static_assert(CONFIG_VERSION_MAX <= QUORUM_FENCE_MAX, "both are exact in Lua");

/* ---- Requests ---- */

/* EPOCH.VER */
static char *put_state(char *p, const struct ballot_args *args)
{
    char text[WIRE_NUMBER + 1 + DECIMAL_MAX], *end = text + WIRE_NUMBER;

    assert(args->epoch != 0 && args->version <= CONFIG_VERSION_MAX);
    print_hex(args->epoch, text);
    *end++ = '.';
    end = put_digits(end, args->version);
    return put_bulk(p, text, (size_t)(end - text));
}

static char *put_config(char *p, const struct config *config)
{
    char text[CONFIG_TEXT_MAX + 1];
    size_t len = config_print(config, text);

    return put_bulk(p, text, len);
}

/* "*N EVAL text 1 redlock:master EPOCH.VER SET" */
static char *put_head(char *p, enum script_id script, unsigned more, const struct ballot_args *args)
{
    p = put_script(p, ARGS_MIN + more, script, true);
    p = PUT_CONSTANT(p, "$1\r\n1\r\n$14\r\n" WIRE_MARKER "\r\n");
    p = put_state(p, args);
    return put_hex(p, args->set);
}

size_t ballot_write(char *buf, enum change_request request, const struct ballot_args *args)
{
    char *p = buf;

    switch (request) {
    case CHANGE_ASK_PREPARE:
        p = put_head(p, SCRIPT_PREPARE, 1, args);
        p = put_hex(p, args->ballot);
        break;
    case CHANGE_ASK_ACCEPT:
        p = put_head(p, SCRIPT_ACCEPT, 2, args);
        p = put_hex(p, args->ballot);
        p = put_config(p, args->config);
        break;
    case CHANGE_ASK_WRITE:
        p = put_head(p, SCRIPT_WRITE, 3, args);
        p = put_number(p, args->config->version);
        p = put_config(p, args->config);
        p = put_bulk(p, args->name != NULL ? args->name : "",
                     args->name != NULL ? strlen(args->name) : 0);
        break;
    case CHANGE_ASK_COUNT:
        assert(args->number <= QUORUM_FENCE_MAX);
        p = put_head(p, SCRIPT_COUNT_ON, 1, args);
        p = put_number(p, args->number);
        break;
    case CHANGE_ASK_NOTHING:
    case CHANGE_ASK_LOOK:
        assert(!"a request of this file");
    }
    assert((size_t)(p - buf) <= BALLOT_MAX);
    return (size_t)(p - buf);
}

/* ---- Answers ---- */

static bool is_word(const struct reply *reply, const char *word)
{
    return reply->text_len == strlen(word) && memcmp(reply->text, word, reply->text_len) == 0;
}

/* Read a word, a space, and a ballot.  Returns what follows, or NULL. */
static const char *read_ballot(const struct reply *reply, const char *word, change_ballot *ret)
{
    size_t len = strlen(word);
    const char *p = reply->text + len;

    if (reply->text_len < len || memcmp(reply->text, word, len) != 0)
        return NULL;
    if (strspn(p, "0123456789abcdef") != WIRE_NUMBER)
        return NULL;
    *ret = strtoull(p, NULL, 16);
    return *ret != 0 ? p + WIRE_NUMBER : NULL;
}

/* "BALLOT CONFIG" */
static bool read_promise(uint64_t version, const struct reply *reply, struct config *ret_config,
                         struct change_reply *ret_reply)
{
    struct config config = {.version = version + 1};
    struct change_reply answer = {.answer = CHANGE_YES};
    const char *p, *end = reply->text + reply->text_len;

    if (is_word(reply, "promise")) {
        *ret_reply = answer;
        return true;
    }
    p = read_ballot(reply, "promise ", &answer.ballot);
    if (p == NULL || *p != ' ' || !config_parse(p + 1, (size_t)(end - p - 1), &config))
        return false;
    *ret_config = config;
    answer.config = ret_config;
    *ret_reply = answer;
    return true;
}

static bool read_text(enum change_request request, const struct reply *reply,
                      struct change_reply *ret_reply)
{
    static const char *const words[] = {
        [CHANGE_ASK_ACCEPT] = "accepted",
        [CHANGE_ASK_WRITE] = "written",
        [CHANGE_ASK_COUNT] = "counted",
    };
    bool has_ballot = request == CHANGE_ASK_PREPARE || request == CHANGE_ASK_ACCEPT;
    struct change_reply answer = {.answer = CHANGE_BALLOT};
    const char *p;

    if (is_word(reply, "ver")) {
        *ret_reply = (struct change_reply){.answer = CHANGE_CHANGED};
        return true;
    }
    if (request != CHANGE_ASK_PREPARE && is_word(reply, words[request])) {
        *ret_reply = (struct change_reply){.answer = CHANGE_YES};
        return true;
    }
    p = has_ballot ? read_ballot(reply, "ballot ", &answer.ballot) : NULL;
    if (p == NULL || p != reply->text + reply->text_len)
        return false;
    *ret_reply = answer;
    return true;
}

bool ballot_read(enum change_request request, uint64_t version, const struct reply *reply,
                 struct config *ret_config, struct change_reply *ret_reply)
{
    assert(request > CHANGE_ASK_LOOK && request <= CHANGE_ASK_COUNT);
    if (reply->type == REPLY_ERROR) {
        *ret_reply = (struct change_reply){.answer = CHANGE_FAILED};
        return true;
    }
    if (reply->type != REPLY_TEXT)
        return false;
    if (request == CHANGE_ASK_PREPARE && reply->text_len >= 7 &&
        memcmp(reply->text, "promise", 7) == 0)
        return read_promise(version, reply, ret_config, ret_reply);
    return read_text(request, reply, ret_reply);
}
