/*
 * test-outlook.c - what keeps a majority from voting, and for how long.
 */
#include "redlock/core/outlook.h"

#include "test/lib/check.h"

#define W OUTLOOK_WELL
#define A OUTLOOK_ABSENT
#define N OUTLOOK_FORGOTTEN
#define F OUTLOOK_FORBIDDEN
#define X OUTLOOK_FOREIGN

static struct outlook_view view;

/* Five members in one list.  Warming masters take 10 s, 20 s, ... in the order of their numbers. */
static void begin(enum outlook a, enum outlook b, enum outlook c, enum outlook d, enum outlook e)
{
    const enum outlook all[] = {a, b, c, d, e};

    memset(&view, 0, sizeof view);
    view.members = members_first(5);
    for (unsigned m = 0; m < 5; m++) {
        view.masters[m] = all[m];
        view.left[m] = (m + 1) * 10 * DRIFT_S;
    }
}

#define WARM OUTLOOK_WARMING

TEST(a_majority_that_is_well_may_vote)
{
    begin(W, W, W, A, X);
    CHECK_INT(outlook_judge(&view), OUTLOOK_WELL);
    CHECK_UINT(outlook_left(&view), 0);
}

TEST(one_too_few_names_the_least_trouble_that_is_enough)
{
    static const enum outlook troubles[] = {WARM, A, N, F, X};

    for (unsigned i = 0; i < 5; i++) {
        begin(W, W, troubles[i], X, X);
        CHECK_INT(outlook_judge(&view), troubles[i]);
    }
}

TEST(lesser_troubles_are_added_first)
{
    begin(W, WARM, A, F, X);
    CHECK_INT(outlook_judge(&view), OUTLOOK_ABSENT);
    begin(W, X, F, A, WARM); /* The order of the masters does not matter. */
    CHECK_INT(outlook_judge(&view), OUTLOOK_ABSENT);
    begin(X, F, A, A, WARM);
    CHECK_INT(outlook_judge(&view), OUTLOOK_ABSENT);
    begin(W, N, N, A, X); /* A master that is away would not be enough. */
    CHECK_INT(outlook_judge(&view), OUTLOOK_FORGOTTEN);
    begin(X, F, F, A, WARM);
    CHECK_INT(outlook_judge(&view), OUTLOOK_FORBIDDEN);
    begin(X, F, X, A, X);
    CHECK_INT(outlook_judge(&view), OUTLOOK_FOREIGN);
}

TEST(both_lists_of_a_change_must_be_enough)
{
    begin(W, W, W, WARM, F);
    view.members = (struct members){.from = 0x07, .to = 0x1c}; /* C is in both. */
    CHECK_INT(outlook_judge(&view), OUTLOOK_WARMING);
    view.masters[3] = F;
    CHECK_INT(outlook_judge(&view), OUTLOOK_FORBIDDEN);
    view.masters[3] = W;
    CHECK_INT(outlook_judge(&view), OUTLOOK_WELL);
}

TEST(masters_that_are_no_members_do_not_count)
{
    begin(W, W, W, A, A);
    view.members = (struct members){.from = 0x1c, .to = 0x1c};
    CHECK_INT(outlook_judge(&view), OUTLOOK_ABSENT);
}

TEST(without_members_no_master_is_there)
{
    begin(W, W, W, W, W);
    view.members = (struct members){0, 0};
    CHECK_INT(outlook_judge(&view), OUTLOOK_ABSENT);
    CHECK_UINT(outlook_left(&view), DRIFT_NEVER);
    view.founds = true;
    CHECK_INT(outlook_judge(&view), OUTLOOK_ABSENT);
}

TEST(all_masters_found_a_set)
{
    begin(W, W, W, W, A);
    view.founds = true;
    CHECK_INT(outlook_judge(&view), OUTLOOK_ABSENT);
    view.masters[0] = X;
    CHECK_INT(outlook_judge(&view), OUTLOOK_FOREIGN);
    begin(W, W, W, W, WARM);
    view.founds = true;
    CHECK_INT(outlook_judge(&view), OUTLOOK_WARMING);
    CHECK_UINT(outlook_left(&view), 50 * DRIFT_S);
}

TEST(the_time_is_that_of_the_last_master_that_is_needed)
{
    begin(WARM, WARM, WARM, W, A);
    CHECK_UINT(outlook_left(&view), 20 * DRIFT_S);
    begin(WARM, WARM, WARM, WARM, WARM);
    CHECK_UINT(outlook_left(&view), 30 * DRIFT_S);
    view.left[0] = 40 * DRIFT_S; /* No more the first, but still before the fifth. */
    CHECK_UINT(outlook_left(&view), 40 * DRIFT_S);
    view.left[0] = 40 * DRIFT_S + 1;
    CHECK_UINT(outlook_left(&view), 40 * DRIFT_S);
}

