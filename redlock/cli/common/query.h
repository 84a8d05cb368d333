/*
 * query.h - sends commands to masters.
 */
#ifndef REDLOCK_QUERY_H
#define REDLOCK_QUERY_H

#include <stdint.h>

struct redlock;

/* Send a command to a master whose link is up, as inspect_query() does.  words: the command and its
 * arguments, and then NULL. */
void query_send(struct redlock *rl, unsigned m, uint32_t query, const char *const *words);

#endif /* REDLOCK_QUERY_H */
