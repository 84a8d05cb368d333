/*
 * holders.c - reads the lists of several masters, and finds what a majority stores.
 */
#include "redlock/cli/status/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlock/base/mask.h"

/* A line for each holder: NUMBER TTL TOKEN.  Readers whose time is over may still be stored: the
 * key ends with the reader of the greatest score (acquire_shared.lua). */
const char holders_script[] =
    "local s={} local function add(n,ttl,t) "
    "if #s<64 and type(t)=='string' then "
    "s[#s+1]=string.format('%d %.0f ',n,ttl)..t:sub(1,129):gsub('%c','?') end end "
    "local t=redis.pcall('type',KEYS[1]).ok "
    "if t=='zset' then local z=redis.pcall('zrange',KEYS[1],-64,-1,'withscores') "
    "local now=(z[#z] or 0)-redis.call('pttl',KEYS[1]) "
    "for i=1,#z,2 do if z[i+1]-now>0 then add(0,z[i+1]-now,z[i]) end end end "
    "for i=1,ARGV[1] do local k=KEYS[2]..(i-1) local p=redis.call('pttl',k) "
    "if p>0 then add(i,p,redis.pcall('get',k)) end end "
    "return table.concat(s,'\\n')";
_Static_assert(HOLDERS_MAX == 64 && REDLOCK_TOKEN_MAX + 1 == 129, "the numbers of the script");

/* Read "NUMBER TTL TOKEN".  False: it is something else, or not one of our tokens. */
static bool read_line(const char *line, size_t len, struct holder *ret_holder)
{
    char text[REDLOCK_TOKEN_MAX + 40];
    int token_at = 0;

    if (len >= sizeof text)
        return false;
    memcpy(text, line, len);
    text[len] = '\0';
    if (sscanf(text, "%3u %18lld %n", &ret_holder->number, &ret_holder->ttl_ms, &token_at) != 2 ||
        token_at == 0 || text[token_at] == '\0' || strlen(text + token_at) > REDLOCK_TOKEN_MAX)
        return false;
    (void)snprintf(ret_holder->token, sizeof ret_holder->token, "%s", text + token_at);
    return ret_holder->number <= REDLOCK_PERMITS_MAX && ret_holder->ttl_ms > 0;
}

bool holders_take(struct holders *holders, const struct reply *reply)
{
    const char *line = reply->text, *end, *next;

    *holders = (struct holders){.list = NULL};
    if (reply->type != REPLY_TEXT)
        return true;
    holders->list = calloc(HOLDERS_MAX, sizeof *holders->list);
    if (holders->list == NULL)
        return false;
    for (end = line + reply->text_len; line < end && holders->len < HOLDERS_MAX; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        if (next == NULL)
            next = end;
        holders->len += read_line(line, (size_t)(next - line), &holders->list[holders->len]);
    }
    return true;
}

void holders_free(struct holders *holders)
{
    free(holders->list);
    *holders = (struct holders){.list = NULL};
}

static int compare(const void *a, const void *b)
{
    const struct holder *one = a, *other = b;

    if (one->number != other->number)
        return one->number < other->number ? -1 : 1;
    return strcmp(one->token, other->token);
}

/* How long this master stores the holder.  0: it does not. */
static long long ttl_of(const struct holders *holders, const struct holder *holder)
{
    for (unsigned i = 0; holders != NULL && i < holders->len; i++)
        if (compare(&holders->list[i], holder) == 0)
            return holders->list[i].ttl_ms;
    return 0;
}

/* The longest time for which a majority stores the holder.  0: no majority does. */
static long long ttl_of_majority(const struct holders *const *of, unsigned masters,
                                 const struct members *lists, const struct holder *holder)
{
    long long ttl_ms[QUORUM_MASTERS_MAX] = {0};

    for (unsigned m = 0; m < masters; m++)
        ttl_ms[m] = ttl_of(of[m], holder);
    return members_reach(lists, ttl_ms);
}

bool holders_agree(const struct holders *const *of, unsigned masters, const struct members *lists,
                   struct holders *ret_agreed)
{
    *ret_agreed = (struct holders){
        .list = calloc((size_t)masters * HOLDERS_MAX + 1, sizeof *ret_agreed->list)};
    if (ret_agreed->list == NULL)
        return false;
    for (unsigned m = 0; m < masters; m++)
        for (unsigned i = 0; of[m] != NULL && i < of[m]->len; i++) {
            struct holder *holder = &ret_agreed->list[ret_agreed->len];

            *holder = of[m]->list[i];
            holder->ttl_ms = ttl_of_majority(of, masters, lists, holder);
            ret_agreed->len += holder->ttl_ms > 0 && ttl_of(ret_agreed, holder) == 0;
        }
    qsort(ret_agreed->list, ret_agreed->len, sizeof *ret_agreed->list, compare);
    return true;
}
