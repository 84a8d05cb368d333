/*
 * set_report.c - one line for each member, and for each other master of the list.
 */
#include "redlock/cli/set/set_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redlock/cli/common/remark.h"
#include "redlock/cli/set/marker.h"
#include "redlock/cli/set/wish.h"

enum { LIST_MAX = CONFIG_TEXT_MAX + 1 };

static const struct survey_master none = {.answered = false};

/* The answer of a member. */
static const struct survey_master *answer_of(const struct survey *survey, unsigned member)
{
    unsigned m = survey_find(survey, &survey->newest.members[member]);

    return m < survey->masters ? &survey->of[m] : &none;
}

static uint32_t longest_lease_ms(const struct survey *survey)
{
    uint32_t longest = 0;

    for (unsigned m = 0; m < survey->masters; m++)
        if (survey->of[m].answered && survey->of[m].look.max_ttl_ms > longest)
            longest = survey->of[m].look.max_ttl_ms;
    return longest;
}

/* As `redlock status`: if the witnesses do not say when the master may vote, use the time by its
 * own clock, which counts only if a client has noticed the loss. */
static struct remark say_warming(const struct survey *survey, unsigned m)
{
    const struct survey_master *master = &survey->of[m];
    drift_span whole = inspect_quarantine(survey->rl, longest_lease_ms(survey));
    drift_span left = master->is_witnessed ? master->left : marker_left(whole, master->age_ms);
    struct remark remark = {.message = MSG_WARMING};

    (void)snprintf(remark.text, sizeof remark.text, "warms up: it may vote in %.1f s%s",
                   (double)left / (double)DRIFT_S,
                   master->is_witnessed ? "" : ", if a client has noticed it");
    return remark;
}

struct remark set_report_why(const struct survey *survey, unsigned m)
{
    const struct survey_master *master = &survey->of[m];
    struct remark remark = {.message = MSG_WRONG_SET};
    char list[REASON_TEXT_MAX / 2];
    struct reason why;

    if (m == survey->masters)
        return (struct remark){MSG_MASTER_ERROR, "is not in the list"};
    if (!master->answered)
        return survey_why(survey, m);
    if (master->set != 0 && master->set != survey->newest.set) {
        wish_print(&master->config, master->config.to, list, sizeof list);
        (void)snprintf(remark.text, sizeof remark.text, "is a member of another set: %s", list);
        return remark;
    }
    reason_set(&why, WHY_NONE);
    if (survey->newest.version != 0 && config_is_closed(&survey->newest))
        why.why = WHY_SET_CLOSED;
    else if (!master->look.ready && survey_has_forgotten(survey) &&
             survey_member_of(survey, m) != NULL)
        why.why = WHY_FORGOTTEN;
    else if (!master->look.ready)
        return say_warming(survey, m);
    else if (master->set == 0)
        return (struct remark){MSG_NO_SET, "says that it is in no set"};
    return remark_of("", &why);
}

/* Two members with one epoch have no vote, see guard.h. */
static bool is_copy(const struct survey *survey, unsigned m, struct remark *ret_why)
{
    unsigned other = survey_copy(survey, m);
    struct reason why;

    if (other == survey->masters || survey_member_of(survey, other) == NULL)
        return false;
    reason_set(&why, WHY_COPY);
    why.other = (uint8_t)other;
    *ret_why = remark_of("", &why);
    return true;
}

/* Why a member gives no vote now.  A change of the set asks for less: set_report_why(). */
static struct remark why_no_vote(const struct survey *survey, unsigned m)
{
    struct remark why = set_report_why(survey, m);

    if (why.message != MSG_NONE || m == survey->masters || is_copy(survey, m, &why))
        return why;
    return survey->of[m].no_vote;
}

static bool grants(const struct survey *survey, quorum_mask list)
{
    unsigned granting = 0;

    for (unsigned i = 0; i < survey->newest.members_len; i++) {
        unsigned m = survey_find(survey, &survey->newest.members[i]);

        granting += (list & mask_of(i)) != 0 && why_no_vote(survey, m).message == MSG_NONE;
    }
    return 2 * granting > mask_count(list);
}

