/*
 * bugs.h - bugs that can be planted: each leaves out one rule of members.h or fencing.h.
 */
#ifndef REDLOCK_TEST_MODELS_BUGS_H
#define REDLOCK_TEST_MODELS_BUGS_H

enum bug {
    NO_BUG,
    /* Locks. */
    BUG_NO_PROOF,
    BUG_NO_VERSION,
    BUG_EARLY_PROOF,
    BUG_ONE_QUORUM,
    BUG_NO_JOINT,
    BUG_LATE_DEADLINE,
    BUG_OLD_EXTENSION,
    BUG_UNPROVED_KEY,
    BUG_NO_WAIT,
    BUG_EARLY_WAIT,
    BUG_WRONG_LIST,
    BUG_NO_SECOND_LOOK,
    BUG_NO_WATCH,
    BUG_WRITE_BACK,
    /* Decrees. */
    BUG_ONE_QUORUM_CHOOSES,
    BUG_NO_PREPARE,
    BUG_EQUAL_BALLOTS,
    BUG_NO_BALLOT_LIMIT,
    BUG_FEW_TELL,
    BUG_BALLOTS_LOST,
    BUG_WARMING_TELLS,
    /* Rescue. */
    BUG_RESCUE_NO_CLOSE,
    BUG_RESCUE_NO_WAIT,
    BUG_RESCUE_NEXT_VERSION,
    BUG_RESCUE_STALE,
    BUG_NO_PROMISE, /* None: what cannot be promised. */
    /* Fencing. */
    BUG_NO_RAISE,
    BUG_RAISE_EARLY,
    BUG_RAISE_FEW,
    BUG_RAISE_EVEN,
    BUG_READ_FEW,
    BUG_READ_UNSEEN,
    BUG_TOKEN_ONE_QUORUM,
    BUG_TOKEN_NO_VERSION,
    BUG_NUMBERS_KEPT,
    BUG_FLOOR_FEW,
    BUGS_LEN,
};

#endif
