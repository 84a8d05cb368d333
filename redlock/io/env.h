/*
 * env.h - what all parts of one client share: its clock, alarms, dice, log and counters.
 *
 * It decides nothing, and knows nothing of locks.
 */
#ifndef REDLOCK_ENV_H
#define REDLOCK_ENV_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/alarm.h"
#include "redlock/io/loop.h"
#include "redlock/redlock.h"

struct env {
    struct loop *loop;
    struct alarms alarms; /* Of all parts: one timer of the loop is enough. */
    uint64_t dice;        /* State of env_random(). */
    struct redlock_stats stats;
    void (*log)(void *log_arg, enum redlock_level level, const char *message);
    void *log_arg;
    uint32_t asks_max; /* Commands that one link may owe us answers to. */
    bool closing;      /* The client closes. */
    bool deaf;         /* It closes on the caller's loop, so that it will hear no answer. */
    bool in_event;     /* See env_begin_event(). */
};

/*
 * What a link brings, its end, and the alarms are events.  Within an event no link goes down
 * and none is freed, since a caller up the stack may use it: a link that breaks is doomed, and
 * goes down when the event is over.  Events do not nest.  The user's callbacks run between
 * events, because they may run the loop and close the client.
 */
static inline void env_begin_event(struct env *env)
{
    assert(!env->in_event);
    env->in_event = true;
}

static inline void env_end_event(struct env *env)
{
    assert(env->in_event);
    env->in_event = false;
}

/* The time now; DRIFT_NEVER, by which every lease is over, if the clock fails. */
static inline drift_time env_now(const struct env *env)
{
    return loop_now(env->loop);
}

/* 32 fair bits for spreading retries; nothing secret. */
uint32_t env_random(struct env *env);

/* One line to the caller's log. */
void env_log(const struct env *env, enum redlock_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif /* REDLOCK_ENV_H */