TEST(a_worse_trouble_has_no_end)
{
    begin(WARM, WARM, A, A, A);
    CHECK_UINT(outlook_left(&view), DRIFT_NEVER);
    begin(W, N, N, N, A);
    CHECK_UINT(outlook_left(&view), DRIFT_NEVER);
    begin(W, A, A, A, WARM);
    CHECK_UINT(outlook_left(&view), DRIFT_NEVER);
}

TEST(each_trouble_has_its_status)
{
    CHECK_INT(outlook_status(OUTLOOK_WELL), REDLOCK_UNREACHABLE); /* It is over already. */
    CHECK_INT(outlook_status(OUTLOOK_WARMING), REDLOCK_NOT_READY);
    CHECK_INT(outlook_status(OUTLOOK_ABSENT), REDLOCK_UNREACHABLE);
    CHECK_INT(outlook_status(OUTLOOK_FORGOTTEN), REDLOCK_UNREACHABLE);
    CHECK_INT(outlook_status(OUTLOOK_FORBIDDEN), REDLOCK_E_FORBIDDEN);
    CHECK_INT(outlook_status(OUTLOOK_FOREIGN), REDLOCK_E_WRONG_SET);
    for (unsigned outlook = OUTLOOK_WELL; outlook < OUTLOOK_TROUBLES; outlook++)
        CHECK(outlook_is_status(outlook_status((enum outlook)outlook)));
    CHECK(!outlook_is_status(REDLOCK_OK));
    CHECK(!outlook_is_status(REDLOCK_CONTENDED));
    CHECK(!outlook_is_status(REDLOCK_TOO_LATE));
    CHECK(!outlook_is_status(REDLOCK_LOST));
    CHECK(!outlook_is_status(REDLOCK_INTERRUPTED));
    CHECK(!outlook_is_status(REDLOCK_E_STATE));
}

/* All 7776 views of five masters. */
static bool next_view(void)
{
    for (unsigned m = 0; m < 5; m++) {
        if (++view.masters[m] < OUTLOOK_TROUBLES)
            return true;
        view.masters[m] = OUTLOOK_WELL;
    }
    return false;
}

TEST(the_masters_that_decide_have_the_status_and_without_their_trouble_it_is_another)
{
    unsigned views = 0;

    begin(W, W, W, W, W);
    do {
        enum outlook outlook = outlook_judge(&view);
        int status = outlook_status(outlook);
        quorum_mask deciding = outlook_deciding(&view, status);
        struct outlook_view without = view;

        views++;
        CHECK(outlook == OUTLOOK_WELL || deciding != 0);
        for (unsigned m = 0; m < 5; m++) {
            bool has_it =
                view.masters[m] != OUTLOOK_WELL && outlook_status(view.masters[m]) == status;

            CHECK_INT((deciding & mask_of(m)) != 0, has_it);
            if (has_it)
                without.masters[m] = OUTLOOK_WELL;
        }
        CHECK(outlook == OUTLOOK_WELL || outlook_judge(&without) < outlook);
    } while (next_view());
    CHECK_UINT(views, 6 * 6 * 6 * 6 * 6);
}

/* Those that make the list wrong need not be members. */
TEST(of_a_wrong_list_those_decide_that_make_it_wrong)
{
    begin(X, X, X, X, X);
    view.members = members_first(4);
    view.wrong = 0x10;
    CHECK_UINT(outlook_deciding(&view, REDLOCK_E_WRONG_SET), 0x10);
    view.wrong = 0;
    CHECK_UINT(outlook_deciding(&view, REDLOCK_E_WRONG_SET), 0x1f);
}

CHECK_MAIN(RUN(a_majority_that_is_well_may_vote),
           RUN(the_masters_that_decide_have_the_status_and_without_their_trouble_it_is_another),
           RUN(one_too_few_names_the_least_trouble_that_is_enough),
           RUN(lesser_troubles_are_added_first), RUN(both_lists_of_a_change_must_be_enough),
           RUN(masters_that_are_no_members_do_not_count), RUN(without_members_no_master_is_there),
           RUN(all_masters_found_a_set), RUN(the_time_is_that_of_the_last_master_that_is_needed),
           RUN(a_worse_trouble_has_no_end), RUN(each_trouble_has_its_status),
           RUN(of_a_wrong_list_those_decide_that_make_it_wrong))
