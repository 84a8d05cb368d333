/*
 * some.h - the first so many masters, as one list.
 */
#ifndef TEST_SOME_H
#define TEST_SOME_H

#include "redlock/core/members.h"

/* The result stays valid. */
static inline const struct members *some_masters(unsigned len)
{
    static struct members some[QUORUM_MASTERS_MAX + 1];

    some[len] = members_first(len);
    return &some[len];
}

static inline unsigned some_len(const struct members *members)
{
    return mask_count(members_all(members));
}

#endif /* TEST_SOME_H */
