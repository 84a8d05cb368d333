/*
 * writes.c - tries a write that cannot change anything, and knows the errors of masters that refuse
 * it, or that forbid it to the user.
 */
#include "redlock/cli/common/writes.h"

#include <string.h>

#include "redlock/cli/common/remark.h"
#include "redlock/cli/common/query.h"
#include "redlock/client/inspect.h"
#include "redlock/wire/keys.h"
#include "redlock/wire/redis_error.h"
#include "redlock/wire/reply.h"

/* INFO shows disks, memory and replicas, but whether writes are refused also depends on settings
 * and on the version.  So try a SET, which a lock needs.  A master judges whether it takes writes
 * before it reads NX and XX, and no SET with both is carried out: "ERR syntax error", or nil.  No
 * script may ask: up to Redis 6.0.16 and 6.2.6, luaRedisGenericCommand() in scripting.c does not
 * check min-replicas-to-write, as processCommand() does.  There a fair lock is granted that status
 * does not promise, and a plain one is refused. */
static const char *const try_to_write[] = {"SET", WIRE_MARKER, "", "NX", "XX", NULL};

/* With the restart guard, this follows each vote.  All other rights that a plain lock needs until
 * it is taken are those of a link that comes up, and of the guard's look. */
static const char *const try_to_prove[] = {"HGET", WIRE_MARKER, "epoch", NULL};

/* All conditions in which a master that can be reached refuses writes.  In others its link does not
 * come up: it loads its data (LOADING), runs a script for too long (BUSY), is a replica when the
 * client connects, or has no room for a connection (maxclients). */
static const struct {
    const char *code, *cure;
} rows[] = {
    {"OOM", "give it memory: a larger maxmemory, or fewer keys"},
    {"MISCONF", "see its log: it cannot write to its disk"},
    {"NOREPLICAS", "set min-replicas-to-write 0: masters of a lock need no replicas"},
    {"READONLY", "make it a master again (REPLICAOF NO ONE)"},
};

unsigned writes_ask(struct redlock *rl, unsigned m, uint32_t query)
{
    query_send(rl, m, query, try_to_write);
    if (!inspect_client(rl).restart_guard)
        return 1;
    query_send(rl, m, query, try_to_prove);
    return 2;
}

/* True: no lock may be taken.  An ACL may forbid a SET of the marker alone, which no lock needs. */
static bool is_forbidden(const char *error)
{
    return redis_error_kind(error) == WHY_ERROR_RIGHT &&
           (strstr(error, "'hget' command") != NULL || strstr(error, "'set' command") != NULL);
}

/* The code and what follows it.  If a script failed, Redis 6 writes the place in it first.  NULL:
 * there is no such code. */
static const char *find_code(const char *error, size_t *ret_row)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *at = strstr(error, rows[i].code);

        if (at == NULL || (at > error && at[-1] != ' ' && at[-1] != '-') ||
            at[strlen(rows[i].code)] != ' ')
            continue;
        *ret_row = i;
        return at;
    }
    return NULL;
}

bool writes_are_refused(const struct reply *reply, struct remark *ret_remark)
{
    size_t row;
    const char *error = reply->type == REPLY_ERROR ? find_code(reply->text, &row) : NULL;
    char first[REASON_WORDS_MAX], *end;
    struct reason why;

    if (reply->type == REPLY_ERROR && is_forbidden(reply->text)) {
        redis_error_reason(&why, reply->text);
        *ret_remark = remark_of("", &why);
        return true;
    }
    if (error == NULL)
        return false;
    /* The first sentence tells it; MISCONF has more. */
    (void)snprintf(first, sizeof first, "%s", error);
    end = strstr(first, ". ");
    if (end != NULL)
        *end = '\0';
    redis_error_reason(&why, first);
    *ret_remark = remark_of("refuses writes: ", &why);
    return true;
}

const char *writes_cure(const char *error)
{
    size_t row;

    return find_code(error, &row) != NULL ? rows[row].cure : NULL;
}
