/*
 * set_refusal.c - says why a change of the set is refused.
 */
#include "redlock/cli/set/set_refusal.h"

#include <stdio.h>
#include <string.h>

#include "redlock/cli/set/set_report.h"

static bool is_other_database(const struct survey *found, unsigned m, unsigned twin)
{
    return inspect_master(found->rl, m).uri->db != inspect_master(found->rl, twin).uri->db;
}

/* Another database has other data, so a name behind its place would not help. */
static void say_two_names(const struct survey *found, unsigned m)
{
    const struct survey_master *master = &found->of[m];
    unsigned twin = survey_twin(found, m);
    const struct config_member *member = survey_member_of(found, twin);
    const char *place = master->member.place;
    const struct remark why = survey_why(found, m);

    if (is_other_database(found, m, twin)) {
        member = member != NULL ? member : survey_member_of(found, m);
        cli_say(MSG_SAME_SERVER, "%s %s, in another database, and a server has one vote: %s%s",
                place, why.text,
                member != NULL ? "write it as the set does, as " : "give only one of them",
                member != NULL ? member->name : "");
        return;
    }
    cli_say(MSG_SAME_SERVER,
            "%s %s: a server has one vote: write it as the set does, or, if it must be reached "
            "there, as %s#%s",
            place, why.text, place, member != NULL ? member->name : "NAME");
}

int set_refusal_two_names(const struct survey *found)
{
    for (unsigned m = 0; m < found->masters; m++) {
        if (survey_twin(found, m) == found->masters)
            continue;
        say_two_names(found, m);
        return CLI_CHANGE;
    }
    return CLI_OK;
}

/* A member that joins at another place would have two votes, also if its own place does not answer
 * us. A member that was removed may still have its name, because it did not hear
 * of that. */
static int refuse_second_name(const struct survey *found, unsigned m,
                              const struct config_member *joiner)
{
    const char *own = found->of[m].name;

    if (found->of[m].set != found->newest.set || strcmp(own, joiner->name) == 0 ||
        config_find(&found->newest, own) == found->newest.members_len)
        return CLI_OK;
    cli_say(
        MSG_CANNOT_JOIN,
        "%s cannot join: it says that it is the member %s, and a server has one vote: remove %s "
        "first; or, if its data are a copy, delete them",
        joiner->name, own, own);
    return CLI_CHANGE;
}

/* The master at the same address, in another database: a list cannot have both.  Returns
 * found->masters if there is none. */
static unsigned find_server(const struct survey *found, const struct config_member *joiner)
{
    unsigned m = 0;
    struct uri uri;

    if (uri_parse(joiner->place, strlen(joiner->place), &uri) != REDLOCK_OK)
        return found->masters;
    while (m < found->masters && !uri_same_place(inspect_master(found->rl, m).uri, &uri))
        m++;
    uri_done(&uri);
    return m;
}

/* It answers, and will not be a master unless somebody makes it one. */
static bool is_no_master(enum why why)
{
    return why == WHY_REPLICA || why == WHY_CLUSTER;
}

int set_refusal_joiner(const struct survey *found, const struct config_member *joiner)
{
    unsigned m = survey_find(found, joiner), twin;
    const struct remark why = set_report_why(found, m);

    twin = m == found->masters ? find_server(found, joiner) : found->masters;
    if (twin < found->masters) {
        cli_say(MSG_CANNOT_JOIN,
                "%s cannot join: it is the server of %s, in another database, and a server has one "
                "vote",
                joiner->name, found->of[twin].member.place);
        return CLI_CHANGE;
    }
    if (m == found->masters || !found->of[m].answered) {
        cli_say(MSG_CANNOT_JOIN, "%s cannot join: %s", joiner->name, why.text);
        return m < found->masters && is_no_master(found->of[m].why.why) ? CLI_CHANGE
                                                                        : CLI_UNREACHABLE;
    }
    if (found->of[m].set != 0 && found->of[m].set != found->newest.set) {
        cli_say(MSG_CANNOT_JOIN, "%s cannot join: it %s", joiner->name, why.text);
        return CLI_CHANGE;
    }
    twin = survey_copy(found, m);
    if (twin < found->masters) {
        cli_say(MSG_CANNOT_JOIN,
                "%s cannot join: it has the same epoch as %s, so its data are a copy, and must be "
                "deleted",
                joiner->name, found->of[twin].member.place);
        return CLI_CHANGE;
    }
    return refuse_second_name(found, m, joiner);
}

int set_refusal_login(const struct survey *found, const struct config *list)
{
    int code = CLI_OK;

    for (unsigned i = 0; i < list->members_len; i++) {
        const char *name = list->members[i].name;
        unsigned m = survey_find(found, &list->members[i]);

        if (config_find(&found->newest, name) == found->newest.members_len || m == found->masters ||
            found->of[m].answered || reason_message(&found->of[m].why) != MSG_WRONG_PASSWORD)
            continue;
        cli_say(reason_message(&found->of[m].why), "%s: %s", name, survey_why(found, m).text);
        code = CLI_CHANGE;
    }
    if (code != CLI_OK)
        cli_say(MSG_WRONG_PASSWORD,
                "nothing was changed: the list has no valid password for this member, and clients "
                "with this list have no vote of it: first correct the list, and restart them");
    return code;
}

static void say_who_is_down(const struct survey *found, const struct config *list)
{
    for (unsigned i = 0; i < list->members_len; i++) {
        const struct remark why = set_report_why(found, survey_find(found, &list->members[i]));

        if (why.message != MSG_NONE)
            cli_say(why.message, "%s: %s", list->members[i].name, why.text);
    }
}

int set_refusal_too_few(const struct survey *found)
{
    if (survey_has_quorum(found))
        return CLI_OK;
    say_who_is_down(found, &found->newest);
    cli_say(MSG_NO_MAJORITY,
            "fewer than a majority of the members answers and may vote, so nothing was changed");
    return CLI_UNREACHABLE;
}

/* Members that answer.  A joiner need not vote yet. */
static unsigned count_alive(const struct survey *found, const struct config *list)
{
    unsigned alive = 0;

    for (unsigned i = 0; i < list->members_len; i++) {
        const struct config_member *member = &list->members[i];
        unsigned m = survey_find(found, member);
        bool is_old = config_find(&found->newest, member->name) < found->newest.members_len;

        alive += is_old ? survey_votes(found, m) : m < found->masters && found->of[m].answered;
    }
    return alive;
}

int set_refusal_list(const struct survey *found, const struct wish *wish, const struct config *list)
{
    unsigned alive = count_alive(found, list);
    int code = CLI_OK;

    for (unsigned i = 0; i < wish->joiners_len; i++) {
        int other = set_refusal_joiner(found, &wish->joiners[i]);

        code = code == CLI_OK ? other : code;
    }
    if (code != CLI_OK || 2 * alive > list->members_len)
        return code;
    say_who_is_down(found, list);
    cli_say(MSG_NO_MAJORITY,
            "of the %u masters of the new list, %u would be alive, which is no majority",
            list->members_len, alive);
    return CLI_UNREACHABLE;
}

void set_refusal_hint(const struct survey *found, const struct wish *wish)
{
    for (unsigned i = 0;
         i < wish->leavers_len && wish->joiners_len == 0 && !survey_has_forgotten(found); i++) {
        unsigned at = wish_find(&found->newest, wish->leavers[i]);

        if (at < found->newest.members_len &&
            !survey_votes(found, survey_find(found, &found->newest.members[at])))
            cli_hint(
                "%s does not answer: `redlock members replace %s URI` would put another master "
                "in its place",
                wish->leavers[i], wish->leavers[i]);
    }
}
