/*
 * config.h - a configuration of the set of masters: its text, and what may follow it; pure.
 *
 * A configuration has a version.  It is *simple*: a list of members.  Or it is *joint*: from one
 * list to another, while the set changes.  Or it is *closed*: it has no members, and nobody gets a
 * lock under it.
 *
 *   LIST            simple                      MEMBER MEMBER ...     with one space between
 *   LIST > LIST     joint                       from > to
 *   (empty)         closed
 *   MEMBER          PLACE, or PLACE#NAME        10.0.0.1:6379   10.0.0.9:6379#berlin
 *
 * PLACE is the name of a struct uri (link/uri.h): a URI without user and password.  NAME tells
 * members apart: a member of both lists has the same name and the same place in both.  A member
 * without NAME has its place as its name.  The members of a list are sorted by name, so that equal
 * lists have equal texts.
 */
#ifndef REDLOCK_CONFIG_H
#define REDLOCK_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/base/mask.h"

#define CONFIG_NAME_MAX 64   /* The longest NAME that is not the place.  Chosen. */
#define CONFIG_PLACE_MAX 353 /* The longest name of a struct uri. */
/* The longest text.  Chosen: 30 members with long host names; a set of longer texts is refused. */
#define CONFIG_TEXT_MAX 4000
/* The longest text of one list, so that any list may follow any other by way of both. */
#define CONFIG_LIST_MAX ((CONFIG_TEXT_MAX - 3) / 2)
/* Versions are exact in a double, which is Lua's number type. */
#define CONFIG_VERSION_MAX ((UINT64_C(1) << 53) - 1)

struct config_member {
    char name[CONFIG_PLACE_MAX + 1];
    char place[CONFIG_PLACE_MAX + 1];
};

struct config {
    uint64_t set;     /* The id of the set of masters. */
    uint64_t version; /* At least 1. */
    unsigned members_len;
    struct config_member members[QUORUM_MASTERS_MAX]; /* The members of both lists, by name. */
    quorum_mask from, to; /* The two lists, as indexes of members.  Equal: simple. */
};

/* Why a wished change is refused.  The order is that in which they are found. */
enum config_problem {
    CONFIG_OK,
    CONFIG_BAD_NAME,    /* The name is too long, or has characters that it may not have. */
    CONFIG_BAD_PLACE,   /* The place is too long, or has characters that it may not have. */
    CONFIG_UNKNOWN,     /* No member has this name. */
    CONFIG_ALREADY,     /* A member with this name and place is there. */
    CONFIG_OTHER_PLACE, /* A member with this name has another place. */
    CONFIG_OTHER_NAME,  /* A member at this place has another name. */
    CONFIG_MANY,        /* More than QUORUM_MASTERS_MAX members in both lists together. */
    CONFIG_LONG,        /* The text of the list is longer than CONFIG_LIST_MAX, or that of the joint
                         * configuration longer than CONFIG_TEXT_MAX. */
    CONFIG_NOTHING,     /* The list stays as it is. */
    CONFIG_ONE,         /* Fewer than two members are left. */
    CONFIG_EVEN,        /* An even number of members: nothing else is wrong. */
    CONFIG_PROBLEMS_LEN
};

/* Parse the text of a configuration.  Its set and version are taken from *ret_config.  Returns
 * false, with *ret_config untouched, if the text is not exactly what config_print() prints. */
bool config_parse(const char *text, size_t text_len, struct config *ret_config);

/* Print the text of a configuration, with a NUL.  Returns its length. */
size_t config_print(const struct config *config, char ret_text[CONFIG_TEXT_MAX + 1]);

/* Print members of a configuration for people: their names, with a blank between two, or PLACE#NAME
 * if a name is not the place.  A list that does not fit ends with "and N more".  Returns its
 * length, which is less than size. */
size_t config_list(const struct config *config, quorum_mask list, bool has_places, char *text,
                   size_t size);

static inline bool config_is_joint(const struct config *config)
{
    return config->from != config->to;
}

static inline bool config_is_closed(const struct config *config)
{
    return config->from == 0;
}

/* True if both have the same lists, whatever their versions are. */
bool config_same_lists(const struct config *a, const struct config *b);

/* The number of the member with this name.  Returns members_len if there is none. */
unsigned config_find(const struct config *config, const char *name);

/*
 * Change a simple configuration, which is then a wish.  On a problem it stays as it was.  An empty
 * name stands for the place.  These functions do not judge the list as a whole.
 */
enum config_problem config_add(struct config *list, const char *name, const char *place);
enum config_problem config_remove(struct config *list, const char *name);

/* True: the text of this simple configuration is longer than CONFIG_LIST_MAX. */
bool config_is_long(const struct config *list);

/* Whether the simple configuration now may be followed, by way of a joint one, by the simple
 * configuration wish.  *ret_name: the member that is the reason, or "".  CONFIG_EVEN is advice:
 * the caller may go on. */
enum config_problem config_check(const struct config *now, const struct config *wish,
                                 const char **ret_name);

/* What may follow a configuration, with the next version.  The joint one is allowed only if
 * config_check() said so. */
void config_join(const struct config *now, const struct config *wish, struct config *ret_joint);
void config_finish(const struct config *joint, struct config *ret_simple);
void config_give_up(const struct config *joint, struct config *ret_simple);

/* Words for people: what the problem with this member or list is.  A constant text. */
const char *config_problem_text(enum config_problem problem);

#endif /* REDLOCK_CONFIG_H */