bool set_report_has_majority(const struct survey *survey)
{
    return grants(survey, survey->newest.from) && grants(survey, survey->newest.to);
}

static bool has_version(const struct survey *survey, unsigned m, uint64_t version)
{
    return survey->of[m].answered && survey->of[m].set == survey->newest.set &&
           survey->of[m].version == version;
}

/* True: a majority of the list that this master stores may vote, and stores the same version. */
static bool is_kept(const struct survey *survey, unsigned master)
{
    const struct config *config = &survey->of[master].config;
    unsigned kept = 0;

    for (unsigned m = 0; m < survey->masters; m++)
        kept += has_version(survey, m, config->version) && survey->of[m].look.ready;
    return 2 * kept > mask_count(config->from);
}

void set_report_versions(const struct survey *survey)
{
    const struct config *newest = &survey->newest;
    unsigned left = 0, m = 0;

    while (left < survey->masters && !has_version(survey, left, newest->version))
        left++;
    while (m < survey->masters &&
           !(survey->of[m].version + 2 <= newest->version &&
             has_version(survey, m, survey->of[m].version) && is_kept(survey, m)))
        m++;
    if (left == survey->masters || m == survey->masters)
        return;
    cli_say(MSG_VERSIONS,
            "%s has version %" PRIu64 " of the set, but a majority of version %" PRIu64
            ", as %s, may vote: one of both is left over",
            survey->of[left].member.place, newest->version, survey->of[m].version,
            survey->of[m].member.place);
    cli_hint("if the set was founded again, empty the masters of version %" PRIu64
             " (FLUSHALL); if it was rescued, those of version %" PRIu64,
             newest->version, survey->of[m].version);
}

/* ---- Text ---- */

static const char *part_of(const struct config *config, unsigned member)
{
    bool is_old = (config->from & mask_of(member)) != 0;
    bool is_new = (config->to & mask_of(member)) != 0;

    return is_old && is_new ? "" : is_new ? ", joins" : ", leaves";
}

static void print_version(const struct survey *survey, const struct survey_master *master)
{
    uint64_t newest = survey->newest.version;

    if (!master->answered || master->set != survey->newest.set)
        return;
    (void)printf(", has version %" PRIu64, master->version);
    if (master->version < newest)
        (void)printf(" (%" PRIu64 " behind)", newest - master->version);
}

static void print_member(const struct survey *survey, unsigned member)
{
    const struct config *config = &survey->newest;
    const struct survey_master *master = answer_of(survey, member);
    const struct remark why = why_no_vote(survey, survey_find(survey, &config->members[member]));

    (void)printf("%s", config->members[member].name);
    if (strcmp(config->members[member].name, config->members[member].place) != 0)
        (void)printf("  at %s", config->members[member].place);
    (void)printf("  %s%s", why.message != MSG_NONE ? why.text : "votes", part_of(config, member));
    if (why.message != MSG_SET_FORGOTTEN) /* A client has written the version since it was lost. */
        print_version(survey, master);
    (void)printf("\n");
}

static void print_others(const struct survey *survey)
{
    struct remark why;

    for (unsigned m = 0; m < survey->masters; m++) {
        const struct survey_master *master = &survey->of[m];

        if (survey_member_of(survey, m) != NULL)
            continue;
        why = set_report_why(survey, m);
        (void)printf("%s  is no member", inspect_master(survey->rl, m).name);
        if (why.message != MSG_NONE)
            (void)printf(": %s", why.text);
        print_version(survey, master);
        (void)printf("\n");
    }
}

/* The command that began the change, and finishes it. */
static void print_finish(const struct config *config)
{
    quorum_mask joins = (quorum_mask)(config->to & ~config->from);
    quorum_mask leaves = (quorum_mask)(config->from & ~config->to);
    char joiner[LIST_MAX];

    (void)printf("to finish the change: redlock members %s", joins == 0    ? "remove"
                                                             : leaves == 0 ? "add"
                                                                           : "replace");
    for (unsigned i = 0; i < config->members_len; i++)
        if (leaves & mask_of(i))
            (void)printf(" %s", config->members[i].name);
    for (unsigned i = 0; i < config->members_len; i++)
        if (joins & mask_of(i)) {
            wish_print(config, mask_of(i), joiner, sizeof joiner);
            (void)printf(" %s", joiner);
        }
    (void)printf("\n");
}

