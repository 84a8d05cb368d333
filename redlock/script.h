/*
 * script.h - the Lua texts that masters run, and their SHA-1s.
 */
#ifndef REDLOCK_SCRIPT_H
#define REDLOCK_SCRIPT_H

#include <stddef.h>

enum script_id {
    SCRIPT_RELEASE, /* KEYS[1] name, ARGV[1] token: delete the key if it holds the token; 1 or 0. */
    SCRIPT_EXTEND,  /* and ARGV[2] ttl in ms: if it holds the token, make it last so long from
                     * now, unless it lasts longer; 1 or 0. */
    SCRIPT_LEN
};

struct script {
    const char *text;
    size_t text_len;
    const char *sha1; /* 40 lower-case digits: what SCRIPT LOAD must answer, and EVALSHA takes. */
};

extern const struct script script_all[SCRIPT_LEN];

#endif /* REDLOCK_SCRIPT_H */
