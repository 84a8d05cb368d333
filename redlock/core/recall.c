/*
 * recall.c - finds the greatest ballots that enough members report.
 *
 * The rules, each next to the code that keeps it.  Q is a majority of the N members of a list.
 * They are rule M7 of test/models/members.h, where they are model-checked.
 *
 *  1. The lists that count are those of the greatest version that is reported (is_newest).
 *  2. N - Q + 1 members of each of these lists must report.  They have an epoch, and the master
 *     itself is none of them.  One of them was in every majority that the master was part of.
 *  3. Ballots are taken from members that report this version.  A member that reports a smaller
 *     version, or no set, has no ballot for it.  A master of another set does not count
 *     (find_ours).
 *  4. If so few members have an epoch that rule 2 cannot be kept, nobody gives the master an epoch.
 *     At version 1 it gets one when all other members have answered.  Reason: masters that keep
 *     nothing forget together at every loss of power.  This is no proof if a majority forgets while
 *     the first change of the set is under way (docs/members.md; the scenario together of
 *     test/change).
 */
#include "redlock/core/recall.h"

/* Rule 1.  A master may report an older version than what is known. */
static bool is_newest(const struct recall_told *told, quorum_mask tellers, uint64_t version)
{
    for (unsigned i = 0; tellers >> i != 0; i++)
        if ((tellers & mask_of(i)) != 0 && told[i].version > version)
            return false;
    return true;
}

static quorum_mask find_ours(const struct recall_told *told, quorum_mask tellers)
{
    for (unsigned i = 0; tellers >> i != 0; i++)
        if (told[i].is_foreign)
            tellers = mask_without(tellers, i);
    return tellers;
}

bool recall_collect(const struct recall_told told[QUORUM_MASTERS_MAX], quorum_mask tellers,
                    bool are_all, uint64_t version, const struct members *lists,
                    struct recall *ret_recall)
{
    quorum_mask ours = find_ours(told, tellers);
    struct recall recall = {.ballot = 0};

    if (!is_newest(told, ours, version))
        return false;
    if (!members_meet_all(lists, ours) && !(are_all && version <= 1)) /* Rules 2 and 4. */
        return false;
    for (unsigned i = 0; ours >> i != 0; i++) {
        if (!(ours & mask_of(i)) || told[i].version != version) /* Rule 3. */
            continue;
        if (told[i].ballot > recall.ballot)
            recall.ballot = told[i].ballot;
        if (told[i].accepted > recall.accepted) {
            recall.accepted = told[i].accepted;
            recall.accepted_by = i;
        }
    }
    *ret_recall = recall;
    return true;
}

/* Rules 2 and 4.  A master without an epoch is not among those that remember. */
bool recall_is_forgotten(uint64_t version, const struct members *lists, quorum_mask remember,
                         quorum_mask absent)
{
    quorum_mask all = members_all(lists);

    remember &= all;
    absent &= all;
    return version > 1 && all != 0 && !members_meet_all(lists, remember | absent) &&
           (remember != 0 || absent == 0);
}
