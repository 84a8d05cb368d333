/*
 * kind_plain.c - one name, one holder: the published algorithm.
 *
 * SET name token NX PX ttl grants the lock on one master.  Extension and release are scripts,
 * because both must compare the token first.  A plain lock may have a fencing token.  Then a count
 * follows the SET (lease.c), and RAISE repairs counters that are out of step.
 */
#include "redlock/lease/kind.h"

const struct kind kind_plain = {
    .scripts =
        {
            [QUORUM_CMD_SET] = KIND_NO_SCRIPT,
            [QUORUM_CMD_EXTEND] = SCRIPT_EXTEND,
            [QUORUM_CMD_RELEASE] = SCRIPT_RELEASE,
            [QUORUM_CMD_FENCE] = KIND_NO_SCRIPT,
            [QUORUM_CMD_RAISE] = SCRIPT_RAISE,
            [QUORUM_CMD_GIVE] = KIND_NO_SCRIPT,
        },
};
