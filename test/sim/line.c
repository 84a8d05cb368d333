/*
 * line.c - the queues of fair locks, as servers store them, and what must be true of them.
 *
 *  order   A fair lock is not granted while it is due to another waiter.  That waiter has been
 *          in the queues of a majority, with one ticket, since before the holder asked.
 *  wakes   A waiter begins its round soon after a majority of masters announced its turn, in
 *          good health.
 *  leak    A detached lock keeps its place at no member.  No lock keeps its place at a master
 *          that its client found removed, and could send a command.  This is promised in good
 *          health only: a master that missed the command keeps the place until the waiter's
 *          patience ends.  So does one that executes a heartbeat after it, because that one was
 *          left in a connection that the client has given up: it puts the waiter back.
 *
 * Order is judged by the servers' data, not by what clients know.  So it is promised only
 * while a majority keeps the waiter in its queues.
 */
#include "net.h"
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <string.h>

/* ---- The queue of one server ---- */

unsigned line_purge(struct line *line, uint64_t now_ms)
{
    unsigned kept = 0, dead;

    for (unsigned i = 0; i < line->len; i++)
        if (line->places[i].end_ms > now_ms)
            line->places[kept++] = line->places[i];
        else
            line_stop_waiting(line, line->places[i].waiter);
    dead = line->len - kept;
    line->len = kept;
    return dead;
}

struct line_place *line_find(struct line *line, int waiter)
{
    for (unsigned i = 0; i < line->len; i++)
        if (line->places[i].waiter == waiter)
            return &line->places[i];
    return NULL;
}

struct line_waiting *line_waiting(struct line *line, int waiter)
{
    for (unsigned i = 0; i < line->waiting_len; i++)
        if (line->waiting[i].waiter == waiter)
            return &line->waiting[i];
    return NULL;
}

void line_stop_waiting(struct line *line, int waiter)
{
    struct line_waiting *waiting = line_waiting(line, waiter);

    if (waiting != NULL)
        *waiting = line->waiting[--line->waiting_len];
}

/* The order is that of a sorted set: by ticket, then by name. */
const struct line_place *line_first(const struct line *line)
{
    const struct line_place *first = NULL;

    for (unsigned i = 0; i < line->len; i++) {
        const struct line_place *one = &line->places[i];

        if (first == NULL || one->ticket < first->ticket ||
            (one->ticket == first->ticket &&
             strcmp(oracle_token_of(one->waiter)->text, oracle_token_of(first->waiter)->text) < 0))
            first = one;
    }
    return first;
}

static uint64_t next_ticket(const struct line *line)
{
    uint64_t last = 0;

    for (unsigned i = 0; i < line->len; i++)
        last = sim_max(last, line->places[i].ticket);
    return last + 1;
}

uint64_t line_put(struct line *line, int waiter, uint64_t ticket, uint64_t end_ms, bool is_late)
{
    struct line_place *place = line_find(line, waiter);

    if (ticket == 0)
        ticket = place != NULL ? place->ticket : next_ticket(line);
    if (place == NULL && line->len == LINE_MAX)
        return 0;
    if (line->len == 0)
        line->ends_ms = 0;
    if (place != NULL)
        is_late = is_late && place->is_late;
    else
        place = &line->places[line->len++];
    line->ends_ms = sim_max(line->ends_ms, end_ms);
    *place = (struct line_place){waiter, ticket, end_ms, is_late};
    return ticket;
}

bool line_remove(struct line *line, int waiter)
{
    struct line_place *place = line_find(line, waiter);

    if (place == NULL)
        return false;
    *place = line->places[--line->len];
    return true;
}

/* ---- The queues of all servers ---- */

/* If the set changes: by the newest lists, since the last change. */
static bool is_majority(quorum_mask mask)
{
    const unsigned all = (1u << world.plan.servers) - 1;
    struct lists lists = {all, all};

    if (world.plan.operators > 0)
        lists = moves_lists(moves_newest());
    return moves_are_quorum(&lists, mask);
}

/* Masters that have the waiter in the queue with this ticket. */
static quorum_mask find_ticket(const struct lease_rec *rec, uint64_t ticket)
{
    quorum_mask found = 0;

    for (unsigned m = 0; m < world.plan.servers; m++) {
        const struct line_place *place =
            line_find(&world.servers[m].lines[rec->resource], rec->waiter);

        if (place != NULL && place->ticket == ticket)
            found |= (quorum_mask)(1u << m);
    }
    return found;
}

