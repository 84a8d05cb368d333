/*
 * failing.h - system calls of the library that fail when a test wants it.
 */
#ifndef TEST_LIVE_FAILING_H
#define TEST_LIVE_FAILING_H

#include <stdbool.h>
#include <stdint.h>

enum call {
    NONE,
    SOCKET,
    CONNECT,
    SEND,
    RECV,
    SETSOCKOPT,
    GETSOCKOPT,
    SO_ERROR_OF, /* getsockopt() succeeds, and tells that the connection failed. */
    CLOSE,
    EVENTFD,
    TIMERFD_CREATE,
    TIMERFD_SETTIME,
    READ,
    WRITE,
    PTHREAD_CREATE,
    GETADDRINFO,
    CALLS
};

extern const char *const failing_names[CALLS];

#define ALWAYS UINT32_MAX

/* From now on the call number moment fails with this error (ALWAYS: each one).  An error of
 * GETADDRINFO is one of EAI_*, or an errno, which then comes with EAI_SYSTEM. */
void failing_start(enum call call, int error, unsigned moment);
void failing_stop(void);

/* Whether a call has failed since failing_start(). */
bool failing_happened(void);

/* CLOCK_BOOTTIME fails from now on. */
void failing_clock(void);

#endif /* TEST_LIVE_FAILING_H */
