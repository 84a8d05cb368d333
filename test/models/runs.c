/*
 * runs.c - the tables of runs.h.
 *
 * Bounds were chosen: the largest that fit into the time that test/meson.build states.
 */
#include "models/runs.h"

#define LOCKS "lists=abc,abd ttl=1 "
#define DECREES \
    "clients=0 admins=2 paxos=1 lists=abc,ac,bc choices=2 versions=2 ballots=2 forgets=1 "
#define RESCUE "lists=abc,abd lose=bc rescue=aef returns=1 ttl=1 split=0 "
#define FENCING "lists=abc,abd numbers=2 ttl=1 split=0 "

const struct run runs[] = {
    {"locks", "abc to abd, two clients; each proof is a step of its own", LOCKS, false},
    {"decrees", "abc to ac or bc, two admins, two ballots; one master loses its data", DECREES,
     false},
    {"rescue", "b and c are lost, aef is founded, and one of the lost comes back", RESCUE, false},
    {"fencing", "abc to abd; two rounds, one after the other, and rivals that count",
     FENCING "rivals=1", false},
    {"locks-long", "as locks, with leases of two ticks", LOCKS "ttl=2", true},
    {"locks-forget", "as locks; one master loses its data", LOCKS "forgets=1", true},
    {"locks-twice", "abc to abd to ade: a client may sleep over four versions",
     "lists=abc,abd,ade versions=5 split=0", true},
    {"locks-back", "abc to abd to abc: c comes back with what it knew",
     "lists=abc,abd,abc versions=5 split=0", true},
    {"locks-grow", "abc to abcde", "lists=abc,abcde split=0", true},
    {"decrees-more", "as decrees, with three ballots and two losses", DECREES "ballots=3 forgets=2",
     true},
    {"rescue-joint", "abc to ade; d and e are lost, f is founded alone",
     "lists=abc,ade lose=de rescue=f split=0", true},
    {"fencing-shrink", "abcde to abc", "lists=abcde,abc numbers=2 split=0", true},
    {"fencing-grow", "abc to abcde", "lists=abc,abcde numbers=2 split=0", true},
    {"fencing-forget", "as fencing, no rivals; one master loses its data", FENCING "forgets=1",
     true},
    {"fencing-overlap", "as fencing, no rivals; two rounds at a time, clocks are stepped",
     FENCING "overlap=1 clock_steps=1", true},
};

const struct trap traps[] = {
    {BUG_NO_PROOF, "", LOCKS "forgets=1", false},
    {BUG_NO_VERSION, "", LOCKS, false},
    {BUG_EARLY_PROOF, "", LOCKS "split=0", false},
    {BUG_ONE_QUORUM, "", LOCKS, false},
    {BUG_NO_JOINT, "", LOCKS, false},
    {BUG_LATE_DEADLINE, "", LOCKS "ttl=2", false},
    {BUG_OLD_EXTENSION, "", LOCKS "ttl=2 split=0", false},
    {BUG_UNPROVED_KEY, "", LOCKS "ttl=2 split=0", false},
    {BUG_NO_WAIT, "", LOCKS, false},
    {BUG_EARLY_WAIT, "", LOCKS, false},
    {BUG_WRONG_LIST, "", LOCKS, false},
    {BUG_NO_SECOND_LOOK, "", LOCKS "forgets=1 split=0", true}, /* Story B. */
    {BUG_NO_WATCH, "", LOCKS "forgets=1", false},
    {BUG_WRITE_BACK, "", "lists=abc,abd,ade versions=4", false},
    {BUG_ONE_QUORUM_CHOOSES, "", "clients=0 admins=2 paxos=1 give_up=1", false},
    {BUG_NO_PREPARE, "", DECREES, false},
    {BUG_EQUAL_BALLOTS, "", DECREES, false},
    {BUG_NO_BALLOT_LIMIT, "", DECREES, false},
    {BUG_FEW_TELL, "", DECREES, false},
    {BUG_BALLOTS_LOST, "", DECREES, false},
    {BUG_WARMING_TELLS, "", DECREES "forgets=2 at_once=2", false},
    {BUG_RESCUE_NO_CLOSE, "", "lists=abc,ade lose=de rescue=f split=0", false},
    {BUG_RESCUE_NO_WAIT, "", RESCUE, false},
    {BUG_RESCUE_NEXT_VERSION, "", RESCUE, false},
    {BUG_RESCUE_STALE, "", "lists=abc,ade lose=bc rescue=f split=0", false},
    {NO_BUG, "R5: a quorum that was lost comes back, and a client knows nothing newer",
     RESCUE "returns=2", false},
    {BUG_NO_RAISE, "", FENCING "rivals=1", false},
    {BUG_RAISE_EARLY, "", FENCING, false},
    {BUG_RAISE_FEW, "", FENCING "rivals=1", false},
    {BUG_READ_FEW, "", FENCING "rivals=1", false},
    {BUG_READ_UNSEEN, "", FENCING "rivals=1", false},
    {BUG_TOKEN_ONE_QUORUM, "", FENCING "rivals=1", false},
    {BUG_NUMBERS_KEPT, "", FENCING "rivals=1", false},
    {BUG_FLOOR_FEW, "", FENCING "forgets=1", false},
    {BUG_TOKEN_NO_VERSION, "", FENCING "numbers=3", true}, /* Story F. */
};

const struct story stories[] = {
    {"A", "two configurations are chosen, because the promise of a lost memory is counted",
     BUG_NO_BALLOT_LIMIT, DECREES,
     "p001 p102 p011 F000 T000 r010 q112 r020 I000 a110 a120 a121 a112"},
    {"B", "two clients hold, because Q(L1) was never seen at one time", BUG_NO_SECOND_LOOK,
     LOCKS "forgets=1 split=0",
     "O020 W020 e002 F000 T000 r010 W120 e012 T000 P020 r020 I000 P000 W020 O030 W130 P110 "
     "W330 P130"},
    {"C", "a token comes twice, because nobody raised the counters of L2", BUG_NO_RAISE, FENCING,
     "P000 P021 O200 W120 e100 W020 e000 T000 O300 W130 W030 P100 P110 W330 P131"},
    {"D", "a token comes twice, because numbers were read on a member that had the old version",
     BUG_READ_UNSEEN, FENCING,
     "P000 O200 W120 e100 W020 e000 d100 d200 P021 T000 u000 u100 O300 W130 W030 P100 P110 W330 "
     "P131"},
    {"E", "a token comes twice, because N - Q + 1 were raised, N is even, and one lost its data",
     BUG_RAISE_EVEN, "lists=abe,abcd numbers=2 split=0 forgets=1",
     "P000 P041 O200 W020 W120 e000 e100 d010 d100 u010 u210 T000 O300 W230 F200 W130 W330 T000 "
     "r210 r230 I200 W430 P140 P110 P120 P131"},
    {"F", "tokens come in the wrong order, because a raise did not compare the version",
     BUG_TOKEN_NO_VERSION, FENCING "numbers=3",
     "P020 O200 W020 e000 W220 e200 d000 d210 u110 P010 n030 N010 N023 T000 u310 O300 W030 "
     "P100 P100 W330 P132"},
};

const unsigned runs_len = sizeof runs / sizeof *runs;
const unsigned traps_len = sizeof traps / sizeof *traps;
const unsigned stories_len = sizeof stories / sizeof *stories;
