/*
 * report_holders.c - what `redlock status` prints about readers, and about who holds permits.
 */
#include "redlock/cli/status/report.h"

#include <stdio.h>
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/base/text.h"
#include "redlock/cli/common/cli.h"

#define QUOTED_MAX (4 * REDLOCK_NAME_MAX + 1)

/* What a majority stores.  Masters that may not vote do not count.  Empty if memory is exhausted.
 */
static struct shown find_holders(const struct status *status)
{
    const struct shown *of[REDLOCK_MASTERS_MAX];
    struct shown agreed;

    for (unsigned m = 0; m < status->masters; m++)
        of[m] = report_tells(&status->reports[m]) ? &status->reports[m].shown : NULL;
    (void)holders_agree(of, status->masters, &status->lists, &agreed);
    return agreed;
}

static void print_votes(quorum_mask list, quorum_mask votes, const char *of)
{
    (void)printf("%u of %u votes%s, and needs %u", mask_count(votes & list), mask_count(list), of,
                 mask_count(list) / 2 + 1);
}

/* A lock that is free has no votes, but for what a client that failed has left.  A vote of readers
 * is a master that stores any. */
void report_votes_text(const struct status *status, quorum_mask votes)
{
    const struct members *lists = &status->lists;
    bool is_joint = lists->to != lists->from;
    char name[QUOTED_MAX];

    if ((votes & members_all(lists)) == 0)
        return;
    (void)printf("%s: %s ",
                 text_quote_as(TEXT_NAME, status->name, strlen(status->name), name, sizeof name),
                 members_decide(lists, votes) ? "the lock has" : "no holder: one token has only");
    print_votes(lists->from, votes, is_joint ? " of the old members" : "");
    if (is_joint) {
        (void)printf("; ");
        print_votes(lists->to, votes, " of the new members");
    }
    (void)printf("%s\n", members_barely_decide(lists, votes)
                             ? ": no master that stores it may be away"
                             : "");
}

void report_holders_text(const struct status *status)
{
    struct shown holders = find_holders(status);
    char name[QUOTED_MAX], token[QUOTED_MAX];

    for (size_t i = 0; i < holders.len; i++) {
        const struct shown_row *one = &holders.rows[i];

        (void)printf("%s: ", text_quote_as(TEXT_NAME, status->name, strlen(status->name), name,
                                           sizeof name));
        if (one->number > 0)
            (void)printf("permit %u: held by ", one->number);
        else
            (void)printf("reader ");
        (void)printf("%s for %.3f s more\n",
                     text_quote(one->text, one->text_len, token, sizeof token),
                     (double)one->left_ms / 1e3);
    }
    shown_free(&holders);
}

void report_holders_json(const struct status *status)
{
    struct shown holders = find_holders(status);

    (void)printf(",\"holders\":[");
    for (size_t i = 0; i < holders.len; i++) {
        const struct shown_row *one = &holders.rows[i];

        (void)printf("%s{\"permit\":", i > 0 ? "," : "");
        if (one->number > 0)
            (void)printf("%u", one->number);
        else
            (void)printf("null");
        cli_json_holder(one->text, one->text_len);
        (void)printf(",\"ttl_ms\":%lld}", one->left_ms);
    }
    (void)printf("]");
    shown_free(&holders);
}
