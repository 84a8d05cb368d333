/*
 * failing.h - makes system calls of the library fail on request.
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
    SO_ERROR_OF, /* getsockopt() succeeds, and reports that the connection failed. */
    CLOSE,
    EVENTFD,
    TIMERFD_CREATE,
    TIMERFD_SETTIME,
    READ,
    WRITE,
    PTHREAD_CREATE,
    GETADDRINFO,
    EPOLL_CREATE1,
    EPOLL_CTL,       /* For a socket. */
    EPOLL_CTL_TIMER, /* For the timer of a loop. */
    EPOLL_WAIT,
    EV_EPOLL_CTL,       /* libev's, for a socket. */
    EV_EPOLL_CTL_TIMER, /* For the timer of a loop. */
    EV_EPOLL_CTL_WAKE,  /* For the eventfd by which other threads wake a loop. */
    CALLS
};

extern const char *const failing_names[CALLS];

#define ALWAYS UINT32_MAX

/* From now on, call number moment (from 0) fails with this error; ALWAYS: every call does.  An
 * error of GETADDRINFO is one of EAI_*, or an errno, which is reported with EAI_SYSTEM. */
void failing_start(enum call call, int error, unsigned moment);
void failing_stop(void);

/* True if a call has failed since failing_start(). */
bool failing_happened(void);

/* Make every read of CLOCK_BOOTTIME fail after so many. */
void failing_clock(unsigned after);

#endif /* TEST_LIVE_FAILING_H */
