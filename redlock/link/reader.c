/*
 * reader.c - object functions for hiredis' reader that build no objects.
 *
 * The reader calls one of them for every element, and for a container before its elements.  All
 * return the same struct reply, or NULL to make the reader fail.  When the outermost element is
 * complete, the reader hands over the pointer that it got for it.  The outermost element has no
 * parent, and sets the type of the reply.  A text within it only leaves its bytes.
 */
#include "redlock/link/reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <hiredis/read.h>

#include "redlock/base/text.h"
#include "redlock/wire/redis_error.h"

#define TEXT_ROOM_MIN 64 /* Chosen: most errors fit, so one allocation is enough. */

/* Bytes that one reply may add to its text: its length and the line ends.  Chosen. */
#define FRAMING_MAX 64

static bool make_room(struct reply *reply, size_t text_len)
{
    size_t room = text_len < TEXT_ROOM_MIN ? TEXT_ROOM_MIN : text_len + 1;
    char *text;

    if (room <= reply->text_room)
        return true;
    text = realloc(reply->text, room);
    if (text == NULL)
        return false;
    reply->text = text;
    reply->text_room = room;
    return true;
}

/* Make the last text the text before it. */
static void keep_before(struct reply *reply)
{
    char *text = reply->before;
    size_t text_room = reply->before_room;

    reply->before = reply->text;
    reply->before_len = reply->text_len;
    reply->before_room = reply->text_room;
    reply->text = text;
    reply->text_room = text_room;
}

static void *take_string(const redisReadTask *task, char *text, size_t text_len)
{
    struct reply *reply = task->privdata;

    if (task->parent != NULL)
        keep_before(reply);
    reply->is_too_long = text_len > REPLY_TEXT_MAX;
    if (reply->is_too_long || !make_room(reply, text_len))
        return NULL;
    memcpy(reply->text, text, text_len);
    reply->text[text_len] = '\0';
    reply->text_len = text_len;
    if (task->parent != NULL)
        return reply;
    if (task->type == REDIS_REPLY_STATUS)
        reply->type = REPLY_STATUS;
    else if (task->type == REDIS_REPLY_ERROR)
        reply->type = REPLY_ERROR;
    else if (task->type == REDIS_REPLY_STRING)
        reply->type = REPLY_TEXT;
    else
        reply->type = REPLY_OTHER;
    return reply;
}

/* Note a reply without a text. */
static struct reply *take_plain(const redisReadTask *task, enum reply_type type, long long integer)
{
    struct reply *reply = task->privdata;

    if (task->parent == NULL) {
        reply->type = type;
        reply->integer = integer;
    }
    return reply;
}

static void *take_integer(const redisReadTask *task, long long integer)
{
    return take_plain(task, REPLY_INTEGER, integer);
}

static void *take_nil(const redisReadTask *task)
{
    return take_plain(task, REPLY_NIL, 0);
}

/* True if a container lies within REPLY_DEPTH_MAX others. */
static bool is_too_deep(const redisReadTask *task)
{
    unsigned depth = 0;

    while (task != NULL && depth <= REPLY_DEPTH_MAX) {
        task = task->parent;
        depth++;
    }
    return depth > REPLY_DEPTH_MAX;
}

static void *take_container(const redisReadTask *task, size_t elements)
{
    struct reply *reply = task->privdata;

    reply->is_too_long = elements > REPLY_ELEMENTS_MAX || is_too_deep(task);
    if (reply->is_too_long || !make_room(reply, 0))
        return NULL;
    if (task->parent == NULL) {
        reply->text[0] = '\0';
        reply->text_len = reply->before_len = 0;
        if (reply->before != NULL)
            reply->before[0] = '\0';
    }
    return take_plain(task, task->type == REDIS_REPLY_ARRAY ? REPLY_ARRAY : REPLY_OTHER, 0);
}

/* The reader frees a reply that it could not complete.  reader_forget() frees the texts. */
static void forget(void *reply)
{
    (void)reply;
}

#if HIREDIS_MAJOR >= 1
static void *take_double(const redisReadTask *task, double value, char *text, size_t text_len)
{
    (void)value, (void)text, (void)text_len;
    return take_plain(task, REPLY_OTHER, 0);
}

static void *take_bool(const redisReadTask *task, int value)
{
    (void)value;
    return take_plain(task, REPLY_OTHER, 0);
}

static redisReplyObjectFunctions functions = {
    .createString = take_string,
    .createArray = take_container,
    .createInteger = take_integer,
    .createDouble = take_double,
    .createNil = take_nil,
    .createBool = take_bool,
    .freeObject = forget,
};
#else
static void *take_array(const redisReadTask *task, int elements)
{
    return take_container(task, (size_t)elements);
}

static redisReplyObjectFunctions functions = {
    .createString = take_string,
    .createArray = take_array,
    .createInteger = take_integer,
    .createNil = take_nil,
    .freeObject = forget,
};
#endif

struct redisReader *reader_new(struct reply *reply)
{
    redisReader *reader = redisReaderCreateWithFunctions(&functions);

    reply->is_too_long = false;
    if (reader != NULL)
        reader->privdata = reply;
    return reader;
}

bool reader_overflows(const struct redisReader *reader)
{
    assert(reader->len >= reader->pos);
    return reader->len - reader->pos > REPLY_TEXT_MAX + FRAMING_MAX;
}

/* hiredis reports a lack of memory where take_string() or take_container() refused.  Of a byte that
 * begins no reply it says 'Protocol error, got "H" as reply type byte'. */
void reader_explain(const struct redisReader *reader, struct reason *ret_why)
{
    static const char other[] = "Protocol error, got ";
    const struct reply *reply = reader->privdata;
    bool speaks_otherwise = strncmp(reader->errstr, other, sizeof other - 1) == 0;

    if (reply->is_too_long)
        reason_set(ret_why, WHY_TOO_LONG);
    else if (reader->err == REDIS_ERR_OOM)
        reason_set(ret_why, WHY_NO_MEMORY);
    else
        reason_quote(ret_why, speaks_otherwise ? WHY_NO_PROTOCOL : WHY_BAD_PROTOCOL, reader->errstr,
                     NULL);
}

/* "WRONGPASS invalid username-password pair" must stay readable with the password "password", and
 * stars in it would show what the password is.  Another first word may be the password. */
size_t reader_known_len(const char *error)
{
    static const char *const known[] = {
        "ERR Client sent AUTH, but no password is set",
        "ERR invalid password",
        "ERR max number of clients reached",
        "NOAUTH Authentication required",
        "WRONGPASS invalid username-password pair or user is disabled",
        "WRONGPASS invalid username-password pair",
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(error, known[i], strlen(known[i])) == 0)
            return strlen(known[i]);
    return redis_error_code_len(error);
}

void reader_hide(struct reply *reply, const char *password)
{
    if (reply->type == REPLY_ERROR && password != NULL)
        (void)text_hide(reply->text + reader_known_len(reply->text), password);
}

void reader_forget(struct reply *reply)
{
    free(reply->text);
    free(reply->before);
    *reply = (struct reply){.text = NULL};
}
