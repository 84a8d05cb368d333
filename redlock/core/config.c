/*
 * config.c - reads, writes and compares configurations.
 *
 * Texts come from masters, so they may be hostile.  A text is accepted only if it is the one text
 * of its configuration: config_parse() prints what it read, and compares.
 */
#include "redlock/core/config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define ALNUM "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define NAME_CHARS ALNUM "._:[]-"
#define PLACE_CHARS ALNUM "/-_.~+=:%[]?"

static bool is_word(const char *text, size_t len, const char *chars, size_t max)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0' || strchr(chars, text[i]) == NULL)
            return false;
    return len >= 1 && len <= max;
}

/* A name is NAME, or the place itself. */
static bool is_name(const struct config_member *member)
{
    return strcmp(member->name, member->place) == 0 ||
           is_word(member->name, strlen(member->name), NAME_CHARS, CONFIG_NAME_MAX);
}

/* ---- Members ---- */

unsigned config_find(const struct config *config, const char *name)
{
    unsigned i = 0;

    while (i < config->members_len && strcmp(config->members[i].name, name) != 0)
        i++;
    return i;
}

static unsigned find_place(const struct config *config, const char *place)
{
    unsigned i = 0;

    while (i < config->members_len && strcmp(config->members[i].place, place) != 0)
        i++;
    return i;
}

/* The mask without the bit of a member, and those above it moved down; or the reverse. */
static quorum_mask close_gap(quorum_mask mask, unsigned at)
{
    unsigned below = (1u << at) - 1;

    return (quorum_mask)((mask & below) | (mask >> 1 & ~below));
}

static quorum_mask open_gap(quorum_mask mask, unsigned at)
{
    unsigned below = (1u << at) - 1;

    return (quorum_mask)((mask & below) | (mask & ~below) << 1);
}

/* Put a member where its name belongs, into no list yet.  *ret_at: where it is. */
static enum config_problem put(struct config *config, const struct config_member *member,
                               unsigned *ret_at)
{
    unsigned at = config_find(config, member->name), there = find_place(config, member->place);

    if (at < config->members_len && at != there)
        return CONFIG_OTHER_PLACE;
    if (there < config->members_len && at != there)
        return CONFIG_OTHER_NAME;
    if (at < config->members_len) {
        *ret_at = at;
        return CONFIG_ALREADY;
    }
    if (config->members_len == QUORUM_MASTERS_MAX)
        return CONFIG_MANY;
    for (at = 0; at < config->members_len; at++)
        if (strcmp(config->members[at].name, member->name) > 0)
            break;
    memmove(&config->members[at + 1], &config->members[at],
            (config->members_len - at) * sizeof config->members[0]);
    config->members[at] = *member;
    config->members_len++;
    config->from = open_gap(config->from, at);
    config->to = open_gap(config->to, at);
    *ret_at = at;
    return CONFIG_OK;
}

static void drop(struct config *config, unsigned at)
{
    config->members_len--;
    memmove(&config->members[at], &config->members[at + 1],
            (config->members_len - at) * sizeof config->members[0]);
    memset(&config->members[config->members_len], 0, sizeof config->members[0]);
    config->from = close_gap(config->from, at);
    config->to = close_gap(config->to, at);
}

/* ---- Texts ---- */

/* Parse PLACE, or PLACE#NAME. */
static bool parse_member(const char *text, size_t len, struct config_member *ret_member)
{
    const char *hash = memchr(text, '#', len);
    size_t place_len = hash != NULL ? (size_t)(hash - text) : len;
    const char *name = hash != NULL ? hash + 1 : text;
    size_t name_len = hash != NULL ? len - place_len - 1 : len;

    if (!is_word(text, place_len, PLACE_CHARS, CONFIG_PLACE_MAX))
        return false;
    if (hash != NULL && !is_word(name, name_len, NAME_CHARS, CONFIG_NAME_MAX))
        return false;
    memset(ret_member, 0, sizeof *ret_member);
    memcpy(ret_member->place, text, place_len);
    memcpy(ret_member->name, name, name_len);
    return true;
}

