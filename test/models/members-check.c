/*
 * members-check.c - the options, runs, bugs and stories of the models of members.h and fencing.h.
 *
 *   lists=abc,abd              members of version 1, and of later simple versions; of a to f
 *   clients=2 admins=1 ttl=1   how many, and max_ttl in ticks (up to 3)
 *   versions=3                 the greatest version (up to 5)
 *   paxos=0 ballots=2          paxos=1: a version is chosen by Paxos
 *   choices=1 give_up=0        choices=2: list i may be followed by list i+2 also
 *   forgets=0 at_once=1        how often masters lose their data
 *   chosen=1                   2: version 2 is chosen at the start, and not written
 *   split=1                    0: a proof is read in one step with the key that is set
 *   laggards=0 keep=0          1: votes at smaller versions count; votes outlive a version
 *   lose=bc rescue=aef returns=0   a quorum is lost, and some of it come back
 *   numbers=0                  above 0: fencing, with numbers up to this
 *   rivals=0 again=0 overlap=0 kills=0 clock_steps=0   see members.h, struct bounds
 *   rename=1                   0: worlds that differ in names alone are searched, too
 */
#include <string.h>

#include "models/fencing.h"

/* ---- Options ---- */

static unsigned renames;

static const struct option options[] = {
    {"clients", &bounds.clients, 0, CLIENTS_MAX},
    {"admins", &bounds.admins, 0, ADMINS_MAX},
    {"ttl", &bounds.ttl, 0, TTL_MAX},
    {"versions", &bounds.versions, 0, CHOSEN_MAX},
    {"ballots", &bounds.ballots, 0, BALLOTS_MAX},
    {"paxos", &bounds.paxos, 0, 1},
    {"choices", &bounds.choices, 0, 2},
    {"give_up", &bounds.give_up, 0, 1},
    {"forgets", &bounds.forgets, 0, 3},
    {"at_once", &bounds.forgets_at_once, 0, MASTERS_MAX},
    {"chosen", &bounds.chosen, 0, 2},
    {"split", &bounds.split, 0, 1},
    {"laggards", &bounds.laggards, 0, 1},
    {"keep", &bounds.keep, 0, 1},
    {"returns", &bounds.returns, 0, MASTERS_MAX},
    {"numbers", &bounds.numbers, 0, 14},
    {"rivals", &bounds.rivals, 0, 14},
    {"again", &bounds.again, 0, 1},
    {"overlap", &bounds.overlap, 0, 1},
    {"kills", &bounds.kills, 0, 1},
    {"clock_steps", &bounds.clock_steps, 0, 1},
    {"rename", &renames, 0, 1},
    {0},
};

static bool read_lists(const char *name, const char *value)
{
    if (strcmp(name, "lists") == 0) {
        bounds.lists_len = check_read_lists(value, 'a', MASTERS_MAX, bounds.lists, LISTS_MAX);
        return bounds.lists_len > 0;
    }
    if (strcmp(name, "lose") == 0)
        return check_read_lists(value, 'a', MASTERS_MAX, &bounds.lose, 1) == 1;
    return strcmp(name, "rescue") == 0 &&
           check_read_lists(value, 'a', MASTERS_MAX, &bounds.rescue_list, 1) == 1;
}

#define DEFAULTS                                                                                \
    "lists=abc,abd clients=2 admins=1 ttl=1 versions=3 paxos=0 ballots=2 choices=1 give_up=0 "  \
    "forgets=0 at_once=1 chosen=1 split=1 laggards=0 keep=0 lose= rescue= returns=0 numbers=0 " \
    "rivals=0 again=0 overlap=0 kills=0 clock_steps=0 rename=1"

/* ---- Runs.  Bounds were chosen: the largest that fit into the time of test/meson.build. ---- */

#define LOCKS "lists=abc,abd ttl=1 "
#define DECREES \
    "clients=0 admins=2 paxos=1 lists=abc,ac,bc choices=2 versions=2 ballots=2 forgets=1 "
#define RESCUE "lists=abc,abd lose=bc rescue=aef returns=1 ttl=1 split=0 "
#define FENCING "lists=abc,abd numbers=2 ttl=1 split=0 "

static const struct run runs[] = {
    {"locks", "abc to abd, or given up, two clients; each proof is a step of its own",
     LOCKS "give_up=1", false},
    {"decrees", "abc to ac or bc, two admins, two ballots; one master loses its data", DECREES,
     false},
    {"rescue", "b and c are lost, aef is founded, and one of the lost comes back", RESCUE, false},
    {"fencing", "abc to abd, or given up; two rounds, one after the other, and rivals that count",
     FENCING "rivals=1 give_up=1", false},
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
    {0},
};

