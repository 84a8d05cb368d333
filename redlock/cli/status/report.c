/*
 * report.c - judges the answers of the masters, and prints them.  The file is longer than others,
 * because text and JSON print the same verdict.
 */
#include "redlock/cli/status/report.h"

#include <stdio.h>
#include <string.h>

#include "redlock/cli/common/cli.h"
#include "redlock/client/inspect.h"
#include "redlock/base/error.h"
#include "redlock/base/text.h"
#include "redlock/wire/keys.h"

#define QUOTED_MAX (4 * REDLOCK_NAME_MAX + 1)

/* What the answers of all masters say about the lock. */
struct verdict {
    const struct report *holder; /* A master with the token that most masters store.  NULL: none. */
    quorum_mask holders;         /* Masters that store this token. */
    quorum_mask free;            /* Masters that store no holder. */
    quorum_mask shared;          /* Masters that store readers. */
    quorum_mask foreign;         /* Masters that store a key which redlock did not write. */
    bool is_kept;                /* So many that no client can get the lock. */
    unsigned known;              /* Masters that reported a holder, or none. */
    long long ttl_ms;            /* How long a majority stores the holder. */
    long long waiting;           /* A majority has at least this many in its queue. */
    unsigned permits;            /* Permits of this name that a majority stores. */
    unsigned unknown;            /* Permits that a majority neither stores nor lacks. */
    unsigned seats;              /* Masters that store a permit of this name. */
};

/* True: these masters are a majority; while the set changes, of each list. */
static bool decide(const struct status *status, quorum_mask masters)
{
    return members_decide(&status->lists, masters);
}

bool report_has_majority(const struct status *status)
{
    quorum_mask up = 0;

    for (unsigned m = 0; m < status->masters; m++)
        up |= status->reports[m].up ? mask_of(m) : 0;
    return !status->founds_none && decide(status, up);
}

/* ---- Judging ---- */

static bool same_token(const struct report *a, const struct report *b)
{
    if (a->token == NULL || b->token == NULL) /* All readers are one holder. */
        return a->token == b->token;
    return a->token_len == b->token_len && memcmp(a->token, b->token, a->token_len) == 0;
}

/* All keys of locks have an end.  A lock is a text, and readers are a sorted set. */
static bool is_foreign(const struct report *report)
{
    return report->ttl_ms == -1 || report->error.message == MSG_FOREIGN_KEY;
}

/* True: such a master stores a holder. */
static bool counts(const struct report *report)
{
    return report_tells(report) && !is_foreign(report) &&
           (report->token != NULL || report->readers > 0);
}

/* The longest time for which a majority stores this token. */
static long long ttl_of_majority(const struct status *status, const struct report *holder)
{
    long long ttl_ms[REDLOCK_MASTERS_MAX] = {0};

    for (unsigned m = 0; m < status->masters; m++) {
        const struct report *report = &status->reports[m];

        if (counts(report) && same_token(report, holder))
            ttl_ms[m] = report->ttl_ms;
    }
    return members_reach(&status->lists, ttl_ms);
}

static long long count_waiting(const struct status *status)
{
    long long waiting[REDLOCK_MASTERS_MAX] = {0};

    for (unsigned m = 0; m < status->masters; m++)
        waiting[m] = report_tells(&status->reports[m]) ? status->reports[m].waiting : 0;
    return members_reach(&status->lists, waiting);
}

/* True: a majority of the masters stores this permit, or, if not taken, does not store it. */
static bool is_agreed(const struct status *status, unsigned slot, bool taken)
{
    quorum_mask masters = 0;

    for (unsigned m = 0; m < status->masters; m++)
        if (report_tells(&status->reports[m]) && status->reports[m].knows_permits &&
            (report_permit(&status->reports[m], slot) != NULL) == taken)
            masters |= mask_of(m);
    return decide(status, masters);
}

static bool is_taken(const struct status *status, unsigned slot)
{
    return is_agreed(status, slot, true);
}

