/*
 * unfounded.c - judges a list of masters that are in no set yet, as founder.h and guard.h would.
 */
#include "redlock/cli/common/unfounded.h"

#include "redlock/client/inspect.h"

bool unfounded_is_stuck(const struct inspect_client *client, quorum_mask able)
{
    return client->restart_guard && client->set == 0 && !client->is_closed &&
           client->lists.to != able;
}

bool unfounded_is_told(struct redlock *rl)
{
    const struct inspect_client client = inspect_client(rl);
    bool is_told = false;

    for (unsigned m = 0; m < client.masters && client.set == 0; m++)
        is_told = is_told || inspect_master(rl, m).look.number != 0;
    return is_told;
}

bool unfounded_is_new(struct redlock *rl)
{
    const struct inspect_client client = inspect_client(rl);
    bool are_new = client.restart_guard && client.set == 0 && client.masters > 0;

    for (unsigned m = 0; m < client.masters && are_new; m++) {
        const struct inspect_master master = inspect_master(rl, m);

        are_new =
            master.is_linked && master.look.number != 0 && master.look.fresh && !master.look.ready;
    }
    return are_new;
}
