/*
 * set.c - makes seats of a list, and judges what masters say of their set.
 */
#include "redlock/masters/set.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "redlock/base/text.h"
#include "redlock/masters/peers.h"
#include "redlock/wire/answer.h"

#define ADVICE "a list must have masters of one set (redlock members, redlock(1) MASTERS)"

/* ---- The list ---- */

/* Hosts are the same in small and capital letters; paths are not. */
static void write_place(const struct uri *uri, char place[CONFIG_PLACE_MAX + 1])
{
    (void)snprintf(place, CONFIG_PLACE_MAX + 1, "%s", uri->name);
    for (char *p = place; *p != '\0' && uri->host != NULL; p++)
        *p = text_lower(*p);
}

enum config_problem set_list(const struct uri *uris, unsigned len, struct config *ret_list,
                             unsigned *ret_at)
{
    enum config_problem problem = CONFIG_OK;
    char place[CONFIG_PLACE_MAX + 1];

    *ret_list = (struct config){.version = 1};
    for (unsigned m = 0; m < len && problem == CONFIG_OK; m++) {
        *ret_at = m;
        write_place(&uris[m], place);
        problem = config_add(ret_list, uris[m].member != NULL ? uris[m].member : "", place);
        if (problem == CONFIG_OK && config_is_long(ret_list))
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
    set->lasts = drift_add(peers->max_ttl_ms * DRIFT_MS,
                           drift_allowance(peers->max_ttl_ms * DRIFT_MS, &peers->drift));
    for (unsigned m = 0; m < len; m++) {
        char place[CONFIG_PLACE_MAX + 1];

        write_place(&uris[m], place);
        seats_list(&set->seats, m, place, uris[m].member != NULL ? uris[m].member : "");
    }
}

void set_print(const struct config *config, char *text, size_t size)
{
    size_t len;

    (void)config_list(config, config->from, false, text,
                      config_is_joint(config) ? size / 2 + 1 : size);
    if (!config_is_joint(config))
        return;
    len = strlen(text);
    (void)snprintf(text + len, size - len, ", in a change to ");
    len = strlen(text);
    (void)config_list(config, config->to, false, text + len, size - len);
}

/* ---- Questions ---- */

bool set_is_known(const struct set *set)
{
    return set->seats.now.version != 0;
}

bool set_is_closed(const struct set *set)
{
    return set_is_known(set) && config_is_closed(&set->seats.now);
}

/* At version 1, a set is finished by a client whose list is the set. */
bool set_wants_founding(const struct set *set)
{
    const struct members list = members_first(set->peers->len);

    return seats_are_new(&set->seats) || (set->seats.now.version == 1 && set->claimed != 0 &&
                                          members_all(&set->seats.members) == members_all(&list));
}

quorum_mask set_uninformed(const struct set *set)
{
    return (set->none | set->behind) & members_all(&set->seats.members) &
           (quorum_mask)~seats_denied(&set->seats);
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

/* The members of the set, or of the list if no set is known. */
static void print_own(const struct set *set, char *list, size_t size)
{
    set_print(set_is_known(set) ? &set->seats.now : &set->list, list, size);
}

static void write_why(struct set *set, unsigned master, enum why why, const char *other,
                      const char *advice)
{
    char list[SET_LIST_MAX];

    print_own(set, list, sizeof list);
    set->why_of = master;
    (void)snprintf(set->why, sizeof set->why, "master %u (%s) %s %s, and %s %s: %s", master + 1,
                   link_name(set->peers->links[master]),
                   why == WHY_CLAIMED ? "is claimed by a list of" : "is a member of the set of",
                   other,
                   set_is_known(set) ? "others are of the set of" : "the masters of this list are",
                   list, advice);
}

void set_refuse(struct set *set, unsigned master, enum why why, const char *other,
                const char *advice, struct reason *ret_why)
{
    char list[SET_SHORT_MAX], short_other[SET_SHORT_MAX];

    write_why(set, master, why, other, advice);
    print_own(set, list, sizeof list);
    (void)snprintf(short_other, sizeof short_other, "%s", other);
    reason_quote(ret_why, why, short_other, list);
}

static bool refuse(struct set *set, unsigned master, const struct config *config,
                   struct reason *ret_why)
{
    char other[SET_LIST_MAX], short_other[SET_SHORT_MAX], list[SET_SHORT_MAX];

    set_print(config, other, sizeof other);
    set->mixed = config->set;
    (void)snprintf(set->mixed_of, sizeof set->mixed_of, "%s", other);
    write_why(set, master, WHY_OTHER_SET, other, ADVICE);
    set_print(config, short_other, sizeof short_other);
    print_own(set, list, sizeof list);
    reason_quote(ret_why, WHY_OTHER_SET, short_other, list);
    return false;
}

/* Keep the reason of the master as that why the client refuses its list. */
static bool give_reason(struct set *set, unsigned master, const struct reason *why)
{
    char text[REASON_TEXT_MAX];

    (void)reason_write(why, env_now(set->peers->env), text, sizeof text);
    set->why_of = master;
    (void)snprintf(set->why, sizeof set->why, "master %u (%s) %s", master + 1,
                   link_name(set->peers->links[master]), text);
    return false;
}

/* It has the same masters, or says nothing of them. */
static bool refuse_id(struct set *set, unsigned master, struct reason *ret_why)
{
    reason_set(ret_why, WHY_OTHER_ID);
    return give_reason(set, master, ret_why);
}

/* It is no member, and never was while this client ran.  The list is not wrong for one that was
 * removed, but such a master is no use. */
static bool refuse_stranger(struct set *set, unsigned master, bool was_removed,
                            struct reason *ret_why)
{
    char members[SET_LIST_MAX];

    if (set_is_closed(set)) {
        reason_set(ret_why, WHY_SET_CLOSED);
        return give_reason(set, master, ret_why);
    }
    set_print(&set->seats.now, members, sizeof members);
    reason_quote(ret_why, was_removed ? WHY_REMOVED : WHY_STRANGER, members, NULL);
    return was_removed ? false : give_reason(set, master, ret_why);
}

/* The list gives it the name of a member, and it does not say that it is this member. */
static bool refuse_name(struct set *set, unsigned master, struct reason *ret_why)
{
    reason_quote(ret_why, WHY_MISNAMED, set_name(set, master), NULL);
    return give_reason(set, master, ret_why);
}

/* The masters of the list that said that they are of this set. */
static quorum_mask find_listed(const struct set *set, uint64_t id)
{
    quorum_mask masters = 0;

    for (unsigned m = 0; m < set->peers->len; m++) {
        const struct seat *seat = &set->seats.seats[m];

        if (seat->used && seat->listed && seat->has_told && seat->set == id)
            masters |= mask_of(m);
    }
    return masters;
}

/* "masters 1, 2 and 4 are of the set of a:1 b:1".  Returns the length, as snprintf(). */
static size_t write_side(quorum_mask masters, const char *of, char *text, size_t size)
{
    unsigned left = mask_count(masters);
    size_t len = (size_t)snprintf(text, size, "master%s", left == 1 ? "" : "s");

    for (unsigned m = 0; masters >> m != 0; m++) {
        if (!(masters & mask_of(m)))
            continue;
        len += (size_t)snprintf(text + len, size - len, "%s%u",
                                left == mask_count(masters) ? " "
                                : left == 1                 ? " and "
                                                            : ", ",
                                m + 1);
        left--;
    }
    return len + (size_t)snprintf(text + len, size - len, "%s of the set of %s",
                                  mask_count(masters) == 1 ? " is" : " are", of);
}

bool set_write_why(const struct set *set, char *text, size_t size)
{
    quorum_mask ours = find_listed(set, set->seats.now.set);
    quorum_mask others = find_listed(set, set->mixed);
    char own[SET_LIST_MAX], sides[2][SET_TEXT_MAX / 2];
    bool is_first;

    (void)snprintf(text, size, "%s", set->why);
    if (set->why[0] == '\0' || !set_is_known(set) || set->mixed == 0 ||
        set->mixed == set->seats.now.set || ours == 0 || others == 0)
        return false;
    print_own(set, own, sizeof own);
    is_first = __builtin_ctz(ours) < __builtin_ctz(others);
    (void)write_side(ours, own, sides[!is_first], sizeof sides[0]);
    (void)write_side(others, set->mixed_of, sides[is_first], sizeof sides[0]);
    (void)snprintf(text, size, "the list mixes two sets: %s, and %s: " ADVICE, sides[0], sides[1]);
    return true;
}

/* ---- What masters say ---- */

void set_on_link(struct set *set, unsigned master)
{
    set->told = mask_without(set->told, master);
    set->none = mask_without(set->none, master);
    set->gave = mask_without(set->gave, master);
    set->claimed = mask_without(set->claimed, master);
    set->behind = mask_without(set->behind, master);
}

/* The refusal dooms the link, and its next attempts may fail for another reason. */
void set_on_fall(struct set *set, unsigned master)
{
    quorum_mask bit = mask_of(master);

    set->wrong = (quorum_mask)((set->wrong & ~bit) | (set->refused_now & bit));
    set->refused_now = mask_without(set->refused_now, master);
}

bool set_is_wrong(const struct set *set, unsigned master)
{
    return ((set->wrong | set->refused_now) & mask_of(master)) != 0;
}

void set_on_left(struct set *set, quorum_mask left)
{
    set->wrong &= (quorum_mask)~left;
    set->refused_now &= (quorum_mask)~left;
    for (unsigned m = 0; left >> m != 0; m++)
        if (left & mask_of(m))
            set_on_link(set, m);
}

/* The members of the set count from now on. */
static void obey(struct set *set, drift_time now)
{
    if (set->judged_until == 0)
        set->judged_until = drift_add(now, set->peers->connect_timeout);
    set->peers->members = set->seats.members;
    set->gave = 0; /* Another version. */
    set->why[0] = '\0';
}

/* The master does not say any more what it was refused for. */
static void forgive(struct set *set, unsigned master)
{
    if (set->why_of == master)
        set->why[0] = '\0';
}

/* A member that is told its set, and then still says that it is in none, is claimed. */
static void on_none(struct set *set, unsigned master)
{
    quorum_mask bit = mask_of(master);

    set->told = mask_without(set->told, master);
    set->others = mask_without(set->others, master);
    set->none |= bit;
    set->claimed = (quorum_mask)((set->claimed & ~bit) | (set->gave & bit));
}

/* A member that was away during a change is told the newest version.  It is told once: a faulty
 * master may go on to say the same. */
static void on_member(struct set *set, unsigned master, const struct seat_look *look, bool ready)
{
    bool was_told = (set->gave & mask_of(master)) != 0;

    set_on_link(set, master);
    set->others = mask_without(set->others, master);
    set->told |= mask_of(master);
    if (ready && !was_told && look->version < set->seats.now.version)
        set->behind |= mask_of(master);
}

/* Count the masters that report the same other set.  If a master reports a third set, count anew.
 */
static void note_other(struct set *set, unsigned master, uint64_t id)
{
    if (set->other_id != id)
        set->others = 0;
    set->other_id = id;
    set->others |= mask_of(master);
}

/* True: another set of the same masters replaces the known one.  It does if no master reports that
 * it is a member of the known set, or if a majority reports that it is a member of the other: one
 * master with old or copied data may have answered first. */
static bool is_replaced(struct set *set, unsigned master, const struct seat_look *look)
{
    if (!set_is_known(set) || look->set == 0 || look->set == set->seats.now.set ||
        look->config == NULL || !seats_same(&set->seats, look->config))
        return false;
    note_other(set, master, look->set);
    return set->told == 0 || members_decide(&set->seats.members, set->others);
}

/* Masters of the set that is replaced must say to which set they belong.  Their links begin anew.
 */
static void relink_told(struct set *set)
{
    for (unsigned m = 0; set->told >> m != 0; m++)
        if (set->told & mask_of(m))
            link_relink_for(set->peers->links[m], WHY_MINORITY);
}

static void take(struct set *set, unsigned master, const struct seat_look *look,
                 struct seats_change *change)
{
    drift_time now = env_now(set->peers->env);
    quorum_mask before = 0;

    if (is_replaced(set, master, look)) {
        before = members_all(&set->seats.members); /* They have not joined. */
        relink_told(set);
        set->told = set->others = 0;
        seats_forget(&set->seats);
    }
    seats_on_look(&set->seats, master, look, now, set->lasts, change);
    change->joined &= (quorum_mask)~before;
    if (change->config)
        obey(set, now);
}

/* The list is wrong as long as one of its masters says so. */
static void judge_list(struct set *set)
{
    quorum_mask wrong = seats_wrong(&set->seats);

    if (wrong == 0)
        set->refused = false;
    else if (set_is_known(set) &&
             (env_now(set->peers->env) < set->judged_until ||
              seats_state(&set->seats, (unsigned)__builtin_ctz(wrong)) == SEAT_OTHER))
        set->refused = true;
}

static bool judge(struct set *set, unsigned master, const struct seat_look *look, bool ready,
                  struct reason *ret_why)
{
    const struct config *now = &set->seats.now;

    if (mask_of(master) & seats_denied(&set->seats))
        return refuse_name(set, master, ret_why);
    switch (seats_state(&set->seats, master)) {
    case SEAT_FREE: /* It is a member under another place, or another master has its number. */
        return true;
    case SEAT_STRANGER:
        return refuse_stranger(set, master, false, ret_why);
    case SEAT_OTHER:
        if (look->config == NULL || seats_same(&set->seats, look->config))
            return refuse_id(set, master, ret_why);
        return refuse(set, master, look->config, ret_why);
    case SEAT_REMOVED:
        if (!set->seats.seats[master].was_member)
            return refuse_stranger(set, master, true, ret_why);
        break;
    case SEAT_UNKNOWN:
    case SEAT_NEW:
    case SEAT_MEMBER:
    case SEAT_ALIAS:
        break;
    }
    if (look->set == 0)
        on_none(set, master);
    else if (look->set == now->set)
        on_member(set, master, look, ready);
    forgive(set, master);
    return true;
}

/* Returns is_good. */
static bool note_refusal(struct set *set, unsigned master, bool is_good)
{
    set->wrong = mask_without(set->wrong, master);
    set->refused_now = mask_without(set->refused_now, master);
    if (!is_good)
        set->refused_now |= mask_of(master);
    return is_good;
}

bool set_on_look(struct set *set, unsigned master, const struct answer_set *answer,
                 struct reason *ret_why, struct seats_change *ret_change)
{
    struct config config = {.set = answer->set, .version = answer->version};
    struct seat_look look = {.set = answer->set, .version = answer->version};
    char name[CONFIG_PLACE_MAX + 1];
    bool is_good;

    *ret_change = (struct seats_change){.config = false};
    if (set->obeys_none)
        return true;
    if (answer->config != NULL && !config_parse(answer->config, answer->config_len, &config)) {
        answer_config_fault(ret_why);
        ret_why->at = AT_MARKER;
        return false;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)answer->name_len,
                   answer->name != NULL ? answer->name : "");
    look.name = name;
    look.config = answer->config != NULL ? &config : NULL;
    if (!set_is_known(set) && answer->set != 0 && look.config == NULL)
        return note_refusal(set, master, refuse_id(set, master, ret_why));
    take(set, master, &look, ret_change);
    is_good = judge(set, master, &look, answer->state != NULL, ret_why);
    judge_list(set);
    return note_refusal(set, master, is_good);
}

void set_on_founding(struct set *set, uint64_t number, struct seats_change *ret_change)
{
    drift_time now = env_now(set->peers->env);
    struct config config = set->list;

    *ret_change = (struct seats_change){.config = false};
    if (set_is_known(set))
        return;
    config.set = number;
    seats_take(&set->seats, &config, now, set->lasts, ret_change);
    obey(set, now);
}