static void count_permits(const struct status *status, struct verdict *verdict)
{
    for (unsigned slot = 0; slot < REDLOCK_PERMITS_MAX; slot++) {
        verdict->permits += is_taken(status, slot);
        verdict->unknown += !is_taken(status, slot) && !is_agreed(status, slot, false);
    }
    for (unsigned m = 0; m < status->masters; m++)
        verdict->seats += report_tells(&status->reports[m]) && status->reports[m].permits > 0;
}

static struct verdict judge(const struct status *status)
{
    struct verdict verdict = {.holder = NULL, .waiting = count_waiting(status)};

    for (unsigned i = 0; i < status->masters; i++) {
        const struct report *one = &status->reports[i];
        quorum_mask same = 0;

        if (!report_tells(one)) /* A master that forgot does not know what is free. */
            continue;
        verdict.known += one->knows_holder || is_foreign(one);
        verdict.foreign |= is_foreign(one) ? mask_of(i) : 0;
        if (!one->knows_holder || is_foreign(one))
            continue;
        verdict.shared |= one->readers > 0 ? mask_of(i) : 0;
        verdict.free |= !counts(one) ? mask_of(i) : 0;
        if (!counts(one))
            continue;
        for (unsigned k = 0; k < status->masters; k++)
            if (counts(&status->reports[k]) && same_token(&status->reports[k], one))
                same |= mask_of(k);
        if (decide(status, same) ||
            (!decide(status, verdict.holders) && mask_count(same) > mask_count(verdict.holders))) {
            verdict.holders = same;
            verdict.holder = one;
        }
    }
    count_permits(status, &verdict);
    verdict.is_kept = verdict.foreign != 0 &&
                      !decide(status, members_all(&status->lists) & (quorum_mask)~verdict.foreign);
    if (decide(status, verdict.holders))
        verdict.ttl_ms = ttl_of_majority(status, verdict.holder);
    return verdict;
}

/* True: nobody holds the lock, and no permit of this name is taken. */
static bool is_free(const struct status *status, const struct verdict *verdict)
{
    return decide(status, verdict->free) && verdict->permits == 0 && verdict->unknown == 0;
}

/* ---- Printing text ---- */

static const char *quote(const char *text, size_t len, char buf[QUOTED_MAX])
{
    return text_quote(text, len, buf, QUOTED_MAX);
}

static const char *quote_name(const struct status *status, char buf[QUOTED_MAX])
{
    return text_quote_as(TEXT_NAME, status->name, strlen(status->name), buf, QUOTED_MAX);
}

