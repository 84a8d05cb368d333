/*
 * waits.c - announcements to waiters, and whether waiters wake up.
 *
 *  waits   A waiter in good health does not sleep much longer than the time between two queries
 *          while the lock is free, even if messages were lost.
 *  hears   A waiter listens to all masters, and to its group of a crowd there.  After links were
 *          cut, it does so again within the time that new links take.
 *  wakes   If wait flags were set and no message was lost or late, a waiter wakes up soon.
 *  starves A writer in good health waits, while there are readers all the time.  After it has
 *          queried the masters, no new reader gets the lock before it.
 *
 * At the end of each turn the lock is free if a majority of masters have no key.  For readers
 * it is free if a majority would grant a read lock.  Readers wait in groups of their own.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "redlock/client/client.h"
#include "redlock/core/wait.h"

sim_time waits_slack(void)
{
    return 8 * world.plan.quick + 2 * world.plan.reply_timeout_ms * DRIFT_MS + 100 * DRIFT_MS;
}

/* From a release until a waiter tries: all turns that the lots may give, and the way. */
static sim_time nap(void)
{
    return 350 * DRIFT_MS + 8 * world.plan.quick;
}

static struct {
    sim_time since;  /* Since when the lock is free; SIM_NEVER: it is not. */
    bool was_marked; /* Before that, masters were to announce its release. */
} frees[SIM_LINES];

/* Since when a majority has readers; SIM_NEVER: it does not. */
static sim_time reads_since[SIM_RESOURCES_MAX];

void waits_begin(void)
{
    for (unsigned line = 0; line < SIM_LINES; line++) {
        frees[line].since = SIM_NEVER;
        frees[line].was_marked = false;
    }
    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++)
        reads_since[r] = SIM_NEVER;
}

/* The groups of waiters are numbered by sets of resources; groups of readers follow. */
static unsigned line_of(const struct lease_rec *rec)
{
    return rec->is_shared ? SIM_SETS + rec->set : rec->set;
}

void waits_on_trouble(struct ev_loop *process)
{
    process->deaf_until = sim_max(process->deaf_until, process_now(process));
}

/* ---- Announcements ---- */

static bool is_open(const struct conn *conn)
{
    return !conn->reset && conn->client != NULL;
}

static bool is_told(const struct conn *conn, unsigned mark)
{
    return is_open(conn) && (conn->hears & 1u << mark) != 0;
}

unsigned waits_count(const struct server *server, unsigned mark)
{
    unsigned count = 0;

    for (const struct conn *conn = server->conns; conn != NULL; conn = conn->next)
        count += is_told(conn, mark);
    return count;
}

/* prefix and name: of the channel. */
static void tell(struct conn *conn, const char *prefix, const char *name, const char *text)
{
    const size_t room = strlen(prefix) + strlen(name) + strlen(text) + 2;
    char *all = memory_take(room);
    const struct answer answer = {REPLY_ARRAY, 0, all};

    (void)snprintf(all, room, "%s%s %s", prefix, name, text);
    server_answer(conn, &answer);
}

static bool goes_wrong(struct conn *conn, enum fault fault)
{
    if (world.phase != PHASE_CHAOS || !world.plan.enabled[fault] || !dice_chance(200))
        return false;
    world_fault(fault);
    waits_on_trouble(conn->process);
    return true;
}

/* Now and then a message is lost, or comes twice. */
static void publish_to(struct conn *conn, const char *prefix, const char *name, const char *text)
{
    if (goes_wrong(conn, FAULT_WAKE_LOST))
        return;
    tell(conn, prefix, name, text);
    if (goes_wrong(conn, FAULT_WAKE_TWICE))
        tell(conn, prefix, name, text);
}

void waits_publish(struct server *server, unsigned mark, const char *text)
{
    for (struct conn *conn = server->conns; conn != NULL; conn = conn->next)
        if (is_told(conn, mark))
            publish_to(conn, WIRE_MARK, flags_name(mark), text);
}

unsigned waits_publish_group(struct server *server, unsigned mark, unsigned group, const char *text)
{
    char name[8];
    unsigned told = 0;

    (void)snprintf(name, sizeof name, "%s%c%c", flags_name(mark), SIM_NUL, flags_digit(group));
    for (struct conn *conn = server->conns; conn != NULL; conn = conn->next) {
        if (!is_open(conn) || !(conn->groups[mark] & 1u << group))
            continue;
        told++;
        publish_to(conn, WIRE_MARK, name, text);
    }
    return told;
}

