/*
 * fake.h - a master that behaves badly, on demand.
 *
 * A process of its own that listens on the loopback and speaks just enough of
 * Redis to be taken for one.  It stores nothing: answered well, a lock is
 * always granted and a release always confirmed, and the restart guard finds
 * that it may vote.
 */
#ifndef TEST_LIVE_FAKE_H
#define TEST_LIVE_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum fake_way {
    FAKE_GOOD,    /* Answers well. */
    FAKE_SILENT,  /* Reads, and says nothing. */
    FAKE_SAYS,    /* Answers every command with the same bytes; */
    FAKE_ENDLESS, /* and after them goes on, with more bytes than anybody can take. */
    FAKE_CLOSES,  /* Closes the connection instead of answering. */
    FAKE_DEAF,    /* Does not even take connections: the kernel drops the attempts. */
    /* To these every lock is taken; a master that answers a waiter's query of the key with
     * "there is none", and resets the connection behind that; */
    FAKE_RESETS_QUERY,
    /* and one that, before it refuses a lock of any name but FAKE_AWAITED, announces to all
     * subscribers that this one is free, and resets their connections behind that. */
    FAKE_RESETS_SUBSCRIBER,
};

#define FAKE_AWAITED "awaited"

#define FAKE_EPOCH "0123456789abcdef" /* That a fake has which answers well. */

struct fake_plan {
    enum fake_way way;
    bool greets;       /* Good until a connection is first asked for a lock, or about one. */
    unsigned delay_ms; /* Of all answers but, if it greets, those. */
    const char *says;
    const char *look; /* What it answers to the restart guard's look; NULL: that it may vote. */
};

/* What it has seen, in memory shared with it. */
struct fake_seen {
    atomic_uint connections, commands;
    atomic_uint resets; /* Connections that the client reset, not closed; */
    atomic_uint cuts;   /* and that the fake reset. */
};

/* What a client asks on each connection before it asks for locks: two scripts;
 * with the restart guard two settings and the marker; and INFO. */
#define FAKE_GREETING 3
#define FAKE_GREETING_GUARDED 6

struct fake {
    pid_t pid;
    unsigned port;
    int filler; /* DEAF: the connection that fills the backlog. */
    struct fake_seen *seen;
};

void fake_start(struct fake *fake, const struct fake_plan *plan);
void fake_stop(struct fake *fake);

#endif /* TEST_LIVE_FAKE_H */
