/*
 * roster.h - the masters that an operator knows of, by number, and lists of them; pure.
 */
#ifndef REDLOCK_ROSTER_H
#define REDLOCK_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/core/config.h"

/* The masters of the newest configuration, of the wish, and where the search began.  Chosen: room
 * for two of these at their largest. */
#define ROSTER_MAX 32
typedef uint32_t roster_mask;

struct roster {
    unsigned len;
    struct {
        struct config_member member;
        bool unnamed; /* The user gave the place alone.  A master may report the name later. */
    } masters[ROSTER_MAX];
};

/* The lists of a configuration, as masters of the roster.  Version 0: none. */
struct roster_lists {
    uint64_t version;
    roster_mask from, to; /* Equal: simple.  Both 0: closed. */
};

/* Add a place where the search begins.  Returns false if there is no room. */
bool roster_add(struct roster *roster, const char *place);

/* Add the members of a configuration, and read its lists.  Returns false if there is no room. */
bool roster_read(struct roster *roster, const struct config *config,
                 struct roster_lists *ret_lists);

/* Make the configuration with these lists.  Their masters must be in the roster.  config_check()
 * must have allowed a joint one. */
void roster_write(const struct roster *roster, const struct roster_lists *lists, uint64_t set,
                  struct config *ret_config);

static inline roster_mask roster_bit(unsigned master)
{
    return (roster_mask)1 << master;
}

static inline unsigned roster_count(roster_mask masters)
{
    return mask_count((quorum_mask)masters) + mask_count((quorum_mask)(masters >> 16));
}

static inline roster_mask roster_members(const struct roster_lists *lists)
{
    return lists->from | lists->to;
}

static inline bool roster_is_joint(const struct roster_lists *lists)
{
    return lists->from != lists->to;
}

static inline bool roster_is_simple(const struct roster_lists *lists, roster_mask list)
{
    return lists->from == list && lists->to == list;
}

static inline bool roster_is_majority(roster_mask list, roster_mask masters)
{
    return 2 * roster_count(list & masters) > roster_count(list);
}

/* A majority of each list. */
static inline bool roster_is_quorum(const struct roster_lists *lists, roster_mask masters)
{
    return roster_is_majority(lists->from, masters) && roster_is_majority(lists->to, masters);
}

#endif /* REDLOCK_ROSTER_H */
