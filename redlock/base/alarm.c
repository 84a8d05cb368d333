/*
 * alarm.c - a binary heap.  Each element knows its position.
 */
#include "redlock/base/alarm.h"

#include <assert.h>
#include <stdlib.h>

static void put(struct alarms *alarms, struct alarm *alarm, uint32_t pos)
{
    alarms->heap[pos] = alarm;
    alarm->pos = pos;
}

static void sift_up(struct alarms *alarms, struct alarm *alarm, uint32_t pos)
{
    while (pos > 0 && alarms->heap[(pos - 1) / 2]->at > alarm->at) {
        put(alarms, alarms->heap[(pos - 1) / 2], pos);
        pos = (pos - 1) / 2;
    }
    put(alarms, alarm, pos);
}

static void sift_down(struct alarms *alarms, struct alarm *alarm, uint32_t pos)
{
    for (;;) {
        uint32_t child = 2 * pos + 1;

        if (child + 1 < alarms->len && alarms->heap[child + 1]->at < alarms->heap[child]->at)
            child++;
        if (child >= alarms->len || alarms->heap[child]->at >= alarm->at)
            break;
        put(alarms, alarms->heap[child], pos);
        pos = child;
    }
    put(alarms, alarm, pos);
}

static void take_out(struct alarms *alarms, struct alarm *alarm)
{
    uint32_t hole = alarm->pos;
    struct alarm *last = alarms->heap[--alarms->len];

    alarm->pos = ALARM_OFF;
    if (last == alarm)
        return;
    if (hole > 0 && alarms->heap[(hole - 1) / 2]->at > last->at)
        sift_up(alarms, last, hole);
    else
        sift_down(alarms, last, hole);
}

int alarm_reserve(struct alarms *alarms, uint32_t count)
{
    uint32_t room = alarms->room ? alarms->room : 16;
    struct alarm **heap;

    if (count <= alarms->room)
        return 0;
    if (count > UINT32_MAX / 2)
        return -1;
    while (room < count)
        room *= 2;
    heap = realloc(alarms->heap, room * sizeof(struct alarm *));
    if (heap == NULL)
        return -1;
    alarms->heap = heap;
    alarms->room = room;
    return 0;
}

void alarm_set(struct alarms *alarms, struct alarm *alarm, drift_time at)
{
    if (at == DRIFT_NEVER) {
        if (alarm->pos != ALARM_OFF)
            take_out(alarms, alarm);
        return;
    }
    if (alarm->pos == ALARM_OFF) {
        assert(alarms->len < alarms->room);
        alarm->at = at;
        sift_up(alarms, alarm, alarms->len++);
    } else if (at < alarm->at) {
        alarm->at = at;
        sift_up(alarms, alarm, alarm->pos);
    } else {
        alarm->at = at;
        sift_down(alarms, alarm, alarm->pos);
    }
}

drift_time alarm_next(const struct alarms *alarms)
{
    return alarms->len > 0 ? alarms->heap[0]->at : DRIFT_NEVER;
}

struct alarm *alarm_ring(struct alarms *alarms, drift_time now)
{
    struct alarm *first = alarms->len > 0 ? alarms->heap[0] : NULL;

    if (first == NULL || first->at > now)
        return NULL;
    take_out(alarms, first);
    return first;
}

void alarm_done(struct alarms *alarms)
{
    free(alarms->heap);
    *alarms = (struct alarms){0};
}
