/*
 * storms.c - how often a client asks (the property "storms").
 *
 *  rounds    A lease that waits begins one round for each half of its mean pause, and ROUNDS_MAX
 *            more until somebody gets what it waits for.
 *  queries   A waiting client queries a master about a name once for each round, once for each half
 *            of the mean pause, and QUERIES_MAX times more until somebody gets it.
 *  links     A link that does not serve is tried more and more slowly (transport.c).
 *
 * docs/testing.md derives the bounds from the rules of docs/protocol.md.
 */
#include "oracle.h"
#include "store.h"
#include "world.h"

#include "redlock/client/client.h"

/* A waiter that loses begins 2 rounds in turns, 3 for other permits, and one for each doubling of a
 * turn of 1 ms, up to four pauses: 12 for a second.  So 17, and keys may begin that anew.  Chosen:
 * eight times as many.  The most in 3300 runs were 29. */
#define ROUNDS_MAX 128

/* Messages of other waiters in the queue begin rounds, too.  Chosen, without a rule: the most in
 * 3300 runs were 391. */
#define FAIR_ROUNDS_MAX 4096

/* Links that come up, doubts, and another lease that comes first.  Chosen: the most in 3300 runs
 * were 6. */
#define QUERIES_MAX 32

static uint64_t wins[SIM_RESOURCES_MAX]; /* How often somebody got it. */

void storms_begin(void)
{
    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++)
        wins[r] = 0;
}

void storms_on_win(const struct lease_rec *rec)
{
    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++)
        wins[r] += rec->set >> r & 1;
}

static uint64_t wins_of(unsigned set)
{
    uint64_t sum = 0;

    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++)
        sum += set >> r & 1 ? wins[r] : 0;
    return sum;
}

/* Half of the mean pause.  A round of a fair lock that a master does not answer takes a reply
 * timeout, and the next one may begin at once. */
static uint64_t pause_of(const struct lease_rec *rec)
{
    const struct quorum_config *config = &rec->lease->q.config;
    uint64_t pause = (config->pause_min + config->pause_max) / 4 + 1;

    return rec->is_fair ? sim_min(pause, world.plan.reply_timeout_ms * DRIFT_MS / 2) : pause;
}

/* One more at now, of those that wait for the set. */
static void add(struct storm *storm, uint64_t now, uint64_t pause, unsigned set)
{
    uint64_t paused = (now - storm->at) / pause;

    if (storm->wins != wins_of(set) || storm->len <= paused)
        *storm = (struct storm){.at = now, .wins = wins_of(set)};
    storm->len -= storm->len > 0 ? (unsigned)paused : 0;
    storm->at += storm->len > 0 ? paused * pause : 0;
    storm->len++;
    tally.checks++;
}

static void take_query(struct ev_loop *process, unsigned set)
{
    for (unsigned m = 0; m < SIM_SERVERS_MAX; m++)
        for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++)
            process->queries[m][r].len -= (set >> r & 1) != 0 && process->queries[m][r].len > 0;
}

void storms_on_round(struct lease_rec *rec, uint64_t now)
{
    const unsigned most = rec->is_fair ? FAIR_ROUNDS_MAX : ROUNDS_MAX;

    add(&rec->storm, now, pause_of(rec), rec->set);
    take_query(rec->process, rec->set);
    if (rec->storm.len > most)
        world_fail(
            "storms",
            "client %u begins %u rounds of lease %u beyond its pauses, and nobody got set %x",
            rec->process->number, rec->storm.len, rec->number, rec->set);
}

/* Waiters for permits query the semaphore, which stands for all slots. */
void storms_on_query(struct ev_loop *process, unsigned master, const struct command *command)
{
    const unsigned first = world.plan.permits ? 0 : args_resource(command, 3);
    const unsigned set = world.plan.permits ? SIM_SETS - 1 : 1u << first;
    struct storm *storm = &process->queries[master][first];
    uint64_t pause = DRIFT_NEVER;

    for (unsigned place = 0; place < world.plan.leases; place++)
        if (process->recs[place] != NULL && (process->recs[place]->set & set) != 0 &&
            process->recs[place]->state == REC_LOCKING)
            pause = sim_min(pause, pause_of(process->recs[place]));
    add(storm, process_clock(process), pause, set);
    if (storm->len > QUERIES_MAX)
        world_fail("storms", "client %u sends master %u %u queries beyond its pauses and rounds",
                   process->number, master, storm->len);
}
