/*
 * handover-check.c - what must be true in every world of handover.c, and how its stories are told.
 *
 *   clients=3               up to 3; there are three masters
 *   lease=4 patience=4      ticks; the watch of a master that forgot is as long as the lease
 *   tokens=3                of each client
 *   start=1                 where it begins: handover_begin()
 *   slack=1                 a key may end a tick early
 *   extend=1                holders extend
 *   breaks=1 lost=1         connections that break; messages that are lost (a late one costs none)
 *   forgets=0 revokes=0     masters that lose their data; keys that an operator revokes
 *   deaths=0 leaves=0 joins=0  of clients; joins: they come again
 *   beats=31                heartbeats together; 31: any number
 */
#include "models/handover.h"

#include <stdio.h>
#include <string.h>

#include "models/explorer.h"

static bool keeps_key(const struct world *w, unsigned c, unsigned m)
{
    const struct link *l = &w->links[c][m];

    return w->masters[m].owner == c + 1 && l->epoch == w->masters[m].epoch &&
           !l->message.is_there && l->back == 0 && l->request.command == NO_COMMAND &&
           l->answer.reply == NO_REPLY;
}

const char *handover_judge(const struct world *w)
{
    unsigned holders = 0;

    for (unsigned c = 0; c < bounds.clients; c++) {
        const struct client *x = &w->clients[c];
        unsigned backed = 0;

        holders += x->phase == HOLDING && x->left != 0;
        for (unsigned m = 0; m < MASTERS; m++) {
            backed += handover_backs(w, c, m) || w->links[c][m].forgot;
            if (x->phase == GONE && !x->has_stray && keeps_key(w, c, m))
                return "a client that has left keeps a key";
        }
        if (x->phase == HOLDING && x->left != 0 && backed < MAJORITY)
            return "no majority of keys backs a hold";
    }
    if (holders > 1)
        return "two clients hold at once";
    for (unsigned m = 0; m < MASTERS; m++)
        if (w->masters[m].passed >= 4)
            return "a vote was passed on four times, and nobody held";
    return NULL;
}

/* ---- Stories ---- */

static const char *const commands[] = {"nothing",   "heartbeat", "release",
                                       "give back", "leave",     "extend"};
static const char *const replies[] = {"nothing", "wait", "yes", "no", "done"};

static void tell_change(const struct world *a, const struct world *b)
{
    for (unsigned m = 0; m < MASTERS; m++) {
        const struct master *x = &b->masters[m];

        if (x->owner == a->masters[m].owner && x->token == a->masters[m].token)
            continue;
        if (x->owner == REVOKED)
            printf("; key %c is revoked", 'a' + m);
        else if (x->owner != 0)
            printf("; key %c = %c's token %u", 'a' + m, 'A' + x->owner - 1, x->token);
        else
            printf("; key %c is free", 'a' + m);
    }
    for (unsigned c = 0; c < CLIENTS; c++) {
        const struct client *x = &b->clients[c];

        if (x->phase == HOLDING && a->clients[c].phase != HOLDING)
            printf("; %c HOLDS token %u for %u", 'A' + c, x->token, x->left);
        else if (x->phase != HOLDING && a->clients[c].phase == HOLDING)
            printf("; %c holds no more", 'A' + c);
    }
    printf("\n");
}

static void tell_command(struct move move, const struct link *l)
{
    char client = (char)('A' + move.a), master = (char)('a' + move.b);

    switch (move.kind) {
    case SENDS:
        printf("%c sends %s to %c", client, commands[move.c], master);
        break;
    case AT_ONCE:
        printf("%c does %s of %c", master, commands[move.c], client);
        break;
    case CUT:
        printf("the connection of %c to %c breaks behind %s", client, master, commands[move.c]);
        break;
    case EXECUTES:
        printf("%c does %s of %c, token %u", master, commands[move.c], client, l->request.token);
        break;
    case STRAYS:
        printf("%c does %s of %c, token %u, late", master, commands[move.c], client,
               l->stray.token);
        break;
    case READS:
        printf("%c reads \"%s\" of %c to %s, token %u", client, replies[move.c], master,
               commands[l->answer.command], l->answer.token);
        break;
    case HEARS:
        printf("%c reads of %c: granted, token %u, sent %u ago, epoch %u", client, master,
               l->message.token, l->message.age, l->message.epoch);
        break;
    case LOSES:
        printf("the message of %c to %c is lost", master, client);
        break;
    case BREAKS:
        printf("the connection of %c to %c breaks", client, master);
        break;
    default:
        break;
    }
}

static void tell(const void *from, const void *to, struct move move)
{
    const struct world *a = from;
    char client = (char)('A' + move.a), master = (char)('a' + move.a);

    switch (move.kind) {
    case TICK:
        printf("-- a tick");
        break;
    case RELEASES:
        printf("%c releases", client);
        break;
    case GIVES_BACK:
        printf("%c gives its token back", client);
        break;
    case LEAVES:
        printf("%c leaves", client);
        break;
    case IS_DONE:
        printf("%c is done", client);
        break;
    case JOINS:
        printf("%c joins", client);
        break;
    case DIES:
        printf("%c dies", client);
        break;
    case ENDS_EARLY:
        printf("the key of %c ends early", master);
        break;
    case FORGETS:
        printf("%c forgets", master);
        break;
    case REVOKES:
        printf("an operator revokes what %c stores", master);
        break;
    default:
        tell_command(move, &a->links[move.a][move.b]);
    }
    tell_change(a, to);
}

/* ---- Runs ---- */

