/*
 * keys.h - what clients of all versions must agree on: names of keys, and limits.
 *
 * The scripts use these names as well (redlock/lua): redlock/lua/embed reads the literal #defines
 * of this file, which are plain strings and plain decimal numbers.  What C has to compute is
 * asserted where it is computed.
 */
#ifndef REDLOCK_KEYS_H
#define REDLOCK_KEYS_H

/* The key in which a master stores its marker (guard.h).  No lock may have this name. */
#define WIRE_MARKER "redlock:master"

/* A lock's wait flag is a key: this prefix and the lock's name.  The channel on which waiters are
 * notified has the same name (wait.h).  No lock may have a name that begins so. */
#define WIRE_MARK "redlock:wait:"
#define WIRE_MARK_LEN (sizeof WIRE_MARK - 1)

/* The ttl of a wait flag.  A flag that was forgotten costs the next release a message.  Chosen:
 * it is rarely renewed; not measured. */
#define WIRE_MARK_MS 60000

/* The permits of a semaphore are keys: "redlock:permit:NAME:0" and on.  Its clients wait for the
 * name without the number.  No lock may have a name that begins so. */
#define WIRE_PERMIT "redlock:permit:"
#define WIRE_PERMIT_LEN (sizeof WIRE_PERMIT - 1)

/* The key of a queue (place.h): this prefix and the lock's name.  redlock/lua/parts/queue.lua says
 * what it holds.  No lock may have a name that begins so. */
#define WIRE_QUEUE "redlock:queue:"
#define WIRE_QUEUE_LEN (sizeof WIRE_QUEUE - 1)

/* At most so many clients may wait in one queue of one master, with two entries each.  Chosen: a
 * program with more of them has a bug, or needs no lock. */
#define WIRE_QUEUE_MAX 1024
#define WIRE_QUEUE_MAX_ENTRIES 2048

/* No client may have a longer lease (redlock.h): one day. */
#define WIRE_TTL_MAX_MS 86400000

/* The high-water mark of a master's fencing counters is above their floor by a multiple of this.
 * Larger steps cost order: each repair takes the counters ahead by at most one step, and a step
 * in microseconds is far shorter than a repair, so that they do not overtake the clocks. */
#define WIRE_FENCE_STEP 16384

/* Fencing counters begin with the time in microseconds, and each attempt adds one.  A number that
 * is farther ahead of the clock than this, 12 days, was not reached by counting. */
#define WIRE_FENCE_AHEAD_US 1099511627776

/* The longest text of a script; and of a script that takes REDLOCK_NAMES_MAX names.  wire.c
 * asserts that a command with such a text fits into WIRE_MAX. */
#define SCRIPT_TEXT_MAX 4000
#define SCRIPT_TEXT_MAX_MANY 1800

#endif /* REDLOCK_KEYS_H */
