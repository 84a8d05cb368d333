/*
 * real.h - a real server beside the simulator's, for tests that compare the two.
 *
 * Each failure here ends the program with a message.
 */
#ifndef SIM_REAL_H
#define SIM_REAL_H

#include <stdint.h>

#include <hiredis/hiredis.h>

/* Start a redis-server without port and files.  It ends with the program. */
redisContext *real_start(void);

/* The server's folder.  A test may remove it. */
const char *real_home(void);

/* The reply to the oldest appended command that has no reply yet. */
redisReply *real_reply(void);
redisReply *real_reply_of(redisContext *context);

/* The same for a TIME command. */
uint64_t real_time_us(void);

/* Run a command, in hiredis' printf format, that must succeed. */
void real_run(const char *format, ...);

/* Print what went wrong, and end the program. */
void real_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif /* SIM_REAL_H */
