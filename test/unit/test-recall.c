/*
 * test-recall.c - what a master that lost its data gets back (rule M7).
 *
 * Masters 0 to 2 are the first list, and 0, 3 and 4 the second.  Master 0 has lost its data.
 */
#include "redlock/core/recall.h"

#include "test/lib/check.h"

enum { ABC = 0x07, ADE = 0x19, ABCDE = 0x1f, ABCD = 0x0f };

static struct recall_told told[QUORUM_MASTERS_MAX];
static struct recall recall;

static bool collect(quorum_mask tellers, uint64_t version, quorum_mask from, quorum_mask to)
{
    const struct members lists = {from, to};

    return recall_collect(told, tellers, false, version, &lists, &recall);
}

/* All tell the same version. */
static void begin(uint64_t version)
{
    memset(told, 0, sizeof told);
    for (unsigned m = 0; m < 5; m++)
        told[m].version = version;
    recall = (struct recall){.ballot = 4711};
}

TEST(nothing_was_promised)
{
    begin(2);
    CHECK(collect(0x06, 2, ABC, ABC));
    CHECK_UINT(recall.ballot, 0);
    CHECK_UINT(recall.accepted, 0);
}

TEST(the_greatest_of_each_kind)
{
    begin(2);
    told[1] = (struct recall_told){.version = 2, .ballot = 70, .accepted = 30};
    told[2] = (struct recall_told){.version = 2, .ballot = 60, .accepted = 50};
    CHECK(collect(0x06, 2, ABC, ABC));
    CHECK_UINT(recall.ballot, 70);
    CHECK_UINT(recall.accepted, 50);
    CHECK_UINT(recall.accepted_by, 2);
}

TEST(enough_of_each_list_must_tell)
{
    static const struct {
        quorum_mask tellers, from, to;
        bool are_enough;
    } rows[] = {
        {0x06, ABC, ABC, true},     {0x04, ABC, ABC, false},     {0x18, ABC, ABC, false},
        {0x1e, ABC, ADE, true},     {0x0e, ABC, ADE, false},     {0x1a, ABC, ADE, false},
        {0x0e, ABCDE, ABCDE, true}, {0x0c, ABCDE, ABCDE, false}, {0x06, ABCD, ABCD, true},
        {0x02, ABCD, ABCD, false},  {0x00, 1, 1, false},
    };

    begin(2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_INT(collect(rows[i].tellers, 2, rows[i].from, rows[i].to), rows[i].are_enough);
    CHECK_UINT(recall.ballot, 0); /* Without an answer it stays as it was. */
}

TEST(without_enough_it_is_untouched)
{
    begin(2);
    CHECK(!collect(0x04, 2, ABC, ABC));
    CHECK_UINT(recall.ballot, 4711);
}

/* The lists that are known are not those of the greatest version. */
TEST(a_greater_version_must_be_known_first)
{
    begin(2);
    told[1].version = 3;
    CHECK(!collect(0x06, 2, ABC, ABC));
    CHECK(collect(0x1e, 3, ABC, ADE));
    CHECK(collect(0x1c, 2, 0x0d, 0x0d)); /* Master 1 is not asked. */
}

TEST(a_smaller_version_has_no_ballots)
{
    begin(2);
    told[1] = (struct recall_told){.version = 1, .ballot = 70, .accepted = 70};
    told[2] = (struct recall_told){.version = 2, .ballot = 60, .accepted = 50};
    CHECK(collect(0x06, 2, ABC, ABC));
    CHECK_UINT(recall.ballot, 60);
    CHECK_UINT(recall.accepted, 50);
    CHECK_UINT(recall.accepted_by, 2);
    CHECK(collect(0x06, 3, ABC, ABC)); /* A chosen version that none of them stores yet. */
    CHECK_UINT(recall.ballot, 0);
}

TEST(one_of_no_set_has_no_ballots_and_one_of_another_does_not_count)
{
    begin(2);
    told[1] = (struct recall_told){.ballot = 70, .accepted = 70};
    CHECK(collect(0x06, 2, ABC, ABC));
    CHECK_UINT(recall.ballot, 0);
    told[1].is_foreign = true;
    CHECK(!collect(0x06, 2, ABC, ABC));
    CHECK(collect(0x0e, 2, ABCD, ABCD));
}

/* Rule 4. */
TEST(if_too_few_remember_all_others_must_answer_and_the_set_be_unchanged)
{
    static const struct members lists = {ABC, ABC};

    begin(1);
    told[1].ballot = 70;
    CHECK(!recall_collect(told, 0x02, false, 1, &lists, &recall));
    CHECK(recall_collect(told, 0x02, true, 1, &lists, &recall));
    CHECK_UINT(recall.ballot, 70);
    begin(2);
    CHECK(!recall_collect(told, 0x02, true, 2, &lists, &recall));
    CHECK(!recall_collect(told, 0x02, true, 1, &lists, &recall));
}

TEST(a_set_that_too_few_remember_needs_a_rescue)
{
    static const struct members same = {ABC, ABC}, joint = {ABC, 0x1c};

    CHECK(recall_is_forgotten(2, &same, 0x01, 0));
    CHECK(recall_is_forgotten(2, &same, 0, 0));
    CHECK(!recall_is_forgotten(2, &same, 0x03, 0)); /* They tell the third. */
    CHECK(!recall_is_forgotten(1, &same, 0x01, 0)); /* Rule 4. */
    CHECK(!recall_is_forgotten(0, &same, 0x01, 0)); /* No set is known. */
    CHECK(recall_is_forgotten(2, &same, 0x19, 0));  /* D and E are no members. */
    CHECK(recall_is_forgotten(2, &joint, 0x07, 0)); /* Of the second list only C. */
    CHECK(recall_is_forgotten(2, &joint, 0x1c, 0));
    CHECK(!recall_is_forgotten(2, &joint, 0x0e, 0));
}

TEST(a_member_that_is_away_may_remember)
{
    static const struct members lists = {0x1f, 0x1f};

    CHECK(!recall_is_forgotten(2, &lists, 0x01, 0x06));
    CHECK(recall_is_forgotten(2, &lists, 0x01, 0x02)); /* Two of five are too few. */
    CHECK(!recall_is_forgotten(2, &lists, 0, 0x02));   /* It may know a newer set. */
    CHECK(recall_is_forgotten(2, &lists, 0, 0x20));    /* It is no member. */
}

CHECK_MAIN(RUN(a_set_that_too_few_remember_needs_a_rescue), RUN(a_member_that_is_away_may_remember),
           RUN(nothing_was_promised), RUN(the_greatest_of_each_kind),
           RUN(enough_of_each_list_must_tell), RUN(without_enough_it_is_untouched),
           RUN(a_greater_version_must_be_known_first), RUN(a_smaller_version_has_no_ballots),
           RUN(one_of_no_set_has_no_ballots_and_one_of_another_does_not_count),
           RUN(if_too_few_remember_all_others_must_answer_and_the_set_be_unchanged))
