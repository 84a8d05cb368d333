/*
 * writes.h - whether a master takes writes of this user now: for what is shown, not for locks.
 *
 * A lock needs no such question, since a master that refuses a SET says so itself.  But a command
 * that only reads would call this master up.
 */
#ifndef REDLOCK_WRITES_H
#define REDLOCK_WRITES_H

#include <stdbool.h>
#include <stdint.h>

struct remark;
struct redlock;
struct reply;

/* Ask a master whose link is up, as inspect_query() does.  It changes nothing there.  Returns the
 * number of answers that are to come. */
unsigned writes_ask(struct redlock *rl, unsigned m, uint32_t query);

/* Read one of the answers.  True: the master refuses writes, or an ACL forbids this user what each
 * lock needs, and *ret_remark says why. */
bool writes_are_refused(const struct reply *reply, struct remark *ret_remark);

#endif /* REDLOCK_WRITES_H */