bool config_parse(const char *text, size_t text_len, struct config *ret_config)
{
    struct config config = {.set = ret_config->set, .version = ret_config->version};
    char again[CONFIG_TEXT_MAX + 1];
    bool is_second = false;

    if (text_len > CONFIG_TEXT_MAX)
        return false;
    for (size_t at = 0, len; at < text_len; at += len + 1) {
        const char *space = memchr(text + at, ' ', text_len - at);
        struct config_member member;
        unsigned number;

        len = space != NULL ? (size_t)(space - text) - at : text_len - at;
        if (len == 1 && text[at] == '>') {
            if (is_second)
                return false;
            is_second = true;
            continue;
        }
        if (!parse_member(text + at, len, &member) ||
            put(&config, &member, &number) > CONFIG_ALREADY)
            return false;
        if (is_second)
            config.to |= mask_of(number);
        else
            config.from |= mask_of(number);
    }
    if (!is_second)
        config.to = config.from;
    else if (config.from == config.to || config.from == 0 || config.to == 0)
        return false;
    if (config_print(&config, again) != text_len || memcmp(again, text, text_len) != 0)
        return false;
    *ret_config = config;
    return true;
}

static size_t member_len(const struct config_member *member)
{
    size_t len = strlen(member->place);

    return strcmp(member->name, member->place) == 0 ? len : len + 1 + strlen(member->name);
}

/* The length of a list, with a space behind each member. */
static size_t list_len(const struct config *config, quorum_mask list)
{
    size_t len = 0;

    for (unsigned i = 0; i < config->members_len; i++)
        if (list & mask_of(i))
            len += member_len(&config->members[i]) + 1;
    return len;
}

static char *put_text(char *p, const char *text)
{
    size_t len = strlen(text);

    memcpy(p, text, len);
    return p + len;
}

static char *print_list(const struct config *config, quorum_mask list, char *p)
{
    for (unsigned i = 0; i < config->members_len; i++) {
        const struct config_member *member = &config->members[i];

        if (!(list & mask_of(i)))
            continue;
        p = put_text(p, member->place);
        if (strcmp(member->name, member->place) != 0) {
            *p++ = '#';
            p = put_text(p, member->name);
        }
        *p++ = ' ';
    }
    return p;
}

static size_t text_len_of(const struct config *config)
{
    size_t len = list_len(config, config->from);

    if (config_is_joint(config))
        len += 2 + list_len(config, config->to);
    return len > 0 ? len - 1 : 0;
}

size_t config_print(const struct config *config, char ret_text[CONFIG_TEXT_MAX + 1])
{
    size_t len = text_len_of(config);
    char text[CONFIG_TEXT_MAX + 2], *p = text;

    assert(len <= CONFIG_TEXT_MAX);
    p = print_list(config, config->from, p);
    if (config_is_joint(config)) {
        p = put_text(p, "> ");
        p = print_list(config, config->to, p);
    }
    memcpy(ret_text, text, len);
    ret_text[len] = '\0';
    return len;
}

#define MORE_LEN (sizeof " and 15 more" - 1)

/* As snprintf(): returns the length that it needs. */
static size_t write_member(const struct config_member *member, bool has_places, const char *before,
                           char *text, size_t size)
{
    bool is_named = strcmp(member->name, member->place) != 0;

    if (!has_places)
        return (size_t)snprintf(text, size, "%s%s", before, member->name);
    return (size_t)snprintf(text, size, "%s%s%s%s", before, member->place, is_named ? "#" : "",
                            is_named ? member->name : "");
}

size_t config_list(const struct config *config, quorum_mask list, bool has_places, char *text,
                   size_t size)
{
    unsigned left = mask_count(list);
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < config->members_len; i++) {
        size_t reserve = left > 1 ? MORE_LEN : 0, need;
        size_t room = size - len > reserve ? size - len - reserve : 0;

        if (!(list & mask_of(i)))
            continue;
        need = write_member(&config->members[i], has_places, len > 0 ? " " : "", text + len, room);
        if (need >= room) {
            len += (size_t)snprintf(text + len, size - len, len > 0 ? " and %u more" : "%u members",
                                    left);
            return len < size ? len : size - 1;
        }
        len += need;
        left--;
    }
    return len;
}

/* ---- Comparing ---- */

/* Whether each member of one list is in the other. */
static bool has_all(const struct config *a, quorum_mask list, const struct config *b,
                    quorum_mask other)
{
    for (unsigned i = 0; i < a->members_len; i++) {
        unsigned j = config_find(b, a->members[i].name);

        if (!(list & mask_of(i)))
            continue;
        if (j == b->members_len || !(other & mask_of(j)) ||
            strcmp(a->members[i].place, b->members[j].place) != 0)
            return false;
    }
    return true;
}

static bool same_list(const struct config *a, quorum_mask list, const struct config *b,
                      quorum_mask other)
{
    return mask_count(list) == mask_count(other) && has_all(a, list, b, other);
}

bool config_same_lists(const struct config *a, const struct config *b)
{
    return same_list(a, a->from, b, b->from) && same_list(a, a->to, b, b->to);
}

