/*
 * script.c - the Lua texts and their SHA-1s.
 *
 * Every lock sends them by name (EVALSHA), so that their length only matters
 * to a master that has lost its scripts.  test-script checks the SHA-1s.
 */
#include "redlock/script.h"

/* "Deleting the key only if it holds our value" is what keeps a late release
 * from ending somebody else's lock. */
#define TEXT_RELEASE                              \
    "if redis.call('get',KEYS[1])==ARGV[1] then " \
    "return redis.call('del',KEYS[1]) "           \
    "else return 0 end"

/* Only ever to a later end.  If an extension could shorten, one that failed -
 * asked for less than what was left, and done on masters whose answers were
 * lost - would leave us believing in the old deadline; and one that lay in
 * the socket of a connection given up could undo a newer and longer one. */
#define TEXT_EXTEND                                            \
    "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end " \
    "if redis.call('pttl',KEYS[1])<tonumber(ARGV[2]) then "    \
    "redis.call('pexpire',KEYS[1],ARGV[2]) end "               \
    "return 1"

const struct script script_all[SCRIPT_LEN] = {
    [SCRIPT_RELEASE] =
        {
            .text = TEXT_RELEASE,
            .text_len = sizeof TEXT_RELEASE - 1,
            .sha1 = "b998f9dfb154cdbea8cda65ad5177aadf0e945a2",
        },
    [SCRIPT_EXTEND] =
        {
            .text = TEXT_EXTEND,
            .text_len = sizeof TEXT_EXTEND - 1,
            .sha1 = "fad456264071373a49423a0503fce02a428cad4d",
        },
};
