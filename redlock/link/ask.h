/*
 * ask.h - whom an answer is for.
 *
 * An ask travels with its command, and comes back with the answer.  It has numbers and no
 * pointers, because its sender may be gone by then.
 */
#ifndef REDLOCK_ASK_H
#define REDLOCK_ASK_H

#include <stdint.h>

struct ask {
    uint32_t slot, serial; /* Of the sender: what a slot and a serial are is its affair. */
    uint32_t number;       /* Of the question, likewise. */
    uint8_t what;          /* What was asked; masters/peers.h has the list. */
    uint8_t flags;         /* Of these: */
};

enum ask_flags {
    ASK_IN_FULL = 1, /* The text of a script went along. */
    ASK_LIFE = 2,    /* An answer shows that the master lives, and no more. */
    ASK_LOOK = 4,    /* Not even that: it may be the one thing that fails. */
    ASK_TELL = 8,    /* If the link breaks, the sender is told, with a reply of NULL. */
};

#endif /* REDLOCK_ASK_H */