/* Update since when a majority has the waiter in the queue. */
static void look_at(struct lease_rec *rec, struct server *server)
{
    const struct line_place *place = line_find(&server->lines[rec->resource], rec->waiter);

    if (rec->in_line_since != 0) {
        if (place == NULL || place->ticket != rec->ticket)
            rec->in_line &= (quorum_mask) ~(1u << server->number);
        if (!is_majority(rec->in_line))
            rec->in_line_since = 0;
    }
    if (rec->in_line_since != 0 || place == NULL)
        return;
    rec->in_line = find_ticket(rec, place->ticket);
    if (!is_majority(rec->in_line))
        return;
    rec->ticket = place->ticket;
    rec->in_line_since = world.now;
}

static bool is_waiting(const struct lease_rec *rec, unsigned resource)
{
    return rec != NULL && rec->is_fair && rec->state == REC_LOCKING && rec->waiter >= 0 &&
           rec->resource == resource;
}

void line_on_change(struct server *server, unsigned resource)
{
    for (unsigned i = 0; i < world.plan.processes; i++)
        for (unsigned place = 0; place < world.plan.leases; place++)
            if (is_waiting(world.processes[i].recs[place], resource))
                look_at(world.processes[i].recs[place], server);
}

void line_on_version(void)
{
    for (unsigned i = 0; i < world.plan.processes; i++)
        for (unsigned place = 0; place < world.plan.leases; place++)
            if (world.processes[i].recs[place] != NULL)
                world.processes[i].recs[place]->in_line_since = 0;
}

void line_forget(struct server *server)
{
    for (unsigned r = 0; r < world.plan.resources; r++) {
        server->lines[r].len = server->lines[r].waiting_len = 0;
        line_on_change(server, r);
    }
}

void line_on_held(const struct lease_rec *rec)
{
    if (!rec->is_fair)
        return;
    for (unsigned i = 0; i < world.plan.processes; i++) {
        for (unsigned place = 0; place < world.plan.leases; place++) {
            const struct lease_rec *other = world.processes[i].recs[place];

            if (other == rec || !is_waiting(other, rec->resource) || other->in_line_since == 0)
                continue;
            tally.checks++;
            if (rec->in_line_since != 0 && rec->in_line_since < other->called)
                world_outcome(OUTCOME_IN_ORDER);
            if (other->in_line_since < rec->called)
                world_fail("order",
                           "client %u holds resource %u, and client %u was queued %.3f ms before "
                           "it asked, with ticket %llu at masters %x",
                           rec->process->number, rec->resource, i,
                           (double)(rec->called - other->in_line_since) / 1e6,
                           (unsigned long long)other->ticket, other->in_line);
        }
    }
}

/* ---- Announcements ---- */

void line_on_round(struct lease_rec *rec)
{
    rec->named = 0;
    rec->named_at = 0;
}

void line_on_turn_of(const struct server *server, unsigned resource, int waiter, bool is_told)
{
    for (unsigned i = 0; i < world.plan.processes; i++) {
        for (unsigned place = 0; place < world.plan.leases; place++) {
            struct lease_rec *rec = world.processes[i].recs[place];

            if (!is_waiting(rec, resource) || rec->waiter != waiter)
                continue;
            rec->named |= (quorum_mask)(1u << server->number);
            rec->named_at = is_told ? world.now : rec->named_at;
        }
    }
}

/* Note since when the waiter listens to all masters.  It misses earlier announcements. */
static void note_hearing(struct lease_rec *rec)
{
    if (!waits_hears_own(rec->process)) {
        rec->hears_since = 0;
    } else if (rec->hears_since == 0) {
        rec->hears_since = world.now;
        line_on_round(rec);
    }
}

void line_on_detach(const struct lease_rec *rec)
{
    rec->process->detached.waiter = rec->is_fair ? rec->waiter : 0;
    rec->process->detached.resource = rec->resource;
    rec->process->detached.at = world.now;
}

static bool keeps_place(struct server *server, unsigned resource, int waiter)
{
    const struct line_place *place = line_find(&server->lines[resource], waiter);

    return place != NULL && !place->is_late;
}

static unsigned members_of(const struct ev_loop *process)
{
    const struct lists lists = process_lists(process);

    return lists.from | lists.to;
}

