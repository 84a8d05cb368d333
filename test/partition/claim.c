/*
 * claim.c - see claim.h.
 */
#include "partition/claim.h"

#include "partition/tool.h"

/* The library's deadline is not before this. */
static uint64_t told(const struct look *look)
{
    return look->before_ns + look->left_ms * NS_PER_MS;
}

/* The library's deadline is before this: it answered before after_ns, and rounded down. */
static uint64_t limit(const struct look *look)
{
    return look->after_ns + (look->left_ms + UINT64_C(1)) * NS_PER_MS;
}

void claim_begin(struct claim *claim, const struct look *look)
{
    *claim = (struct claim){told(look), limit(look), look->renewals_before};
}

enum claim_news claim_look(struct claim *claim, const struct look *look)
{
    bool renewed = look->renewals_after != claim->renewals;

    if (look->left_ms == 0)
        return CLAIM_OVER;
    if (told(look) >= claim->limit_ns) {
        claim_begin(claim, look);
        return renewed ? CLAIM_LONGER : CLAIM_UNFOUNDED;
    }
    /* The deadline may be the same as before, and is now known more precisely. */
    claim->renewals = look->renewals_before;
    if (renewed || limit(look) < claim->limit_ns)
        claim->limit_ns = limit(look);
    if (look->before_ns >= claim->deadline_ns)
        return CLAIM_BLURRED;
    if (told(look) < claim->deadline_ns + CLAIM_GRAIN_NS)
        return CLAIM_SAME;
    claim->deadline_ns = told(look);
    return CLAIM_LONGER;
}

uint64_t claim_for_write(const struct claim *claim, const struct look *look)
{
    return told(look) < claim->deadline_ns ? told(look) : claim->deadline_ns;
}
