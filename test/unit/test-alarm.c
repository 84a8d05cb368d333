/*
 * test-alarm.c - the heap of alarms, compared with a linear search.
 */
#include "redlock/base/alarm.h"

#include <stdlib.h>

#include "test/lib/check.h"

#define ALARMS 64

/* The earliest alarm that is set, found by a linear search. */
static struct alarm *earliest(struct alarm *all)
{
    struct alarm *first = NULL;

    for (unsigned i = 0; i < ALARMS; i++)
        if (all[i].pos != ALARM_OFF && (first == NULL || all[i].at < first->at))
            first = &all[i];
    return first;
}

static void make(struct alarms *alarms, struct alarm *all)
{
    *alarms = (struct alarms){0};
    for (unsigned i = 0; i < ALARMS; i++)
        all[i] = (struct alarm){.pos = ALARM_OFF};
    CHECK(alarm_reserve(alarms, ALARMS) == 0);
}

TEST(empty)
{
    struct alarms alarms = {0};

    CHECK(alarm_next(&alarms) == DRIFT_NEVER);
    CHECK(alarm_ring(&alarms, DRIFT_NEVER) == NULL);
    alarm_done(&alarms);
}

TEST(rings_at_its_time_and_not_before)
{
    struct alarms alarms;
    struct alarm all[ALARMS];

    make(&alarms, all);
    alarm_set(&alarms, &all[0], 100);
    CHECK(alarm_next(&alarms) == 100);
    CHECK(alarm_ring(&alarms, 99) == NULL);
    CHECK(alarm_ring(&alarms, 100) == &all[0]);
    CHECK(all[0].pos == ALARM_OFF);
    CHECK(alarm_ring(&alarms, 100) == NULL);
    alarm_done(&alarms);
}

TEST(set_never_is_off)
{
    struct alarms alarms;
    struct alarm all[ALARMS];

    make(&alarms, all);
    alarm_set(&alarms, &all[0], DRIFT_NEVER);
    CHECK(all[0].pos == ALARM_OFF);
    alarm_set(&alarms, &all[0], 5);
    alarm_set(&alarms, &all[0], DRIFT_NEVER);
    CHECK(all[0].pos == ALARM_OFF);
    CHECK(alarm_next(&alarms) == DRIFT_NEVER);
    alarm_done(&alarms);
}

TEST(reserve_keeps_what_is_set)
{
    struct alarms alarms;
    struct alarm all[ALARMS];

    make(&alarms, all);
    alarm_set(&alarms, &all[0], 7);
    CHECK(alarm_reserve(&alarms, 10000) == 0);
    CHECK(alarms.room >= 10000);
    CHECK(alarm_reserve(&alarms, UINT32_MAX) != 0);
    CHECK(alarm_ring(&alarms, 7) == &all[0]);
    alarm_done(&alarms);
}

/* Alarms are set, moved and turned off.  The earliest always rings first. */
TEST(random_walk)
{
    struct alarms alarms;
    struct alarm all[ALARMS];
    drift_time now = 0;

    make(&alarms, all);
    srand(1);
    for (unsigned step = 0; step < 100000; step++) {
        struct alarm *alarm = &all[rand() % ALARMS], *first;

        switch (rand() % 8) {
        case 0:
            alarm_set(&alarms, alarm, DRIFT_NEVER);
            break;
        case 1:
            now += (drift_time)(rand() % 50);
            first = earliest(all);
            alarm = alarm_ring(&alarms, now);
            CHECK((alarm != NULL) == (first != NULL && first->at <= now));
            CHECK(alarm == NULL || alarm->at == first->at);
            break;
        default:
            alarm_set(&alarms, alarm, now + (drift_time)(rand() % 200));
            break;
        }
        first = earliest(all);
        CHECK(alarm_next(&alarms) == (first != NULL ? first->at : DRIFT_NEVER));
    }
    alarm_done(&alarms);
}

CHECK_MAIN(RUN(empty), RUN(rings_at_its_time_and_not_before), RUN(set_never_is_off),
           RUN(reserve_keeps_what_is_set), RUN(random_walk))
