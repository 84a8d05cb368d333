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

#define TEXT_EXTEND                                 \
    "if redis.call('get',KEYS[1])==ARGV[1] then "   \
    "return redis.call('pexpire',KEYS[1],ARGV[2]) " \
    "else return 0 end"

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
            .sha1 = "53f2c61c14d7b92a6f44852b306cc8ed3636d4db",
        },
};
