/*
 * rescue.c - judges whether a set may be rescued, and says what a rescue cannot promise.
 */
#include "redlock/cli/set/rescue.h"

#include <string.h>

#include "redlock/cli/set/rescuer.h"
#include "redlock/cli/set/set_refusal.h"
#include "redlock/cli/set/set_report.h"

enum { LIST_MAX = CONFIG_TEXT_MAX + 1 };

/* ---- The lists ---- */

static int make_list(const struct survey *found, const struct wish *wish, struct config *ret_list)
{
    struct config list = {.set = found->newest.set};
    int code = CLI_OK;

    for (unsigned i = 0; i < wish->joiners_len; i++) {
        const struct config_member *joiner = &wish->joiners[i];
        enum config_problem problem = strcmp(joiner->name, "-") == 0
                                          ? CONFIG_BAD_NAME
                                          : config_add(&list, joiner->name, joiner->place);

        if (problem == CONFIG_OK)
            continue;
        cli_say(MSG_CHANGE_REFUSED, "%s: %s", joiner->name, config_problem_text(problem));
        code = CLI_CHANGE;
    }
    if (list.members_len < 2) {
        cli_say(MSG_CHANGE_REFUSED, "%s", config_problem_text(CONFIG_ONE));
        code = CLI_CHANGE;
    } else if (list.members_len % 2 == 0 && !wish->allows_even) {
        cli_say(MSG_CHANGE_REFUSED, "%s: --even allows it", config_problem_text(CONFIG_EVEN));
        code = CLI_CHANGE;
    }
    for (unsigned m = 0; m < found->masters; m++)
        if (found->of[m].answered && found->of[m].set == list.set &&
            found->of[m].version > list.version)
            list.version = found->of[m].version;
    *ret_list = list;
    return code;
}

/* True: the operator said that the member is lost. */
static bool is_lost(const char *lost, const struct config_member *member)
{
    for (const char *p = lost; *p != '\0'; p += *p == ',') {
        size_t len = strcspn(p, ",");

        if ((strlen(member->name) == len && memcmp(p, member->name, len) == 0) ||
            (strlen(member->place) == len && memcmp(p, member->place, len) == 0))
            return true;
        p += len;
    }
    return false;
}

/* ---- What is refused ---- */

/* Two arguments are one master. */
static bool has_a_double(const struct wish *wish)
{
    for (unsigned i = 0; i < wish->joiners_len; i++)
        for (unsigned k = 0; k < i; k++)
            if (strcmp(wish->joiners[i].name, wish->joiners[k].name) == 0 ||
                strcmp(wish->joiners[i].place, wish->joiners[k].place) == 0)
                return true;
    return false;
}

bool cli_rescue_is_met(const struct survey *found, const struct wish *wish)
{
    return !has_a_double(wish) && !config_is_joint(&found->newest) &&
           found->newest.members_len == wish->joiners_len && wish_is_met(wish, &found->newest);
}

/* A name that no member has may be a mistake.  Where a rescue with this list was interrupted, the
 * newest version has no lost members any more. */
static int refuse_unknown(const struct survey *found, const struct wish *wish, const char *lost)
{
    char members[LIST_MAX];

    if (config_is_closed(&found->newest) || cli_rescue_is_met(found, wish))
        return CLI_OK;
    for (const char *p = lost; strcmp(lost, "-") != 0 && *p != '\0'; p += *p == ',') {
        size_t len = strcspn(p, ",");
        char name[CONFIG_PLACE_MAX + 1] = "";
        bool is_known = false;

        if (len <= CONFIG_PLACE_MAX)
            memcpy(name, p, len);
        for (unsigned i = 0; i < found->newest.members_len; i++)
            is_known = is_known || is_lost(name, &found->newest.members[i]);
        p += len;
        if (is_known)
            continue;
        wish_print(&found->newest, found->newest.from, members, sizeof members);
        cli_say(MSG_CHANGE_REFUSED, "no member is called %s; the members are %s", name, members);
        return CLI_CHANGE;
    }
    return CLI_OK;
}

static int refuse_silent(const struct config_member *member)
{
    cli_say(MSG_CHANGE_REFUSED,
            "%s does not answer: bring it back, or name it if it is lost for good", member->name);
    return CLI_CHANGE;
}

/* A closed set does not say who was left.  The list of the operator does: an earlier run may have
 * been ended before all of them were closed, and one that is open votes (R2). */
static int refuse_silent_of_list(const struct survey *found, const char *lost)
{
    for (unsigned m = 0; m < found->listed; m++) {
        const struct config_member *member = &found->of[m].member;

        if (!found->of[m].answered && !is_lost(lost, member))
            return refuse_silent(member);
    }
    return CLI_OK;
}

static bool answers_or_is_lost(const struct survey *found, const struct config_member *member,
                               const char *lost)
{
    unsigned m = survey_find(found, member);

    return is_lost(lost, member) || (m < found->masters && found->of[m].answered);
}

/* A closed master knows the list of the rescue that closed it.  Masters of that list may have its
 * version, and vote.  So this rescue goes on with the same list, or each of them is closed, too,
 * or is lost. */
