/*
 * error.c - the texts of statuses, the thread's message, and the version.  A caller needs no client
 * to read them.
 *
 * Nothing here allocates, so that "out of memory" can be reported, too.
 */
#include "redlock/base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct error thread_error;

/* End a text that was cut with "...", in place of its last bytes. */
static void mark_cut(char *text, size_t size)
{
    memcpy(text + size - sizeof "...", "...", sizeof "...");
}

void error_clear(void)
{
    thread_error.text[0] = '\0';
    thread_error.inner = 0;
    thread_error.parts.len = 0;
    thread_error.blame.masters = 0;
}

void error_shift(struct error_parts *parts, size_t by)
{
    for (unsigned i = 0; i < parts->len; i++)
        parts->list[i].at = (uint16_t)(parts->list[i].at + by);
}

/* Format into a copy, because an argument may be the old message. */
__attribute__((format(printf, 2, 0))) static void set_message(bool wraps, const char *format,
                                                              va_list args)
{
    char text[ERROR_MESSAGE_MAX];
    int len = vsnprintf(text, sizeof text, format, args);

    assert(len >= 0);
    if (!wraps || thread_error.text[0] == '\0')
        thread_error.blame.masters = 0;
    if (!wraps || (size_t)len >= sizeof text)
        thread_error.parts.len = 0;
    error_shift(&thread_error.parts, (size_t)len + strlen(": "));
    thread_error.inner = 0;
    if (wraps && (size_t)len < sizeof text && thread_error.text[0] != '\0') {
        if ((size_t)len + strlen(": ") < sizeof text)
            thread_error.inner = (uint16_t)((size_t)len + strlen(": "));
        len += snprintf(text + len, sizeof text - (size_t)len, ": %s", thread_error.text);
    }
    if ((size_t)len >= sizeof text)
        mark_cut(text, sizeof text);
    memcpy(thread_error.text, text, sizeof text);
}

int error_set(int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set_message(false, format, args);
    va_end(args);
    return status;
}

int error_wrap(int status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set_message(true, format, args);
    va_end(args);
    return status;
}

void error_list(const struct error *list)
{
    struct error *error = &thread_error;
    size_t len = strlen(error->text), size = sizeof error->text;

    if (list->text[0] == '\0')
        return;
    error->blame = list->blame;
    error->parts = list->parts;
    error_shift(&error->parts, len + strlen(": "));
    if ((size_t)snprintf(error->text + len, size - len, ": %s", list->text) >= size - len)
        mark_cut(error->text, size);
}

static void copy(struct error *ret_error, const struct error *error)
{
    memcpy(ret_error->text, error->text, strlen(error->text) + 1);
    ret_error->inner = error->inner;
    ret_error->parts = error->parts;
    ret_error->blame.masters = 0;
    if (error->blame.masters != 0)
        ret_error->blame = error->blame;
}

void error_save(struct error *ret_error)
{
    copy(ret_error, &thread_error);
}

int error_pass_on(int status, const struct error *error)
{
    copy(&thread_error, error);
    return status;
}

const char *error_message(void)
{
    return thread_error.text;
}

const char *error_inner(void)
{
    return thread_error.text + thread_error.inner;
}

const struct error_parts *error_parts(void)
{
    return &thread_error.parts;
}

const struct blame *error_blamed(void)
{
    return thread_error.blame.masters != 0 ? &thread_error.blame : NULL;
}

/* Write one byte of a name, as 1 or 4 characters.  Returns their number. */
static size_t quote_byte(unsigned char byte, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";

    if (byte >= ' ' && byte <= '~' && byte != '\\') {
        ret_text[0] = (char)byte;
        return 1;
    }
    ret_text[0] = '\\';
    ret_text[1] = 'x';
    ret_text[2] = digits[byte >> 4];
    ret_text[3] = digits[byte & 15];
    return 4;
}

const char *error_quote(const char *name, size_t name_len, char *buf, size_t size)
{
    size_t len = 0; /* Bytes written so far. */
    size_t fit = 0; /* The longest part that leaves room for "...". */

    assert(size >= 8);
    for (size_t i = 0; i < name_len; i++) {
        char text[4];
        size_t text_len = quote_byte((unsigned char)name[i], text);

        if (len + text_len >= size) {
            memcpy(buf + fit, "...", sizeof "...");
            return buf;
        }
        memcpy(buf + len, text, text_len);
        len += text_len;
        if (len + sizeof "..." <= size)
            fit = len;
    }
    buf[len] = '\0';
    return buf;
}

const char *redlock_strerror(int status)
{
#define TEXT_OF(code, message, text) \
    case code:                       \
        return text;
    switch (status) {
        ERROR_STATUSES(TEXT_OF)
    }
#undef TEXT_OF
    return "unknown status";
}

enum msg message_of_status(int status)
{
#define MESSAGE_OF(code, message, text) \
    case code:                          \
        return MSG_##message;
    switch (status) {
        ERROR_STATUSES(MESSAGE_OF)
    }
#undef MESSAGE_OF
    return MSG_NONE;
}

const char *redlock_errmsg(const struct redlock *rl)
{
    (void)rl; /* The message belongs to the thread, not to a client. */
    return error_message();
}

const char *redlock_version(void)
{
    return REDLOCK_VERSION; /* The project's version, from meson.build. */
}
