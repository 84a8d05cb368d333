/*
 * ballots.c - the scripts that change the set of masters: redlock/lua/prepare.lua, accept.lua,
 * write.lua and count_on.lua.
 */
#include "store.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

static const struct answer answer_ver = {REPLY_TEXT, 0, "ver"};

void ballots_drop(struct marker *marker)
{
    marker->ballot = marker->accepted_in = 0;
    marker->accepted = NULL;
}

/* EVAL, script, 1, marker, EPOCH.VER, set, ... */
static void check_args(const struct command *command, unsigned argc)
{
    if (command->argc != argc || !args_is(command, 2, "1") || !args_is(command, 3, WIRE_MARKER))
        world_fail("wire", "a ballot with other arguments");
}

/* The master has the epoch, the version and the set that the operator knows. */
static bool is_same(const struct marker *marker, const struct command *command)
{
    char state[SETS_STATE_ROOM];
    struct marker known = *marker;

    known.told_floor = 0;
    return marker->epoch != 0 && args_is(command, 4, sets_state(&known, state)) &&
           marker->set == args_hex(command, 5);
}

/* "WORD BALLOT", and " CONFIG" if there is one. */
static struct answer tell(const char *word, uint64_t ballot, const char *config)
{
    const size_t room = 40 + (config != NULL ? strlen(config) : 0);
    char *text = memory_take(room);

    (void)snprintf(text, room, "%s %016llx%s%s", word, (unsigned long long)ballot,
                   config != NULL ? " " : "", config != NULL ? config : "");
    return (struct answer){REPLY_TEXT, 0, text};
}

/* ..., ballot */
struct answer ballots_prepare(struct server *server, const struct command *command)
{
    struct marker *marker = &server->marker;
    const uint64_t ballot = args_hex(command, 6);
    const struct answer *refusal;

    check_args(command, 7);
    if (!is_same(marker, command))
        return answer_ver;
    if (marker->ballot >= ballot)
        return tell("ballot", marker->ballot, NULL);
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    marker->ballot = ballot;
    if (marker->accepted != NULL)
        return tell("promise", marker->accepted_in, marker->accepted);
    return (struct answer){REPLY_TEXT, 0, "promise"};
}

/* ..., ballot, configuration */
struct answer ballots_accept(struct server *server, const struct command *command)
{
    struct marker *marker = &server->marker;
    const uint64_t ballot = args_hex(command, 6);
    const struct answer *refusal;

    check_args(command, 8);
    if (!is_same(marker, command))
        return answer_ver;
    if (marker->ballot > ballot)
        return tell("ballot", marker->ballot, NULL);
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    marker->ballot = marker->accepted_in = ballot;
    marker->accepted = sets_text(command->argv[7], command->lens[7]);
    nemesis_on_accept(server);
    return (struct answer){REPLY_TEXT, 0, "accepted"};
}

/* ..., version, configuration, name or "" */
struct answer ballots_write(struct server *server, const struct command *command)
{
    struct marker *marker = &server->marker, joining = *marker;
    const uint64_t version = args_number(command, 6);
    const struct answer *refusal;

    check_args(command, 9);
    if (marker->set == 0 && marker->claim != 0)
        return answer_ver;
    if (marker->set == 0)
        joining.set = args_hex(command, 5);
    if (!is_same(&joining, command) || version <= marker->ver)
        return answer_ver;
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    marker->set = joining.set;
    marker->ver = version;
    marker->config = sets_text(command->argv[7], command->lens[7]);
    marker->name = command->lens[8] > 0 ? sets_text(command->argv[8], command->lens[8]) : NULL;
    marker->told_floor = 0;
    marker->claim = 0;
    marker->claim_list = NULL;
    ballots_drop(marker);
    moves_on_version(server);
    return (struct answer){REPLY_TEXT, 0, "written"};
}

/* ..., number */
struct answer ballots_count_on(struct server *server, const struct command *command)
{
    static const struct answer ahead = {REPLY_ERROR, 0,
                                        "ERR the fencing counter is days ahead of the clock"};
    static const struct answer counted = {REPLY_TEXT, 0, "counted"};
    struct marker *marker = &server->marker;
    const uint64_t number = args_number(command, 6);
    const struct answer *refusal;

    check_args(command, 7);
    if (!is_same(marker, command) || marker->floor == 0)
        return answer_ver;
    if (number <= marker->floor)
        return counted;
    if (number > clock_at(&server->clock, world.now) / SIM_US + WIRE_FENCE_AHEAD_US)
        return ahead;
    refusal = store_mood(server, true, true);
    if (refusal != NULL)
        return *refusal;
    memset(marker->counters, 0, sizeof marker->counters);
    marker->floor = marker->told_floor = sim_max(number, marker->high);
    marker->high = marker->floor + WIRE_FENCE_STEP;
    moves_on_news();
    return counted;
}
