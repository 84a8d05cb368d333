/*
 * rescue.h - `redlock members rescue`: found a set anew that has lost a majority for good.
 */
#ifndef REDLOCK_CLI_RESCUE_H
#define REDLOCK_CLI_RESCUE_H

#include "redlock/cli/set/survey.h"
#include "redlock/cli/set/wish.h"

/* True: the set has the new list already, for a rescue with it was run before. */
bool cli_rescue_is_met(const struct survey *found, const struct wish *wish);

/* lost: the names of the lost members, with commas between, or "-" for none.  wish: its joiners are
 * all members of the new list.  is_dry: only say what would be done.  Returns an exit code, after a
 * message if it is not CLI_OK.  *ret_list: the list, with its version. */
int cli_rescue(struct survey *survey, const struct wish *wish, const char *lost, bool is_dry,
               struct config *ret_list);

#endif /* REDLOCK_CLI_RESCUE_H */
