/*
 * combine.h - which options of a lock go together, and why the others do not; pure.
 *
 * This is the one place that knows.  The library and the command refuse by it, `redlock help
 * combine` prints it, and redlock(3) has that text.  Three options go together if each two of them
 * do.
 */
#ifndef REDLOCK_COMBINE_H
#define REDLOCK_COMBINE_H

enum combine {
    COMBINE_ADOPT, /* redlock_adopt(); the others are options of redlock.h. */
    COMBINE_FAIR,
    COMBINE_FENCE,
    COMBINE_PERMITS,
    COMBINE_REENTRANT,
    COMBINE_SEVERAL, /* redlock_lock_many() */
    COMBINE_SHARED,
    COMBINE_LEN
};

/* Several options: bit 1u << COMBINE_FAIR stands for fair. */
typedef unsigned combine_set;

/* The word for an option: adopt, several, or its name in redlock.h. */
const char *combine_word(enum combine option);

/* Why these two do not go together.  NULL: they do, or are the same. */
const char *combine_why_not(enum combine one, enum combine other);

struct combine_clash {
    enum combine one, other; /* one comes first in the enum. */
    const char *why;
};

/* All pairs that do not go together, in order.  clash_at() returns NULL behind the last. */
const struct combine_clash *combine_clash_at(unsigned i);

/* The first pair of these options that does not go together.  NULL: all go together. */
const struct combine_clash *combine_clash_in(combine_set set);

#endif /* REDLOCK_COMBINE_H */
