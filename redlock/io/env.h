/*
 * env.h - what all parts of one client share: clock, alarms, random numbers, log and counters.
 *
 * It decides nothing, and knows nothing of locks.
 */
#ifndef REDLOCK_ENV_H
#define REDLOCK_ENV_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/alarm.h"
#include "redlock/base/message.h"
#include "redlock/io/loop.h"
#include "redlock/redlock.h"

struct tls_context;
struct tls_settings;

struct env {
    struct loop *loop;
    struct alarms alarms; /* The alarms of all parts, which share one timer of the loop. */
    uint64_t dice;        /* The state of env_random(). */
    struct redlock_stats stats;
    void (*log)(void *log_arg, enum redlock_level level, const char *message);
    void *log_arg;
    struct tls_context *tls;              /* NULL: no master is reached by TLS. */
    const struct tls_settings *tls_later; /* For the first member with TLS.  NULL: the defaults. */
    uint32_t asks_max;                    /* The most unanswered commands of one link. */
    bool closing;                         /* The client closes. */
    bool deaf;     /* The client closes on the caller's loop, so it reads no more answers. */
    bool in_event; /* See env_begin_event(). */
};

/*
 * An event is the I/O or timer of a link, a link that goes down, or the ringing of alarms.  Within
 * an event no link is taken down or freed, because a caller up the stack may use it.  A link that
 * breaks is *doomed*: it goes down when the event is over.  Events do not nest.  The user's
 * callbacks run between events, because they may run the loop and close the client.
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

/* The time now.  DRIFT_NEVER: the clock failed, so that every lease counts as expired. */
static inline drift_time env_now(const struct env *env)
{
    return loop_now(env->loop);
}

/* 32 random bits to spread retries.  They are not secret. */
uint32_t env_random(struct env *env);

/* Write one line to the caller's log.  It ends with the identifier, in brackets. */
void env_log(const struct env *env, enum redlock_level level, enum msg message, const char *format,
             ...) __attribute__((format(printf, 4, 5)));

#endif /* REDLOCK_ENV_H */