static int refuse_other_list(const struct survey *found, const struct config *list,
                             const char *lost)
{
    char first[LIST_MAX], second[LIST_MAX];

    for (unsigned m = 0; m < found->masters && config_is_closed(&found->newest); m++) {
        const struct survey_master *master = &found->of[m];
        const struct config *next = &master->next;

        if (!master->answered || master->set != list->set || !config_is_closed(&master->config) ||
            next->version == 0 || config_same_lists(next, list))
            continue;
        for (unsigned i = 0; i < next->members_len; i++) {
            if (answers_or_is_lost(found, &next->members[i], lost))
                continue;
            wish_print(next, next->from, first, sizeof first);
            wish_print(list, list->from, second, sizeof second);
            cli_say(MSG_CHANGE_REFUSED,
                    "a rescue that gives the set the list %s was interrupted: go on with that "
                    "list, not with %s, since %s may store it: if that is impossible, name all "
                    "masters of both lists in --masters, or as lost",
                    first, second, next->members[i].place);
            return CLI_CHANGE;
        }
    }
    return CLI_OK;
}

/* R1 and R2: each member answers, or is lost. */
static int refuse_members(const struct survey *found, const char *lost)
{
    if (config_is_closed(&found->newest))
        return refuse_silent_of_list(found, lost);
    for (unsigned i = 0; i < found->newest.members_len; i++) {
        const struct config_member *member = &found->newest.members[i];
        unsigned m = survey_find(found, member);
        bool answers = m < found->masters && found->of[m].answered;

        if (answers == !is_lost(lost, member))
            continue;
        if (!answers)
            return refuse_silent(member);
        cli_say(MSG_CHANGE_REFUSED,
                "%s answers, so it is not lost: stop it for good, or do not name it", member->name);
        return CLI_CHANGE;
    }
    return CLI_OK;
}

/* Members that lost their data may come back by themselves (core/recall.c). */
static bool may_come_back(const struct survey *found)
{
    const struct config *newest = &found->newest;
    const struct members lists = {newest->from, newest->to};
    quorum_mask votes = 0, warming = 0;

    for (unsigned i = 0; i < newest->members_len; i++) {
        unsigned m = survey_find(found, &newest->members[i]);
        bool answers = m < found->masters && found->of[m].answered;

        votes |= survey_votes(found, m) ? mask_of(i) : 0;
        warming |= answers && !found->of[m].look.ready ? mask_of(i) : 0;
    }
    return members_decide(&lists, votes | warming) && warming != 0 &&
           (members_meet_all(&lists, votes) ||
            (newest->version == 1 && (votes | warming) == (newest->from | newest->to)));
}

static int refuse_healthy(const struct survey *found)
{
    if (survey_has_quorum(found)) {
        cli_say(MSG_CHANGE_REFUSED,
                "a majority of the members answers and may vote: use add, remove or replace");
        return CLI_CHANGE;
    }
    if (!may_come_back(found))
        return CLI_OK;
    cli_say(MSG_CHANGE_REFUSED,
            "a majority of the members may vote soon, after a loss of data: `redlock init` watches "
            "them");
    return CLI_CHANGE;
}

static int refuse(const struct survey *found, const struct wish *wish, const struct config *list,
                  const char *lost)
{
    int code = set_refusal_two_names(found);

    for (unsigned i = 0; i < wish->joiners_len; i++) {
        int other = set_refusal_joiner(found, &wish->joiners[i]);

        code = code == CLI_OK ? other : code;
    }
    if (code == CLI_OK)
        code = refuse_unknown(found, wish, lost);
    if (code == CLI_OK)
        code = refuse_healthy(found);
    if (code == CLI_OK)
        code = refuse_members(found, lost);
    if (code == CLI_OK)
        code = refuse_other_list(found, list, lost);
    return code;
}

/* ---- Telling ---- */

static void tell_limits(const struct survey *found, const struct config *list)
{
    char before[LIST_MAX], after[LIST_MAX];

    wish_print(&found->newest, found->newest.from | found->newest.to, before, sizeof before);
    wish_print(list, list->from, after, sizeof after);
    cli_hint("the set was: %s", before[0] != '\0' ? before : "closed by a rescue");
    cli_hint("it becomes:  %s", after);
    cli_hint("a rescue cannot promise what a set with a majority promises:");
    cli_hint(
        "- locks that the lost masters granted may be held until the longest lease is over, and "
        "are not renewed");
    cli_hint("- fencing tokens may be smaller than some earlier ones, if the clocks are behind");
    cli_hint(
        "- the lost masters must never answer again with their data: a majority of them grants "
        "locks to clients that do not know the new list");
    cli_hint("- members that this list does not name go on as a set of their own");
    cli_hint(
        "if it is interrupted, run the same again, with all members that are left in --masters");
}

int cli_rescue(struct survey *survey, const struct wish *wish, const char *lost, bool is_dry,
               struct config *ret_list)
{
    struct config list;
    int code = make_list(survey, wish, &list);

    if (code == CLI_OK)
        code = refuse(survey, wish, &list, lost);
    if (code != CLI_OK)
        return code;
    tell_limits(survey, &list);
    if (!is_dry)
        code = rescuer_run(survey, &list);
    *ret_list = list;
    return code;
}
