/*
 * script.h - the Lua texts that masters run, and their SHA-1s.
 *
 * SCRIPT_RELEASE is redlock/lua/release.lua, and so on: the head of each file says what the script
 * does, its keys, arguments, replies, and rules.  redlock/lua/embed makes script.c of these files
 * while building.
 */
#ifndef REDLOCK_SCRIPT_H
#define REDLOCK_SCRIPT_H

#include <stddef.h>

enum script_id {
    SCRIPT_RELEASE,
    SCRIPT_EXTEND,
    SCRIPT_RAISE,   /* Raises a fencing counter. */
    SCRIPT_LOOK,    /* Reads the marker, and may give the master an epoch. */
    SCRIPT_WITNESS, /* Marks that another master is warming, and tells the age of the mark. */
    SCRIPT_WAIT,
    SCRIPT_ACQUIRE_MANY,
    SCRIPT_EXTEND_MANY,
    SCRIPT_RELEASE_MANY,
    SCRIPT_COUNT_MANY, /* Counts for several names what HINCRBY counts for one. */
    SCRIPT_RAISE_MANY,
    SCRIPT_ACQUIRE_PERMIT, /* SCRIPT_EXTEND extends a permit as well. */
    SCRIPT_RELEASE_PERMIT,
    SCRIPT_WAIT_PERMIT,
    SCRIPT_ACQUIRE_FAIR,
    SCRIPT_EXTEND_FAIR,
    SCRIPT_RELEASE_FAIR,
    SCRIPT_ACQUIRE_SHARED,
    SCRIPT_EXTEND_SHARED,
    SCRIPT_RELEASE_SHARED,
    SCRIPT_REVOKE, /* Takes a lock from its holder. */
    SCRIPT_SHOW,   /* Tells what is stored under a name, and SCRIPT_SCAN which locks are stored. */
    SCRIPT_SCAN,
    SCRIPT_PREPARE, /* These change the set of masters. */
    SCRIPT_ACCEPT,
    SCRIPT_WRITE,
    SCRIPT_COUNT_ON,
    SCRIPT_CLAIM, /* Three scripts that found a set of masters. */
    SCRIPT_FOUND,
    SCRIPT_WITHDRAW,
    SCRIPT_LEN
};

/* Locks and waiters name a script by its SHA-1 (EVALSHA).  The text is for a master that does not
 * have the script.  Always sent in full are SCRIPT_LOOK, SCRIPT_WITNESS, SCRIPT_COUNT_MANY,
 * SCRIPT_REVOKE, SCRIPT_SHOW, SCRIPT_SCAN, and those that found or change a set of masters. */
struct script {
    const char *text;
    size_t text_len;
    const char *sha1; /* 40 lower-case digits: the reply to SCRIPT LOAD. */
};

extern const struct script script_all[SCRIPT_LEN];

#endif /* REDLOCK_SCRIPT_H */
