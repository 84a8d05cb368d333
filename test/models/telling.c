/*
 * telling.c - the steps of members.h in words.
 */
#include "models/members.h"

#include <stdio.h>

static char name_of(unsigned master)
{
    return (char)('a' + master);
}

static const char *describe_version(unsigned version)
{
    static const char *names[VERSIONS_LEN] = {"nothing",   "version 1", "version 2", "version 3",
                                              "version 4", "version 5", "closed",    "rescued"};

    return names[version];
}

static void tell_client(const struct world *before, const struct world *after, struct move move)
{
    const struct client *c = &after->clients[move.a];
    const struct master *m = &before->masters[move.b];
    char client = (char)('A' + move.a), master = name_of(move.b);
    bool holds = c->left > before->clients[move.a].left;

    switch (move.kind) {
    case 'S':
        printf("client %c sets its key on %c", client, master);
        break;
    case 'N':
        printf("client %c sets its key on %c, and the vote counts without a proof", client, master);
        break;
    case 'E':
        printf("client %c reads a proof of %c for all rounds after it", client, master);
        break;
    case 'P':
        printf("client %c reads the proof of %c: %s%s", client, master,
               describe_version(m->version), m->memory ? "" : ", no epoch");
        break;
    case 'V':
        printf("client %c looks at %c", client, master);
        break;
    case 'R':
        printf("client %c gives everything back", client);
        break;
    default:
        printf("client %c gives its extension up", client);
        break;
    }
    if (c->version != before->clients[move.a].version)
        printf(", and takes %s over", describe_version(c->version));
    printf("%s\n", holds ? ", and HOLDS" : "");
}

static void tell_admin(const struct world *after, struct move move)
{
    const struct admin *o = &after->admins[move.a];

    switch (move.kind) {
    case 'e':
        printf("admin %u sees %s on %c%s\n", move.a, describe_version(move.c), name_of(move.b),
               o->phase == WAITING ? ", and waits" : "");
        break;
    case 'p':
    case 'q':
        printf("admin %u, ballot %u for version %u: %c promises", move.a, move.c, o->version + 1u,
               name_of(move.b));
        if (o->phase == ACCEPTING)
            printf("; value %u is proposed", o->value);
        printf("\n");
        break;
    case 'O':
        printf("admin %u has version %u chosen, value %u\n", move.a, move.b, move.c);
        break;
    case 'K':
        printf("admin %u is killed\n", move.a);
        break;
    default:
        printf("admin %u leaves its ballot\n", move.a);
        break;
    }
}

static void tell_master(const struct world *before, const struct world *after, struct move move)
{
    const struct master *m = &after->masters[move.a], *other = &after->masters[move.b];

    switch (move.kind) {
    case 'a':
        printf("%c accepts ballot %u for version %u, value %u%s\n", name_of(move.c), move.b,
               move.a + 1u, after->masters[move.c].accepted,
               after->history.chosen != before->history.chosen ? "; it is chosen" : "");
        break;
    case 'W':
        printf("%s is written to %c\n", describe_version(move.b), name_of(move.a));
        break;
    case 'F':
        printf("%c loses its data\n", name_of(move.a));
        break;
    case 'r':
        printf("for %c, %c tells: %s, ballot %u, accepted %u\n", name_of(move.a), name_of(move.b),
               describe_version(other->version), other->ballot, other->accepted_ballot);
        break;
    default:
        printf("%c gets an epoch: %s, ballot %u, accepted %u\n", name_of(move.a),
               describe_version(m->version), m->ballot, m->accepted_ballot);
        break;
    }
}

static void tell_rescue(const struct world *after, struct move move)
{
    switch (move.kind) {
    case 'L':
        printf("these do not answer any more:");
        for (unsigned m = 0; m < bounds.masters; m++)
            if (!answers(after, m))
                printf(" %c", name_of(m));
        printf("\n");
        break;
    case 'C':
        if (move.a < MASTERS_MAX)
            printf("%c is closed%s\n", name_of(move.a),
                   after->history.rescue == CLOSING_WAIT ? ", the last; the wait begins" : "");
        else
            printf("the wait begins\n");
        break;
    case 'U':
        printf("the new configuration is founded\n");
        break;
    default:
        printf("%c comes back, with %s\n", name_of(move.a),
               describe_version(after->masters[move.a].version));
        break;
    }
}

void world_tell(const void *before, const void *after, struct move move)
{
    switch (move.kind) {
    case 'T':
        printf("-- a tick of time\n");
        break;
    case 'S':
    case 'N':
    case 'E':
    case 'P':
    case 'V':
    case 'R':
    case 'G':
        tell_client(before, after, move);
        break;
    case 'e':
    case 'p':
    case 'q':
    case 'O':
    case 'K':
    case 'b':
        tell_admin(after, move);
        break;
    case 'L':
    case 'C':
    case 'U':
    case 'B':
        tell_rescue(after, move);
        break;
    default:
        tell_master(before, after, move);
        break;
    }
}
