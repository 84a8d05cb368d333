/*
 * roster.c - numbers masters, by place and name.
 */
#include "redlock/core/roster.h"

#include <assert.h>
#include <string.h>

/* The number of a master.  ROSTER_MAX: there is no room. */
static unsigned find_or_add(struct roster *roster, const struct config_member *member, bool unnamed)
{
    for (unsigned i = 0; i < roster->len; i++) {
        struct config_member *known = &roster->masters[i].member;

        if (strcmp(known->place, member->place) != 0)
            continue;
        if (unnamed || strcmp(known->name, member->name) == 0)
            return i;
        if (roster->masters[i].unnamed) {
            *known = *member;
            roster->masters[i].unnamed = false;
            return i;
        }
    }
    if (roster->len == ROSTER_MAX)
        return ROSTER_MAX;
    roster->masters[roster->len].member = *member;
    roster->masters[roster->len].unnamed = unnamed;
    return roster->len++;
}

bool roster_add(struct roster *roster, const char *place)
{
    struct config_member member = {.name = ""};

    assert(strlen(place) <= CONFIG_PLACE_MAX);
    memcpy(member.place, place, strlen(place));
    memcpy(member.name, place, strlen(place));
    return find_or_add(roster, &member, true) < ROSTER_MAX;
}

bool roster_read(struct roster *roster, const struct config *config, struct roster_lists *ret_lists)
{
    struct roster_lists lists = {.version = config->version};

    for (unsigned i = 0; i < config->members_len; i++) {
        unsigned master = find_or_add(roster, &config->members[i], false);

        if (master == ROSTER_MAX)
            return false;
        lists.from |= config->from & mask_of(i) ? roster_bit(master) : 0;
        lists.to |= config->to & mask_of(i) ? roster_bit(master) : 0;
    }
    *ret_lists = lists;
    return true;
}

static void make_simple(const struct roster *roster, roster_mask list, struct config *ret_config)
{
    *ret_config = (struct config){.version = 0};
    for (unsigned i = 0; i < roster->len; i++) {
        const struct config_member *member = &roster->masters[i].member;

        if (list & roster_bit(i)) {
            enum config_problem problem = config_add(ret_config, member->name, member->place);

            assert(problem == CONFIG_OK);
            (void)problem;
        }
    }
}

void roster_write(const struct roster *roster, const struct roster_lists *lists, uint64_t set,
                  struct config *ret_config)
{
    struct config from, to;

    make_simple(roster, lists->from, &from);
    if (roster_is_joint(lists)) {
        make_simple(roster, lists->to, &to);
        config_join(&from, &to, ret_config);
    } else {
        *ret_config = from;
    }
    ret_config->set = set;
    ret_config->version = lists->version;
}