/* ---- Wishes ---- */

enum config_problem config_add(struct config *list, const char *name, const char *place)
{
    struct config_member member = {.name = ""};
    enum config_problem problem;
    unsigned at;

    assert(!config_is_joint(list));
    if (!is_word(place, strlen(place), PLACE_CHARS, CONFIG_PLACE_MAX))
        return CONFIG_BAD_PLACE;
    memcpy(member.place, place, strlen(place));
    if (name[0] == '\0')
        name = place;
    if (strlen(name) > CONFIG_PLACE_MAX)
        return CONFIG_BAD_NAME;
    memcpy(member.name, name, strlen(name));
    if (!is_name(&member))
        return CONFIG_BAD_NAME;
    problem = put(list, &member, &at);
    if (problem == CONFIG_OK)
        list->from = list->to |= mask_of(at);
    return problem;
}

enum config_problem config_remove(struct config *list, const char *name)
{
    unsigned at = config_find(list, name);

    assert(!config_is_joint(list));
    if (at == list->members_len)
        return CONFIG_UNKNOWN;
    drop(list, at);
    return CONFIG_OK;
}

bool config_is_long(const struct config *list)
{
    return text_len_of(list) > CONFIG_LIST_MAX;
}

/* Take the members of wish into the joint configuration, as its second list. */
static enum config_problem join(const struct config *now, const struct config *wish,
                                struct config *joint, const char **ret_name)
{
    *joint = *now;
    joint->version = now->version + 1;
    joint->to = 0;
    for (unsigned i = 0; i < wish->members_len; i++) {
        unsigned at;
        enum config_problem problem = put(joint, &wish->members[i], &at);

        *ret_name = wish->members[i].name;
        if (problem > CONFIG_ALREADY)
            return problem;
        joint->to |= mask_of(at);
    }
    *ret_name = "";
    return config_is_long(wish) || text_len_of(joint) > CONFIG_TEXT_MAX ? CONFIG_LONG : CONFIG_OK;
}

enum config_problem config_check(const struct config *now, const struct config *wish,
                                 const char **ret_name)
{
    struct config joint;
    enum config_problem problem = join(now, wish, &joint, ret_name);
    unsigned len = mask_count(wish->to);

    assert(!config_is_joint(now) && !config_is_joint(wish));
    if (problem != CONFIG_OK)
        return problem;
    if (config_same_lists(now, wish))
        return CONFIG_NOTHING;
    if (len < 2)
        return CONFIG_ONE;
    return len % 2 == 0 ? CONFIG_EVEN : CONFIG_OK;
}

void config_join(const struct config *now, const struct config *wish, struct config *ret_joint)
{
    const char *name;
    enum config_problem problem = join(now, wish, ret_joint, &name);

    assert(problem == CONFIG_OK && config_is_joint(ret_joint));
    (void)problem;
}

static void keep_list(const struct config *joint, quorum_mask list, struct config *ret_simple)
{
    *ret_simple = *joint;
    ret_simple->version++;
    ret_simple->from = ret_simple->to = list;
    for (unsigned i = joint->members_len; i-- > 0;)
        if (!(list & mask_of(i)))
            drop(ret_simple, i);
}

void config_finish(const struct config *joint, struct config *ret_simple)
{
    keep_list(joint, joint->to, ret_simple);
}

void config_give_up(const struct config *joint, struct config *ret_simple)
{
    keep_list(joint, joint->from, ret_simple);
}

const char *config_problem_text(enum config_problem problem)
{
    static const char *const texts[CONFIG_PROBLEMS_LEN] = {
        [CONFIG_OK] = "nothing is wrong",
        [CONFIG_BAD_NAME] = "a name has 1 to 64 letters, digits, '.', '_', ':', '[', ']' and '-'",
        [CONFIG_BAD_PLACE] = "this is not the place of a master",
        [CONFIG_UNKNOWN] = "no member has this name",
        [CONFIG_ALREADY] = "it is a member already",
        [CONFIG_OTHER_PLACE] = "a member with this name has another place",
        [CONFIG_OTHER_NAME] = "a member at this place has another name",
        [CONFIG_MANY] = "the old and the new list have more than 15 members together",
        [CONFIG_LONG] =
            "the names and places of a list are too long: 1998 bytes at most, with spaces",
        [CONFIG_NOTHING] = "the set has these members already",
        [CONFIG_ONE] = "a set of one master cannot be repaired if that master loses its data",
        [CONFIG_EVEN] = "an even number of masters tolerates no more failures than one master less",
    };

    assert(problem < CONFIG_PROBLEMS_LEN);
    return texts[problem];
}