static const struct trap traps[BUGS_LEN + 1] = {
    [BUG_NO_PROOF] = {"no-proof", "M1: a vote counts without a proof", LOCKS "forgets=1", false},
    [BUG_NO_VERSION] = {"no-version", "M1: the proof shows the epoch alone", LOCKS, false},
    [BUG_EARLY_PROOF] = {"early-proof", "M1: a proof of an earlier round counts", LOCKS "split=0",
                         false},
    [BUG_ONE_QUORUM] = {"one-quorum", "M2: a joint configuration needs Q(L2) alone", LOCKS, false},
    [BUG_NO_JOINT] = {"no-joint", "M3: simple(L1) becomes simple(L2)", LOCKS, false},
    [BUG_LATE_DEADLINE] = {"late-deadline", "M2: a lease counts from the last vote", LOCKS "ttl=2",
                           false},
    [BUG_OLD_EXTENSION] = {"old-extension", "M4: an extension counts under an old version",
                           LOCKS "ttl=2 split=0", false},
    [BUG_UNPROVED_KEY] = {"unproved-key", "M4: a key set in an extension counts unproved",
                          LOCKS "ttl=2 split=0", false},
    [BUG_NO_WAIT] = {"no-wait", "M5: joint becomes simple(L2) at once", LOCKS, false},
    [BUG_EARLY_WAIT] = {"early-wait", "M5: the wait begins with the first master seen", LOCKS,
                        false},
    [BUG_WRONG_LIST] = {"wrong-list", "M5: Q(L2) is seen, not Q(L1)", LOCKS, false},
    [BUG_NO_SECOND_LOOK] = {"no-second-look", "M5: nobody looks again after the wait",
                            LOCKS "forgets=1 split=0", true},
    [BUG_NO_WATCH] = {"no-watch", "M7: a master that lost its data is not watched",
                      LOCKS "forgets=1", false},
    [BUG_WRITE_BACK] = {"write-back", "M3: a version is written over a greater one",
                        "lists=abc,abd,ade versions=4", false},
    [BUG_ONE_QUORUM_CHOOSES] = {"one-quorum-chooses", "M3: Q(L2) alone chooses while joint",
                                "clients=0 admins=2 paxos=1 give_up=1", false},
    [BUG_NO_PREPARE] = {"no-prepare", "M3: nothing is prepared: the last writer wins", DECREES,
                        false},
    [BUG_EQUAL_BALLOTS] = {"equal-ballots", "M3: two admins draw the same ballot", DECREES, false},
    [BUG_NO_BALLOT_LIMIT] = {"no-ballot-limit", "M3: a ballot never ends", DECREES, false},
    [BUG_FEW_TELL] = {"few-tell", "M7: one fewer than N - Q + 1 tell", DECREES, false},
    [BUG_BALLOTS_LOST] = {"ballots-lost", "M7: the version comes back, ballots do not", DECREES,
                          false},
    [BUG_WARMING_TELLS] = {"warming-tells", "M7: a warming master counts as one that told",
                           DECREES "forgets=2 at_once=2", false},
    [BUG_RESCUE_NO_CLOSE] = {"rescue-no-close", "R2: the other members are not closed",
                             "lists=abc,ade lose=de rescue=f split=0", false},
    [BUG_RESCUE_NO_WAIT] = {"rescue-no-wait", "R3: the new configuration is founded at once",
                            RESCUE, false},
    [BUG_RESCUE_NEXT_VERSION] = {"rescue-next-version", "R4: it gets the next version seen", RESCUE,
                                 false},
    [BUG_RESCUE_STALE] = {"rescue-stale", "R1: the first list is rescued, not the newest",
                          "lists=abc,ade lose=bc rescue=f split=0", false},
    [BUG_NO_PROMISE] = {"no-promise", "R5, no bug: a quorum that was lost comes back untold",
                        RESCUE "returns=2", false},
    [BUG_NO_RAISE] = {"no-raise", "F4: the counters of L2 are not raised", FENCING "rivals=1",
                      false},
    [BUG_RAISE_EARLY] = {"raise-early", "F3: numbers are read before Q(L1) is seen", FENCING,
                         false},
    [BUG_RAISE_FEW] = {"raise-few", "F4: one fewer than Q of L2 are raised", FENCING "rivals=1",
                       false},
    [BUG_RAISE_EVEN] = {"raise-even", "F4: N - Q + 1 of L2 are raised, N even", NULL, false},
    [BUG_READ_FEW] = {"read-few", "F3: one fewer than N - Q + 1 of L1 are read", FENCING "rivals=1",
                      false},
    [BUG_READ_UNSEEN] = {"read-unseen", "F3: members are read that do not show v+1",
                         FENCING "rivals=1", false},
    [BUG_TOKEN_ONE_QUORUM] = {"token-one-quorum", "F2: while joint, Q(L2) agree on a token",
                              FENCING "rivals=1", false},
    [BUG_TOKEN_NO_VERSION] = {"token-no-version", "F1: a raise does not compare the version",
                              FENCING "numbers=3", true},
    [BUG_NUMBERS_KEPT] = {"numbers-kept", "F1: numbers stay good when a version is taken over",
                          FENCING "rivals=1", false},
    [BUG_FLOOR_FEW] = {"floor-few", "F5: a floor is read from one fewer than N - Q + 1",
                       FENCING "forgets=1", false},
};

static const struct story stories[] = {
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
    {0},
};

/* ---- All of it ---- */

static unsigned weigh_step(struct move move)
{
    return strchr("FKRGbVLB", move.kind) != NULL ? 1 : 4;
}

static struct model build_model(void)
{
    struct model locks = {
        sizeof(struct world) / 4,      world_words_used(), world_begin, world_steps,
        renames ? world_rename : NULL, world_tell,         weigh_step};
    struct model fencing = {
        sizeof(struct fencing_world) / 4, fencing_words_used(), fencing_begin, fencing_steps,
        renames ? fencing_rename : NULL,  fencing_tell,         weigh_step};
    set all = bounds.rescue_list;

    for (unsigned i = 0; i < bounds.lists_len; i++)
        all |= bounds.lists[i];
    for (bounds.masters = 0; all >> bounds.masters != 0;)
        bounds.masters++;
    locks.used = world_words_used();
    fencing.used = fencing_words_used();
    return bounds.numbers > 0 ? fencing : locks;
}

int main(int argc, char **argv)
{
    static const struct check check = {
        .defaults = DEFAULTS,
        .options = options,
        .read = read_lists,
        .runs = runs,
        .traps = traps,
        .stories = stories,
        .build = build_model,
    };

    return check_main(&check, argc, argv);
}
