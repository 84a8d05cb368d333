/*
 * facts.c - what a program may ask of a client without asking a master.
 */
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/client/client.h"
#include "redlock/lease/explain.h"

/* The greatest size of a struct that a caller may pass.  Chosen: a larger size was never set; not
 * measured. */
#define SIZE_MAX_OF_CALLERS 4096

/* Copy a struct that begins with its size to a caller that may be older or newer.  Fields that are
 * unknown to this version are 0. */
static void copy_out(void *ret, size_t ret_size, const void *from, size_t size)
{
    size_t common = ret_size < size ? ret_size : size;

    memcpy((char *)ret + sizeof ret_size, (const char *)from + sizeof ret_size,
           common - sizeof ret_size);
    memset((char *)ret + common, 0, ret_size - common);
}

static bool is_size(size_t size)
{
    return size >= sizeof size && size <= SIZE_MAX_OF_CALLERS;
}

int redlock_stats(struct redlock *rl, struct redlock_stats *ret_stats)
{
    struct redlock_stats *stats;
    const struct peers *peers;
    int status;

    if (ret_stats == NULL || !is_size(ret_stats->size))
        return error_set(REDLOCK_E_INVAL, "stats: NULL, or its size is not set");
    status = client_enter(rl);
    if (status != REDLOCK_OK)
        return error_wrap(status, "stats");
    stats = &rl->env.stats;
    peers = &rl->masters.peers;
    stats->masters = mask_count(members_all(&peers->members));
    stats->masters_up = mask_count(peers->up & members_all(&peers->members));
    copy_out(ret_stats, ret_stats->size, stats, sizeof *stats);
    client_leave(rl);
    return REDLOCK_OK;
}

/* Rounded up, so that a program that waits so long does not come too early. */
static uint32_t to_ms_up(drift_span span)
{
    return drift_to_ms(drift_add(span, DRIFT_MS - 1));
}

int redlock_ready(struct redlock *rl, uint32_t *ret_ms)
{
    enum outlook outlook;
    drift_span left;
    int status = client_enter(rl);

    if (status != REDLOCK_OK)
        return error_wrap(status, "ready");
    outlook = masters_outlook(&rl->masters, env_now(&rl->env), &left);
    status = outlook == OUTLOOK_WELL ? REDLOCK_OK : outlook_status(outlook);
    if (status != REDLOCK_OK)
        explain_ready(&rl->leases, status);
    if (ret_ms != NULL && (status == REDLOCK_OK || status == REDLOCK_NOT_READY))
        *ret_ms = to_ms_up(left);
    client_leave(rl);
    return status;
}
