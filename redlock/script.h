/*
 * script.h - the Lua texts that masters run, and their SHA-1s.
 */
#ifndef REDLOCK_SCRIPT_H
#define REDLOCK_SCRIPT_H

#include <stddef.h>

enum script_id {
    SCRIPT_RELEASE, /* KEYS[1] name, ARGV[1] token: delete the key if it holds the token, and tell
                     * those who wait for it; 1 or 0. */
    SCRIPT_EXTEND,  /* and ARGV[2] ttl in ms: if it holds the token, make it last so long from
                     * now, unless it lasts longer; 1 or 0. */
    SCRIPT_RAISE,   /* KEYS[1] name, [2] marker, ARGV[1] token, [2] number, [3] counter, [4]
                     * epoch: where the token is stored, count to that number, or on from where the
                     * counter is if that is farther; what it got to, 0 if the token is not there,
                     * -1 if the marker has not that epoch. */
    SCRIPT_LOOK,    /* KEYS[1] marker, ARGV[1] id of the server, [2] "2" if it keeps all that it is
                     * told, "1" if besides it is known not to be new, else "0", [3] longest lease
                     * in ms, [4] a new random number, [5] the nonce to be replaced by it as an
                     * epoch, or "", [6] how many masters there are, or "" to leave that alone,
                     * [7] what its counters begin with then; "ready EPOCH MAX FLOOR HIGH TIME";
                     * "warming NONCE MAX FRESH AGE HIGH TIME", AGE in ms, HIGH what no
                     * token has gone beyond, TIME in us; or "other N": it is one of so many. */
    SCRIPT_WAIT,    /* KEYS[1] name, KEYS[2] WIRE_MARK and the name, ARGV[1] ttl of a mark in ms,
                     * ARGV[2] for how many ms readers are to be held off, ARGV[3] "held", or
                     * "taken" by who asks: PTTL of the key; or ARGV[2] "",
                     * a reader asks: -2 if he may come in, else for how long not; see wait.h. */
    SCRIPT_ACQUIRE_MANY, /* KEYS names, ARGV[1] token, ARGV[2] ttl in ms: SET PX of all, if none is
                          * there; OK, or the number of the first that is, from 1. */
    SCRIPT_EXTEND_MANY,  /* Likewise: SCRIPT_EXTEND of all, if all hold the token; 1 or 0. */
    SCRIPT_RELEASE_MANY, /* KEYS names, ARGV[1] token: SCRIPT_RELEASE of each; 1 if all held it. */
    SCRIPT_ACQUIRE_PERMIT, /* KEYS[1] WIRE_PERMIT, a name, ":" and a slot, ARGV[1] token, [2] ttl in
                            * ms, [3] that slot, [4] how many slots there are: SET NX PX; OK, or a
                            * slot that is free, from 1, the next from there on, or 0: none is. */
    SCRIPT_RELEASE_PERMIT, /* Likewise, ARGV[1] token: SCRIPT_RELEASE, but those are told who wait
                            * for any of the slots; 1 or 0. */
    SCRIPT_WAIT_PERMIT,    /* KEYS[1] WIRE_PERMIT and a name, and as SCRIPT_WAIT, but ARGV[2] how
                            * many slots there are: PTTL of the first to be free. */
    SCRIPT_ACQUIRE_FAIR,   /* KEYS[1] name, ARGV[1] token, [2] ttl in ms, [3] waiter, [4] ticket, 0:
                            * none yet, [5] patience in ms: a heartbeat, see place.h; OK, or the
                            * number of his place, or 0 if there is no room. */
    SCRIPT_RELEASE_FAIR,   /* KEYS[1] name, ARGV[1] token, [2] waiter: SCRIPT_RELEASE, but if others
                            * wait in a queue, the first of them alone is told. */
    SCRIPT_ACQUIRE_SHARED, /* KEYS[1] name, ARGV[1] token, ARGV[2] ttl in ms: become a reader; OK,
                            * or nil if the key is a lock, or readers are held off. */
    SCRIPT_EXTEND_SHARED,  /* Likewise: SCRIPT_EXTEND, */
    SCRIPT_RELEASE_SHARED, /* and SCRIPT_RELEASE, of a reader. */
    SCRIPT_LEN
};

struct script {
    const char *text;
    size_t text_len;
    const char *sha1; /* 40 lower-case digits: what SCRIPT LOAD must answer, and EVALSHA takes. */
};

extern const struct script script_all[SCRIPT_LEN];

#endif /* REDLOCK_SCRIPT_H */
