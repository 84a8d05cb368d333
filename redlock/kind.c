/*
 * kind.c - a table of kinds and commands.
 */
#include "redlock/kind.h"

#include <assert.h>

#define COMMANDS (QUORUM_CMD_RAISE + 1)
#define NO_SCRIPT SCRIPT_LEN /* SET, as it is. */

static const enum script_id scripts[LEASE_KINDS][COMMANDS] = {
    [LEASE_PLAIN] =
        {
            [QUORUM_CMD_SET] = NO_SCRIPT,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE,
            [QUORUM_CMD_FENCE] = SCRIPT_FENCE,
            [QUORUM_CMD_RAISE] = SCRIPT_RAISE,
        },
};

bool kind_is_script(enum lease_kind kind, enum quorum_command command)
{
    assert(kind < LEASE_KINDS);
    return scripts[kind][command] != NO_SCRIPT;
}

size_t kind_write(char *buf, enum lease_kind kind, enum quorum_command command, bool in_full,
                  const struct wire_args *args)
{
    if (!kind_is_script(kind, command))
        return wire_set(buf, args);
    return wire_script(buf, scripts[kind][command], in_full, args);
}
