/*
 * fake.h - a fake master that misbehaves on request.
 *
 * A fake is a process that listens on the loopback and speaks just enough of Redis for the
 * library.  It stores nothing.  While it answers well, it grants every lock, confirms every
 * release, and passes the restart guard.
 */
#ifndef TEST_LIVE_FAKE_H
#define TEST_LIVE_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum fake_way {
    FAKE_GOOD,    /* Answers well. */
    FAKE_SILENT,  /* Reads commands, and answers none. */
    FAKE_SAYS,    /* Answers every command with the same bytes. */
    FAKE_ENDLESS, /* Answers with these bytes, and then sends without end. */
    FAKE_CLOSES,  /* Closes the connection instead of answering. */
    FAKE_DEAF,    /* Accepts no connections; the kernel ignores the attempts. */
    /* Refuses every lock.  Answers a waiter's query that there is no key, and then resets the
     * connection. */
    FAKE_RESETS_QUERY,
    /* Refuses every lock.  Before it refuses one other than FAKE_AWAITED, it announces to all
     * subscribers that FAKE_AWAITED is free, and resets their connections. */
    FAKE_RESETS_SUBSCRIBER,
};

#define FAKE_AWAITED "awaited"

#define FAKE_EPOCH "0123456789abcdef" /* The epoch of a fake that answers well. */

struct fake_plan {
    enum fake_way way;
    bool greets;       /* Each connection answers well until its first command about a lock. */
    unsigned delay_ms; /* The delay of each answer; none for those that greets lets through. */
    const char *says;  /* The bytes that FAKE_SAYS and FAKE_ENDLESS answer with. */
    const char *look;  /* The answer to the restart guard's query; NULL: ready to vote. */
};

/* What the fake has seen, in shared memory. */
struct fake_seen {
    atomic_uint connections, commands;
    atomic_uint resets; /* Connections that the client reset instead of closing. */
    atomic_uint cuts;   /* Connections that the fake reset. */
};

/* The number of commands that a client sends on each connection before it asks for locks: two
 * scripts and INFO; with the restart guard also two settings and the marker. */
#define FAKE_GREETING 3
#define FAKE_GREETING_GUARDED 6

struct fake {
    pid_t pid;
    unsigned port;
    int filler; /* The connection that fills the backlog of FAKE_DEAF, or -1. */
    struct fake_seen *seen;
};

void fake_start(struct fake *fake, const struct fake_plan *plan);
void fake_stop(struct fake *fake);

#endif /* TEST_LIVE_FAKE_H */
