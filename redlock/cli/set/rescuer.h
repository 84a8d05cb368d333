/*
 * rescuer.h - drives the machine of a rescue (core/rescue.h) on the client of a survey.
 */
#ifndef REDLOCK_RESCUER_H
#define REDLOCK_RESCUER_H

#include "redlock/cli/set/survey.h"

/* Close the set of the survey, and found it anew with the members of list.  list->version: in, the
 * greatest that is known; out, that of the new list.  Each phase prints a line to standard error.
 * Returns an exit code, after a message if it is not CLI_OK. */
int rescuer_run(struct survey *survey, struct config *list);

#endif /* REDLOCK_RESCUER_H */
