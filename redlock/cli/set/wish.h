/*
 * wish.h - the list of members that an operator wishes, computed from the list that is there; pure.
 */
#ifndef REDLOCK_WISH_H
#define REDLOCK_WISH_H

#include <stdbool.h>
#include <stddef.h>

#include "redlock/core/config.h"

struct wish {
    unsigned joiners_len, leavers_len;
    struct config_member joiners[QUORUM_MASTERS_MAX];
    const char *leavers[QUORUM_MASTERS_MAX]; /* Names or places of members. */
    bool allows_even;                        /* An even number of members is wished. */
};

/* The member with this name, or else at this place.  Returns members_len if there is none. */
unsigned wish_find(const struct config *config, const char *text);

/* Compute the list that is to follow now, which is simple.  Returns false if that must not be: why
 * then says so. */
bool wish_make(const struct wish *wish, const struct config *now, struct config *ret_list,
               char *why, size_t why_size);

/* True: all that are to join are members, and no member is to leave. */
bool wish_is_met(const struct wish *wish, const struct config *now);

/* The members of one list, with their places: config_list(). */
void wish_print(const struct config *config, quorum_mask list, char *text, size_t size);

#endif /* REDLOCK_WISH_H */
