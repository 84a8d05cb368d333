/*
 * resp.c - RESP, as a server reads and writes it.
 */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Commands ---- */

/* Read the number of "*3\r\n" at p.  Returns what follows, or NULL if it is incomplete. */
static const char *read_header(const char *p, const char *end, char sign, size_t *ret_number)
{
    const char *line_end = memchr(p, '\n', (size_t)(end - p));
    char *digits_end;

    if (line_end == NULL)
        return NULL;
    if (p[0] != sign)
        world_fail("wire", "a '%c' is missing", sign);
    *ret_number = strtoull(p + 1, &digits_end, 10);
    if (digits_end != line_end - 1 || *digits_end != '\r')
        world_fail("wire", "a number that does not end");
    return line_end + 1;
}

size_t resp_command(const char *bytes, size_t len, struct command *ret_command)
{
    const char *p = bytes, *end = bytes + len;
    size_t argc, arg_len;

    if (len == 0 || (p = read_header(p, end, '*', &argc)) == NULL)
        return 0;
    if (argc == 0 || argc > COMMAND_ARGS_MAX)
        world_fail("wire", "%zu arguments", argc);
    for (size_t i = 0; i < argc; i++) {
        p = read_header(p, end, '$', &arg_len);
        if (p == NULL || (size_t)(end - p) < arg_len + 2)
            return 0;
        if (memcmp(p + arg_len, "\r\n", 2) != 0)
            world_fail("wire", "an argument that does not end");
        ret_command->argv[i] = p;
        ret_command->lens[i] = arg_len;
        p += arg_len + 2;
    }
    ret_command->argc = (unsigned)argc;
    return (size_t)(p - bytes);
}

/* ---- Answers ---- */

struct text {
    const char *p;
    size_t len;
};

static size_t write_bulk(char *buf, struct text text)
{
    size_t len = (size_t)sprintf(buf, "$%zu\r\n", text.len);

    for (size_t i = 0; i < text.len; i++)
        buf[len + i] = text.p[i] != SIM_NUL ? text.p[i] : '\0';
    memcpy(buf + len + text.len, "\r\n", 2);
    return len + text.len + 2;
}

/* Write an array from its last two texts, which a space separates.  Messages and confirmations
 * have a further element before or after them. */
static size_t write_array(char *buf, const char *text)
{
    struct text before = {text, strcspn(text, " ")};
    struct text last = {text + before.len + 1, strlen(text + before.len + 1)};
    bool is_confirmed =
        strncmp(text, "subscribe ", 10) == 0 || strncmp(text, "unsubscribe ", 12) == 0;
    bool is_message = strncmp(text, "redlock:", 8) == 0;
    size_t len = (size_t)sprintf(buf, "*%d\r\n", 2 + is_confirmed + is_message);

    if (before.len == 0 && last.len == 0) /* HMGET of fields that do not exist. */
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