void waits_publish_own(struct server *server, const char *waiter, const char *text)
{
    for (struct conn *conn = server->conns; conn != NULL; conn = conn->next)
        if (is_open(conn) && conn->own[0] != '\0' &&
            strncmp(waiter, conn->own, WIRE_CLIENT_DIGITS) == 0)
            publish_to(conn, WIRE_CLIENT, conn->own, text);
}

void waits_on_heard(struct ev_loop *process, sim_time left)
{
    process->heard_at = process_now(process);
    process->told_left = sim_max(process->told_left, left);
    for (unsigned line = 0; line < SIM_LINES; line++)
        if (process->sleeps[line].heard < 2 * world.plan.servers)
            process->sleeps[line].heard++;
}

/* A client counts the time left from when it reads the message or answer, since it cannot know
 * when that was sent.  What a process in bad health reads may have been sent long before, for
 * example while the process was stopped.  Then the key ends earlier than the client believes. */
static void note_late_news(struct ev_loop *process)
{
    bool may_be_late = process->sick_until >= world.now || process->ahead > world.plan.quick;

    if (process->told_left > 0 && may_be_late)
        process->misled_until =
            sim_max(process->misled_until, process_now(process) + process->told_left);
    process->told_left = 0;
}

bool waits_may_hurry(struct ev_loop *process, const struct lease_rec *rec)
{
    struct sleep *sleep = &process->sleeps[line_of(rec)];

    if (sleep->heard == 0)
        return false;
    sleep->heard--;
    return true;
}

/* ---- Whether waiters wake up ---- */

/* How many masters have this key, and will announce its release. */
static unsigned count_marked(unsigned resource, int token)
{
    unsigned marked = 0;

    for (unsigned m = 0; m < world.plan.servers; m++) {
        struct server *server = &world.servers[m];
        const struct key *key = store_key(server, resource);

        marked += key != NULL && key->token == token && key->readers == 0 &&
                  flags_are_set(server, resource);
    }
    return marked;
}

/* True if the holder chose an announcer, which will announce the release. */
static bool has_teller(unsigned resource)
{
    for (unsigned m = 0; m < world.plan.servers; m++) {
        struct server *server = &world.servers[m];

        if (server->is_teller[resource] && flags_are_set(server, resource) &&
            store_key(server, resource) != NULL)
            return true;
    }
    return false;
}

static bool is_full(struct server *server)
{
    for (unsigned slot = 0; slot < world.plan.resources; slot++)
        if (store_key(server, slot) == NULL)
            return false;
    return true;
}

static void note_free(unsigned line, bool is_free, bool is_marked)
{
    if (!is_free) {
        frees[line].since = SIM_NEVER;
        frees[line].was_marked = is_marked;
    } else if (frees[line].since == SIM_NEVER) {
        frees[line].since = world.now;
    }
}

static bool is_slot_free(unsigned slot)
{
    unsigned without = 0;

    for (unsigned m = 0; m < world.plan.servers; m++)
        without += store_key(&world.servers[m], slot) == NULL;
    return without >= world.plan.servers / 2 + 1;
}

/* A permit is free when a majority of masters have no key of one and the same slot.  A majority
 * where each has some slot free is not enough.  Of five masters, let one permit be held on 2, 3
 * and 4, and the other on 0, 2 and 3: then 0, 1 and 4 have a slot free each, both permits are
 * held by majorities, and each new attempt fails. */
static void look_at_permits(void)
{
    unsigned majority = world.plan.servers / 2 + 1, marked = 0;
    bool is_free = false;

    for (unsigned slot = 0; slot < world.plan.resources; slot++)
        is_free = is_free || is_slot_free(slot);
    for (unsigned m = 0; m < world.plan.servers; m++) {
        marked += is_full(&world.servers[m]) && flags_are_set(&world.servers[m], 0);
    }
    note_free((1u << world.plan.resources) - 1, is_free, marked >= majority);
}

