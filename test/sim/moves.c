/*
 * moves.c - the configurations of a set that changes, as servers store them.
 *
 *  versions   A version has one configuration.
 *  sets       All configurations are of one set: some master of each list knows it (calls.c), so no
 *             client founds another.
 *  available  While operators change the set and nothing else goes wrong, a waiter gets a lock that
 *             nobody holds within two seconds.
 */
#include "oracle.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "redlock/client/client.h"
#include "redlock/core/config.h"

#define UNAVAILABLE_MAX (2 * DRIFT_S)

static struct version {
    const char *config; /* NULL: no server has stored it. */
    struct lists lists;
} versions[MOVES_VERSIONS_MAX];
static uint64_t set; /* 0: no server has stored a version. */
static uint64_t newest;
static sim_time held_at[SIM_RESOURCES_MAX]; /* When a client held it last. */

void moves_begin(void)
{
    memset(versions, 0, sizeof versions);
    set = newest = 0;
    stored_begin();
}

static unsigned servers_of(const struct config *config, quorum_mask list)
{
    unsigned servers = 0;

    for (unsigned i = 0; i < config->members_len; i++)
        for (unsigned s = 0; s < world.plan.servers && (list & mask_of(i)) != 0; s++)
            if (strcmp(config->members[i].name, sets_name(s)) == 0)
                servers |= 1u << s;
    return servers;
}

struct lists moves_parse(const char *text, uint64_t version)
{
    struct config config = {.version = version};

    if (!config_parse(text, strlen(text), &config))
        world_fail("wire", "a configuration that is none: %s", text);
    return (struct lists){servers_of(&config, config.from), servers_of(&config, config.to)};
}

static void add(uint64_t version, const char *text)
{
    if (version >= MOVES_VERSIONS_MAX)
        world_fail("simulator", "too many versions of a set");
    versions[version] = (struct version){text, moves_parse(text, version)};
    newest = sim_max(newest, version);
    world_note("version: number, from, to", version, versions[version].lists.from,
               versions[version].lists.to);
    if (version > 1)
        world_outcome(OUTCOME_SET_CHANGED);
    line_on_version();
}

void moves_on_news(void)
{
    for (unsigned i = 0; i < world.plan.processes; i++)
        process_sicken(&world.processes[i], world.now + world.plan.quick);
}

void moves_on_version(const struct server *server)
{
    const struct marker *marker = &server->marker;

    if (world.plan.operators == 0)
        return;
    world_say("    master %u stores version %llu: %s", server->number,
              (unsigned long long)marker->ver, marker->config);
    if (set != 0 && marker->set != set)
        world_fail("sets", "master %u belongs to the set %llx, and the others to %llx",
                   server->number, (unsigned long long)marker->set, (unsigned long long)set);
    set = marker->set;
    if (marker->ver >= MOVES_VERSIONS_MAX || versions[marker->ver].config == NULL)
        add(marker->ver, marker->config);
    else if (versions[marker->ver].config != marker->config)
        world_fail("versions", "version %llu is %s on master %u, and was %s",
                   (unsigned long long)marker->ver, marker->config, server->number,
                   versions[marker->ver].config);
    stored_on_version(server);
    moves_on_news();
}

uint64_t moves_newest(void)
{
    return newest;
}

struct lists moves_lists(uint64_t version)
{
    if (version >= MOVES_VERSIONS_MAX || versions[version].config == NULL)
        world_fail("versions", "a client obeys version %llu, which no master has stored",
                   (unsigned long long)version);
    return versions[version].lists;
}

static bool is_majority(unsigned list, unsigned servers)
{
    return 2 * __builtin_popcount(list & servers) > __builtin_popcount(list);
}

bool moves_are_quorum(const struct lists *lists, unsigned servers)
{
    return is_majority(lists->from, servers) && is_majority(lists->to, servers);
}

/* ---- Masters that forget ---- */

/* It has an epoch, and its data are those that the epoch stands for. */
bool moves_remembers(const struct server *server)
{
    return server->marker.epoch != 0 && (server->keeps || server->marker.run == server->runs);
}

/* An operator is at work, or died at work. */
static bool is_under_way(void)
{
    for (unsigned i = world.plan.processes; i < world_all_processes(); i++)
        if (world.processes[i].rl != NULL)
            return true;
    for (unsigned i = 0; i < world.plan.servers; i++)
        if (world.servers[i].marker.ballot != 0)
            return true;
    return false;
}

