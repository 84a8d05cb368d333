/*
 * ask.h - what a command asks, and for which sender.
 *
 * A link keeps the ask of each command, and hands it back with the answer.  An ask has numbers and
 * no pointers, because its sender may be gone by then.
 */
#ifndef REDLOCK_ASK_H
#define REDLOCK_ASK_H

#include <stdint.h>

struct ask {
    uint32_t slot, serial; /* The sender.  A link does not read these two. */
    uint32_t number;       /* The sender's number of the request. */
    uint8_t what;          /* What was asked: see masters/peers.h. */
    uint8_t flags;         /* Bits of enum ask_flags. */
};

enum ask_flags {
    ASK_IN_FULL = 1, /* The command has the text of its script. */
    ASK_LIFE = 2,    /* An answer shows that the master is alive, and no more. */
    ASK_LOOK = 4,    /* An answer shows not even that, because it may be an error. */
    ASK_TELL = 8,    /* If the link breaks, the sender gets a reply of NULL. */
};

#endif /* REDLOCK_ASK_H */
