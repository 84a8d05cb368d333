/*
 * test-combine.c - the table of options that go together.  test-live-combine walks it on masters,
 * and test-manual compares it with redlock(3).
 */
#include "redlock/core/combine.h"

#include "test/lib/check.h"

TEST(each_pair_has_one_reason)
{
    const struct combine_clash *clash;
    unsigned len = 0, pairs = 0;

    for (; (clash = combine_clash_at(len)) != NULL; len++) {
        const struct combine_clash *before = len > 0 ? combine_clash_at(len - 1) : NULL;

        CHECK(clash->one < clash->other && clash->other < COMBINE_LEN);
        CHECK(before == NULL || before->one < clash->one ||
              (before->one == clash->one && before->other < clash->other));
        CHECK(strlen(clash->why) > 10 && clash->why[strlen(clash->why) - 1] != '.');
        CHECK(combine_why_not(clash->one, clash->other) == clash->why);
        CHECK(combine_why_not(clash->other, clash->one) == clash->why);
    }
    for (enum combine one = 0; one < COMBINE_LEN; one++)
        for (enum combine other = 0; other < one; other++)
            pairs += combine_why_not(one, other) != NULL;
    CHECK_UINT(pairs, len);
}

TEST(an_option_goes_with_itself)
{
    CHECK(combine_clash_in(0) == NULL);
    for (enum combine one = 0; one < COMBINE_LEN; one++) {
        CHECK(strlen(combine_word(one)) > 0);
        CHECK(combine_clash_in(1u << one) == NULL);
        CHECK(combine_why_not(one, one) == NULL);
    }
}

TEST(of_many_options_the_first_pair_is_told)
{
    const struct combine_clash *clash = combine_clash_in((1u << COMBINE_LEN) - 1);

    CHECK(clash == combine_clash_at(0));
    clash = combine_clash_in(1u << COMBINE_FENCE | 1u << COMBINE_PERMITS | 1u << COMBINE_SHARED);
    CHECK(clash != NULL && clash->one != COMBINE_ADOPT);
}

CHECK_MAIN(RUN(each_pair_has_one_reason), RUN(an_option_goes_with_itself),
           RUN(of_many_options_the_first_pair_is_told))
