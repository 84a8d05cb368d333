/*
 * resp.c - RESP, as a server reads and writes it.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Commands ---- */

/* "*3\r\n" at bytes: the number, and how long it is; false: it has not come whole. */
static bool read_header(const char *bytes, size_t len, char sign, size_t *ret_number,
                        size_t *ret_len)
{
    const char *end = memchr(bytes, '\n', len);

    if (end == NULL)
        return false;
    if (bytes[0] != sign || end == bytes || end[-1] != '\r')
        world_fail("wire", "no '%c' where there must be one", sign);
    *ret_number = strtoull(bytes + 1, NULL, 10);
    *ret_len = (size_t)(end - bytes) + 1;
    return true;
}

size_t resp_command_len(const char *bytes, size_t len)
{
    size_t argc, at, header;

    if (len == 0 || !read_header(bytes, len, '*', &argc, &at))
        return 0;
    for (size_t i = 0; i < argc; i++) {
        size_t arg_len;

        if (at == len || !read_header(bytes + at, len - at, '$', &arg_len, &header))
            return 0;
        at += header + arg_len + 2;
        if (at > len)
            return 0;
    }
    return at;
}

/* ---- Answers ---- */

struct text {
    const char *p;
    size_t len;
};

static size_t write_bulk(char *buf, struct text text)
{
    size_t len = (size_t)sprintf(buf, "$%zu\r\n", text.len);

    memcpy(buf + len, text.p, text.len);
    memcpy(buf + len + text.len, "\r\n", 2);
    return len + text.len + 2;
}

/* Its last two texts have a space between; a redis says more before or after them. */
static size_t write_array(char *buf, const char *text)
{
    struct text before = {text, strcspn(text, " ")};
    struct text last = {text + before.len + 1, strlen(text + before.len + 1)};
    bool is_confirmed =
        strncmp(text, "subscribe ", 10) == 0 || strncmp(text, "unsubscribe ", 12) == 0;
    bool is_message = strncmp(text, "redlock:", 8) == 0;
    size_t len = (size_t)sprintf(buf, "*%d\r\n", 2 + is_confirmed + is_message);

    if (before.len == 0 && last.len == 0) /* HMGET of fields that are not there. */
        return (size_t)sprintf(buf, "*2\r\n$-1\r\n$-1\r\n");
    if (is_message)
        len += write_bulk(buf + len, (struct text){"message", 7});
    len += write_bulk(buf + len, before);
    len += write_bulk(buf + len, last);
    if (is_confirmed)
        len += (size_t)sprintf(buf + len, ":1\r\n");
    return len;
}

size_t resp_answer_max(const struct answer *answer)
{
    return strlen(answer->text) + 96;
}

size_t resp_write(char *buf, const struct answer *answer)
{
    switch (answer->type) {
    case REPLY_STATUS:
        return (size_t)sprintf(buf, "+%s\r\n", answer->text);
    case REPLY_ERROR:
        return (size_t)sprintf(buf, "-%s\r\n", answer->text);
    case REPLY_TEXT:
        return write_bulk(buf, (struct text){answer->text, strlen(answer->text)});
    case REPLY_INTEGER:
        return (size_t)sprintf(buf, ":%lld\r\n", answer->integer);
    case REPLY_NIL:
        return (size_t)sprintf(buf, "$-1\r\n");
    case REPLY_ARRAY:
        return write_array(buf, answer->text);
    case REPLY_OTHER:
        break;
    }
    world_fail("simulator", "an answer of a type that no server gives");
}
