/*
 * report_metrics.c - what `redlock status --prometheus` prints: OpenMetrics text, version 1.0.0.
 *
 * Source of the format: the OpenMetrics specification, "ABNF".  Each family has a line of its type
 * and one of help, and all its samples follow.
 */
#include "redlock/cli/status/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/base/mask.h"
#include "redlock/base/text.h"

#define QUOTED_MAX (4 * REDLOCK_NAME_MAX + 1)

/* The value of a sample of one master.  NAN: it has none. */
typedef double value_fn(const struct report *report);

static double up_of(const struct report *report)
{
    return report->up;
}

static double warming_of(const struct report *report)
{
    return report->warming ? (double)report->warming_ms / 1e3 : 0;
}

static double round_trip_of(const struct report *report)
{
    return report->up || report->warming || report->late ? report->round_trip_us / 1e6
                                                         : (double)NAN;
}

/* The middle of the range, as in the text. */
static double offset_of(const struct report *report)
{
    return report->has_offset
               ? ((double)report->offset.lo + (double)report->offset.hi) / 2 / (double)DRIFT_S
               : (double)NAN;
}

static double certificate_of(const struct report *report)
{
    return report->has_certificate ? (double)report->certificate_left_s : (double)NAN;
}

static void print_head(const char *name, const char *help)
{
    (void)printf("# TYPE redlock_%s gauge\n# HELP redlock_%s %s\n", name, name, help);
}

static void print_one(const char *name, const char *help, double value)
{
    print_head(name, help);
    (void)printf("redlock_%s %.9g\n", name, value);
}

/* Names are bytes, and the format is UTF-8.  No label depends on the locale. */
static void print_label(const char *key, const char *text)
{
    char quoted[QUOTED_MAX];

    (void)printf("{%s=\"", key);
    for (const char *at = text_quote_as(TEXT_DATA, text, strlen(text), quoted, sizeof quoted);
         *at != '\0'; at++)
        (void)printf(*at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    (void)printf("\"}");
}

static void print_of_masters(const struct status *status, const char *name, const char *help,
                             value_fn *value_of)
{
    print_head(name, help);
    for (unsigned m = 0; m < status->masters; m++) {
        double value = value_of(&status->reports[m]);

        if (status->reports[m].gone || status->reports[m].stranger || isnan(value))
            continue;
        (void)printf("redlock_%s", name);
        print_label("master", inspect_master(status->rl, m).name);
        (void)printf(" %.9g\n", value);
    }
}

static void print_of_lock(const struct status *status, const char *name, const char *help,
                          double value)
{
    print_head(name, help);
    (void)printf("redlock_%s", name);
    print_label("name", status->name);
    (void)printf(" %.9g\n", value);
}

static void print_lock(const struct status *status)
{
    const struct report_lock lock = report_lock(status);
    bool is_known = strcmp(lock.state, "unknown") != 0 && strcmp(lock.state, "foreign") != 0;
    bool is_taken = is_known && strcmp(lock.state, "free") != 0;

    print_of_lock(status, "lock_known", "1: a majority agrees on who holds the lock.", is_known);
    print_of_lock(status, "lock_held", "1: a majority stores a holder, readers or permits.",
                  is_taken);
    print_of_lock(status, "lock_left_seconds", "How long the holder has it, if not renewed.",
                  (double)lock.ttl_ms / 1e3);
    print_of_lock(status, "lock_waiting", "Clients in its queue.", (double)lock.waiting);
    print_of_lock(status, "lock_permits", "Permits of this name that are taken.", lock.permits);
}

void report_metrics(const struct status *status)
{
    print_one("masters", "Masters that count: the members of the set.", status->counted);
    print_one("masters_up", "Masters that may vote, and take writes.", status->up);
    print_one("majority", "1: a majority may vote.", report_has_majority(status));
    print_one("list_refused", "1: clients refuse the list of masters.", status->refused);
    print_one("set_needs_rescue",
              "1: no time helps, and locks fail until members come back, or a rescue.",
              status->needs_rescue);
    print_one("set_changing", "1: a change of the set is not finished.",
              status->lists.from != status->lists.to);
    print_of_masters(status, "master_up", "1: the master may vote, and takes writes.", up_of);
    print_of_masters(status, "master_warming_seconds",
                     "How long until the master may vote; 0: it is not warming.", warming_of);
    print_of_masters(status, "master_round_trip_seconds", "How long an answer took.",
                     round_trip_of);
    print_of_masters(status, "master_clock_offset_seconds",
                     "Its clock minus the median of all: the middle of what is possible.",
                     offset_of);
    print_of_masters(status, "master_certificate_seconds",
                     "With TLS: how long until a certificate of its chain ends.", certificate_of);
    if (status->name != NULL)
        print_lock(status);
    (void)printf("# EOF\n");
}