void set_report_text(const struct survey *survey)
{
    const struct config *config = &survey->newest;
    char from[LIST_MAX], to[LIST_MAX];

    wish_print(config, config->from, from, sizeof from);
    wish_print(config, config->to, to, sizeof to);
    if (config->version == 0)
        (void)printf("no set is known: `redlock init` makes the masters of a list a set\n");
    else
        (void)printf("set %016" PRIx64 ", version %" PRIu64 ": ", config->set, config->version);
    if (config_is_closed(config) && config->version != 0)
        (void)printf("closed, it has no members\n");
    else if (config_is_joint(config))
        (void)printf("changes, from %s to %s\n", from, to);
    else if (config->version != 0)
        (void)printf("%u members\n", config->members_len);
    for (unsigned i = 0; i < config->members_len; i++)
        print_member(survey, i);
    print_others(survey);
    if (survey_has_forgotten(survey))
        (void)printf("no time helps: bring back members that do not answer, or else redlock "
                     "members --i-know-what-is-lost - rescue URI..., see `redlock help "
                     "set-forgotten`\n");
    else if (config->version != 0 && config_is_closed(config))
        (void)printf("a rescue is running, or was interrupted: run the same redlock members rescue "
                     "again, see `redlock help set-closed`\n");
    else if (config_is_joint(config))
        print_finish(config);
}

/* ---- JSON ---- */

static const char *text_of(bool is_true)
{
    return is_true ? "true" : "false";
}

static void print_list(const char *key, const struct config *config, quorum_mask list)
{
    bool is_first = true;

    (void)printf(",\"%s\":[", key);
    for (unsigned i = 0; i < config->members_len; i++) {
        if (!(list & mask_of(i)))
            continue;
        (void)printf("%s", is_first ? "" : ",");
        cli_json_string(stdout, config->members[i].name);
        is_first = false;
    }
    (void)printf("]");
}

static void print_json(const struct survey *survey, const struct config_member *member, unsigned m)
{
    const struct survey_master *master = m < survey->masters ? &survey->of[m] : &none;
    bool is_ours = master->answered && master->set == survey->newest.set && master->set != 0;
    const struct remark why = why_no_vote(survey, m);

    (void)printf("{\"name\":");
    cli_json_string(stdout, member->name);
    cli_json_member("place", member->place);
    (void)printf(",\"answers\":%s,\"votes\":%s", text_of(master->answered),
                 text_of(survey_votes(survey, m) && why.message == MSG_NONE));
    cli_json_member("reason", why.message != MSG_NONE ? why.text : NULL);
    if (is_ours)
        (void)printf(",\"version\":%" PRIu64 "}", master->version);
    else
        (void)printf(",\"version\":null}");
}

void set_report_json(const struct survey *survey)
{
    const struct config *config = &survey->newest;
    bool is_first = true;

    if (config->version == 0)
        (void)printf("{\"set\":null,\"version\":null,\"phase\":null");
    else
        (void)printf("{\"set\":\"%016" PRIx64 "\",\"version\":%" PRIu64 ",\"phase\":\"%s\"",
                     config->set, config->version,
                     config_is_joint(config)    ? "joint"
                     : config_is_closed(config) ? "closed"
                                                : "simple");
    (void)printf(",\"needs_rescue\":%s",
                 text_of(survey_has_forgotten(survey) ||
                         (config->version != 0 && config_is_closed(config))));
    print_list("from", config, config->from);
    print_list("to", config, config->to);
    (void)printf(",\"members\":[");
    for (unsigned i = 0; i < config->members_len; i++) {
        (void)printf("%s", i > 0 ? "," : "");
        print_json(survey, &config->members[i], survey_find(survey, &config->members[i]));
    }
    (void)printf("],\"others\":[");
    for (unsigned m = 0; m < survey->masters; m++) {
        if (survey_member_of(survey, m) != NULL)
            continue;
        (void)printf("%s", is_first ? "" : ",");
        print_json(survey, &survey->of[m].member, m);
        is_first = false;
    }
    (void)printf("]}\n");
}
