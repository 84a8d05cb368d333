/*
 * refusal.h - masters that answer with an error: why, and what to do.
 */
#ifndef REDLOCK_REFUSAL_H
#define REDLOCK_REFUSAL_H

#include <stdbool.h>

#include "redlock/cli/cli.h"

/* If masters refuse, print the call of `redlock doctor` that says what to change.  The reasons were
 * printed before.  arguments: those of doctor, with a blank before each.  has_more_names: the call
 * has only one of several names. */
void refusal_tell(const struct cli *cli, struct redlock *rl, const char *arguments,
                  bool has_more_names);

#endif /* REDLOCK_REFUSAL_H */
