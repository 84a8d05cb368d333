/*
 * locks.c - reads what a scan reports, and finds what a majority stores.
 */
#include "redlock/cli/list/locks.h"

#include <fnmatch.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/base/mask.h"
#include "redlock/cli/common/shown.h"

/* ---- Reading an answer ---- */

static const char letters[] = "LRPGFQW"; /* By shape. */

/* A new entry, or NULL without memory. */
static struct locks_entry *add(struct locks *locks)
{
    struct locks_entry *list;
    size_t room = locks->room == 0 ? 256 : 2 * locks->room;

    if (locks->len == locks->room) {
        list = reallocarray(locks->list, room, sizeof *list);
        if (list == NULL)
            return NULL;
        locks->list = list;
        locks->room = room;
    }
    return &locks->list[locks->len];
}

/* Read one entry.  Returns what follows it, or NULL if it is malformed. */
static char *read_entry(char *text, const char *end, struct locks_entry *ret_entry)
{
    struct shown_row row;
    const char *shape;

    text = shown_next(text, end, &row);
    shape = text != NULL ? memchr(letters, row.what, sizeof letters - 1) : NULL;
    if (shape == NULL || row.of_len == 0 || row.of_len > REDLOCK_NAME_MAX ||
        row.text_len > REDLOCK_TOKEN_MAX || row.left_ms <= 0 || row.count <= 0)
        return NULL;
    *ret_entry = (struct locks_entry){
        .name = calloc(1, row.of_len + 1),
        .name_len = row.of_len,
        .shape = (enum locks_shape)(shape - letters),
        .number = row.number,
        .ttl_ms = row.left_ms,
        .count = row.count,
    };
    if (ret_entry->name == NULL)
        return NULL;
    memcpy(ret_entry->name, row.of, row.of_len);
    memcpy(ret_entry->token, row.text, row.text_len);
    return text;
}

/* Read the first line.  Returns what follows it, or NULL. */
static char *read_cursor(const struct reply *reply, char cursor[LOCKS_CURSOR_MAX + 1],
                         long long *ret_others)
{
    size_t len, digits;

    if (reply->type != REPLY_TEXT || reply->is_too_long)
        return NULL;
    len = strspn(reply->text, "0123456789");
    if (len == 0 || len > LOCKS_CURSOR_MAX || reply->text[len] != ' ')
        return NULL;
    memcpy(cursor, reply->text, len);
    cursor[len] = '\0';
    digits = strspn(reply->text + len + 1, "0123456789");
    if (digits == 0 || digits > 9 || reply->text[len + 1 + digits] != '\n')
        return NULL;
    *ret_others = strtoll(reply->text + len + 1, NULL, 10);
    return reply->text + len + 1 + digits + 1;
}

/* A pattern stands for bytes, in any locale.  Names need not be UTF-8. */
static bool is_match(const char *pattern, const char *name)
{
    const locale_t old = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    const bool fits = fnmatch(pattern, name, 0) == 0;

    (void)uselocale(old);
    return fits;
}

enum locks_step locks_take(struct locks *locks, unsigned master, const char *pattern,
                           const struct reply *reply, char cursor[LOCKS_CURSOR_MAX + 1])
{
    long long others = 0;
    char *text = read_cursor(reply, cursor, &others), *end;

    if (text == NULL)
        return LOCKS_ODD;
    locks->others[master] += others;
    for (end = reply->text + reply->text_len; text < end;) {
        struct locks_entry *entry = add(locks);
        bool is_wanted;

        text = entry != NULL ? read_entry(text, end, entry) : NULL;
        if (text == NULL)
            return LOCKS_ODD;
        is_wanted = pattern == NULL || is_match(pattern, entry->name);
        if (!is_wanted || locks->of[master] == LOCKS_MAX)
            free(entry->name);
        if (!is_wanted)
            continue;
        if (locks->of[master] == LOCKS_MAX)
            return LOCKS_FULL;
        entry->master = master;
        locks->len++;
        locks->of[master]++;
    }
    return strcmp(cursor, "0") == 0 ? LOCKS_DONE : LOCKS_MORE;
}

void locks_clear(struct locks *locks)
{
    for (size_t i = 0; i < locks->len; i++)
        free(locks->list[i].name);
    locks->len = 0;
    memset(locks->of, 0, sizeof locks->of);
    memset(locks->others, 0, sizeof locks->others);
}

void locks_free(struct locks *locks)
{
    locks_clear(locks);
    free(locks->list);
    *locks = (struct locks){.list = NULL};
}

