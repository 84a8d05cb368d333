/*
 * set.c - makes seats of a list, and judges what masters say of their set.
 */
#include "redlock/masters/set.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "redlock/masters/peers.h"
#include "redlock/wire/answer.h"

#define ADVICE "give all clients the list of one set (redlock status, redlock(1) MASTERS)"

/* ---- The list ---- */

/* Hosts are the same in small and capital letters; paths are not. */
static void write_place(const struct uri *uri, char place[CONFIG_PLACE_MAX + 1])
{
    (void)snprintf(place, CONFIG_PLACE_MAX + 1, "%s", uri->name);
    for (char *p = place; *p != '\0' && uri->host != NULL; p++)
        *p = (char)tolower((unsigned char)*p);
}

enum config_problem set_list(const struct uri *uris, unsigned len, struct config *ret_list,
                             unsigned *ret_at)
{
    enum config_problem problem = CONFIG_OK;
    char place[CONFIG_PLACE_MAX + 1];
    size_t text_len = 0;

    *ret_list = (struct config){.version = 1};
    for (unsigned m = 0; m < len && problem == CONFIG_OK; m++) {
        *ret_at = m;
        write_place(&uris[m], place);
        problem = config_add(ret_list, uris[m].member != NULL ? uris[m].member : "", place);
        text_len += strlen(place) + 1;
        text_len += uris[m].member != NULL ? strlen(uris[m].member) + 1 : 0;
        if (problem == CONFIG_OK && text_len > CONFIG_TEXT_MAX)
            problem = CONFIG_LONG;
    }
    return problem;
}

void set_init(struct set *set, struct peers *peers, const struct uri *uris, unsigned len)
{
    unsigned at;
    enum config_problem problem = set_list(uris, len, &set->list, &at);

    assert(problem == CONFIG_OK);
    (void)problem;
    set->peers = peers;
    for (unsigned m = 0; m < len; m++) {
        char place[CONFIG_PLACE_MAX + 1];

        write_place(&uris[m], place);
        seats_list(&set->seats, m, place, uris[m].member != NULL ? uris[m].member : "");
    }
}

void set_print(const struct config *config, char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < config->members_len && len < size; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%s", i > 0 ? " " : "",
                                config->members[i].name);
}

/* ---- Questions ---- */

bool set_is_known(const struct set *set)
{
    return set->seats.now.version != 0;
}

/* At version 1 a list is its set. */
bool set_wants_founding(const struct set *set)
{
    return seats_are_new(&set->seats) || (set->seats.now.version == 1 && set->claimed != 0);
}

unsigned set_member(const struct set *set, unsigned master)
{
    const struct seat *seat = &set->seats.seats[master];
    unsigned i = 0;

    for (; set_is_known(set) && i < set->seats.now.members_len; i++)
        if (seats_of(&set->seats, i) == master)
            return i;
    return config_find(&set->list, seat->name[0] != '\0' ? seat->name : seat->place);
}

const char *set_name(const struct set *set, unsigned master)
{
    const struct seat *seat = &set->seats.seats[master];

    if (members_all(&set->seats.members) & mask_of(master))
        return set->seats.now.members[set_member(set, master)].name;
    return seat->name[0] != '\0' ? seat->name : seat->place;
}

/* ---- Refusing ---- */

void set_refuse(struct set *set, unsigned master, const char *what, const char *other,
                const char *advice, char *text, size_t size)
{
    char list[SET_TEXT_MAX / 3];

    set_print(&set->list, list, sizeof list);
    set->why_of = master;
    (void)snprintf(set->why, sizeof set->why,
                   "master %u (%s) %s %.*s, and the masters of this list are %s: %s", master + 1,
                   link_name(set->peers->links[master]), what, SET_TEXT_MAX / 3, other, list,
                   advice);
    (void)snprintf(text, size, "%s %s, and not of %s", what, other, list);
}

static bool refuse(struct set *set, unsigned master, const struct config *config, char *text,
                   size_t size)
{
    char other[SET_TEXT_MAX / 3];

    set_print(config, other, sizeof other);
    set_refuse(set, master, "is a member of the set of", other, ADVICE, text, size);
    return false;
}

/* It has the same masters, or says nothing of them. */
static bool refuse_id(struct set *set, unsigned master, char *text, size_t size)
{
    (void)snprintf(text, size,
                   "belongs to another set than the other masters of this list: its data are a "
                   "copy or an old state, and must be emptied (redlock doctor)");
    set->why_of = master;
    (void)snprintf(set->why, sizeof set->why, "master %u (%s) %s", master + 1,
                   link_name(set->peers->links[master]), text);
    return false;
}

/* ---- What masters say ---- */

void set_on_link(struct set *set, unsigned master)
{
    set->told = mask_without(set->told, master);
    set->none = mask_without(set->none, master);
    set->gave = mask_without(set->gave, master);
    set->claimed = mask_without(set->claimed, master);
}

/* The members of the set count from now on. */
static void obey(struct set *set)
{
    set->peers->members = set->seats.members;
    set->why[0] = '\0';
}

/* What the master said before is no more true. */
static void forgive(struct set *set, unsigned master)
{
    if (set->why_of == master)
        set->why[0] = '\0';
}

/* Pass it on, now that the list fits. */
static void take(struct set *set, unsigned master, const struct seat_look *look, bool *ret_changed)
{
    drift_time now = env_now(set->peers->env);
    struct seats_change change = {.config = false};

    seats_on_look(&set->seats, master, look, now, 0, &change);
    assert((change.opened | change.closed) == 0);
    if (!change.config)
        return;
    obey(set);
    *ret_changed = true;
}

/* A member that is told its set, and then still says that it is in none, is claimed. */
static void on_none(struct set *set, unsigned master)
{
    quorum_mask bit = mask_of(master);

    set->told = mask_without(set->told, master);
    set->none |= bit;
    set->claimed = (quorum_mask)((set->claimed & ~bit) | (set->gave & bit));
}

bool set_on_look(struct set *set, unsigned master, const struct answer_set *answer, char *text,
                 size_t size, bool *ret_changed)
{
    struct config config = {.set = answer->set, .version = answer->version};
    struct seat_look look = {.set = answer->set, .version = answer->version, .name = ""};

    *ret_changed = false;
    if (set->obeys_none)
        return true;
    if (answer->set == 0) {
        forgive(set, master);
        take(set, master, &look, ret_changed);
        on_none(set, master);
        return true;
    }
    if (answer->config != NULL) {
        if (!config_parse(answer->config, answer->config_len, &config)) {
            (void)snprintf(text, size, "restart guard: answered with garbage");
            return false;
        }
        if (!seats_fit(&set->seats, &config))
            return refuse(set, master, &config, text, size);
        look.config = &config;
    }
    if (set_is_known(set) && answer->set != set->seats.now.set && set->told == 0 &&
        look.config != NULL)
        seats_forget(&set->seats); /* It has the same masters, so the majorities are the same. */
    if (set_is_known(set) ? answer->set != set->seats.now.set : answer->config == NULL)
        return refuse_id(set, master, text, size);
    set_on_link(set, master);
    forgive(set, master);
    take(set, master, &look, ret_changed);
    set->told |= mask_of(master);
    return true;
}

bool set_on_founding(struct set *set, uint64_t number)
{
    struct seats_change change = {.config = false};
    struct config config = set->list;

    if (set_is_known(set))
        return false;
    config.set = number;
    seats_take(&set->seats, &config, env_now(set->peers->env), 0, &change);
    obey(set);
    return true;
}