static void look_at(unsigned resource)
{
    unsigned without = 0, marked = 0, readable = 0, read = 0;
    unsigned majority = world.plan.servers / 2 + 1;
    bool is_marked;

    for (unsigned m = 0; m < world.plan.servers; m++) {
        struct server *server = &world.servers[m];
        const struct key *key = store_key(server, resource);
        unsigned so_many = key != NULL ? count_marked(resource, key->token) : 0;
        bool is_off = flags_off_ms(server, resource) > store_wall_ms(server);

        without += key == NULL;
        read += key != NULL && key->readers > 0;
        readable += (key == NULL || key->readers > 0) && !is_off;
        marked = so_many > marked ? so_many : marked;
    }
    is_marked = marked >= majority || has_teller(resource);
    note_free(1u << resource, without >= majority, is_marked);
    note_free(SIM_SETS + (1u << resource), readable >= majority, is_marked);
    if (read < majority)
        reads_since[resource] = SIM_NEVER;
    else if (reads_since[resource] == SIM_NEVER)
        reads_since[resource] = world.now;
}

/* Several resources are free since the last of them became free. */
static void sum_up(void)
{
    for (unsigned set = 1; set < SIM_SETS; set++) {
        unsigned first = set & (~set + 1), others = set & ~first;

        if (others == 0)
            continue;
        frees[set] = frees[first];
        if (frees[others].since > frees[first].since)
            frees[set].since = frees[others].since;
    }
}

/* The connection on which this client listens to that master; NULL: none is up. */
static const struct conn *listening_conn(const struct ev_loop *process, unsigned master)
{
    const struct link *link = process->rl->lines.channels.listener.links[master];

    return link != NULL ? conn_of(process, link) : NULL;
}

bool waits_hears_all(const struct ev_loop *process, unsigned mark)
{
    for (unsigned m = 0; m < world.plan.servers; m++) {
        const struct conn *conn = listening_conn(process, m);

        if (conn == NULL || conn->mute || !(conn->hears & 1u << mark))
            return false;
    }
    return true;
}

bool waits_hears_own(const struct ev_loop *process)
{
    for (unsigned m = 0; m < world.plan.servers; m++) {
        const struct conn *conn = listening_conn(process, m);

        if (conn == NULL || conn->mute || conn->own[0] == '\0')
            return false;
    }
    return true;
}

/* As far as the client can know, this master's messages reach it.  A listening client only
 * reads.  If a connection turns silent, then nothing but the client's kernel can find out.
 * is_fair: the client's own channel counts, too; groups: one of these does.  0: none need. */
static bool listens_to(const struct ev_loop *process, unsigned master, unsigned mark, bool is_fair,
                       unsigned groups)
{
    const struct conn *conn = listening_conn(process, master);

    if (conn == NULL)
        return false;
    if (conn->mute)
        return world.now <= conn->mute_until + waits_slack();
    return (conn->hears & 1u << mark) != 0 && (!is_fair || conn->own[0] != '\0') &&
           (groups == 0 || (conn->groups[mark] & groups) != 0);
}

static const struct wait *wait_of(const struct ev_loop *process, const struct redlock_lease *lease)
{
    const struct channel *channel =
        lease->waits ? channel_find_of(&process->rl->lines.channels, lease) : NULL;

    return channel != NULL ? &channel->wait : NULL;
}

/* In which a waiter tries, if it does not leave it to others. */
static sim_time turn_of(const struct wait *wait)
{
    return sim_min(sim_max(6 * wait->trip, DRIFT_MS), 50 * DRIFT_MS);
}

/* How long a waiter pauses, at most, since it lost its latest round (rule 5 of wait.c).  Pauses
 * double with each loss but two, up to the time between two queries. */
static sim_time patience_of(const struct wait *wait, sim_time longest)
{
    sim_time span = wait != NULL && wait->losses > 2 ? turn_of(wait) : 0;

    for (unsigned i = 2; span > 0 && i < wait->losses && span < longest; i++)
        span *= 2;
    return sim_min(span, longest);
}

/* The last turn that a waiter may draw when a permit is free.  All that wait hear of it, but only a
 * few of those that wait for a lock do. */
static sim_time lot_of(const struct wait *wait, sim_time longest)
{
    if (wait == NULL || !world.plan.permits)
        return 0;
    return sim_min(turn_of(wait) * wait->rivals / WAIT_TRIERS, longest);
}

