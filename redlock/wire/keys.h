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

/* The key in which a master stores marks of warming masters (redlock/lua/witness.lua).  No lock may
 * have this name. */
#define WIRE_WITNESS "redlock:witness"

/* The most marks, and how long the key stays after the latest was made.  Chosen: there is one mark
 * for each other master, and masters are replaced rarely; a job that runs every week finds its mark
 * (30 days). */
#define WIRE_WITNESS_MAX 64
#define WIRE_WITNESS_MS 2592000000

/* A lock's wait flag is a key: this prefix and the lock's name.  The channel on which waiters are
 * notified has the same name (wait.h).  No lock may have a name with this prefix. */
#define WIRE_MARK "redlock:wait:"
#define WIRE_MARK_LEN (sizeof WIRE_MARK - 1)

/* If more clients than this listen, they are a crowd.  Then announcements are for some of its 16
 * groups alone, so many that at least this many clients are told (redlock/lua/parts/notify_groups).
 * Chosen: of 17 clients that take turns, groups made hand-overs slower, and of 64 faster; the lots
 * let two of four try at once.  Versions may differ in these two numbers, but not in the channels.
 */
#define WIRE_CROWD 32
#define WIRE_CROWD_TOLD 4

/* The channel of a group has this length beyond that of the lock: NUL and a digit. */
#define WIRE_GROUP_LEN 2

/* The ttl of a wait flag.  A flag that is left behind costs the next release a message.  Chosen:
 * long enough to be renewed rarely; not measured. */
#define WIRE_MARK_MS 60000

/* The permits of a semaphore are keys: "redlock:permit:NAME:0" and so on.  Its clients wait for
 * the name without the number.  No lock may have a name with this prefix. */
#define WIRE_PERMIT "redlock:permit:"
#define WIRE_PERMIT_LEN (sizeof WIRE_PERMIT - 1)

/* The key of a queue (place.h): this prefix and the lock's name.  redlock/lua/parts/queue.lua
 * describes its contents.  No lock may have a name with this prefix. */
#define WIRE_QUEUE "redlock:queue:"
#define WIRE_QUEUE_LEN (sizeof WIRE_QUEUE - 1)

/* A queue that lasts for longer, and for four times as long as the asking waiter is patient, was
 * made before the clock was set back.  Chosen: longer than waiters are patient, which is 3.4 s by
 * default. */
#define WIRE_PATIENCE_MS 60000

/* The key of the tokens that wait in a queue: this prefix and the lock's name.  A hash, by waiter.
 * No lock may have a name with this prefix. */
#define WIRE_NEXT "redlock:next:"
#define WIRE_NEXT_LEN (sizeof WIRE_NEXT - 1)

/* The tokens that wait go so long after the first of them came, and come back with the next
 * heartbeats.  So a token that could not be deleted does not stay.  Chosen: a release in this gap,
 * a hundredth of the time, takes two trips more; not measured. */
#define WIRE_NEXT_MS 60000

/* A lock that an operator revoked stores a text that begins so, in place of the token, until its
 * time is over (redlock/lua/revoke.lua).  No token begins so. */
#define WIRE_REVOKED "revoked by "
#define WIRE_REVOKED_LEN (sizeof WIRE_REVOKED - 1)

/* The channel on which a client learns of the turns of its waiters: this prefix and the first
 * digits of the name of any of them (place.h). */
#define WIRE_CLIENT "redlock:client:"
#define WIRE_CLIENT_LEN (sizeof WIRE_CLIENT - 1)
#define WIRE_CLIENT_DIGITS 24

/* The most clients that may wait in one queue of one master, with two entries each.  Chosen: more
 * waiters than any program should need; not measured. */
#define WIRE_QUEUE_MAX 1024
#define WIRE_QUEUE_MAX_ENTRIES 2048

/* Hexadecimal digits of an epoch, a nonce or a set. */
#define WIRE_NUMBER 16

/* The longest lease that any client may have (redlock.h): one day. */
#define WIRE_TTL_MAX_MS 86400000

/* A master's high-water mark lies above the floor of its fencing counters by a multiple of this.
 * Smaller is better for the order of tokens: each repair moves the counters ahead by up to one
 * step.  A step of so many microseconds is far shorter than a repair, so the counters do not
 * overtake the clocks. */
#define WIRE_FENCE_STEP 16384

/* Fencing counters start at the time in microseconds, and each attempt adds one.  So counting
 * never takes a number farther ahead of the clock than this: 12 days. */
#define WIRE_FENCE_AHEAD_US 1099511627776

/* The longest text of a script, and of a script that takes REDLOCK_NAMES_MAX names.  wire.c
 * asserts that a command with such a text fits into WIRE_MAX. */
#define SCRIPT_TEXT_MAX 4000
#define SCRIPT_TEXT_MAX_MANY 1800

#endif /* REDLOCK_KEYS_H */
