/*
 * random.c - asks the kernel before libsodium does.
 */
#include "redlock/base/random.h"

#include <errno.h>
#include <sys/random.h>

#include <sodium.h>

#include "redlock/base/error.h"
#include "redlock/base/text.h"
#include "redlock/redlock.h"

int random_start(void)
{
    unsigned char byte;
    ssize_t got = getrandom(&byte, sizeof byte, GRND_NONBLOCK);

    /* EAGAIN: the machine has just started, and libsodium waits. */
    if (got < 0 && errno != EAGAIN)
        return error_set(REDLOCK_E_SYSTEM, "no random numbers can be drawn (getrandom): %s",
                         text_of_errno(errno));
    if (sodium_init() < 0) /* sodium_init() returns 1 if it was called before. */
        return error_set(REDLOCK_E_SYSTEM, "libsodium cannot be started");
    return REDLOCK_OK;
}

int random_draw(void *buf, size_t len)
{
    int status = random_start();

    if (status == REDLOCK_OK)
        randombytes_buf(buf, len);
    return status;
}
