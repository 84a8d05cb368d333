/*
 * refusal.c - finds out whether masters answered with errors.
 */
#include "redlock/cli/common/refusal.h"

#include <string.h>

#include "redlock/client/inspect.h"

/* True: the master answered, and the answer was an error.  Redis begins an error with a code in
 * capitals.  The text before it ends in ": ". */
static bool is_refusal(const char *error)
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    for (const char *at = error; at != NULL; at = strstr(at, ": ")) {
        at += at == error ? 0 : 2;
        if (strspn(at, capitals) >= 3 && at[strspn(at, capitals)] == ' ')
            return true;
    }
    return strncmp(error, "is a member of the set of ", 26) == 0 || /* Of other masters. */
           strncmp(error, "its set is closed", 17) == 0 ||
           strncmp(error, "restart guard: answered with garbage", 36) == 0 ||
           strncmp(error, "is no member of the set", 23) == 0 ||
           strncmp(error, "was removed from the set", 24) == 0;
}

bool refusal_of_list(struct redlock *rl, char *text, size_t size)
{
    char members[2]; /* Not needed. */

    inspect_set(rl, members, sizeof members, text, size);
    return text[0] != '\0' && inspect_client(rl).up == 0;
}

void refusal_tell(const struct cli *cli, struct redlock *rl, const char *said,
                  const char *arguments, bool has_more_names)
{
    bool is_off = cli->restart_guard != NULL && strcmp(cli->restart_guard, "off") == 0;
    bool is_hidden = strstr(cli->masters_option, " ...") != NULL;
    unsigned masters = inspect_client(rl).masters, m = 0;
    char why[REFUSAL_TEXT_MAX];
    bool is_said;

    while (m < masters && !is_refusal(inspect_master(rl, m).error))
        m++;
    if (m == masters && !refusal_of_list(rl, why, sizeof why)) /* They may be connecting again. */
        return;
    if (m < masters)
        (void)snprintf(why, sizeof why, "%s", inspect_master(rl, m).error);
    is_said = said == NULL || strstr(said, why) != NULL;
    cli_hint("%s%ssee `redlock doctor%s%s%s`%s%s, which says what to change", is_said ? "" : why,
             is_said ? "" : ": ", cli->masters_option, is_off ? " --restart-guard off" : "",
             arguments, is_hidden ? " (with your list for the dots)" : "",
             has_more_names ? " and the same with the other names" : "");
}
