/*
 * test-claim.c - what a client may claim after a look (see claim.h), on both sides of each bound.
 */
#include "test/lib/check.h"

#include "partition/claim.h"
#include "partition/tool.h"

#define MS NS_PER_MS
#define S NS_PER_S

/* A look at t that takes 10 us, with no extension so far. */
static struct look look_at(uint64_t t_ns, uint32_t left_ms)
{
    return (struct look){.before_ns = t_ns, .after_ns = t_ns + 10000, .left_ms = left_ms};
}

/* A claim with 2 s left at 100 s.  So the deadline is from 102 s to 102.00101 s. */
static struct claim begun(void)
{
    struct look look = look_at(100 * S, 2000);
    struct claim claim;

    claim_begin(&claim, &look);
    return claim;
}

TEST(begins_with_what_was_told)
{
    struct claim claim = begun();

    CHECK_UINT(claim.deadline_ns, 102 * S);
    CHECK_UINT(claim.limit_ns, 102 * S + MS + 10000);
}

TEST(rounding_is_nothing_new)
{
    struct claim claim = begun();
    struct look look = look_at(101 * S + MS, 999);

    CHECK_INT(claim_look(&claim, &look), CLAIM_SAME);
    look = look_at(101 * S + MS / 2, 999); /* left_ms is rounded down by more. */
    CHECK_INT(claim_look(&claim, &look), CLAIM_SAME);
    CHECK_UINT(claim.deadline_ns, 102 * S);
    CHECK_UINT(claim_for_write(&claim, &look), 102 * S - MS / 2);
}

TEST(a_write_claims_no_more_than_the_history)
{
    struct claim claim = begun();
    struct look look = look_at(101 * S + 2 * MS - MS / 2, 999);

    CHECK_INT(claim_look(&claim, &look), CLAIM_SAME);
    CHECK_UINT(claim_for_write(&claim, &look), 102 * S);
}

TEST(a_renewal_makes_it_longer)
{
    struct claim claim = begun();
    struct look look = look_at(101 * S, 1900);

    look.renewals_before = look.renewals_after = 1;
    CHECK_INT(claim_look(&claim, &look), CLAIM_LONGER);
    CHECK_UINT(claim.deadline_ns, 102 * S + 900 * MS);
    CHECK_UINT(claim.renewals, 1);
}

TEST(one_that_comes_in_the_middle_of_a_look_counts_for_it_and_for_the_next)
{
    struct claim claim = begun();
    struct look look = look_at(101 * S, 1900);

    look.renewals_after = 1;
    CHECK_INT(claim_look(&claim, &look), CLAIM_LONGER);
    look = look_at(101 * S + 500 * MS, 1900);
    look.renewals_before = look.renewals_after = 1;
    CHECK_INT(claim_look(&claim, &look), CLAIM_LONGER);
}

TEST(without_a_renewal_it_cannot_be_longer)
{
    struct claim claim = begun();
    /* The limit is 102 s, 1 ms and 10 us. */
    struct look look = look_at(101 * S + 10000 - 1, 1001);

    CHECK_INT(claim_look(&claim, &look), CLAIM_SAME);
    claim = begun();
    look = look_at(101 * S + 10000, 1001);
    CHECK_INT(claim_look(&claim, &look), CLAIM_UNFOUNDED);
    CHECK_UINT(claim.deadline_ns, 102 * S + MS + 10000);
}

TEST(renewals_of_others_found_nothing_twice)
{
    struct claim claim = begun();
    struct look look = look_at(101 * S, 999);

    look.renewals_before = look.renewals_after = 7;
    CHECK_INT(claim_look(&claim, &look), CLAIM_SAME);
    look = look_at(101 * S, 1900);
    look.renewals_before = look.renewals_after = 7;
    CHECK_INT(claim_look(&claim, &look), CLAIM_UNFOUNDED);
}

/* A renewal that adds less than the grain of a look must not make the next look unfounded. */
TEST(a_tiny_renewal_moves_the_limit)
{
    struct claim claim = begun();
    struct look look = look_at(101 * S, 1000);

    look.after_ns = look.before_ns + 5 * MS;
    look.renewals_before = look.renewals_after = 1;
    CHECK_INT(claim_look(&claim, &look), CLAIM_SAME);
    CHECK_UINT(claim.limit_ns, 102 * S + 6 * MS);
    look = look_at(101 * S, 1001);
    look.before_ns += MS / 2;
    look.renewals_before = look.renewals_after = 1;
    CHECK_INT(claim_look(&claim, &look), CLAIM_SAME);
}

/* A client stopped during its first look claims far less than its lease has. */
TEST(a_slow_first_look_is_made_good_later)
{
    struct look look = look_at(100 * S, 1500);
    struct claim claim;

    look.after_ns = look.before_ns + 500 * MS;
    claim_begin(&claim, &look);
    CHECK_UINT(claim.deadline_ns, 101 * S + 500 * MS);
    look = look_at(101 * S, 502);
    look.before_ns--; /* 1 ns less than 2 ms more. */
    CHECK_INT(claim_look(&claim, &look), CLAIM_SAME);
    look.before_ns++;
    CHECK_INT(claim_look(&claim, &look), CLAIM_LONGER);
    CHECK_UINT(claim.deadline_ns, 101 * S + 502 * MS);
    CHECK_UINT(claim.limit_ns, 101 * S + 503 * MS + 10000);
}

TEST(at_its_deadline_it_claims_nothing_any_more)
{
    struct claim claim = begun();
    struct look look = look_at(102 * S - 1, 1);

    CHECK_INT(claim_look(&claim, &look), CLAIM_SAME);
    look = look_at(102 * S, 1);
    CHECK_INT(claim_look(&claim, &look), CLAIM_BLURRED);
}

TEST(over_is_over)
{
    struct claim claim = begun();
    struct look look = look_at(101 * S, 0); /* A majority answered that the key is gone. */

    CHECK_INT(claim_look(&claim, &look), CLAIM_OVER);
    look = look_at(110 * S, 0);
    CHECK_INT(claim_look(&claim, &look), CLAIM_OVER);
}

CHECK_MAIN({"begins_with_what_was_told", begins_with_what_was_told},
           {"rounding_is_nothing_new", rounding_is_nothing_new},
           {"a_write_claims_no_more_than_the_history", a_write_claims_no_more_than_the_history},
           {"a_renewal_makes_it_longer", a_renewal_makes_it_longer},
           {"one_that_comes_in_the_middle_of_a_look_counts_for_it_and_for_the_next",
            one_that_comes_in_the_middle_of_a_look_counts_for_it_and_for_the_next},
           {"without_a_renewal_it_cannot_be_longer", without_a_renewal_it_cannot_be_longer},
           {"renewals_of_others_found_nothing_twice", renewals_of_others_found_nothing_twice},
           {"a_tiny_renewal_moves_the_limit", a_tiny_renewal_moves_the_limit},
           {"a_slow_first_look_is_made_good_later", a_slow_first_look_is_made_good_later},
           {"at_its_deadline_it_claims_nothing_any_more",
            at_its_deadline_it_claims_nothing_any_more},
           {"over_is_over", over_is_over})
