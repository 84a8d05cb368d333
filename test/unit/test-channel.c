/*
 * test-channel.c - the table of awaited names: it grows, and a requester cannot choose names that
 * crowd one place of it.
 */
#include "test/lib/check.h"

#include <stdlib.h>

#include "redlock/io/env.h"
#include "redlock/lease/state.h"
#include "redlock/line/channel.h"

#define NAMES 4096

static struct env env;
static struct masters masters; /* One master without a link. */
static struct channels channels;
static struct redlock_lease *lease;

static void begin(void)
{
    masters.peers.len = 1;
    env.alarms = (struct alarms){.len = 0};
    CHECK_INT(alarm_reserve(&env.alarms, 3), 0);
    channels = (struct channels){.env = &env, .masters = &masters};
    channels.listener.peers = &masters.peers;
    channels.alarm.pos = ALARM_OFF;
    lease = calloc(1, sizeof *lease + 32);
    CHECK(lease != NULL);
}

static void end(void)
{
    channel_end_all(&channels);
    alarm_done(&env.alarms);
    free(lease);
}

static struct redlock_lease *lease_on(unsigned number)
{
    lease->name_len = (uint16_t)snprintf(lease->name, 32, "req:%u", number);
    return lease;
}

/* A hash without a key, with which a requester could choose names. */
static uint32_t fnv(const char *name)
{
    uint32_t hash = 2166136261u;

    while (*name != 0)
        hash = (hash ^ (unsigned char)*name++) * 16777619u;
    return hash;
}

static unsigned longest_chain(void)
{
    unsigned longest = 0;

    for (uint32_t i = 0; i < channels.room; i++) {
        unsigned len = 0;

        for (const struct channel *channel = channels.table[i]; channel != NULL;
             channel = channel->next)
            len++;
        longest = len > longest ? len : longest;
    }
    return longest;
}

/* With random names the longest chain has about nine, and never four times that. */
TEST(chosen_names_do_not_crowd_one_place)
{
    unsigned found = 0;

    begin();
    for (unsigned number = 0; found < NAMES; number++) {
        if (fnv(lease_on(number)->name) % 256 != 7)
            continue;
        CHECK(channel_get(&channels, lease) != NULL);
        found++;
    }
    CHECK(longest_chain() < 36);
    end();
}

TEST(each_name_is_found_while_the_table_grows)
{
    static struct channel *made[NAMES];

    begin();
    CHECK(channel_find_of(&channels, lease_on(0)) == NULL);
    CHECK(channel_find_asker(&channels, 7, 1) == NULL);
    for (unsigned i = 0; i < NAMES; i++)
        made[i] = channel_get(&channels, lease_on(i));
    CHECK_UINT(channels.len, NAMES);
    for (unsigned i = 0; i < NAMES; i++) {
        CHECK(made[i] != NULL);
        CHECK(channel_find_of(&channels, lease_on(i)) == made[i]);
        CHECK(channel_get(&channels, lease_on(i)) == made[i]);
        CHECK(channel_find_asker(&channels, made[i]->slot, made[i]->serial) == made[i]);
    }
    for (unsigned i = 0; i < NAMES; i += 2)
        channel_end(made[i]);
    CHECK_UINT(channels.len, NAMES / 2);
    for (unsigned i = 0; i < NAMES; i++)
        CHECK(channel_find_of(&channels, lease_on(i)) == (i % 2 ? made[i] : NULL));
    end();
}

CHECK_MAIN(RUN(chosen_names_do_not_crowd_one_place), RUN(each_name_is_found_while_the_table_grows))
