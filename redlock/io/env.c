/*
 * env.c - random numbers and the log.
 */
#include "redlock/io/env.h"

#include <stdarg.h>
#include <stdio.h>

#include "redlock/base/text.h"

#define LINE_MAX 512 /* Bytes of a line of the log.  Chosen; a longer line is cut. */

/* SplitMix64 (Steele, Lea, Flood 2014).  Chosen: small and well known. */
uint32_t env_random(struct env *env)
{
    uint64_t z = (env->dice += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

void env_log(const struct env *env, enum redlock_level level, enum msg message, const char *format,
             ...)
{
    char line[LINE_MAX], text[LINE_MAX - 32]; /* An identifier is shorter. */
    va_list args;

    if (env->log == NULL)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)snprintf(line, sizeof line, "%s [%s]", text, message_id(message));
    env->log(env->log_arg, level, text_clean(line)); /* It may quote a master. */
}