/* Note since when the waiters of a group sleep, and for how long they may.  A waiter for other
 * resources, too, may be the first of a group, so it counts as well. */
static void note_sleep(struct ev_loop *process, unsigned line)
{
    struct sleep *sleep = &process->sleeps[line];
    const struct sleep before = *sleep;
    unsigned set = line % SIM_SETS;
    bool is_waiting = false, is_awake = false, is_in_line = false, is_queued = false;
    bool is_grouped = false;
    sim_time patience = 0, lot = 0;

    *sleep = (struct sleep){.since = before.since,
                            .heard = before.heard,
                            .waits_since = before.waits_since,
                            .queued_since = before.queued_since,
                            .grouped_since = before.grouped_since};
    for (unsigned place = 0; place < world.plan.leases; place++) {
        const struct lease_rec *rec = process->recs[place];
        const struct quorum *q = rec != NULL ? &rec->lease->q : NULL;
        sim_time longest;

        if (rec == NULL || !(rec->set & set) || rec->is_shared != (line >= SIM_SETS) ||
            rec->state != REC_LOCKING)
            continue;
        /* If the ttl is shorter than a round, the waiter loses all rounds, and becomes slow. */
        is_awake = is_awake || rec->is_fair || q->state != QUORUM_PAUSING ||
                   rec->ttl_ms <= world.plan.reply_timeout_ms;
        sleep->rounds += rec->round + rec->number;
        longest = WAIT_PATIENCE * q->config.pause_max;
        sleep->longest = sim_max(sleep->longest, longest);
        patience = sim_max(patience, patience_of(wait_of(process, rec->lease), longest));
        lot = sim_max(lot, lot_of(wait_of(process, rec->lease), longest));
        is_waiting = is_waiting || rec->set == set;
        is_in_line = is_in_line || (rec->set == set && rec->lease->waits);
        is_queued = is_queued || (rec->set == set && rec->lease->waits && rec->is_fair);
        is_grouped = is_grouped || (rec->set == set && rec->lease->waits && !rec->is_fair);
    }
    if (!is_grouped)
        sleep->grouped_since = SIM_NEVER;
    else if (sleep->grouped_since == SIM_NEVER)
        sleep->grouped_since = world.now;
    if (!is_queued)
        sleep->queued_since = SIM_NEVER;
    else if (sleep->queued_since == SIM_NEVER)
        sleep->queued_since = world.now;
    if (!is_in_line)
        sleep->waits_since = SIM_NEVER;
    else if (sleep->waits_since == SIM_NEVER)
        sleep->waits_since = world.now;
    if (!is_waiting)
        sleep->since = SIM_NEVER;
    else if (is_awake || sleep->rounds != before.rounds || sleep->since == SIM_NEVER)
        sleep->since = world.now;
    /* The time to try may stand, whatever is heard later (rule 6 of wait.c). */
    sleep->patience = sleep->since == world.now ? patience : sim_max(before.patience, patience);
    sleep->lot = sleep->since == world.now ? lot : sim_max(before.lot, lot);
}

static void check_sleep(const struct ev_loop *process, unsigned line)
{
    const struct sleep *sleep = &process->sleeps[line];
    sim_time free_since = frees[line].since, since;
    const char *whom = line >= SIM_SETS ? " for readers" : "";
    unsigned set = line % SIM_SETS;

    if (sleep->since == SIM_NEVER || free_since == SIM_NEVER)
        return;
    since = sim_max(sleep->since, free_since);
    if (!process_is_healthy(process, since))
        return;
    tally.checks++;
    if (world.now - since > 2 * sleep->longest + waits_slack())
        world_fail("waits",
                   "set %x has been free%s for %.3f ms, and client %u, which waits for it "
                   "and queries every %.3f ms, sleeps",
                   set, whom, (double)(world.now - since) / 1e6, process->number,
                   (double)sleep->longest / 1e6);
    if ((set & (set - 1)) != 0 && !world.plan.permits)
        return; /* The last of them may become free while the client waits for another. */
    if (world.plan.fair > 0 || !frees[line].was_marked || sleep->since + nap() > free_since ||
        process->deaf_until > free_since - nap() || process->misled_until > world.now ||
        !process_is_healthy(process, free_since - nap()) ||
        !waits_hears_all(process, flags_of((unsigned)__builtin_ctz(set))))
        return;
    world_outcome(OUTCOME_AWAKE);
    since = sim_max(since, process->misled_until); /* A late message costs so much at most. */
    /* In a crowd a waiter may lose many rounds in a row: others hold for so short a time that it
     * does not hear of them, or masters disagree on which permit is free. */
    if (world.plan.is_crowd)
        since = sim_max(since, sim_min(sleep->since + sleep->patience, world.now));
    if (world.now - since > nap() + (world.plan.is_crowd ? sleep->lot : 0))
        world_fail("wakes",
                   "set %x has been free%s for %.3f ms, which masters have announced, and client "
                   "%u, which waits for it, sleeps",
                   set, whom, (double)(world.now - since) / 1e6, process->number);
}

