/*
 * blame.c - see blame.h.
 */
#include "redlock/base/blame.h"

#include <assert.h>

/* FNV-1a, of 32 bits. */
static uint32_t hash_of(const char *name)
{
    uint32_t hash = UINT32_C(2166136261);

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT32_C(16777619);
    return hash;
}

void blame_init(struct blame *blame, const void *owner, drift_time now)
{
    blame->owner = owner;
    blame->since = now;
    blame->masters = blame->deciding = 0;
}

static uint32_t ms_until(drift_time now, drift_time at)
{
    return at == DRIFT_NEVER ? BLAME_NOT_KNOWN : drift_to_ms_up(drift_until(now, at));
}

void blame_add(struct blame *blame, unsigned m, const char *name, const struct reason *why,
               bool decides)
{
    assert(m < QUORUM_MASTERS_MAX && why->why != WHY_NONE);
    blame->masters |= mask_of(m);
    if (decides)
        blame->deciding |= mask_of(m);
    blame->why[m] = (uint8_t)why->why;
    blame->at[m] = (uint8_t)why->at;
    blame->over_ms[m] = ms_until(blame->since, why->over_at);
    blame->place[m] = hash_of(name);
}

unsigned blame_master(const struct blame *blame, unsigned number)
{
    unsigned deciding = mask_count(blame->deciding);
    bool decides = number < deciding;
    quorum_mask masters =
        decides ? blame->deciding : blame->masters & (quorum_mask)~blame->deciding;
    unsigned m = 0;

    number -= decides ? 0 : deciding;
    for (; m < QUORUM_MASTERS_MAX; m++)
        if ((masters & mask_of(m)) != 0 && number-- == 0)
            break;
    return m;
}

bool blame_is_place(const struct blame *blame, unsigned m, const char *name)
{
    return blame->place[m] == hash_of(name);
}

uint32_t blame_over_ms(const struct blame *blame, unsigned m, drift_time now)
{
    uint32_t passed = drift_to_ms(drift_until(blame->since, now));

    if (blame->over_ms[m] == BLAME_NOT_KNOWN)
        return BLAME_NOT_KNOWN;
    return blame->over_ms[m] > passed ? blame->over_ms[m] - passed : 0;
}
