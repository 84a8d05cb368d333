/*
 * record.c - see record.h.
 */
#include "partition/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "partition/tool.h"

#define LINE_MAX_LEN                                                             \
    640 /* The longest has six names of RECORD_WORD_MAX bytes, and some numbers. \
         */

void record_open(struct record *record, const char *path, const char *who)
{
    if (!tool_is_word(who, RECORD_WORD_MAX))
        tool_die("\"%s\" is no name for a history", who);
    (void)snprintf(record->who, sizeof record->who, "%s", who);
    record->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (record->fd < 0)
        tool_die("%s: %s", path, strerror(errno));
}

void record_line(const struct record *record, uint64_t t_ns, const char *event, const char *format,
                 ...)
{
    char line[LINE_MAX_LEN];
    size_t len =
        (size_t)snprintf(line, sizeof line, "{\"t\":%" PRIu64 ",\"who\":\"%s\",\"event\":\"%s\"",
                         t_ns, record->who, event);
    va_list args;

    va_start(args, format);
    len += (size_t)vsnprintf(line + len, sizeof line - len, format, args);
    va_end(args);
    if (len + 2 > sizeof line)
        tool_die("an event is too long for a line: %s", event);
    memcpy(line + len, "}\n", 2);
    if (write(record->fd, line, len + 2) != (ssize_t)(len + 2))
        tool_die("the history cannot be written: %s", strerror(errno));
}
