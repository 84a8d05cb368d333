/*
 * bugs.c - the names of planted bugs, the rules that they break, and what is wrong.
 */
#include "models/bugs.h"

enum bug planted = NO_BUG;

const struct bug_text bug_texts[BUGS_LEN] = {
    [NO_BUG] = {"none", "", "all rules are kept"},
    [BUG_NO_PROOF] = {"no-proof", "M1", "a vote counts without a proof"},
    [BUG_NO_VERSION] = {"no-version", "M1", "the proof shows the epoch alone"},
    [BUG_EARLY_PROOF] = {"early-proof", "M1", "a proof of an earlier round counts"},
    [BUG_ONE_QUORUM] = {"one-quorum", "M2", "a joint configuration needs Q(L2) alone"},
    [BUG_NO_JOINT] = {"no-joint", "M3", "simple(L1) becomes simple(L2)"},
    [BUG_LATE_DEADLINE] = {"late-deadline", "M2", "a lease counts from the last vote"},
    [BUG_OLD_EXTENSION] = {"old-extension", "M4", "an extension counts under an old version"},
    [BUG_UNPROVED_KEY] = {"unproved-key", "M4", "a key set in an extension counts unproved"},
    [BUG_NO_WAIT] = {"no-wait", "M5", "joint becomes simple(L2) at once"},
    [BUG_EARLY_WAIT] = {"early-wait", "M5", "the wait begins with the first master seen"},
    [BUG_WRONG_LIST] = {"wrong-list", "M5", "Q(L2) is seen, not Q(L1)"},
    [BUG_NO_SECOND_LOOK] = {"no-second-look", "M5", "nobody looks again after the wait"},
    [BUG_NO_WATCH] = {"no-watch", "M7", "a master that lost its data is not watched"},
    [BUG_WRITE_BACK] = {"write-back", "M3", "a version is written over a greater one"},
    [BUG_ONE_QUORUM_CHOOSES] = {"one-quorum-chooses", "M3", "Q(L2) alone chooses while joint"},
    [BUG_NO_PREPARE] = {"no-prepare", "M3", "nothing is prepared: the last writer wins"},
    [BUG_EQUAL_BALLOTS] = {"equal-ballots", "M3", "two admins draw the same ballot"},
    [BUG_NO_BALLOT_LIMIT] = {"no-ballot-limit", "M3", "a ballot never ends"},
    [BUG_FEW_TELL] = {"few-tell", "M7", "one fewer than N - Q + 1 tell"},
    [BUG_BALLOTS_LOST] = {"ballots-lost", "M7", "the version comes back, ballots do not"},
    [BUG_WARMING_TELLS] = {"warming-tells", "M7", "a warming master counts as one that told"},
    [BUG_RESCUE_NO_CLOSE] = {"rescue-no-close", "R2", "the other members are not closed"},
    [BUG_RESCUE_NO_WAIT] = {"rescue-no-wait", "R3", "the new configuration is founded at once"},
    [BUG_RESCUE_NEXT_VERSION] = {"rescue-next-version", "R4", "it gets the next version seen"},
    [BUG_RESCUE_STALE] = {"rescue-stale", "R1", "the first list is rescued, not the newest"},
    [BUG_NO_RAISE] = {"no-raise", "F4", "the counters of L2 are not raised"},
    [BUG_RAISE_EARLY] = {"raise-early", "F3", "numbers are read before Q(L1) is seen"},
    [BUG_RAISE_FEW] = {"raise-few", "F4", "one fewer than Q of L2 are raised"},
    [BUG_RAISE_EVEN] = {"raise-even", "F4", "N - Q + 1 of L2 are raised, N even"},
    [BUG_READ_FEW] = {"read-few", "F3", "one fewer than N - Q + 1 of L1 are read"},
    [BUG_READ_UNSEEN] = {"read-unseen", "F3", "members are read that do not show v+1"},
    [BUG_TOKEN_ONE_QUORUM] = {"token-one-quorum", "F2", "while joint, Q(L2) agree on a token"},
    [BUG_TOKEN_NO_VERSION] = {"token-no-version", "F1", "a raise does not compare the version"},
    [BUG_NUMBERS_KEPT] = {"numbers-kept", "F1", "numbers stay good when a version is taken over"},
    [BUG_FLOOR_FEW] = {"floor-few", "F5", "a floor is read from one fewer than N - Q + 1"},
};
