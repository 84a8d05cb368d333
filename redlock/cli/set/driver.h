/*
 * driver.h - drives the machine of a change (core/change.h) on the client of a survey.
 */
#ifndef REDLOCK_DRIVER_H
#define REDLOCK_DRIVER_H

#include <stdbool.h>

#include "redlock/cli/set/survey.h"

enum { DRIVER_AGAIN = -1 };

/*
 * Change the set to the list, which was computed from survey->newest.  Each phase prints a line to
 * standard error.  Returns CLI_OK, or DRIVER_AGAIN if the survey is out of date before anything
 * was begun, or another exit code after a message.  *ret_list: the list, with its version.
 */
int driver_run(struct survey *survey, const struct config *list, bool allows_even,
               struct config *ret_list);

#endif /* REDLOCK_DRIVER_H */
