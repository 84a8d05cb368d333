/*
 * report_set.c - what `redlock status` prints about the set of masters.
 */
#include "redlock/cli/status/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "redlock/cli/common/cli.h"
#include "redlock/client/inspect.h"

enum { MEMBERS_MAX = 2000, WHY_MAX = 600 };

/* Masters of the list that are no members. */
static void print_strangers(const struct status *status)
{
    const char *before = "no member of the set: master ";

    for (unsigned m = 0; m < status->masters; m++) {
        if (!status->reports[m].stranger)
            continue;
        (void)printf("%s%u", before, m + 1);
        before = ", master ";
    }
    if (status->shown > status->counted)
        (void)printf("\n");
}

void report_set_text(const struct status *status)
{
    const struct inspect_client client = inspect_client(status->rl);
    char members[MEMBERS_MAX], why[WHY_MAX];

    bool is_mixed = inspect_set(status->rl, members, sizeof members, why, sizeof why);

    print_strangers(status);
    if (client.is_closed)
        (void)printf("their set %016" PRIx64 " is closed, version %" PRIu64
                     ": a rescue is running, or was "
                     "interrupted: `redlock members rescue`, see `redlock help set-closed`\n",
                     client.set, client.set_version);
    else if (client.set != 0)
        (void)printf("%s %016" PRIx64 ", version %" PRIu64 ": %s\n",
                     is_mixed ? "the list mixes sets, and the first that answered is"
                              : "they are the set",
                     client.set, client.set_version, members);
    else if (why[0] == '\0' && client.restart_guard && question_finds_no_set(&status->question))
        (void)printf(
            "they are no set yet: %sthe first client that reaches all of them founds it, as "
            "`redlock init` does\n",
            status->founds_none ? "no lock is granted until all have answered once, and " : "");
    if (client.has_forgotten)
        (void)printf("too few members that answer remember the set, and no time helps: bring back "
                     "the others, or rescue it, see `redlock help set-forgotten`\n");
    if (client.lists.from != client.lists.to)
        (void)printf("the change is not finished, and a lock needs a majority of both lists: "
                     "`redlock members` says how to finish it\n");
    if (status->refused)
        (void)printf("clients refuse this list, and `redlock run` ends with %d: %s\n", CLI_CHANGE,
                     why[0] != '\0' ? why : "see `redlock doctor`");
    else if (why[0] != '\0')
        (void)printf("%s\n", why);
}

void report_set_json(const struct status *status)
{
    const struct inspect_client client = inspect_client(status->rl);
    char members[MEMBERS_MAX], why[WHY_MAX];

    (void)inspect_set(status->rl, members, sizeof members, why, sizeof why);
    (void)printf(",\"refused\":%s,\"needs_rescue\":%s,\"set\":", status->refused ? "true" : "false",
                 status->needs_rescue ? "true" : "false");
    if (client.set == 0) {
        (void)printf("null");
    } else {
        (void)printf("{\"id\":\"%016" PRIx64 "\",\"version\":%" PRIu64 ",\"members\":", client.set,
                     client.set_version);
        cli_json_string(stdout, members);
        (void)printf("}");
    }
    (void)printf(",\"set_error\":");
    cli_json_string(stdout, why);
}
