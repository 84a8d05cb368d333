/*
 * shown.c - reads rows of show.lua and scan.lua.  Pure: no sockets, no output.
 *
 * A master that lies may answer anything.
 */
#include "redlock/cli/common/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/wire/keys.h"

_Static_assert(REDLOCK_TOKEN_MAX == 128 && REDLOCK_NAME_MAX == 512 && REDLOCK_PERMITS_MAX == 256,
               "the numbers of show.lua and scan.lua");

#define READERS_MAX 64 /* As in show.lua.  Chosen. */
#define ROWS_MAX (2 + READERS_MAX + REDLOCK_PERMITS_MAX)

char *shown_next(char *text, const char *end, struct shown_row *ret_row)
{
    char head[100] = "";
    char *line_end = memchr(text, '\n', (size_t)(end - text));
    unsigned of_len, text_len;

    if (line_end == NULL || (size_t)(line_end - text) >= sizeof head)
        return NULL;
    memcpy(head, text, (size_t)(line_end - text));
    if (sscanf(head, "%c %3u %18lld %18lld %3u %3u", &ret_row->what, &ret_row->number,
               &ret_row->left_ms, &ret_row->count, &of_len, &text_len) != 6)
        return NULL;
    ret_row->of = line_end + 1;
    ret_row->of_len = of_len;
    ret_row->text = line_end + 1 + of_len;
    ret_row->text_len = text_len;
    if (ret_row->number > REDLOCK_PERMITS_MAX ||
        (size_t)(end - line_end) < (size_t)of_len + text_len + 2 || ret_row->text[text_len] != '\n')
        return NULL;
    return ret_row->text + text_len + 1;
}

bool shown_read(struct shown *shown, const struct reply *reply)
{
    char *text, *end;

    *shown = (struct shown){.len = 0};
    if (reply->type != REPLY_TEXT || reply->is_too_long)
        return false;
    shown->text = malloc(reply->text_len + 1);
    shown->rows = calloc(ROWS_MAX, sizeof *shown->rows);
    if (shown->text == NULL || shown->rows == NULL)
        goto fail;
    memcpy(shown->text, reply->text, reply->text_len);
    end = shown->text + reply->text_len;
    for (text = shown->text; text < end && shown->len < ROWS_MAX; shown->len++) {
        text = shown_next(text, end, &shown->rows[shown->len]);
        if (text == NULL)
            goto fail;
        text[-1] = '\0';
    }
    if (text == end && shown_find(shown, SHOWN_NAME, 0) != NULL)
        return true;
fail:
    shown_free(shown);
    return false;
}

void shown_free(struct shown *shown)
{
    free(shown->text);
    free(shown->rows);
    *shown = (struct shown){.len = 0};
}

const struct shown_row *shown_find(const struct shown *shown, enum shown_what what, unsigned number)
{
    for (size_t i = 0; i < shown->len; i++)
        if (shown->rows[i].what == (char)what && shown->rows[i].number == number)
            return &shown->rows[i];
    return NULL;
}

bool shown_is(const struct shown_row *row, const char *type)
{
    return row->of_len == strlen(type) && memcmp(row->of, type, row->of_len) == 0;
}

/* True: Redis may have a type of this name.  Modules have their own. */
static bool is_type(const struct shown_row *row)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    for (size_t i = 0; i < row->of_len; i++)
        if (memchr(letters, row->of[i], sizeof letters - 1) == NULL)
            return false;
    return row->of_len > 0;
}

const char *shown_foreign(const struct shown_row *row, char buf[SHOWN_FOREIGN_MAX])
{
    const char *end = "";
    bool is_fit;

    if (row == NULL || !is_type(row) || shown_is(row, "none") || shown_is(row, "error"))
        return NULL;
    if (row->what == SHOWN_QUEUE) {
        is_fit = shown_is(row, "zset");
        end = is_fit && row->text_len > 0 ? " with entries that are no waiters" : "";
    } else {
        is_fit = shown_is(row, "string") || (row->what == SHOWN_NAME && shown_is(row, "zset"));
        end = row->left_ms == -1 ? " without an end" : "";
    }
    if (is_fit && end[0] == '\0')
        return NULL;
    (void)snprintf(buf, SHOWN_FOREIGN_MAX, "a %.*s%s", row->of_len > 20 ? 20 : (int)row->of_len,
                   row->of, end);
    return buf;
}
