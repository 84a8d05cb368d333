/*
 * refusal.c - finds out whether masters answered with errors.
 */
#include "redlock/cli/common/refusal.h"

#include <string.h>

#include "redlock/client/inspect.h"
#include "redlock/wire/redis_error.h"

/* True: the master answers, with an error or with what is not to be used. */
static bool is_refusal(const struct reason *reason)
{
    const enum why why = reason->why;

    return redis_error_is(why) || why == WHY_NO_LOGIN || why == WHY_NO_LOGIN_TLS ||
           why == WHY_NO_RUN_ID || why == WHY_NO_INFO || why == WHY_OTHER_SET ||
           why == WHY_SET_CLOSED || why == WHY_STRANGER || why == WHY_REMOVED ||
           reason->at == AT_MARKER || reason->at == AT_SCRIPT;
}

bool refusal_of_list(struct redlock *rl, char *text, size_t size)
{
    char members[2]; /* Not needed. */

    (void)inspect_set(rl, members, sizeof members, text, size);
    return text[0] != '\0' && inspect_client(rl).up == 0;
}

/* The first master that refuses.  Their number: none does. */
static unsigned find_refusing(struct redlock *rl, unsigned masters)
{
    for (unsigned m = 0; m < masters; m++) {
        const struct inspect_master master = inspect_master(rl, m);

        if (is_refusal(&master.why))
            return m;
    }
    return masters;
}

/* The whole reason of a list that mixes sets is longer than that of one of its masters. */
static bool is_said_of(const struct blame *said, unsigned m, enum why why)
{
    return (said->masters & mask_of(m)) != 0 && said->why[m] == why && why != WHY_CLAIMED;
}

void refusal_tell(const struct cli *cli, struct redlock *rl, bool time_helps,
                  const struct blame *said, const char *arguments, bool has_more_names)
{
    bool is_off = cli->restart_guard != NULL && strcmp(cli->restart_guard, "off") == 0;
    const struct inspect_client client = inspect_client(rl);
    unsigned m = find_refusing(rl, client.masters);
    char why[REFUSAL_TEXT_MAX], members[2];
    bool is_said, is_mixed;

    /* It is chance which masters of a list of two sets are refused. */
    is_mixed = inspect_set(rl, members, sizeof members, why, sizeof why);
    if (!is_mixed && m < client.masters)
        (void)snprintf(why, sizeof why, "%s", inspect_master(rl, m).remark.text);
    else if (!is_mixed && !refusal_of_list(rl, why, sizeof why) &&
             time_helps) /* They may be connecting again. */
        return;
    else
        m = is_mixed ? client.masters : client.refuser;
    is_said = said == NULL || why[0] == '\0' ||
              (m < client.masters && is_said_of(said, m, inspect_master(rl, m).why.why));
    cli_hint("%s%ssee `redlock doctor%s%s%s`%s%s, which says what to change", is_said ? "" : why,
             is_said ? "" : ": ", cli->masters_option, is_off ? " --restart-guard off" : "",
             arguments, cli->has_dots ? " (with your list for the dots)" : "",
             has_more_names ? " and the same with the other names" : "");
}
