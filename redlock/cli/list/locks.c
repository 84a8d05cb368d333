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
#include "redlock/wire/keys.h"

/* The answer is the next cursor, a blank, how many texts are left out because ARGV[3] is not "1",
 * and a line feed, and then for each key
 *
 *     KIND NUMBER TTL COUNT NAME_LEN TOKEN_LEN LF NAME TOKEN LF
 *
 * Names may have any bytes, so their lengths are told.  Keys without an end are no locks, and are
 * reported (F) only if clients wait for the name: other programs may have any number.  What the
 * user may not read is left out: pcall() then returns an error.  The key of readers ends with the
 * reader of the greatest score; those whose time is over may still be stored (acquire_shared.lua).
 * What redlock cannot have written must not make an answer that read_entry() refuses.
 * A key that the user may not read is left out.  A command that it may not run is an error:
 * "can't run this command" (Redis 7.0), "no permissions to run the 'strlen' command" (Redis 8).
 */
const char locks_script[] =
    "local r=redis.call('scan',ARGV[1],'count',ARGV[2]) local s,others={''},0 "
    "local function add(shape,number,ttl,count,name,token) if #name>0 and #name<=512 then "
    "s[#s+1]=string.format('%s %d %.0f %.0f %d %d\\n',shape,number,ttl,count,#name,#token) "
    "s[#s+1]=name..token..'\\n' end end "
    "local function other(name,ttl) local t=redis.pcall('type',name).ok "
    "if t and t~='none' and (redis.pcall('pttl',name)==-1 or t~='string' and t~='zset') then "
    "add('F',0,ttl,1,name,'') end end "
    "local function ours(t) return #t<=128 and t:sub(1,11)=='revoked by ' or #t>=40 and "
    "t:sub(1,40):match('^[0-9a-f]+$') and (#t==40 or t:sub(41,41)==':') end "
    "for _,key in ipairs(r[2]) do local ttl=redis.pcall('pttl',key) "
    "if type(ttl)=='number' and ttl>0 then ttl=math.min(ttl,1e15) "
    "local queue,wait=key:match('^redlock:queue:(.+)$'),key:match('^redlock:wait:(.+)$') "
    "local name,slot=key:match('^redlock:permit:(.+):(%d+)$') "
    "local shape=redis.pcall('type',key).ok "
    "if queue then local n=redis.pcall('zcount',key,'0','inf') "
    "if type(n)=='number' and n>0 then add('Q',0,ttl,n,queue,'') other(queue,ttl) end "
    "elseif wait then add('W',0,ttl,1,wait,'') other(wait,ttl) "
    "elseif shape=='string' then local n=redis.pcall('strlen',key) "
    "if type(n)=='table' and n.err:find('run th',1,true) then return n end "
    "local t=type(n)=='number' and n<=128 and redis.pcall('get',key) "
    "if type(t)=='string' then if name and #slot<4 and slot+0<256 and ours(t) then "
    "add('P',slot+1,ttl,1,name,t) "
    "elseif ours(t) and key:sub(1,15)~='redlock:permit:' then add('L',0,ttl,1,key,t) "
    "elseif ARGV[3]=='1' then add('G',0,ttl,1,key,t) else others=others+1 end end "
    "elseif shape=='zset' then local z=redis.pcall('zrange',key,-1,-1,'withscores') "
    "if z[2] and ours(z[1]) then local now=string.format('(%.0f',z[2]-ttl) "
    "local n=redis.pcall('zcount',key,now,'inf') "
    "if type(n)=='number' and n>0 then add('R',0,ttl,n,key,'') end end end end end "
    "s[1]=r[1]..' '..others..'\\n' return table.concat(s)";
_Static_assert(WIRE_PERMIT_LEN == 15 && REDLOCK_NAME_MAX == 512 && REDLOCK_TOKEN_MAX == 128 &&
                   WIRE_REVOKED_LEN == sizeof "revoked by " - 1 && REDLOCK_PERMITS_MAX == 256,
               "the numbers of the script");

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
static const char *read_entry(const char *text, const char *end, struct locks_entry *ret_entry)
{
    char head[100] = "", letter;
    const char *line_end = memchr(text, '\n', (size_t)(end - text));
    const char *shape;
    unsigned name_len, token_len;

    if (line_end == NULL || (size_t)(line_end - text) >= sizeof head)
        return NULL;
    memcpy(head, text, (size_t)(line_end - text));
    if (sscanf(head, "%c %3u %18lld %18lld %3u %3u", &letter, &ret_entry->number,
               &ret_entry->ttl_ms, &ret_entry->count, &name_len, &token_len) != 6)
        return NULL;
    shape = memchr(letters, letter, sizeof letters - 1);
    if (shape == NULL || name_len == 0 || name_len > REDLOCK_NAME_MAX ||
        token_len > REDLOCK_TOKEN_MAX || (size_t)(end - line_end) < name_len + token_len + 2 ||
        line_end[1 + name_len + token_len] != '\n' || ret_entry->number > REDLOCK_PERMITS_MAX ||
        ret_entry->ttl_ms <= 0 || ret_entry->count <= 0)
        return NULL;
    ret_entry->shape = (enum locks_shape)(shape - letters);
    ret_entry->name_len = name_len;
    ret_entry->name = calloc(1, name_len + 1);
    if (ret_entry->name == NULL)
        return NULL;
    memcpy(ret_entry->name, line_end + 1, name_len);
    memcpy(ret_entry->token, line_end + 1 + name_len, token_len);
    ret_entry->token[token_len] = '\0';
    return line_end + 1 + name_len + token_len + 1;
}

/* Read the first line.  Returns what follows it, or NULL. */
static const char *read_cursor(const struct reply *reply, char cursor[LOCKS_CURSOR_MAX + 1],
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
    const char *text = read_cursor(reply, cursor, &others), *end;

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
