/*
 * wish.c - adds and removes members of a list.
 */
#include "redlock/cli/set/wish.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define LIST_MAX 1000 /* Of a list in a message.  Chosen. */

void wish_print(const struct config *config, quorum_mask list, char *text, size_t size)
{
    (void)config_list(config, list, true, text, size);
}

unsigned wish_find(const struct config *config, const char *text)
{
    unsigned at = config_find(config, text), there = 0;

    if (at < config->members_len)
        return at;
    while (there < config->members_len && strcmp(config->members[there].place, text) != 0)
        there++;
    return there;
}

static bool refuse_unknown(const char *name, const struct config *now, char *why, size_t why_size)
{
    char members[LIST_MAX];

    wish_print(now, now->from, members, sizeof members);
    (void)snprintf(why, why_size, "no member is called %s; the members are %s", name, members);
    return false;
}

static bool refuse(const char *name, enum config_problem problem, char *why, size_t why_size)
{
    (void)snprintf(why, why_size, "%s%s%s%s", name, name[0] != '\0' ? ": " : "",
                   config_problem_text(problem),
                   problem == CONFIG_EVEN ? ": --even allows it" : "");
    return false;
}

/* True: this joiner was named before. */
static bool is_again(const struct wish *wish, unsigned joiner)
{
    const struct config_member *one = &wish->joiners[joiner];

    for (unsigned i = 0; i < joiner; i++)
        if (strcmp(wish->joiners[i].name, one->name) == 0 &&
            strcmp(wish->joiners[i].place, one->place) == 0)
            return true;
    return false;
}

bool wish_make(const struct wish *wish, const struct config *now, struct config *ret_list,
               char *why, size_t why_size)
{
    struct config list = *now;
    const char *name = "";
    enum config_problem problem;

    assert(!config_is_joint(now));
    for (unsigned i = 0; i < wish->leavers_len; i++) {
        unsigned at = wish_find(&list, wish->leavers[i]);

        if (at == list.members_len)
            return refuse_unknown(wish->leavers[i], now, why, why_size);
        problem = config_remove(&list, list.members[at].name);
        assert(problem == CONFIG_OK);
    }
    for (unsigned i = 0; i < wish->joiners_len; i++) {
        const struct config_member *joiner = &wish->joiners[i];

        /* In the answer of look.lua this name means that there is none. */
        problem = strcmp(joiner->name, "-") == 0 ? CONFIG_BAD_NAME
                                                 : config_add(&list, joiner->name, joiner->place);
        if (problem == CONFIG_ALREADY && is_again(wish, i)) {
            (void)snprintf(why, why_size, "%s is named twice", joiner->name);
            return false;
        }
        if (problem != CONFIG_OK)
            return refuse(joiner->name, problem, why, why_size);
    }
    problem = config_check(now, &list, &name);
    if (problem != CONFIG_OK && !(problem == CONFIG_EVEN && wish->allows_even))
        return refuse(name, problem, why, why_size);
    *ret_list = list;
    return true;
}

bool wish_is_met(const struct wish *wish, const struct config *now)
{
    for (unsigned i = 0; i < wish->leavers_len; i++)
        if (wish_find(now, wish->leavers[i]) < now->members_len)
            return false;
    for (unsigned i = 0; i < wish->joiners_len; i++) {
        unsigned at = config_find(now, wish->joiners[i].name);

        if (at == now->members_len || strcmp(now->members[at].place, wish->joiners[i].place) != 0)
            return false;
    }
    return true;
}
