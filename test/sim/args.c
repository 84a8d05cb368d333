/*
 * args.c - parse the arguments of a command.
 *
 * A command that the library would never write ends the run.
 */
#include "oracle.h"
#include "store.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DIGITS 16 /* The digits of 2^53. */

bool args_is(const struct command *command, unsigned i, const char *text)
{
    return i < command->argc && command->lens[i] == strlen(text) &&
           memcmp(command->argv[i], text, command->lens[i]) == 0;
}

enum script_id args_script(const struct command *command)
{
    bool by_name = args_is(command, 0, "EVALSHA");

    for (int i = 0; i < SCRIPT_LEN && (by_name || args_is(command, 0, "EVAL")); i++) {
        const char *wanted = by_name ? script_all[i].sha1 : script_all[i].text;
        size_t len = by_name ? 40 : script_all[i].text_len;

        if (command->lens[1] == len && memcmp(command->argv[1], wanted, len) == 0)
            return (enum script_id)i;
    }
    return SCRIPT_LEN;
}

/* EVALSHA or EVAL, script, number of names, names [, marker], token [, ttl] */
static struct parts parts_of_script(const struct command *command, enum quorum_command name)
{
    bool has_marker = name == QUORUM_CMD_RAISE;
    unsigned names = (unsigned)(command->argv[2][0] - '0') - has_marker;
    unsigned token = 3 + names + has_marker;

    if (command->argc <= token || command->lens[2] != 1 || names == 0 || names > SIM_RESOURCES_MAX)
        world_fail("wire", "a script with other names");
    return (struct parts){false, name, 3, token, token + 1, names};
}

struct parts args_parts(const struct command *command)
{
    if (command->argc == 6 && args_is(command, 0, "SET"))
        return (struct parts){false, QUORUM_CMD_SET, 1, 2, 5, 1};
    switch (args_script(command)) {
    case SCRIPT_ACQUIRE_MANY:
    case SCRIPT_ACQUIRE_PERMIT:
    case SCRIPT_ACQUIRE_FAIR:
    case SCRIPT_ACQUIRE_SHARED:
        return parts_of_script(command, QUORUM_CMD_SET);
    case SCRIPT_EXTEND:
    case SCRIPT_EXTEND_FAIR:
    case SCRIPT_EXTEND_MANY:
    case SCRIPT_EXTEND_SHARED:
        return parts_of_script(command, QUORUM_CMD_EXTEND);
    case SCRIPT_RELEASE:
    case SCRIPT_RELEASE_MANY:
    case SCRIPT_RELEASE_PERMIT:
    case SCRIPT_RELEASE_FAIR:
    case SCRIPT_RELEASE_SHARED:
        return parts_of_script(command, QUORUM_CMD_RELEASE);
    case SCRIPT_RAISE:
    case SCRIPT_RAISE_MANY:
        return parts_of_script(command, QUORUM_CMD_RAISE);
    case SCRIPT_COUNT_MANY:
    case SCRIPT_LOOK:
    case SCRIPT_WITNESS:
    case SCRIPT_WAIT:
    case SCRIPT_WAIT_PERMIT:
    case SCRIPT_REVOKE:
    case SCRIPT_SHOW:
    case SCRIPT_SCAN:
    case SCRIPT_PREPARE:
    case SCRIPT_ACCEPT:
    case SCRIPT_WRITE:
    case SCRIPT_COUNT_ON:
    case SCRIPT_CLAIM:
    case SCRIPT_FOUND:
    case SCRIPT_WITHDRAW:
    case SCRIPT_LEN:
        break;
    }
    return (struct parts){.is_other = true};
}

/* Resources are named "r0", "r1", ..., or are the slots of a semaphore. */
unsigned args_resource(const struct command *command, unsigned i)
{
    const char *prefix = world.plan.permits ? SEMAPHORE ":" : "r";
    size_t len = strlen(prefix);
    unsigned resource = (unsigned)(command->argv[i][len] - '0');

    if (command->lens[i] != len + 1 || memcmp(command->argv[i], prefix, len) != 0 ||
        resource >= SIM_RESOURCES_MAX)
        world_fail("wire", "an unknown resource");
    return resource;
}

unsigned args_set(const struct command *command)
{
    const struct parts at = args_parts(command);
    unsigned set = 0;

    for (unsigned i = 0; i < at.names; i++) {
        unsigned resource = args_resource(command, at.name + i);

        if (set & 1u << resource)
            world_fail("wire", "one resource twice");
        set |= 1u << resource;
    }
    return set;
}

int args_token(const struct command *command, unsigned i)
{
    return oracle_token(command->argv[i], command->lens[i]);
}

uint64_t args_number(const struct command *command, unsigned i)
{
    const char *digits = command->argv[i];
    char *end;
    uint64_t number = strtoull(digits, &end, 10);

    if (digits[0] < '0' || digits[0] > '9' || end != digits + command->lens[i] ||
        command->lens[i] > MAX_DIGITS)
        world_fail("wire", "not a number");
    return number;
}

uint64_t args_time(const struct command *command, unsigned i)
{
    if (command->lens[i] == 0 || command->lens[i] > 20)
        world_fail("wire", "not a time");
    return strtoull(command->argv[i], NULL, 10);
}

bool args_stands(const struct command *command)
{
    return args_script(command) == SCRIPT_ACQUIRE_FAIR && command->argc > 9;
}

uint64_t args_hex(const struct command *command, unsigned i)
{
    if (command->lens[i] != 16)
        world_fail("wire", "a number of %zu digits", command->lens[i]);
    return strtoull(command->argv[i], NULL, 16);
}

uint64_t args_ms(const struct command *command, unsigned i)
{
    uint64_t ms = args_number(command, i);

    if (ms == 0)
        world_fail("wire", "a ttl of 0");
    return ms;
}
