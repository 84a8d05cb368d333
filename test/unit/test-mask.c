/*
 * test-mask.c - a set has as many masters as bits.
 */
#include "redlock/base/mask.h"

#include "test/lib/check.h"

TEST(every_set_is_counted)
{
    for (unsigned mask = 0; mask <= UINT16_MAX; mask++) {
        unsigned masters = 0;

        for (unsigned m = 0; m < 16; m++)
            masters += (mask & 1u << m) != 0;
        CHECK_INT(mask_count((quorum_mask)mask), masters);
    }
}

CHECK_MAIN(RUN(every_set_is_counted))
