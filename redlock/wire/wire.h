/*
 * wire.h - writes the commands of the lock in the Redis protocol; pure.
 *
 * Each command goes straight into the caller's buffer.  A lock takes ten commands, and an
 * allocation for each would cost more than the commands.
 */
#ifndef REDLOCK_WIRE_H
#define REDLOCK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/core/config.h"
#include "redlock/wire/keys.h"
#include "redlock/redlock.h"
#include "redlock/wire/script.h"

/* Several names travel as one text, with a NUL between any two. */
#define WIRE_NAMES_MAX (REDLOCK_NAMES_MAX * (REDLOCK_NAME_MAX + 1) - 1)

/* Room for the longest command: the script in full, names, token, and numbers; or two
 * configurations. */
#define WIRE_MAX (5120 + REDLOCK_NAMES_MAX * (REDLOCK_NAME_MAX + 8))

/* What SCRIPT_RELEASE_FAIR does besides. */
enum wire_release {
    WIRE_RELEASE_PLAIN, /* No token of the waiter waits. */
    WIRE_RELEASE_BACK,  /* The waiter stays in the queue, without its token. */
    WIRE_RELEASE_LEAVE, /* The waiter leaves the queue. */
    WIRE_RELEASE_PASS,  /* A holder passes the vote on to the next waiter. */
};

/* The arguments of a command. */
struct wire_args {
    const char *name;
    size_t name_len; /* 1 to WIRE_KEY_MAX.  Several names: up to WIRE_NAMES_MAX. */
    const char *token;
    size_t token_len;     /* 1 to REDLOCK_TOKEN_MAX */
    uint32_t ttl_ms;      /* Unused for a release. */
    const char *epoch;    /* Raises only: the field epoch, up to WIRE_STATE_MAX bytes. */
    uint64_t counter;     /* Raises only: the number to count to. */
    unsigned slot;        /* SCRIPT_ACQUIRE_PERMIT only: the slot of the name, from 0. */
    unsigned slots;       /* SCRIPT_ACQUIRE_PERMIT only: the number of slots. */
    const char *waiter;   /* Scripts of queues only: the waiter's name, TOKEN_LEN digits. */
    uint64_t ticket;      /* SCRIPT_ACQUIRE_FAIR only: the waiter's ticket.  0: none yet. */
    uint32_t patience_ms; /* SCRIPT_ACQUIRE_FAIR only: how long the waiter counts as alive. */
    /* SCRIPT_ACQUIRE_FAIR only: the time before the request was sent, which a grant of the waiting
     * token tells.  0: the token does not wait. */
    drift_time sent;
    enum wire_release how; /* SCRIPT_RELEASE_FAIR only. */
};

/* The longest field epoch: EPOCH.VER.FLOOR, where the last two have up to 16 digits. */
#define WIRE_STATE_MAX (WIRE_NUMBER + 2 * (1 + 16))
/* The longest id of a server's run (struct master_info). */
#define WIRE_ID_MAX 47

/* The whole command that reads the epoch in the marker.  The second form also reads the longest
 * lease. */
#define WIRE_PROOF "*3\r\n$4\r\nHGET\r\n$14\r\n" WIRE_MARKER "\r\n$5\r\nepoch\r\n"
#define WIRE_PROOF_MAX "*4\r\n$5\r\nHMGET\r\n$14\r\n" WIRE_MARKER "\r\n$5\r\nepoch\r\n$3\r\nmax\r\n"

/* The longest key: that of a permit, with a colon and its number. */
#define WIRE_KEY_MAX (WIRE_PERMIT_LEN + REDLOCK_NAME_MAX + 4)

#define WIRE_TICKET_MAX ((INT64_C(1) << 53) - 1) /* Lua counts exactly up to here. */

/* The arguments of SCRIPT_LOOK, which reads the marker. */
struct wire_look {
    const char *id; /* The id of the server's run. */
    bool keeps;     /* The server loses no write when it restarts. */
    bool is_known;  /* The set of masters is in use already, so this master is not new. */
    uint32_t max_ttl_ms;
    const char *random; /* WIRE_NUMBER digits. */
    const char *nonce;  /* WIRE_NUMBER digits, or "". */
    uint64_t floor;     /* With a nonce: the first value of the fencing counters. */
    uint64_t set;       /* The set of masters that the client knows.  0: none. */
    bool is_new;      /* The caller says that the master is new, and config is the list to found. */
    uint64_t version; /* The version of the configuration that the client knows.  0: none. */
    /* For a master that says that it is in no set, or with a nonce: the text of the configuration,
     * and the name of the master if it is a member.  Otherwise NULL. */
    const char *config, *name;
    /* With a nonce: the greatest ballot that other members promised, and the text of what they
     * accepted.  0 and NULL: none. */
    uint64_t ballot;
    const char *accepted;
};

/* The longest text of what a master accepted: BALLOT CONFIG. */
#define WIRE_ACCEPTED_MAX (WIRE_NUMBER + 1 + CONFIG_TEXT_MAX)