static const struct option options[] = {
    {"clients", &bounds.clients, 1, CLIENTS},
    {"lease", &bounds.lease, 2, 14},
    {"patience", &bounds.patience, 1, 15},
    {"tokens", &bounds.tokens, 1, 12},
    {"start", &bounds.start, 0, 3},
    {"slack", &bounds.slack, 0, 1},
    {"extend", &bounds.extend, 0, 1},
    {"breaks", &bounds.breaks, 0, 15},
    {"lost", &bounds.lost, 0, 15},
    {"forgets", &bounds.forgets, 0, 3},
    {"deaths", &bounds.deaths, 0, 3},
    {"leaves", &bounds.leaves, 0, 7},
    {"joins", &bounds.joins, 0, 7},
    {"beats", &bounds.beats, 0, ANY_BEATS},
    {"revokes", &bounds.revokes, 0, 3},
    {0},
};

#define CALM "breaks=0 lost=0 extend=0 "
#define FAULTS "breaks=3 lost=3 forgets=1 deaths=1 leaves=2 joins=3 tokens=8 revokes=2 "

static const struct run runs[] = {
    {"pair", "two clients, a heartbeat", CALM "clients=2 beats=1 tokens=2", false},
    {"walks", "random walks, three clients, every fault", FAULTS "walks=60000 steps=160", false},
    {"fresh", "the same, from nothing", FAULTS "start=0 walks=30000 steps=200", false},
    {"thin", "only a majority has each place", FAULTS "start=2 walks=30000 steps=160", false},
    {"free", "and nobody holds", FAULTS "start=3 walks=30000 steps=160", false},
    {"pair-lost", "two clients, a heartbeat, a message is lost",
     "breaks=0 extend=0 clients=2 beats=1", true},
    {"three", "three clients, a heartbeat", CALM "beats=1 lease=3 patience=3 tokens=2", true},
    {0},
};

#define WALKS FAULTS "walks=100000 steps=160"
#define FRESH "breaks=0 lost=0 extend=0 start=0 joins=3 tokens=1 steps=60 walks=4000000 "

static const struct trap traps[BUGS_LEN + 1] = {
    [OWN_TIME] = {"own-time", "rule 3: counts from a time that the client keeps", WALKS, false},
    [ARRIVAL] = {"arrival", "rule 3: counts from the arrival of the message", WALKS, false},
    [NOT_EXTENDED] = {"not-extended", "rule 3: a heartbeat does not extend", WALKS, false},
    [ANY_MESSAGE] = {"any-message", "rule 3: a grant of any epoch",
                     FRESH "forgets=1 lease=6 patience=6", false},
    [ANY_ANSWER] = {"any-answer", "rule 3: an answer of any epoch", WALKS, false},
    [PING_PONG] = {"ping-pong", "rule 4: what is given back is passed on", WALKS, false},
    [LEAVE_KEY] = {"leave-key", "rule 4: a waiter leaves without a release", WALKS, false},
    [SAME_TOKEN] = {"same-token", "rule 5: the token is used again", WALKS, false},
    [NO_TICKET] = {"no-ticket", "rule 1: a token waits without a ticket", FRESH, false},
    [LATE] = {"late", "rule 3: no test of the deadline", WALKS, false},
    [KEEP_TOKEN] = {"keep-token", "rule 4: the token waits on", WALKS, false},
    [KEEP_PLACE] = {"keep-place", "rule 2: a release keeps the place", WALKS, false},
    [EXTEND_KEEPS] = {"extend-keeps", "rule 2: an extension in vain keeps the place",
                      "breaks=0 lost=0 tokens=1 walks=500000", false},
    [NO_WATCH] = {"no-watch", "a master that forgot votes at once", FRESH "forgets=1", false},
    [MINORITY] = {"minority", "one vote is enough", WALKS, false},
};

static unsigned weight(struct move move)
{
    switch (move.kind) {
    case TICK:
        return 6;
    case STRAYS:
    case RELEASES:
        return 2;
    case FORGETS:
    case GIVES_BACK:
    case DIES:
    case LEAVES:
    case LOSES:
    case BREAKS:
    case CUT:
    case REVOKES:
        return 1;
    default:
        return 4;
    }
}

/* The words of clients that are not there are always 0. */
static uint64_t used(void)
{
    static struct world full;
    const uint32_t *words = (const uint32_t *)&full;
    uint64_t mask = 0;

    memset(&full, 0, sizeof full);
    memset(&full.history, 1, sizeof full.history);
    memset(full.clients, 1, bounds.clients * sizeof full.clients[0]);
    memset(full.links, 1, bounds.clients * sizeof full.links[0]);
    memset(full.masters, 1, sizeof full.masters);
    for (unsigned m = 0; m < MASTERS; m++)
        for (unsigned c = bounds.clients; c < CLIENTS; c++)
            memset(&full.masters[m].places[c], 0, sizeof full.masters[m].places[c]);
    for (unsigned i = 0; i < sizeof full / sizeof *words; i++)
        mask |= (uint64_t)(words[i] != 0) << i;
    return mask;
}

static struct model build(void)
{
    return (struct model){
        .words = sizeof(struct world) / sizeof(uint32_t),
        .used = used(),
        .begin = handover_begin,
        .steps = handover_steps,
        .tell = tell,
        .weight = weight,
    };
}

int main(int argc, char **argv)
{
    static const struct check check = {
        .defaults =
            "clients=3 lease=4 patience=4 tokens=3 start=1 slack=1 extend=1 breaks=1 lost=1 "
            "forgets=0 deaths=0 leaves=0 joins=0 beats=31 revokes=0",
        .options = options,
        .runs = runs,
        .traps = traps,
        .build = build,
    };

    return check_main(&check, argc, argv);
}
