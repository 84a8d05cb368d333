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
