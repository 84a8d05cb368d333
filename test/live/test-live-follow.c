/*
 * test-live-follow.c - clients follow a change of the set of masters.
 *
 * The test writes the configurations itself, as `redlock members` does.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/check.h"

#define MASTERS 5
#define TTL_MS 3000

static struct cluster five;

/* Masters of no set, all with an epoch. */
static void make_ready(void)
{
    pilot_founds = false;
    cluster_ready_durable(&five, MASTERS);
    cluster_unfound(&five);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *place_of(char number)
{
    static char places[MASTERS][32];
    char *place = places[number - '1'];

    (void)snprintf(place, sizeof places[0], "127.0.0.1:%u", five.server[number - '1'].port);
    return place;
}

/* "127.0.0.1:port127.0.0.1:port", sorted, with this text between two. */
static const char *list_of(const char *numbers, const char *between, char list[200])
{
    const char *places[MASTERS];
    size_t len = 0, masters = strlen(numbers);

    for (size_t i = 0; i < masters; i++)
        places[i] = place_of(numbers[i]);
    qsort(places, masters, sizeof *places, compare);
    for (size_t i = 0; i < masters; i++)
        len += (size_t)snprintf(list + len, 200 - len, "%s%s", i > 0 ? between : "", places[i]);
    return list;
}

/* Store a configuration on one server, as write.lua does. */
static void write_one(char number, unsigned version, const char *config, bool is_member)
{
    struct server *server = &five.server[number - '1'];

    (void)server_int(server,
                     "HSET redlock:master epoch %016x.%u of set set 00000000000000aa ver %u "
                     "config %s",
                     server->port, version, version, config);
    if (is_member)
        (void)server_int(server, "HSET redlock:master name %s", place_of(number));
    else
        (void)server_int(server, "HDEL redlock:master name");
}

/* Store the configuration "from" or, if there is a second list, "from > to", on these servers. */
static void write_set(const char *on, unsigned version, const char *from, const char *to)
{
    char lists[2][200], config[420];

    (void)snprintf(config, sizeof config, "%s%s%s", list_of(from, " ", lists[0]),
                   to != NULL ? " > " : "", to != NULL ? list_of(to, " ", lists[1]) : "");
    for (const char *p = on; *p != '\0'; p++)
        write_one(*p, version, config,
                  strchr(from, *p) != NULL || (to != NULL && strchr(to, *p) != NULL));
}

static bool is_on(char number, const char *name)
{
    return server_get(&five.server[number - '1'], name) != NULL;
}

struct place {
    char number;
    const char *name;
};

static bool is_there(void *arg)
{
    const struct place *place = arg;

    return is_on(place->number, place->name);
}

/* ---- One client ---- */

TEST(one_member_of_the_list_names_the_others)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;
        char list[200];

        check_row = pilot_kind_name(kind);
        make_ready();
        write_set("123", 1, "123", NULL);
        pilot_open(&pilot, kind, list_of("2", ",", list), 0);
        CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 0, &lease), REDLOCK_OK);
        CHECK(pilot_until_up(&pilot, 3));
        CHECK_UINT(pilot_stats(&pilot).masters, 3);
        CHECK(is_on('1', "x") + is_on('2', "x") + is_on('3', "x") >= 2);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        pilot_close(&pilot);
    }
}

TEST(a_hold_is_renewed_through_a_change)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct pilot pilot;
        struct place joined = {'4', "x"};
        char list[200];

        check_row = pilot_kind_name(kind);
        make_ready();
        write_set("123", 1, "123", NULL);
        pilot_open(&pilot, kind, list_of("123", ",", list), 0);
        CHECK_INT(pilot_lock_for(&pilot, "x", TTL_MS, true, 0, &lease), REDLOCK_OK);
        write_set("1234", 2, "123", "124");
        CHECK(pilot_until(&pilot, is_there, &joined));
        write_set("1234", 3, "124", NULL);
        CHECK(pilot_until_up(&pilot, 3));
        server_kill(&five.server[0]);
        CHECK_INT(pilot_extend(&pilot, lease, TTL_MS), REDLOCK_OK);
        CHECK(redlock_remaining_ms(lease) > 0);
        CHECK_UINT(pilot_stats(&pilot).lost, 0);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
        CHECK(!is_on('2', "x") && !is_on('4', "x"));
        pilot_close(&pilot);
    }
}

CHECK_MAIN(RUN(one_member_of_the_list_names_the_others), RUN(a_hold_is_renewed_through_a_change))
