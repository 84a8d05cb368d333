/*
 * wire.h - the commands of the lock, written in the Redis protocol; pure.
 *
 * Written straight into the caller's buffer, because a lock costs ten
 * commands and an allocation for each would cost more than the commands.
 */
#ifndef REDLOCK_WIRE_H
#define REDLOCK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/wire/keys.h"
#include "redlock/redlock.h"
#include "redlock/wire/script.h"

/* Several names are handed around as one text, with a NUL between each two. */
#define WIRE_NAMES_MAX (REDLOCK_NAMES_MAX * (REDLOCK_NAME_MAX + 1) - 1)

/* Room for the longest command: the script in full, names, token, numbers. */
#define WIRE_MAX (2048 + REDLOCK_NAMES_MAX * (REDLOCK_NAME_MAX + 8))

/* What a command is about. */
struct wire_args {
    const char *name;
    size_t name_len; /* 1 to WIRE_KEY_MAX, or to WIRE_NAMES_MAX of several. */
    const char *token;
    size_t token_len;     /* 1 to REDLOCK_TOKEN_MAX */
    uint32_t ttl_ms;      /* Not for a release. */
    const char *epoch;    /* WIRE_NUMBER digits, and */
    uint64_t counter;     /* what to count to: for SCRIPT_RAISE only. */
    unsigned slot;        /* For SCRIPT_ACQUIRE_PERMIT only: that of the name, from 0, */
    unsigned slots;       /* of so many. */
    const char *waiter;   /* TOKEN_LEN digits, for those who wait in a queue; and for */
    uint64_t ticket;      /* SCRIPT_ACQUIRE_FAIR: of theirs, 0 if they have none yet, */
    uint32_t patience_ms; /* and how long they count as alive. */
};

/* Digits of an epoch or a nonce, hexadecimal. */
#define WIRE_NUMBER 16

/* The whole command that reads the epoch in the marker.  The second one reads the longest lease,
 * too. */
#define WIRE_PROOF "*3\r\n$4\r\nHGET\r\n$14\r\n" WIRE_MARKER "\r\n$5\r\nepoch\r\n"
#define WIRE_PROOF_MAX "*4\r\n$5\r\nHMGET\r\n$14\r\n" WIRE_MARKER "\r\n$5\r\nepoch\r\n$3\r\nmax\r\n"

/* The longest key: of a permit, with a colon and its number. */
#define WIRE_KEY_MAX (WIRE_PERMIT_LEN + REDLOCK_NAME_MAX + 4)

#define WIRE_TICKET_MAX ((INT64_C(1) << 53) - 1) /* What Lua counts exactly. */

/* What a look at the marker is about. */
struct wire_look {
    const char *id; /* Of the server's run. */
    bool keeps;     /* It stores all that it is told, */
    bool is_known;  /* and it is not new. */
    uint32_t max_ttl_ms;
    const char *random; /* WIRE_NUMBER digits; */
    const char *nonce;  /* likewise, or "". */
    unsigned masters;   /* Of which it is one; 0: that is not to be said. */
    uint64_t floor;     /* With a nonce: what its fencing counters begin with. */
};

/*
 * Fencing counters: a master has so many, and a name has the one of this number.
 * All clients of all times must agree on that: FNV-1a of 32 bits, its halves
 * combined (Fowler, Noll, Vo; "xor-folding").
 */
#define WIRE_COUNTERS 65536
uint16_t wire_counter(const char *name, size_t name_len);

/* SET name token NX PX ttl_ms.  Returns the bytes written to buf[WIRE_MAX]. */
size_t wire_set(char *buf, const struct wire_args *args);

/* HINCRBY of the counter that belongs to name (token and all else unused): what goes behind a SET
 * for a fencing token. */
size_t wire_count(char *buf, const struct wire_args *args);

/* EVALSHA of a script on name and token (and ttl_ms, for SCRIPT_EXTEND; number and
 * epoch, for SCRIPT_RAISE), or EVAL with its text in full, for a master that has
 * lost its scripts.  Not for SCRIPT_LOOK and SCRIPT_WAIT. */
size_t wire_script(char *buf, enum script_id script, bool in_full, const struct wire_args *args);

/* The same of a script that takes several names. */
size_t wire_many(char *buf, enum script_id script, bool in_full, const struct wire_args *args);

/* The same of SCRIPT_ACQUIRE_PERMIT. */
size_t wire_permit(char *buf, bool in_full, const struct wire_args *args);

/* The same of a script for those who wait in a queue. */
size_t wire_fair(char *buf, enum script_id script, bool in_full, const struct wire_args *args);

/* The key of a permit: name is WIRE_PERMIT and that of the semaphore, slot counts from 0.  Returns
 * its length; buf has WIRE_KEY_MAX, without a NUL. */
size_t wire_permit_key(char *buf, const char *name, size_t name_len, unsigned slot);

/* ZREM of who waits no more. */
size_t wire_leave(char *buf, const struct wire_args *args);

/* The number of names in a text of several. */
unsigned wire_count_names(const char *names, size_t names_len);

/* What a look of those who wait is about. */
struct wire_wait {
    const char *mark; /* WIRE_MARK and a name. */
    size_t mark_len;
    unsigned slots;  /* Of a semaphore; 0: it is none. */
    uint32_t off_ms; /* Not for permits: for how long readers are to be held off, up to
                      * WIRE_MARK_MS; or WIRE_READER asks whether he may come in. */
    bool is_taken;   /* By who looks, so that all are told. */
};
#define WIRE_READER UINT32_MAX

/* EVAL of SCRIPT_WAIT or SCRIPT_WAIT_PERMIT. */
size_t wire_wait(char *buf, const struct wire_wait *wait);

/* SUBSCRIBE to a channel, or UNSUBSCRIBE. */
size_t wire_subscribe(char *buf, bool on, const char *channel, size_t channel_len);

/* EVAL of SCRIPT_LOOK. */
size_t wire_look(char *buf, const struct wire_look *look);

#endif /* REDLOCK_WIRE_H */