/* ---- What a majority stores ---- */

static int compare_names(const struct locks_entry *a, const struct locks_entry *b)
{
    size_t len = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, len);

    return order != 0 ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

/* Entries that are equal name one holder. */
static int compare_holders(const struct locks_entry *a, const struct locks_entry *b)
{
    int order = compare_names(a, b);

    if (order == 0 && a->shape != b->shape)
        order = a->shape < b->shape ? -1 : 1;
    if (order == 0 && a->number != b->number)
        order = a->number < b->number ? -1 : 1;
    return order != 0 ? order : strcmp(a->token, b->token);
}

/* A scan may report one key twice: either then counts, once. */
static int compare(const void *a, const void *b)
{
    const struct locks_entry *one = a, *other = b;
    int order = compare_holders(one, other);

    return order != 0 ? order : (one->master > other->master) - (one->master < other->master);
}

static int compare_key(const void *key, const void *entry)
{
    return compare_holders(key, entry);
}

bool locks_have(const struct locks *locks, const struct locks_entry *entry)
{
    return locks->len > 0 &&
           bsearch(entry, locks->list, locks->len, sizeof *locks->list, compare_key) != NULL;
}

/* Others could vote, too.  Alone, a majority of a set of one is no news. */
static bool is_bare(const struct members *lists, quorum_mask votes)
{
    return members_barely_decide(lists, votes) && (members_all(lists) & (quorum_mask)~votes) != 0;
}

/* Judge the entries of one holder. */
static struct locks_row judge(const struct locks_entry *first, size_t len,
                              const struct members *lists, quorum_mask up)
{
    struct locks_row row = {.entry = first};
    long long ttl_ms[QUORUM_MASTERS_MAX] = {0}, count[QUORUM_MASTERS_MAX] = {0};
    quorum_mask masters = 0;

    for (const struct locks_entry *entry = first; entry < first + len; entry++) {
        unsigned m = entry->master;

        if (!(up & mask_of(m)))
            continue;
        masters |= mask_of(m);
        ttl_ms[m] = entry->ttl_ms;
        count[m] = entry->count;
        if (entry->ttl_ms > row.ttl_ms)
            row.ttl_ms = entry->ttl_ms;
    }
    row.votes = mask_count(masters);
    row.is_held = members_decide(lists, masters);
    row.is_bare = first->shape < LOCKS_GUESS && is_bare(lists, masters);
    if (row.is_held)
        row.ttl_ms = members_reach(lists, ttl_ms);
    row.count = members_reach(lists, count);
    return row;
}

/* Give the rows of one name the number of its waiters.  A name that nobody holds keeps one row if
 * clients wait for it. */
static size_t settle_name(struct locks_row *rows, size_t len)
{
    long long waiting = 0;
    bool is_waited = false;
    size_t holders = 0;

    for (size_t i = 0; i < len; i++) {
        if (rows[i].entry->shape == LOCKS_QUEUE)
            waiting = rows[i].count;
        is_waited |= rows[i].entry->shape >= LOCKS_QUEUE && rows[i].is_held;
    }
    while (holders < len && rows[holders].entry->shape < LOCKS_QUEUE)
        holders++;
    if (holders == 0 && is_waited)
        holders = 1;
    for (size_t i = 0; i < holders; i++) {
        rows[i].waiting = waiting;
        rows[i].is_waited = is_waited;
    }
    return holders;
}

size_t locks_agree(struct locks *locks, const struct members *lists, quorum_mask up,
                   struct locks_row **ret_rows)
{
    struct locks_row *rows = calloc(locks->len + 1, sizeof *rows);
    size_t len = 0, start = 0, same;

    *ret_rows = rows;
    if (rows == NULL)
        return 0;
    if (locks->len > 0)
        qsort(locks->list, locks->len, sizeof *locks->list, compare);
    for (size_t i = 0; i < locks->len; i += same) {
        const struct locks_entry *entry = &locks->list[i];

        for (same = 1; i + same < locks->len; same++)
            if (compare_holders(entry, &locks->list[i + same]) != 0)
                break;
        if (len > start && compare_names(rows[start].entry, entry) != 0)
            start = len = start + settle_name(rows + start, len - start);
        rows[len] = judge(entry, same, lists, up);
        /* A foreign key on a minority keeps no client from the lock. */
        len += rows[len].entry->shape == LOCKS_FOREIGN ? rows[len].is_held : rows[len].votes > 0;
    }
    return start + settle_name(rows + start, len - start);
}