/* A client that has waited for this long, in good health, listens to all masters.  It replaces
 * broken links within the bound.  With each query it asks masters again that refused to let it
 * listen.  A link on which the server's packets vanish is not broken yet: the client's kernel
 * breaks it within NET_SILENCE_MAX, and the bound begins then (deaf_until). */
static void check_hears(const struct ev_loop *process, unsigned resource, unsigned line)
{
    const struct plan *plan = &world.plan;
    sim_time since = process->sleeps[line].waits_since;
    sim_time queued_since = process->sleeps[line].queued_since;
    sim_time grouped_since = process->sleeps[line].grouped_since;
    unsigned groups = line >= SIM_SETS ? 1u << GROUP_READERS : (1u << GROUP_READERS) - 1;
    sim_time bound = NET_RETRY_LAST + 2 * plan->connect_timeout_ms * DRIFT_MS +
                     2 * process->sleeps[line].longest + waits_slack();

    if (since == SIM_NEVER)
        return;
    since = sim_max(since, process->deaf_until);
    if (world.now < since + bound || !process_is_healthy(process, world.now - bound))
        return;
    tally.checks++;
    for (unsigned m = 0; m < world.plan.servers; m++)
        if (!listens_to(process, m, flags_of(resource),
                        queued_since != SIM_NEVER && world.now >= queued_since + bound,
                        grouped_since != SIM_NEVER && world.now >= grouped_since + bound ? groups
                                                                                         : 0))
            world_fail("hears",
                       "client %u has waited for resource %u for %.3f ms, and does not "
                       "listen to master %u",
                       process->number, resource, (double)(world.now - since) / 1e6, m);
}

void waits_on_turn(struct ev_loop *process)
{
    note_late_news(process);
    if (world.plan.two_lists || world.plan.operators > 0) /* What is a majority depends on both. */
        return;
    for (unsigned r = 0; r < world.plan.resources && !world.plan.permits; r++)
        look_at(r);
    if (world.plan.permits)
        look_at_permits();
    else
        sum_up();
    for (unsigned set = 1; set < 1u << world.plan.resources; set++) {
        note_sleep(process, set);
        note_sleep(process, SIM_SETS + set);
        if (process->rl == NULL)
            continue;
        check_sleep(process, set);
        check_sleep(process, SIM_SETS + set);
    }
    for (unsigned r = 0; r < world.plan.resources && process->rl != NULL && !world.plan.permits;
         r++) {
        check_hears(process, r, 1u << r);
        check_hears(process, r, SIM_SETS + (1u << r));
    }
}

/* ---- Writers before readers ---- */

/* True if a writer has waited so long that it queried all masters since there are readers. */
static bool comes_first(const struct ev_loop *process, unsigned resource, sim_time at)
{
    const struct sleep *sleep = &process->sleeps[1u << resource];
    sim_time since = reads_since[resource];

    if (process->rl == NULL || sleep->waits_since == SIM_NEVER || since == SIM_NEVER)
        return false;
    since = sim_max(since, sleep->waits_since);
    return at > since + 2 * sleep->longest + waits_slack() && process_is_healthy(process, since);
}

void waits_on_reader(unsigned resource, sim_time round_sent)
{
    tally.checks++;
    for (unsigned i = 0; i < world.plan.processes; i++)
        if (comes_first(&world.processes[i], resource, round_sent))
            world_fail("starves",
                       "a new reader gets resource %u before client %u, which waits to write",
                       resource, i);
}