void moves_on_loss(const struct server *server)
{
    bool is_member = server->marker.exists && server->marker.name != NULL;

    stored_on_loss(server);
    if (world.plan.operators > 0 && is_member && is_under_way())
        world_outcome(OUTCOME_CHANGE_FORGOT);
}

/* N - Q + 1 members are left, which a member that forgot must hear (redlock/core/recall.c). */
static bool are_left(unsigned list, unsigned servers)
{
    return 2 * __builtin_popcount(list & servers) >= __builtin_popcount(list);
}

/* All clients know the set, or still find a master that does. */
static bool leave_set(unsigned servers)
{
    unsigned know = 0;

    for (unsigned i = 0; i < world.plan.servers; i++)
        know |= (servers >> i & 1 && world.servers[i].marker.set != 0) ? 1u << i : 0;
    for (unsigned i = 0; i < world.plan.processes; i++) {
        const struct ev_loop *process = &world.processes[i];

        if (process->rl != NULL && process->rl->masters.set.seats.now.set == 0 &&
            !(process->listed & know))
            return false;
    }
    return true;
}

/* Members of version 1 come back without others if all of them forgot.  Then a client that knows
 * nothing newer would lock there (docs/safety.md, condition 1).  test-live-follow shows it with
 * real masters (all_members_of_version_1_forget_together).  Here it is rare, because the client
 * must hear nothing during two versions and a watch: 8000 runs of the theme moves without this
 * rule were clean.  So no planted bug stands for it. */
static bool leave_first(unsigned servers)
{
    return versions[1].config == NULL || are_left(versions[1].lists.to, servers);
}

bool moves_may_forget(const struct server *server)
{
    const unsigned others = ((1u << world.plan.servers) - 1) & ~(1u << server->number);
    unsigned left = 0;
    struct lists lists;

    if (world.plan.operators == 0)
        return true;
    lists = moves_lists(newest);
    for (unsigned i = 0; i < world.plan.servers; i++)
        left |= (others >> i & 1 && moves_remembers(&world.servers[i])) ? 1u << i : 0;
    if (is_under_way() && left != others)
        return false;
    return are_left(lists.from, left) && are_left(lists.to, left) && leave_first(left) &&
           leave_set(others);
}

/* ---- Availability ---- */

unsigned moves_agreeing(void)
{
    const struct lists lists = moves_lists(newest);
    unsigned all = lists.from | lists.to, far = all & world.plan.far;

    if (is_majority(all, far))
        return far;
    return is_majority(all, all & ~far) ? all & ~far : 0;
}

bool moves_clocks_decide(void)
{
    const struct lists lists = moves_lists(newest);

    return moves_are_quorum(&lists, moves_agreeing());
}

void moves_on_probe(void)
{
    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++)
        held_at[r] = world.now;
}

void moves_on_held(const struct lease_rec *rec)
{
    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++)
        if (rec->set & 1u << r)
            held_at[r] = world.now;
}

/* Since when the waiter could have all its resources. */
static sim_time waits_since(const struct lease_rec *rec)
{
    sim_time since = rec->called;

    for (unsigned r = 0; r < SIM_RESOURCES_MAX; r++)
        if (rec->set & 1u << r)
            since = sim_max(since, held_at[r]);
    return since;
}

void moves_on_turn(const struct ev_loop *process)
{
    /* Rivals may meet in some rounds, and pause. */
    sim_time bound = UNAVAILABLE_MAX + 8 * run_probe_retry_ms() * DRIFT_MS;

    if (world.plan.operators == 0 || world.phase != PHASE_PROBE)
        return;
    if (world.plan.far != 0 && (operators_are_busy() || !moves_clocks_decide()))
        return;
    for (unsigned place = 0; place < SIM_LEASES_MAX; place++) {
        const struct lease_rec *rec = process->recs[place];

        if (rec == NULL)
            continue;
        if (rec->deadline != 0)
            moves_on_held(rec);
        if (rec->state != REC_LOCKING || rec->deadline != 0 || world.plan.permits)
            continue;
        tally.checks++;
        if (world.now > waits_since(rec) + bound)
            world_fail("available", "client %u waits for set %x, which nobody holds, for %.3f ms",
                       process->number, rec->set, (double)(world.now - waits_since(rec)) / 1e6);
    }
}
