/*
 * facts.c - what a program may ask of a client without asking a master; and a log to a pipe.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "redlock/base/error.h"
#include "redlock/client/client.h"
#include "redlock/lease/explain.h"
#include "redlock/lease/lease.h"

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

/* A write of so few bytes to a pipe is whole: POSIX, PIPE_BUF. */
void redlock_log_to(void *log_arg, enum redlock_level level, const char *message)
{
    const int *fd = log_arg, saved = errno;
    char line[512];
    int len = snprintf(line, sizeof line, "%d %s", (int)level, message);

    len = len < (int)sizeof line - 1 ? len : (int)sizeof line - 2;
    line[len] = '\n';
    (void)!write(*fd, line, (size_t)len + 1);
    errno = saved;
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

static struct redlock_master_stats read_master(const struct masters *masters, unsigned m)
{
    const struct peer_counts *counts = &masters->peers.counts[m];
    struct redlock_master_stats stats = {
        .is_up = (masters->peers.up & members_all(&masters->peers.members) & mask_of(m)) != 0,
        .round_trip = counts->round_trip,
        .late = counts->late,
        .yes = counts->votes[QUORUM_VOTE_YES],
        .no = counts->votes[QUORUM_VOTE_NO],
        .void_clock = counts->void_clock,
        .void_state = counts->void_state,
        .forbidden = counts->forbidden,
        .errors = counts->errors,
        .timeouts = counts->timeouts,
        .connects = counts->connects,
        .breaks = counts->breaks,
    };

    (void)snprintf(stats.address, sizeof stats.address, "%s", masters_name(masters, m));
    return stats;
}

int redlock_master_stats(struct redlock *rl, unsigned number,
                         struct redlock_master_stats *ret_stats)
{
    struct redlock_master_stats stats;
    int status;

    if (ret_stats == NULL || !is_size(ret_stats->size))
        return error_set(REDLOCK_E_INVAL, "master stats: NULL, or its size is not set");
    status = client_enter(rl);
    if (status != REDLOCK_OK)
        return error_wrap(status, "master stats");
    if (number >= 1 && number <= rl->masters.peers.len &&
        rl->masters.peers.links[number - 1] != NULL) {
        stats = read_master(&rl->masters, number - 1);
        copy_out(ret_stats, ret_stats->size, &stats, sizeof stats);
    } else {
        status = error_set(REDLOCK_E_INVAL, "master stats: there is no master %u", number);
    }
    client_leave(rl);
    return status;
}

/* The words are of now.  They fit if the link still has a reason of this kind. */
static struct redlock_reason read_reason(const struct redlock *rl, const struct blame *blame,
                                         unsigned m)
{
    struct redlock_reason reason = {
        .master = m + 1,
        .decides = (blame->deciding & mask_of(m)) != 0,
        .over_ms = blame_over_ms(blame, m, env_now(&rl->env)),
    };
    struct reason why;

    reason_set(&why, (enum why)blame->why[m]);
    why.at = (enum reason_at)blame->at[m];
    reason.id = message_id(reason_message(&why));
    if (!blame_is_place(blame, m, masters_name(&rl->masters, m)))
        return reason;
    (void)snprintf(reason.address, sizeof reason.address, "%s", masters_name(&rl->masters, m));
    masters_recall(&rl->masters, m, why.why, &why);
    (void)snprintf(reason.words, sizeof reason.words, "%.*s", (int)strcspn(why.words, "\n"),
                   why.words);
    return reason;
}

/* It leaves the thread's message alone, which its answers are about. */
int redlock_reason(struct redlock *rl, unsigned number, struct redlock_reason *ret_reason)
{
    const struct blame *blame = error_blamed();
    struct redlock_reason reason;

    if (rl == NULL || ret_reason == NULL || !is_size(ret_reason->size))
        return REDLOCK_E_INVAL;
    if (client_is_forked(rl) || (rl->blocking != NULL && blocking_is_self(rl->blocking)))
        return REDLOCK_E_STATE;
    if (blame == NULL || blame->owner != &rl->leases || number >= mask_count(blame->masters))
        return REDLOCK_E_INVAL;
    if (rl->blocking != NULL)
        blocking_lock(rl->blocking);
    reason = read_reason(rl, blame, blame_master(blame, number));
    if (rl->blocking != NULL)
        blocking_unlock(rl->blocking);
    copy_out(ret_reason, ret_reason->size, &reason, sizeof reason);
    return REDLOCK_OK;
}

int redlock_ready(struct redlock *rl, uint32_t *ret_ms)
{
    struct outlook_view view;
    enum outlook outlook;
    int status = client_enter(rl);

    if (status != REDLOCK_OK)
        return error_wrap(status, "ready");
    outlook = masters_outlook(&rl->masters, 0, env_now(&rl->env), &view);
    status = outlook == OUTLOOK_WELL ? REDLOCK_OK : outlook_status(outlook);
    if (status != REDLOCK_OK)
        explain_ready(&rl->leases, status, outlook_deciding(&view, status));
    if (ret_ms != NULL && (status == REDLOCK_OK || status == REDLOCK_NOT_READY))
        *ret_ms = drift_to_ms_up(outlook_left(&view));
    client_leave(rl);
    return status;
}

uint32_t redlock_remaining_ms(const struct redlock_lease *lease)
{
    if (lease == NULL || client_is_forked(client_of(lease)))
        return 0;
    return lease_remaining_ms(lease);
}

static uint32_t count_holds(const struct redlock_lease *lease, uint32_t remaining_ms)
{
    const struct owned *owned = lease_owned(lease);

    return owned != NULL ? owned->count : lease->owned && remaining_ms > 0;
}

static struct redlock_lease_info read_info(const struct redlock_lease *lease)
{
    const struct quorum_fence *fence = lease_fence(lease);
    struct redlock_lease_info info = {
        .resource = lease_name(lease),
        .token = lease_token(lease),
        .fence = fence != NULL ? fence->token : 0,
        .remaining_ms = lease_remaining_ms(lease),
        .permit = lease_kind(lease)->slots != NULL ? kind_permit_slot(lease) + 1u : 0,
        .resources_len = 1,
    };

    for (size_t i = 0; i < lease->name_len; i++)
        info.resources_len += lease->name[i] == '\0';
    info.holds = count_holds(lease, info.remaining_ms);
    return info;
}

int redlock_lease_info(const struct redlock_lease *lease, struct redlock_lease_info *ret_info)
{
    struct redlock_lease_info info;
    struct redlock *rl;
    int status;

    error_clear();
    if (ret_info == NULL || !is_size(ret_info->size))
        return error_set(REDLOCK_E_INVAL, "lease info: NULL, or its size is not set");
    if (lease == NULL)
        return error_wrap(lease_check(lease), "lease info");
    rl = client_of(lease);
    status = client_enter(rl);
    if (status != REDLOCK_OK)
        return error_wrap(status, "lease info");
    if (lease->alive) { /* In its last callback the caller does not own it any more. */
        info = read_info(lease);
        copy_out(ret_info, ret_info->size, &info, sizeof info);
    } else {
        status = error_wrap(lease_check(lease), "lease info");
    }
    client_leave(rl);
    return status;
}
