/*
 * troubles.c - groups masters by what is wrong with them.
 */
#include "redlock/lease/troubles.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/base/message.h"
#include "redlock/base/text.h"
#include "redlock/redlock.h"
#include "redlock/wire/forbidden.h"

#define NUMBERS_MAX 64 /* Enough for the numbers of all masters, with commas. */
#define PLACES_MAX 128 /* Of the places of a group.  Chosen: those of five IPv4 masters fit. */

/* ---- Weight ---- */

/* The status of a call that fails for this reason alone: see prospect.c. */
static int status_of(const char *error)
{
    enum msg message = message_of_reason(error);

    if (forbidden_is(error))
        return REDLOCK_E_FORBIDDEN;
    if (message == MSG_WARMING || message == MSG_CLOCK)
        return REDLOCK_NOT_READY;
    if (message == MSG_WRONG_SET || message == MSG_SET_CLOSED)
        return REDLOCK_E_WRONG_SET;
    return REDLOCK_UNREACHABLE;
}

/* True: the master is connected, and what it will answer is not known. */
static bool is_open(const struct trouble *trouble)
{
    return strstr(trouble->error, "has not answered yet") != NULL;
}

void troubles_weigh(struct trouble *troubles, unsigned troubles_len, const struct members *members,
                    int status)
{
    quorum_mask well = 0, all = members_all(members);

    for (unsigned m = 0; m < troubles_len; m++) {
        troubles[m].decides =
            troubles[m].error[0] != '\0' && status_of(troubles[m].error) == status;
        if (troubles[m].error[0] == '\0' || is_open(&troubles[m]))
            well |= mask_of(m);
    }
    if (all == 0 || members_decide(members, well & all))
        return; /* To found a set, all of them are needed. */
    for (unsigned m = 0; m < troubles_len; m++)
        if (is_open(&troubles[m]))
            troubles[m].error = "";
}

/* ---- Groups ---- */

/* The length of a reason without the time at its end: "57.3 s", or "57,3 s" in some locales. */
static size_t len_without_time(const char *error)
{
    size_t len = strlen(error), at;

    if (len < 2 || strcmp(error + len - 2, " s") != 0)
        return len;
    at = len - 2;
    while (at > 0 && strchr("0123456789.,", error[at - 1]) != NULL)
        at--;
    return at;
}

static bool is_same(const char *a, const char *b)
{
    size_t len = len_without_time(a);

    if (strcmp(a, b) == 0)
        return true;
    return a[len] != '\0' && b[len_without_time(b)] != '\0' && len == len_without_time(b) &&
           strncmp(a, b, len) == 0;
}

static double time_of(const char *error)
{
    return strtod(error + len_without_time(error), NULL);
}

/* The masters with this reason.  *ret_error: the one of them with the longest time. */
static quorum_mask find_group(const struct trouble *troubles, unsigned troubles_len, unsigned first,
                              const char **ret_error)
{
    quorum_mask group = mask_of(first);

    *ret_error = troubles[first].error;
    for (unsigned m = first + 1; m < troubles_len; m++) {
        if (!is_same(troubles[m].error, troubles[first].error))
            continue;
        group |= mask_of(m);
        if (time_of(troubles[m].error) > time_of(*ret_error))
            *ret_error = troubles[m].error;
    }
    return group;
}

/* Whether the group of master m is to be listed before that of other: see troubles.h. */
static bool comes_first(const struct trouble *troubles, unsigned troubles_len, unsigned m,
                        unsigned other)
{
    const char *error; /* Not needed. */

    if (troubles[m].decides != troubles[other].decides)
        return troubles[m].decides;
    return mask_count(find_group(troubles, troubles_len, m, &error)) >
           mask_count(find_group(troubles, troubles_len, other, &error));
}

/* The first master of the group that is to be listed next.  troubles_len: none is left. */
static unsigned next_group(const struct trouble *troubles, unsigned troubles_len,
                           quorum_mask listed)
{
    unsigned next = troubles_len;

    for (unsigned m = 0; m < troubles_len; m++)
        if (troubles[m].error[0] != '\0' && (listed & mask_of(m)) == 0 &&
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

/* What stands between several masters and their reason. */
static const char *before_reason(const char *error)
{
    if (text_begins_with_verb(error))
        return ": each ";
    return strncmp(error, "its ", 4) == 0 ? ", each: " : ": ";
}

/* What hiredis says of a byte that begins no reply. */
static bool speaks_otherwise(const char *error)
{
    return strstr(error, "garbage: Protocol error, got ") != NULL;
}

/* As snprintf(): returns the length that it needs. */
static size_t write_group(const struct trouble *troubles, quorum_mask group, const char *error,
                          const char *before, bool has_places, char *buf, size_t size)
{
    const char *end = speaks_otherwise(error) ? " (not a Redis server?)" : "";
    char numbers[NUMBERS_MAX], places[PLACES_MAX] = "";
    unsigned first = 0;

    while (!(group & mask_of(first)))
        first++;
    if (mask_count(group) == 1)
        return (size_t)snprintf(buf, size, "%smaster %u (%s): %s%s", before, first + 1,
                                troubles[first].name, error, end);
    write_numbers(group, numbers);
    if (has_places)
        write_places(troubles, group, places);
    return (size_t)snprintf(buf, size, "%smasters %s%s%s%s%s", before, numbers, places,
                            before_reason(error), error, end);
}

void troubles_list(const struct trouble *troubles, unsigned troubles_len, char *buf, size_t size)
{
    static const char dots[] = "; ...";
    quorum_mask listed = 0;
    size_t len = 0;
    unsigned m;

    assert(size >= 16 && troubles_len <= QUORUM_MASTERS_MAX);
    buf[0] = '\0';
    while ((m = next_group(troubles, troubles_len, listed)) < troubles_len) {
        size_t room = size - len - sizeof dots, more;
        const char *error;
        quorum_mask group = find_group(troubles, troubles_len, m, &error);

        listed |= group;
        more = write_group(troubles, group, error, len > 0 ? "; " : "", true, buf + len, room);
        if (more >= room)
            more = write_group(troubles, group, error, len > 0 ? "; " : "", false, buf + len, room);
        if (more >= room) { /* The first group's text is cut where it does not fit. */
            memcpy(buf + (len > 0 ? len : room - 1), dots, sizeof dots);
            return;
        }
        len += more;
    }
}
