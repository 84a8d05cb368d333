/*
 * poll.h - a pollable client of redlock in a program that calls poll(2).
 *
 * The program puts redlock_poll_entry() among the descriptors that it waits for, with any timeout,
 * and then calls redlock_poll_done() with that entry.  A program without a loop, such as a game,
 * calls redlock_poll_tick() from time to time.
 */
#ifndef REDLOCK_ADAPTERS_POLL_H
#define REDLOCK_ADAPTERS_POLL_H

#include <poll.h>

#include <redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The client's entry for poll(2).  It stays the same.  If the client is not pollable, poll(2)
 * ignores the entry: its fd is negative. */
static inline struct pollfd redlock_poll_entry(const struct redlock *rl)
{
    struct pollfd entry;

    entry.fd = redlock_fd(rl);
    entry.events = POLLIN;
    entry.revents = 0;
    return entry;
}

/* Do what there is to do, if poll(2) found something.  It runs the callbacks that are due, and one
 * of them may close the client.  Returns OK, E_INVAL, E_STATE. */
static inline int redlock_poll_done(struct redlock *rl, const struct pollfd *entry)
{
    return entry->revents != 0 ? redlock_dispatch(rl) : REDLOCK_OK;
}

/* Wait for something to do, at most timeout_ms (0: not at all; -1: without a limit), and do it.
 * A signal ends the wait.  Returns as redlock_poll_done(). */
static inline int redlock_poll_tick(struct redlock *rl, int timeout_ms)
{
    struct pollfd entry = redlock_poll_entry(rl);

    if (entry.fd < 0)
        return entry.fd; /* The status of redlock_fd(). */
    if (poll(&entry, 1, timeout_ms) <= 0)
        return REDLOCK_OK;
    return redlock_poll_done(rl, &entry);
}

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_ADAPTERS_POLL_H */
