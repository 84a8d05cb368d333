/*
 * trial.c - tries a write that cannot change anything, measures it, and knows the errors of masters
 * that refuse it, or that forbid it to the user.
 */
#include "redlock/cli/common/trial.h"

#include <string.h>

#include "redlock/cli/common/loop.h"
#include "redlock/cli/common/remark.h"
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
const char *const trial_to_prove[] = {"HGET", WIRE_MARKER, "epoch", NULL};

const char *const *trial_begin(struct trial *trial)
{
    trial->times++;
    trial->asked_at = loop_clock();
    return try_to_write;
}

/* All conditions in which a master that can be reached refuses writes.  In others its link does not
 * come up: it loads its data (LOADING), runs a script for too long (BUSY), is a replica when the
 * client connects, or has no room for a connection (maxclients). */
static bool takes_no_writes(enum why why)
{
    return why == WHY_ERROR_MEMORY || why == WHY_ERROR_DISK || why == WHY_ERROR_REPLICAS ||
           why == WHY_ERROR_REPLICA;
}

static void take_refusal(struct trial *trial, const struct reply *reply)
{
    char first[REASON_WORDS_MAX], *end;
    struct reason why;

    if (reply->type != REPLY_ERROR)
        return;
    redis_error_reason(&why, reply->text);
    /* An ACL may forbid a SET of the marker alone, which no lock needs. */
    if (why.why == WHY_ERROR_RIGHT && redis_error_right(reply->text) == RIGHT_TO_COMMAND) {
        trial->refusal = remark_of("", &why);
        return;
    }
    if (!takes_no_writes(why.why))
        return;
    /* The first sentence tells it; MISCONF has more. */
    (void)snprintf(first, sizeof first, "%s", reply->text);
    end = strstr(first, ". ");
    if (end != NULL)
        *end = '\0';
    redis_error_reason(&why, first);
    trial->refusal = remark_of("refuses writes: ", &why);
}

/* An error takes a round trip as well. */
bool trial_take(struct trial *trial, uint32_t query, const struct reply *reply,
                uint32_t reply_timeout_ms)
{
    const drift_span took = drift_until(trial->asked_at, loop_clock());

    take_refusal(trial, reply);
    if (query != TRIAL_WRITE)
        return false;
    if (trial->times == 1 || took < trial->round_trip)
        trial->round_trip = took;
    return trial_is_late(trial->round_trip, reply_timeout_ms) && trial->times < TRIAL_TIMES_MAX;
}

struct remark trial_lateness(const struct trial *trial, uint32_t reply_timeout_ms)
{
    struct remark remark = {.message = MSG_NO_ANSWER};

    (void)snprintf(remark.text, sizeof remark.text,
                   "answers after %.1f ms, and --reply-timeout is %u ms: make it longer in all "
                   "clients",
                   (double)trial->round_trip / (double)DRIFT_MS, reply_timeout_ms);
    return remark;
}