/* Write a time in its two largest units. */
static const char *show_uptime(uint64_t seconds, char *buf, size_t size)
{
    unsigned long long s = seconds;

    if (s >= 86400)
        (void)snprintf(buf, size, "%llud%lluh", s / 86400, s % 86400 / 3600);
    else if (s >= 3600)
        (void)snprintf(buf, size, "%lluh%llum", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        (void)snprintf(buf, size, "%llum%llus", s / 60, s % 60);
    else
        (void)snprintf(buf, size, "%llus", s);
    return buf;
}

static void print_time_left(long long ttl_ms)
{
    if (ttl_ms == -1)
        (void)printf("without an end");
    else
        (void)printf("for %.3f s more", (double)(ttl_ms > 0 ? ttl_ms : 0) / 1e3);
}

static bool is_revoked(const char *token)
{
    return strncmp(token, WIRE_REVOKED, WIRE_REVOKED_LEN) == 0;
}

/* Who holds it, or who revoked it and why.  A reason is any words, which the time follows. */
static void print_token(const struct report *report)
{
    char quoted[QUOTED_MAX];
    const char *text = quote(report->token, report->token_len, quoted);
    const char *why = is_revoked(report->token) ? strstr(text, ": ") : NULL;

    if (why != NULL)
        (void)printf("%.*s: \"%s\" ", (int)(why - text), text, why + 2);
    else
        (void)printf("%s%s ", is_revoked(report->token) ? "" : "held by ", text);
}

/* is_named: the last line has the token. */
static void print_holder(const struct report *report, bool is_named)
{
    char quoted[QUOTED_MAX];

    if (!report->knows_holder) {
        (void)printf("  unknown: %s",
                     quote(report->error.text, strlen(report->error.text), quoted));
    } else if (report->readers > 0) {
        (void)printf("  held by %lld reader%s ", report->readers, report->readers == 1 ? "" : "s");
        print_time_left(report->ttl_ms);
    } else if (report->token == NULL) {
        (void)printf("  free");
    } else if (is_foreign(report)) {
        (void)printf("  no lock, but %s ", quote(report->token, report->token_len, quoted));
        print_time_left(report->ttl_ms);
    } else {
        (void)printf("  ");
        if (is_named && !is_revoked(report->token))
            (void)printf("held ");
        else
            print_token(report);
        print_time_left(report->ttl_ms);
    }
    if (report->knows_holder && report->readers == 0 && report->token == NULL &&
        !report->knows_permits)
        (void)printf(", permits unknown");
    if (report->permits > 0)
        (void)printf(", %u permit%s taken", report->permits, report->permits == 1 ? "" : "s");
    if (report->waiting > 0)
        (void)printf(", %lld in its queue", report->waiting);
}

/* False: the user may not use INFO. */
static bool is_informed(const struct master_info *info)
{
    return strcmp(info->version, "?") != 0;
}

/* "+0.12 ms (-0.01 to 0.25)": the middle of the range, and the range. */
static void print_range(const char *what, const struct drift_range *range, double unit,
                        const char *unit_name)
{
    double lo = (double)range->lo / unit, hi = (double)range->hi / unit;

    (void)printf("  %s %+.3g %s (%.3g to %.3g)", what, (lo + hi) / 2, unit_name, lo, hi);
}

static void print_clock(const struct report *report)
{
    if (report->has_offset)
        print_range("clock", &report->offset, (double)DRIFT_MS, "ms");
    if (report->has_rate)
        print_range("rate", &report->rate_ppm, 1, "ppm");
}

/* named: masters whose holder the last line names. */
static void print_master(const struct status *status, unsigned m, int width, quorum_mask named)
{
    const struct report *report = &status->reports[m];
    const struct inspect_master master = inspect_master(status->rl, m);
    const struct master_info *info = &master.info;
    char quoted[QUOTED_MAX], uptime[32];

    (void)printf("master %-2u  %-*s  ", m + 1, width, master.name);
    if (!report->up && !report->warming) {
        (void)printf("%s  %s\n",
                     report->barred ? "barred"
                     : report->late ? "late"
                                    : "down",
                     quote(report->error.text, strlen(report->error.text), quoted));
        return;
    }
    if (report->warming)
        (void)printf("warming %.1f s%s  ", (double)report->warming_ms / 1e3,
                     report->unwatched ? " (unwatched)" : "");
    else
        (void)printf("up    ");
    (void)printf("version %s  role %s  round trip %.3f ms  uptime %s",
                 quote(info->version, strlen(info->version), quoted), info->role,
                 report->round_trip_us / 1e3,
                 is_informed(info) ? show_uptime(info->uptime_s, uptime, sizeof uptime) : "?");
    print_clock(report);
    if (status->name != NULL)
        print_holder(report, (named & mask_of(m)) != 0);
    (void)printf("\n");
}

/* Why the first master that did not report the holder, or the permits, did not.  NULL: there is no
 * such master, or no reason. */
static const char *find_reason(const struct status *status, bool of_permits, unsigned *ret_number)
{
    for (unsigned m = 0; m < status->masters; m++) {
        const struct report *report = &status->reports[m];
        bool is_told =
            report_tells(report) && (of_permits ? report->knows_permits : report->knows_holder);
        const struct remark *why =
            of_permits && report_tells(report) ? &report->permits_error : &report->error;

        if (is_told || why->message == MSG_NONE)
            continue;
        *ret_number = m + 1;
        return why->text;
    }
    return NULL;
}

static void print_reason(const struct status *status, bool of_permits)
{
    unsigned number;
    const char *reason = find_reason(status, of_permits, &number);
    char quoted[QUOTED_MAX];

    if (reason != NULL)
        (void)printf(": master %u: %s", number, quote(reason, strlen(reason), quoted));
}

static void list_permits(const struct status *status, const char *between)
{
    const char *before = "";

    for (unsigned slot = 0; slot < REDLOCK_PERMITS_MAX; slot++) {
        if (!is_taken(status, slot))
            continue;
        (void)printf("%s%u", before, slot + 1); /* Users count from 1. */
        before = between;
    }
}

static void print_permits(const struct status *status, unsigned permits)
{
    char quoted[QUOTED_MAX];

    (void)printf("%s: %u permit%s taken (number ", quote_name(status, quoted), permits,
                 permits == 1 ? "" : "s");
    list_permits(status, ", ");
    (void)printf(") on a majority of the masters\n");
}

static void print_owner(const struct status *status, const struct verdict *verdict)
{
    if (verdict->holder->token == NULL)
        (void)printf("held by readers ");
    else
        print_token(verdict->holder);
    print_time_left(verdict->ttl_ms);
    (void)printf(" on %u of %u %s, a majority\n", mask_count(verdict->holders), status->counted,
                 status->noun);
}

static void print_lock(const struct status *status, const struct verdict *verdict)
{
    char quoted[QUOTED_MAX];

    (void)printf("%s: ", quote_name(status, quoted));
    if (decide(status, verdict->holders)) {
        print_owner(status, verdict);
    } else if (decide(status, verdict->free)) {
        (void)printf("free on %u of %u %s, a majority", mask_count(verdict->free), status->counted,
                     status->noun);
        if (!is_free(status, verdict)) {
            (void)printf(", but whether permits of it are taken is unknown");
            print_reason(status, true);
        }
        (void)printf("\n");
    } else {
        (void)printf("no majority agrees: of %u %s %u say that it is free, at most %u name "
                     "the same holder, %u did not report",
                     status->counted, status->noun, mask_count(verdict->free),
                     mask_count(verdict->holders), status->counted - verdict->known);
        print_reason(status, false);
        (void)printf("\n");
    }
}

static void print_no_lock(const struct status *status, unsigned masters, const char *key,
                          const char *what)
{
    char name[QUOTED_MAX], quoted[QUOTED_MAX];

    if (masters > 0)
        (void)printf("%s: redlock did not write %s on %u of %u %s, so it is no %s: delete it "
                     "there, or use another name\n",
                     quote_name(status, name), quote(key, strlen(key), quoted), masters,
                     status->counted, status->noun, what);
}

/* All permits may be keys that Redlock did not write.  The message is then about the first. */
static void print_foreign_permit(const struct status *status)
{
    char key[REDLOCK_NAME_MAX + 64], type[SHOWN_FOREIGN_MAX];
    unsigned masters = 0, slot;

    for (slot = 0; slot < REDLOCK_PERMITS_MAX && masters == 0; slot++)
        for (unsigned m = 0; m < status->masters; m++)
            masters += shown_foreign(report_permit(&status->reports[m], slot), type) != NULL;
    (void)snprintf(key, sizeof key, "the key " WIRE_PERMIT "%s:%u", status->name, slot - 1);
    print_no_lock(status, masters, key, "permit");
}

static void print_foreign(const struct status *status, const struct verdict *verdict)
{
    char queue[REDLOCK_NAME_MAX + 64], type[SHOWN_FOREIGN_MAX];
    unsigned queues = 0;

    for (unsigned m = 0; m < status->masters; m++)
        queues +=
            shown_foreign(shown_find(&status->reports[m].shown, SHOWN_QUEUE, 0), type) != NULL;
    if (!verdict->is_kept)
        print_no_lock(status, mask_count(verdict->foreign), "this key", "lock there");
    (void)snprintf(queue, sizeof queue, "the key " WIRE_QUEUE "%s", status->name);
    print_no_lock(status, queues, queue, "queue");
    print_foreign_permit(status);
}

static void print_verdict(const struct status *status, const struct verdict *verdict)
{
    char quoted[QUOTED_MAX];

    print_foreign(status, verdict);
    if (!verdict->is_kept) /* Scripts read the verdict in the last line. */
        report_votes_text(status, verdict->holders);
    if (verdict->permits > 0)
        print_permits(status, verdict->permits);
    /* If permits are taken and the plain lock of this name is free, do not show the plain lock: the
     * semaphore would seem to be free. */
    if (verdict->is_kept) /* Then nothing else is to be said of the lock. */
        print_no_lock(status, mask_count(verdict->foreign), "this key", "lock");
    else if (verdict->permits == 0 || !decide(status, verdict->free))
        print_lock(status, verdict);
    report_holders_text(status);
    if (verdict->waiting > 0)
        (void)printf("%s: %lld %s in its queue on a majority of the masters\n",
                     quote_name(status, quoted), verdict->waiting,
                     verdict->waiting == 1 ? "waits" : "wait");
}

static void print_warming(const struct status *status)
{
    unsigned unwatched = 0, witnessed = 0, alone = 0;

    for (unsigned m = 0; m < status->masters; m++) {
        alone += status->reports[m].warming && !inspect_master(status->rl, m).has_witnesses;
        unwatched += status->reports[m].warming && status->reports[m].unwatched;
        witnessed += status->reports[m].warming && status->reports[m].witnessed;
    }
    (void)printf(
        "%u %s warming up, and may vote %s\n", status->warming, status->warming == 1 ? "is" : "are",
        witnessed == status->warming ? "after this time"
        : alone > 0
            ? "when one client has watched for this time: `redlock init` does, status "
              "does not"
            : "after this time, which begins when a client notices that: `redlock init` and "
              "locks do, status does not");
    if (unwatched > 0)
        (void)printf("%u of them: no client has watched so far: run `redlock init`\n", unwatched);
}

/* ---- All as text ---- */

void report_text(const struct status *status)
{
    const struct verdict verdict = judge(status);
    size_t width = 0;

    for (unsigned m = 0; m < status->masters; m++) {
        size_t len = strlen(inspect_master(status->rl, m).name);

        width = len > width ? len : width;
    }
    for (unsigned m = 0; m < status->masters; m++)
        if (!status->reports[m].gone)
            print_master(status, m, (int)width,
                         decide(status, verdict.holders) ? verdict.holders : 0);
    (void)printf("%u of %u %s are up, %s\n", status->up, status->counted, status->noun,
                 report_has_majority(status) ? "a majority" : "NO MAJORITY");
    if (status->warming > 0)
        print_warming(status);
    if (!report_has_majority(status))
        (void)printf("see `redlock help %s`\n", message_id(question_decides(&status->question)));
    cli_print_clock_guard(status->rl);
    report_set_text(status);
    if (status->name != NULL)
        print_verdict(status, &verdict);
}

/* ---- Printing JSON ---- */

static void print_json_range(const char *key, const struct drift_range *range, double unit)
{
    (void)printf(",\"%s\":{\"min\":%.3f,\"max\":%.3f}", key, (double)range->lo / unit,
                 (double)range->hi / unit);
}

static void print_json_master(const struct status *status, unsigned m)
{
    const struct report *report = &status->reports[m];
    const struct inspect_master master = inspect_master(status->rl, m);
    const struct master_info *info = &master.info;

    (void)printf("{\"number\":%u", m + 1);
    cli_json_member("endpoint", master.name);
    (void)printf(",\"up\":%s", report->up ? "true" : "false");
    cli_json_error(report->error.text, report->error.message);
    if (report->warming)
        (void)printf(",\"warming_ms\":%llu,\"unwatched\":%s",
                     (unsigned long long)report->warming_ms, report->unwatched ? "true" : "false");
    if (report->up || report->warming || report->late) {
        cli_json_member("version", is_informed(info) ? info->version : NULL);
        cli_json_member("role", is_informed(info) ? info->role : NULL);
        (void)printf(",\"round_trip_us\":%.1f", report->round_trip_us);
        if (is_informed(info))
            (void)printf(",\"uptime_s\":%llu", (unsigned long long)info->uptime_s);
    }
    if (report->has_offset)
        print_json_range("clock_offset_us", &report->offset, 1e3);
    if (report->has_rate)
        print_json_range("clock_rate_ppm", &report->rate_ppm, 1);
    if ((report_tells(report) || report->warming) && report->knows_holder) {
        cli_json_holder(report->token, report->token_len);
        if (report->readers > 0)
            (void)printf(",\"readers\":%lld", report->readers);
        if (report->token != NULL || report->readers > 0)
            (void)printf(",\"ttl_ms\":%lld", report->ttl_ms);
        (void)printf(",\"waiting\":%lld", report->waiting);
        if (report->knows_permits)
            (void)printf(",\"permits\":%u", report->permits);
        else
            (void)printf(",\"permits\":null");
    }
    (void)printf("}");
}

struct report_lock report_lock(const struct status *status)
{
    struct verdict verdict = judge(status);
    bool held = decide(status, verdict.holders), is_unheld = decide(status, verdict.free);
    struct report_lock lock = {.state = "unknown",
                               .holder = held ? verdict.holder : NULL,
                               .ttl_ms = verdict.ttl_ms,
                               .waiting = verdict.waiting,
                               .permits = verdict.permits,
                               .votes = mask_count(verdict.holders)};
    unsigned number;

    if (decide(status, verdict.shared)) {
        lock.state = "shared";
        lock.agreeing = mask_count(verdict.shared);
    } else if (held) {
        lock.state = is_revoked(verdict.holder->token) ? "revoked" : "held";
        lock.agreeing = mask_count(verdict.holders);
    } else if (verdict.is_kept) {
        lock.state = "foreign";
        lock.agreeing = mask_count(verdict.foreign);
        lock.reason = find_reason(status, false, &number);
    } else if (verdict.permits > 0 && is_unheld) {
        lock.state = "permits";
        lock.agreeing = verdict.seats;
    } else if (is_free(status, &verdict)) {
        lock.state = "free";
        lock.agreeing = mask_count(verdict.free);
    } else {
        lock.reason = find_reason(status, is_unheld, &number);
    }
    return lock;
}

static void print_json_verdict(const struct status *status)
{
    const struct report_lock lock = report_lock(status);

    cli_json_member("resource", status->name);
    cli_json_member("state", lock.state);
    cli_json_member("reason", lock.reason);
    cli_json_holder(lock.holder != NULL ? lock.holder->token : NULL,
                    lock.holder != NULL ? lock.holder->token_len : 0);
    (void)printf(",\"agreeing\":%u,\"votes\":%u", lock.agreeing, lock.votes);
    if (lock.holder != NULL)
        (void)printf(",\"ttl_ms\":%lld", lock.ttl_ms);
    else
        (void)printf(",\"ttl_ms\":null");
    (void)printf(",\"waiting\":%lld,\"permits\":[", lock.waiting);
    list_permits(status, ",");
    (void)printf("]");
    report_holders_json(status);
}

void report_json(const struct status *status)
{
    (void)printf("{\"masters\":[");
    for (unsigned m = 0, shown = 0; m < status->masters; m++) {
        if (status->reports[m].gone)
            continue;
        (void)printf("%s", shown++ > 0 ? "," : "");
        print_json_master(status, m);
    }
    (void)printf("],\"masters_up\":%u,\"majority\":%s", status->up,
                 report_has_majority(status) ? "true" : "false");
    report_set_json(status);
    if (status->name != NULL)
        print_json_verdict(status);
    (void)printf("}\n");
}
