/*
 * combine.c - the pairs of options that do not go together.
 */
#include "redlock/core/combine.h"

#include <stddef.h>

static const char *const words[COMBINE_LEN] = {
    [COMBINE_ADOPT] = "adopt",     [COMBINE_FAIR] = "fair",           [COMBINE_FENCE] = "fence",
    [COMBINE_PERMITS] = "permits", [COMBINE_REENTRANT] = "reentrant", [COMBINE_SEVERAL] = "several",
    [COMBINE_SHARED] = "shared",
};

/* Users read the reasons, behind the words of both options. */
static const struct combine_clash clashes[] = {
    {COMBINE_ADOPT, COMBINE_FAIR, "an adopted lock takes no turn: adopt it without fair"},
    {COMBINE_ADOPT, COMBINE_REENTRANT, "the owner of an adopted lock is not known"},
    {COMBINE_FAIR, COMBINE_PERMITS, "a queue belongs to one key, and each permit has its own"},
    {COMBINE_FAIR, COMBINE_SEVERAL,
     "the first in the queue of one name could wait for the first of another"},
    {COMBINE_FAIR, COMBINE_SHARED, "readers take no turns: they hold the lock together"},
    {COMBINE_FENCE, COMBINE_SHARED,
     "the token of a later reader would shut out those that still read"},
    {COMBINE_PERMITS, COMBINE_REENTRANT,
     "an owner that asks again may want the same permit or another"},
    {COMBINE_PERMITS, COMBINE_SEVERAL, "a round asks for one permit of one semaphore"},
    {COMBINE_PERMITS, COMBINE_SHARED, "a permit has one holder"},
    {COMBINE_REENTRANT, COMBINE_SEVERAL, "an owner may have some of the names and not the others"},
    {COMBINE_SEVERAL, COMBINE_SHARED,
     "masters store readers in another form than the token of several names"},
};

#define CLASHES_LEN (sizeof clashes / sizeof clashes[0])

const char *combine_word(enum combine option)
{
    return words[option];
}

const struct combine_clash *combine_clash_at(unsigned i)
{
    return i < CLASHES_LEN ? &clashes[i] : NULL;
}

const struct combine_clash *combine_clash_in(combine_set set)
{
    for (unsigned i = 0; i < CLASHES_LEN; i++) {
        combine_set both = 1u << clashes[i].one | 1u << clashes[i].other;

        if ((set & both) == both)
            return &clashes[i];
    }
    return NULL;
}

const char *combine_why_not(enum combine one, enum combine other)
{
    const struct combine_clash *clash = combine_clash_in(1u << one | 1u << other);

    return clash != NULL ? clash->why : NULL;
}