/*
 * The number of fencing counters of a master, and the counter of a name.  All clients of all
 * versions must agree on both.  The hash is FNV-1a of 32 bits, with its halves combined (Fowler,
 * Noll, Vo; "xor-folding").
 */
#define WIRE_COUNTERS 65536
uint16_t wire_counter(const char *name, size_t name_len);

/* Write SET name token NX PX ttl_ms.  Returns the bytes written to buf[WIRE_MAX]. */
size_t wire_set(char *buf, const struct wire_args *args);

/* Write HINCRBY of the name's counter, which follows a SET for a fencing token.  Only the name is
 * used. */
size_t wire_count(char *buf, const struct wire_args *args);

/* Write EVALSHA of a script on name and token, or EVAL with its text in full for a master that
 * lost its scripts.  All but releases and SCRIPT_RAISE also take ttl_ms; SCRIPT_RAISE takes counter
 * and epoch.  Not for SCRIPT_LOOK, SCRIPT_WAIT and other scripts that have a function of their own.
 */
size_t wire_script(char *buf, enum script_id script, bool in_full, const struct wire_args *args);

/* Write EVAL of SCRIPT_COUNT_MANY, which stands for wire_count() with several names. */
size_t wire_count_many(char *buf, const struct wire_args *args);

/* As wire_script(), for a script that takes several names. */
size_t wire_many(char *buf, enum script_id script, bool in_full, const struct wire_args *args);

/* As wire_script(), for SCRIPT_ACQUIRE_PERMIT. */
size_t wire_permit(char *buf, bool in_full, const struct wire_args *args);

/* As wire_script(), for SCRIPT_ACQUIRE_FAIR, SCRIPT_EXTEND_FAIR and SCRIPT_RELEASE_FAIR. */
size_t wire_fair(char *buf, enum script_id script, bool in_full, const struct wire_args *args);

/* Write the key of a permit.  name is WIRE_PERMIT and the semaphore's name; slot counts from 0.
 * Returns the length.  buf has WIRE_KEY_MAX bytes and gets no NUL. */
size_t wire_permit_key(char *buf, const char *name, size_t name_len, unsigned slot);

/* Write ZREM of a waiter that leaves the queue. */
size_t wire_leave(char *buf, const struct wire_args *args);

/* Count the names in a text of several. */
unsigned wire_count_names(const char *names, size_t names_len);

/* The arguments of a waiter's query. */
struct wire_wait {
    const char *mark; /* WIRE_MARK and a name. */
    size_t mark_len;
    unsigned slots; /* The slots of a semaphore.  0: the lock is no semaphore. */
    /* How long to keep new readers out, up to WIRE_MARK_MS.  WIRE_READER: a reader asks whether
     * it may join.  Unused for permits. */
    uint32_t off_ms;
    /* The client that asks has just taken the lock, so the script notifies all waiters. */
    bool is_taken;
    /* The digits of the client's group, and of the one that its release notifies.  "": the client
     * knows of no crowd, so all waiters are notified. */
    char groups[3];
};
#define WIRE_READER UINT32_MAX

/* Write SCRIPT_WAIT or SCRIPT_WAIT_PERMIT. */
size_t wire_wait(char *buf, bool in_full, const struct wire_wait *wait);

/* Write SUBSCRIBE or UNSUBSCRIBE of a channel. */
size_t wire_subscribe(char *buf, bool on, const char *channel, size_t channel_len);

/* Write EVAL of SCRIPT_LOOK. */
size_t wire_look(char *buf, const struct wire_look *look);

/* What SCRIPT_WITNESS does with a mark.  Its third argument. */
enum wire_witness { WIRE_WITNESS_READ, WIRE_WITNESS_KEEP, WIRE_WITNESS_ANEW };

/* Write EVAL of SCRIPT_WITNESS.  name: of the warming master in its set, up to WIRE_MEMBER_MAX
 * bytes; nonce: what it has; id: of its run. */
size_t wire_witness(char *buf, enum wire_witness mode, const char *name, uint64_t nonce,
                    const char *id);

/* The longest list of masters as text, the longest configuration, and the longest name of a master
 * in its set, which may be its place. */
#define WIRE_LIST_MAX CONFIG_TEXT_MAX
#define WIRE_CONFIG_MAX CONFIG_TEXT_MAX
#define WIRE_MEMBER_MAX CONFIG_PLACE_MAX

/* The arguments of the scripts that found a set of masters. */
struct wire_founding {
    uint64_t number;  /* The number of the claim.  0: SCRIPT_CLAIM only reads. */
    const char *list; /* The masters of the set, as canonical text. */
    size_t list_len;  /* 1 to WIRE_LIST_MAX. */
    uint64_t set;     /* SCRIPT_FOUND only: the number of the set. */
    const char *name; /* SCRIPT_FOUND only: the name of the master in the set. */
};

/* Write EVAL of SCRIPT_CLAIM, SCRIPT_FOUND or SCRIPT_WITHDRAW. */
size_t wire_founding(char *buf, enum script_id script, const struct wire_founding *founding);

#endif /* REDLOCK_WIRE_H */
