/*
 * moves.c - the configurations of a set that changes, as servers store them.
 *
 * What must always be true (the property "versions"): a version has one configuration.
 */
#include "oracle.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "redlock/core/config.h"

#define VERSIONS_MAX 256 /* Of one run.  Chosen: a change has two. */

static struct version {
    const char *config; /* NULL: no server has stored it. */
    struct lists lists;
} versions[VERSIONS_MAX];
static uint64_t newest;

void moves_begin(void)
{
    memset(versions, 0, sizeof versions);
    newest = 0;
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

static void add(uint64_t version, const char *text)
{
    struct config config = {.version = version};

    if (version >= VERSIONS_MAX)
        world_fail("simulator", "too many versions of a set");
    if (!config_parse(text, strlen(text), &config))
        world_fail("wire", "a configuration that is none: %s", text);
    versions[version] =
        (struct version){text, {servers_of(&config, config.from), servers_of(&config, config.to)}};
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
    if (marker->ver >= VERSIONS_MAX || versions[marker->ver].config == NULL)
        add(marker->ver, marker->config);
    else if (versions[marker->ver].config != marker->config)
        world_fail("versions", "version %llu is %s on master %u, and was %s",
                   (unsigned long long)marker->ver, marker->config, server->number,
                   versions[marker->ver].config);
    moves_on_news();
}

uint64_t moves_newest(void)
{
    return newest;
}

struct lists moves_lists(uint64_t version)
{
    if (version >= VERSIONS_MAX || versions[version].config == NULL)
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
