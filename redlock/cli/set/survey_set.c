/*
 * survey_set.c - finds the set of masters in the answers of a survey, and whether it has a quorum;
 * pure.
 */
#include "redlock/cli/set/survey.h"

#include <stdio.h>
#include <string.h>

#include "redlock/cli/set/wish.h"
#include "redlock/core/recall.h"

unsigned survey_find(const struct survey *survey, const struct config_member *member)
{
    for (unsigned m = 0; m < survey->masters; m++)
        if (survey->of[m].is_named && strcmp(survey->of[m].member.name, member->name) == 0)
            return m;
    for (unsigned m = 0; m < survey->masters; m++)
        if (strcmp(survey->of[m].member.place, member->place) == 0)
            return m;
    return survey->masters;
}

const struct config_member *survey_member_of(const struct survey *survey, unsigned m)
{
    for (unsigned i = 0; i < survey->newest.members_len; i++)
        if (survey_find(survey, &survey->newest.members[i]) == m)
            return &survey->newest.members[i];
    return NULL;
}

unsigned survey_twin(const struct survey *survey, unsigned m)
{
    const struct reason *why = &survey->of[m].why;

    return why->why == WHY_TWIN ? why->other : survey->masters;
}

unsigned survey_copy(const struct survey *survey, unsigned m)
{
    const struct survey_master *master = &survey->of[m];

    for (unsigned i = 0; i < survey->masters; i++) {
        const struct survey_master *other = &survey->of[i];

        if (i != m && other->answered && other->look.ready && master->look.ready &&
            other->look.number == master->look.number)
            return i;
    }
    return survey->masters;
}

bool survey_is_argument(const struct survey *survey, unsigned m)
{
    return m >= survey->listed && m - survey->listed < survey->arguments;
}

bool survey_votes(const struct survey *survey, unsigned m)
{
    return m < survey->masters && survey->of[m].answered && survey->of[m].look.ready &&
           survey->of[m].set == survey->newest.set && survey->newest.version != 0 &&
           !config_is_closed(&survey->newest);
}

unsigned survey_count(const struct survey *survey, quorum_mask list)
{
    unsigned votes = 0;

    for (unsigned i = 0; i < survey->newest.members_len; i++)
        votes += (list & mask_of(i)) != 0 &&
                 survey_votes(survey, survey_find(survey, &survey->newest.members[i]));
    return votes;
}

bool survey_has_quorum(const struct survey *survey)
{
    const quorum_mask lists[] = {survey->newest.from, survey->newest.to};

    for (unsigned i = 0; i < 2; i++)
        if (2 * survey_count(survey, lists[i]) <= mask_count(lists[i]))
            return false;
    return true;
}

bool survey_has_forgotten(const struct survey *survey)
{
    const struct config *newest = &survey->newest;
    const struct members lists = {newest->from, newest->to};
    quorum_mask remember = 0, absent = 0;

    for (unsigned i = 0; i < newest->members_len; i++) {
        unsigned m = survey_find(survey, &newest->members[i]);

        if (m == survey->masters || !survey->of[m].answered)
            absent |= mask_of(i);
        else if (survey->of[m].look.ready)
            remember |= mask_of(i);
    }
    return recall_is_forgotten(newest->version, &lists, remember, absent);
}

/* Take the newest configuration of this set. */
static void take_newest(struct survey *survey, uint64_t set)
{
    survey->newest.version = 0;
    for (unsigned m = 0; m < survey->masters; m++)
        if (survey->of[m].answered && survey->of[m].set == set &&
            survey->of[m].version > survey->newest.version)
            survey->newest = survey->of[m].config;
}

static void refuse_two(struct survey *survey, const struct config *one, const struct config *other)
{
    char first[REASON_TEXT_MAX / 2], second[REASON_TEXT_MAX / 2];

    wish_print(one, one->to, first, sizeof first);
    wish_print(other, other->to, second, sizeof second);
    (void)snprintf(survey->why, sizeof survey->why,
                   "the list has masters of two sets, of %s and of %s: give the masters of one set",
                   first, second);
}

void survey_choose_set(struct survey *survey)
{
    struct config chosen = {.version = 0};
    bool has_quorum = false, is_clear = true;

    for (unsigned m = 0; m < survey->masters; m++) {
        bool has_one;

        if (!survey->of[m].answered || survey->of[m].set == 0 || survey_is_argument(survey, m) ||
            (chosen.version != 0 && survey->of[m].set == chosen.set))
            continue;
        take_newest(survey, survey->of[m].set);
        has_one = survey_has_quorum(survey);
        if (chosen.version != 0 && has_one == has_quorum) {
            is_clear = false;
            refuse_two(survey, &chosen, &survey->newest);
        }
        if (chosen.version == 0 || (has_one && !has_quorum)) {
            is_clear = is_clear || has_one;
            chosen = survey->newest;
            has_quorum = has_one;
        }
    }
    if (is_clear)
        survey->why[0] = '\0';
    survey->newest = is_clear ? chosen : (struct config){.version = 0};
}
