/*
 * table.c - the slots, and two lists.
 */
#include "redlock/lease/table.h"

#include <stdlib.h>

/* Alarms in the client's heap that belong to no lease: those of three guards, of the
 * founding, and of the lines. */
#define OTHER_ALARMS 5

void table_init(struct leases *leases)
{
    leases->ready_end = &leases->ready;
}

void table_done(struct leases *leases)
{
    struct redlock_lease *next;

    for (struct redlock_lease *lease = leases->spent_first; lease != NULL; lease = next) {
        next = lease->next;
        free(lease);
    }
    free(leases->slots);
    free(leases->slots_free);
}

static int grow(struct leases *leases)
{
    uint32_t room = leases->slots_room ? leases->slots_room * 2 : 64;
    struct redlock_lease **slots;
    uint32_t *slots_free;

    if (leases->slots_room > UINT32_MAX / 4 ||
        alarm_reserve(&leases->env->alarms, room + OTHER_ALARMS) != 0)
        return -1;
    slots = realloc(leases->slots, room * sizeof(struct redlock_lease *));
    if (slots == NULL)
        return -1;
    leases->slots = slots;
    slots_free = realloc(leases->slots_free, room * sizeof *slots_free);
    if (slots_free == NULL)
        return -1;
    leases->slots_free = slots_free;
    leases->slots_room = room;
    return 0;
}

int table_reserve(struct leases *leases)
{
    bool has_room = leases->slots_free_len > 0 || leases->slots_len < leases->slots_room;

    return has_room ? 0 : grow(leases);
}

void table_take_slot(struct leases *leases, struct redlock_lease *lease)
{
    lease->slot = leases->slots_free_len > 0 ? leases->slots_free[--leases->slots_free_len]
                                             : leases->slots_len++;
    leases->slots[lease->slot] = lease;
    lease->serial = ++leases->serial;
    leases->env->stats.leases++;
}

/* Keep the newest LEASE_SPENT leases that are over. */
static void keep_spent(struct leases *leases, struct redlock_lease *lease)
{
    struct redlock_lease *oldest = leases->spent_first;

    lease->next = NULL;
    if (oldest == NULL)
        leases->spent_first = lease;
    else
        leases->spent_last->next = lease;
    leases->spent_last = lease;
    if (leases->spent_len < LEASE_SPENT) {
        leases->spent_len++;
        return;
    }
    leases->spent_first = oldest->next;
    free(oldest);
}

void table_bury(struct leases *leases, struct redlock_lease *lease)
{
    leases->slots[lease->slot] = NULL;
    leases->slots_free[leases->slots_free_len++] = lease->slot;
    leases->env->stats.leases--;
    keep_spent(leases, lease);
}

void table_make_ready(struct leases *leases, struct redlock_lease *lease)
{
    if (lease->is_ready)
        return;
    lease->is_ready = true;
    lease->next = NULL;
    *leases->ready_end = lease;
    leases->ready_end = &lease->next;
    leases->ready_len++;
}

struct redlock_lease *table_take_ready(struct leases *leases)
{
    struct redlock_lease *lease = leases->ready;

    leases->ready = lease->next;
    if (leases->ready == NULL)
        leases->ready_end = &leases->ready;
    leases->ready_len--;
    lease->is_ready = false;
    return lease;
}

bool table_may_hold(const struct leases *leases, unsigned master)
{
    for (uint32_t i = 0; i < leases->slots_len; i++)
        if (leases->slots[i] != NULL && (leases->slots[i]->q.may_hold & mask_of(master)) != 0)
            return true;
    return false;
}
