/*
 * troubles.c - groups masters by what is wrong with them.
 */
#include "redlock/lease/troubles.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NUMBERS_MAX 64 /* Enough for the numbers of all masters, with commas. */
#define PLACES_MAX 128 /* Of the places of a group.  Chosen: those of five IPv4 masters fit. */

/* ---- Weight ---- */

/* True: its first connection is under way, and what it will answer is not known. */
static bool is_open(const struct trouble *trouble)
{
    const enum why why = trouble->why.why;

    return why == WHY_UNANSWERED || why == WHY_UNCHECKED || why == WHY_NOT_CONNECTED;
}

static bool is_any(const struct trouble *trouble)
{
    return trouble->why.why != WHY_NONE;
}

static bool is_of(const struct trouble *troubles, unsigned troubles_len, quorum_mask masters,
                  const struct reason *why)
{
    for (unsigned m = 0; m < troubles_len; m++)
        if ((masters & mask_of(m)) != 0 && reason_is_same(&troubles[m].why, why))
            return true;
    return false;
}

void troubles_weigh(struct trouble *troubles, unsigned troubles_len, const struct members *members,
                    quorum_mask deciding)
{
    quorum_mask well = 0, all = members_all(members);

    for (unsigned m = 0; m < troubles_len; m++) {
        troubles[m].decides =
            is_any(&troubles[m]) && is_of(troubles, troubles_len, deciding, &troubles[m].why);
        if (!is_any(&troubles[m]) || is_open(&troubles[m]))
            well |= mask_of(m);
    }
    if (all == 0)
        return; /* All are needed, to found a set. */
    if (members_decide(members, well & all) && (deciding == 0 || (deciding & all) != 0))
        return; /* Their votes would be enough, and the list is not wrong. */
    for (unsigned m = 0; m < troubles_len; m++)
        if (is_open(&troubles[m]))
            troubles[m].why.why = WHY_NONE;
}

/* ---- Groups ---- */

/* The masters with this reason.  *ret_why: that of them which lasts longest. */
static quorum_mask find_group(const struct trouble *troubles, unsigned troubles_len, unsigned first,
                              const struct reason **ret_why)
{
    quorum_mask group = mask_of(first);

    *ret_why = &troubles[first].why;
    for (unsigned m = first + 1; m < troubles_len; m++) {
        if (!reason_is_same(&troubles[m].why, &troubles[first].why))
            continue;
        group |= mask_of(m);
        if (troubles[m].why.over_at > (*ret_why)->over_at)
            *ret_why = &troubles[m].why;
    }
    return group;
}

/* Whether the group of master m is to be listed before that of other: see troubles.h. */
static bool comes_first(const struct trouble *troubles, unsigned troubles_len, unsigned m,
                        unsigned other)
{
    const struct reason *why; /* Not needed. */

    if (troubles[m].decides != troubles[other].decides)
        return troubles[m].decides;
    return mask_count(find_group(troubles, troubles_len, m, &why)) >
           mask_count(find_group(troubles, troubles_len, other, &why));
}

/* The first master of the group that is to be listed next.  troubles_len: none is left. */
static unsigned next_group(const struct trouble *troubles, unsigned troubles_len,
                           quorum_mask listed)
{
    unsigned next = troubles_len;

    for (unsigned m = 0; m < troubles_len; m++)
        if (is_any(&troubles[m]) && (listed & mask_of(m)) == 0 &&
            (next == troubles_len || comes_first(troubles, troubles_len, m, next)))
            next = m;
    return next;
}

/* ---- Words ---- */

/* The last master of a row of neighbours. */
static unsigned end_of_row(quorum_mask group, unsigned m)
{
    while (group >> (m + 1) & 1)
        m++;
    return m;
}

/* "1 to 3, 5 and 7".  A row of two is no range. */
static void write_numbers(quorum_mask group, char buf[NUMBERS_MAX])
{
    size_t len = 0;

    for (unsigned m = 0; group >> m != 0; m++) {
        unsigned last = end_of_row(group, m);
        bool is_range = last >= m + 2;

        if (!(group & mask_of(m)))
            continue;
        last = is_range ? last : m;
        len += (size_t)snprintf(buf + len, NUMBERS_MAX - len, "%s%u",
                                len == 0                   ? ""
                                : group >> (last + 1) != 0 ? ", "
                                                           : " and ",
                                m + 1);
        if (is_range)
            len += (size_t)snprintf(buf + len, NUMBERS_MAX - len, " to %u", last + 1);
        m = last;
    }
}

/* " (a:1, b:1, ...)".  A place that does not fit, and all behind it, become dots. */
static void write_places(const struct trouble *troubles, quorum_mask group, char buf[PLACES_MAX])
{
    static const char dots[] = "...)";
    size_t len = 0;

    for (unsigned m = 0; group >> m != 0; m++) {
        const char *before = len == 0 ? " (" : ", ";

        if (!(group & mask_of(m)))
            continue;
        if (len + strlen(before) + strlen(troubles[m].name) + sizeof ", ...)" > PLACES_MAX) {
            (void)snprintf(buf + len, PLACES_MAX - len, "%s%s", before, dots);
            return;
        }
        len += (size_t)snprintf(buf + len, PLACES_MAX - len, "%s%s", before, troubles[m].name);
    }
    (void)snprintf(buf + len, PLACES_MAX - len, ")");
}

/* As snprintf(): returns the length that it needs. */
static size_t write_group(const struct trouble *troubles, quorum_mask group,
                          const struct reason *why, drift_time now, const char *before,
                          bool has_places, char *buf, size_t size)
{
    char numbers[NUMBERS_MAX], places[PLACES_MAX] = "", text[REASON_TEXT_MAX];
    unsigned first = 0;

    while (!(group & mask_of(first)))
        first++;
    (void)reason_write(why, now, text, sizeof text);
    if (mask_count(group) == 1)
        return (size_t)snprintf(buf, size, "%smaster %u (%s): %s", before, first + 1,
                                troubles[first].name, text);
    write_numbers(group, numbers);
    if (has_places)
        write_places(troubles, group, places);
    return (size_t)snprintf(buf, size, "%smasters %s%s%s%s", before, numbers, places,
                            reason_joint(why), text);
}

void troubles_list(const struct trouble *troubles, unsigned troubles_len, drift_time now, char *buf,
                   size_t size, struct error_parts *ret_parts)
{
    static const char dots[] = "; ...";
    quorum_mask listed = 0;
    size_t len = 0;
    unsigned m;

    assert(size >= 16 && troubles_len <= QUORUM_MASTERS_MAX);
    buf[0] = '\0';
    ret_parts->len = 0;
    while ((m = next_group(troubles, troubles_len, listed)) < troubles_len) {
        size_t room = size - len - sizeof dots, more;
        const char *before = len > 0 ? "; " : "";
        const struct reason *why;
        quorum_mask group = find_group(troubles, troubles_len, m, &why);

        listed |= group;
        more = write_group(troubles, group, why, now, before, true, buf + len, room);
        if (more >= room)
            more = write_group(troubles, group, why, now, before, false, buf + len, room);
        if (more < room || len == 0)
            ret_parts->list[ret_parts->len++] = (struct error_part){
                .at = (uint16_t)(len + strlen(before)),
                .message = (uint8_t)reason_message(why),
            };
        if (more >= room) { /* The first group's text is cut where it does not fit. */
            memcpy(buf + (len > 0 ? len : room - 1), dots, sizeof dots);
            return;
        }
        len += more;
    }
}