/* The process that gets a detached token cannot drop its place, so the one that detached it has. */
static void check_detached(struct ev_loop *process)
{
    sim_time since = process->detached.at;

    if (process->detached.waiter == 0 || world.now - since < waits_slack())
        return;
    for (unsigned m = 0; m < world.plan.servers && process_is_healthy(process, since); m++)
        if ((members_of(process) >> m & 1) != 0 &&
            keeps_place(&world.servers[m], process->detached.resource, process->detached.waiter))
            world_fail("leak", "master %u keeps the place of a lock that client %u has detached", m,
                       process->number);
    process->detached.waiter = 0;
}

static bool is_fine(const struct server *server)
{
    return server->alive && !server->hung && server->mood == MOOD_FINE;
}

/* The masters of these to which the client can send a command. */
static unsigned within_reach(struct ev_loop *process, unsigned masters)
{
    for (unsigned m = 0; m < world.plan.servers; m++) {
        const struct conn *conn = process_conn(process, m);

        if (conn == NULL || !is_fine(&world.servers[m]))
            masters &= ~(1u << m);
        else
            process->removed.conns[m] = conn->number;
    }
    return masters;
}

static void note_removed(struct ev_loop *process)
{
    unsigned members = members_of(process), removed = process->removed.members & ~members;

    process->removed.members = members;
    process->removed.masters &= ~members;
    if (removed == 0)
        return;
    process->removed.masters = within_reach(process, removed);
    process->removed.at = process_now(process);
}

/* Whether a lock that the program has now has a place there. */
static bool has_place(const struct ev_loop *process, struct server *server)
{
    for (unsigned i = 0; i < world.plan.leases; i++) {
        const struct lease_rec *rec = process->recs[i];

        if (rec != NULL && rec->is_fair && rec->waiter >= 0 &&
            keeps_place(server, rec->resource, rec->waiter))
            return true;
    }
    return false;
}

/* All that the client sent has arrived.  A change of the members counts as a fault, but is none
 * here. */
static bool has_left(const struct ev_loop *process, unsigned m)
{
    const struct conn *conn = process_conn(process, m);

    return conn != NULL && conn->number == process->removed.conns[m] &&
           is_fine(&world.servers[m]) &&
           process->sick_until <= process->removed.at + 2 * world.plan.quick;
}

/* No heartbeat goes to a master that was removed, and its link is closed soon. */
static void check_removed(struct ev_loop *process)
{
    unsigned masters = process->removed.masters;

    if (masters == 0 || world.now < process->removed.at + waits_slack())
        return;
    process->removed.masters = 0;
    for (unsigned m = 0; m < world.plan.servers; m++) {
        if (!(masters >> m & 1) || !has_left(process, m))
            continue;
        tally.checks++;
        if (has_place(process, &world.servers[m]))
            world_fail("leak", "master %u was removed, and keeps the place of a lock of client %u",
                       m, process->number);
    }
}

void line_on_turn(struct ev_loop *process)
{
    check_detached(process);
    note_removed(process);
    check_removed(process);
    if (world.plan.operators > 0) /* Which masters announce it depends on the client's version. */
        return;
    for (unsigned place = 0; place < world.plan.leases; place++) {
        struct lease_rec *rec = process->recs[place];

        if (rec == NULL || process->rl == NULL || !is_waiting(rec, rec->resource))
            continue;
        note_hearing(rec);
        if (!is_majority(rec->named) || rec->named_at == 0 || rec->hears_since == 0 ||
            rec->hears_since + waits_slack() > rec->named_at ||
            process->deaf_until + waits_slack() > rec->named_at ||
            !process_is_healthy(process, rec->named_at - waits_slack()))
            continue;
        world_outcome(OUTCOME_CALLED);
        if (world.now - rec->named_at > waits_slack())
            world_fail("wakes", "it has been the turn of client %u for %.3f ms, and it sleeps",
                       process->number, (double)(world.now - rec->named_at) / 1e6);
    }
}

/* ---- The end ---- */

/* A waiter that asked in good health, and has released its lock, is in no queue. */
void line_on_quiet(void)
{
    for (unsigned m = 0; m < world.plan.servers; m++) {
        struct server *server = &world.servers[m];
        uint64_t now_ms = store_wall_ms(server);

        for (unsigned r = 0; r < world.plan.resources; r++) {
            (void)line_purge(&server->lines[r], now_ms);
            for (unsigned i = 0; i < server->lines[r].len; i++)
                if (oracle_token_of(server->lines[r].places[i].waiter)->is_probe)
                    world_fail("leak", "master %u still has a probe in its queue", m);
        }
    }
}
