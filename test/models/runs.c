/*
 * runs.c - the tables of runs.h.
 *
 * Bounds were chosen: as large as the time allows, see test/meson.build.
 */
#include "models/runs.h"

#define DECREES "clients=0 admins=2 paxos=1 lists=abc,ac,bc choices=2 versions=2 "
#define RESCUE "lists=abc,abd rescue=aef lose=bc split=0 ttl=1 "
#define TOKENS "numbers=2 ttl=1 split=0 "

const struct run runs[] = {
    {"locks", "abc to abd, two clients; each proof is a step of its own", "lists=abc,abd ttl=1",
     false},
    {"decrees", "abc to ac or bc, two admins, two ballots, one master loses its data",
     DECREES "ballots=2 forgets=1", false},
    {"rescue", "b and c are lost, aef is founded, and one of the lost comes back",
     RESCUE "returns=1", false},
    {"fencing", "abc to abd, one round each of two clients",
     "lists=abc,abd numbers=2 rivals=1 ttl=1 split=0", false},
    {"locks-2", "as locks, with leases of two ticks", "lists=abc,abd ttl=2", true},
    {"locks-forget", "as locks; one master loses its data", "lists=abc,abd ttl=1 forgets=1", true},
};

const struct trap traps[] = {
    {BUG_NO_PROOF, "", "lists=abc,abd ttl=1 forgets=1", false},
    {BUG_NO_VERSION, "", "lists=abc,abd ttl=1", false},
};

const struct story stories[] = {
    {"A", "two configurations are chosen: a dead promise is counted", BUG_NO_BALLOT_LIMIT,
     DECREES "ballots=2 forgets=1",
     "p001 p102 p011 F000 T000 T000 r010 q112 r020 I000 a110 a120 a121 a112"},
};

const unsigned runs_len = sizeof runs / sizeof *runs;
const unsigned traps_len = sizeof traps / sizeof *traps;
const unsigned stories_len = sizeof stories / sizeof *stories;
