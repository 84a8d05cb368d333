/*
 * random.h - random numbers of libsodium, which aborts the program if the kernel gives it none.
 *
 * A sandbox may forbid getrandom() before a client is opened, or after.  So ask the kernel before
 * libsodium does.
 */
#ifndef REDLOCK_RANDOM_H
#define REDLOCK_RANDOM_H

#include <stddef.h>

/* Start libsodium.  Returns REDLOCK_OK, or REDLOCK_E_SYSTEM with a message if getrandom() fails. */
int random_start(void);

/* Fill buf from randombytes_buf().  Returns what random_start() does. */
int random_draw(void *buf, size_t len);

#endif /* REDLOCK_RANDOM_H */
