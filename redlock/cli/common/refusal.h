/*
 * refusal.h - masters that answer with an error: why, and what to do.
 */
#ifndef REDLOCK_REFUSAL_H
#define REDLOCK_REFUSAL_H

#include <stdbool.h>

#include "redlock/base/blame.h"
#include "redlock/cli/common/cli.h"

#define REFUSAL_TEXT_MAX 600 /* As SET_TEXT_MAX of masters/set.h. */

/* True: no master may vote, for the list of masters is refused: it names one that is no member of
 * the set, say.  text: why. */
bool refusal_of_list(struct redlock *rl, char *text, size_t size);

/* If masters refuse, or if no time helps, print the call of `redlock doctor` that says what to
 * change.  said: the masters that the message before it blames.  A reason that it lacks is printed,
 * too.  NULL: all were printed.  arguments: those of doctor, with a blank before each.
 * has_more_names: the call has only one of several names. */
void refusal_tell(const struct cli *cli, struct redlock *rl, bool time_helps,
                  const struct blame *said, const char *arguments, bool has_more_names);

#endif /* REDLOCK_REFUSAL_H */
