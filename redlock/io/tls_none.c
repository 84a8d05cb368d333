/*
 * tls_none.c - tls.h in a build without TLS: there is no context, so there is no connection either.
 */
#include "redlock/io/tls.h"

#include <stdlib.h>

#include "redlock/base/error.h"

int tls_context_new(const struct tls_settings *settings, struct tls_context **ret_context)
{
    (void)settings, (void)ret_context;
    return error_set(REDLOCK_E_INVAL,
                     "rediss://: this build has no TLS (meson setup -Dtls=enabled, with OpenSSL)");
}

void tls_context_free(struct tls_context *context)
{
    (void)context;
}

bool tls_context_is_strict(const struct tls_context *context)
{
    (void)context;
    return false;
}

struct tls *tls_new(struct tls_context *context, const char *host)
{
    (void)context, (void)host;
    return NULL;
}

void tls_free(struct tls *tls)
{
    (void)tls;
}

bool tls_feed(struct tls *tls, const char *bytes, size_t len)
{
    (void)tls, (void)bytes, (void)len;
    abort();
}

int tls_shake(struct tls *tls)
{
    (void)tls;
    abort();
}

ssize_t tls_read(struct tls *tls, char *buf, size_t room)
{
    (void)tls, (void)buf, (void)room;
    abort();
}

ssize_t tls_write(struct tls *tls, const char *bytes, size_t len)
{
    (void)tls, (void)bytes, (void)len;
    abort();
}

size_t tls_unsent(struct tls *tls, const char **ret_bytes)
{
    (void)tls, (void)ret_bytes;
    abort();
}

void tls_sent(struct tls *tls, size_t len)
{
    (void)tls, (void)len;
    abort();
}

bool tls_left_s(const struct tls *tls, int64_t *ret_left_s)
{
    (void)tls, (void)ret_left_s;
    return false;
}

enum why tls_silence(const struct tls *tls)
{
    (void)tls;
    abort();
}

const struct reason *tls_error(const struct tls *tls)
{
    (void)tls;
    abort();
}
