/*
 * status.c - `redlock status`: how the masters are, and who holds a lock.
 *
 * All masters are asked at once, each as soon as its link is up, and one
 * timeout bounds the whole.  Masters that the restart guard or the clock guard keep
 * from voting are asked like all others, and shown as what they are.
 */
#include "redlock/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "drift/drift.h"
#include "redlock/cli/marker.h"
#include "redlock/client.h"
#include "redlock/error.h"

#define COMMAND_MAX (REDLOCK_NAME_MAX + 96) /* "GET name" with its lengths, or the like. */
/* How many readers there are: those whose time is up may be stored still. */
#define COUNT_READERS                            \
    "local t=redis.call('time') "                \
    "local now=t[1]*1000+math.floor(t[2]/1000) " \
    "return redis.call('zcount',KEYS[1],'('..now,'+inf')"

#define QUOTED_MAX (4 * REDLOCK_NAME_MAX + 1)

enum query { QUERY_TIME, QUERY_LOOK, QUERY_GET, QUERY_PTTL, QUERY_QUEUE, QUERY_READERS, QUERIES };

/* What one master said. */
struct report {
    bool asked;
    unsigned questions, answers; /* How many of the queries. */
    bool over;                   /* Nothing more is to be expected. */
    bool up;                     /* It may vote, */
    bool warming;                /* or it may not yet. */
    bool barred;                 /* Its clock is not to be trusted. */
    bool has_offset, has_rate;   /* Of its clock: */
    struct drift_range offset;   /* against the median of all, ns, */
    struct drift_range rate_ppm; /* and how much faster than ours it runs. */
    bool fresh;                  /* It says that it is new. */
    uint64_t age_ms;             /* How long it has been warming, by its clock; */
    uint64_t warming_ms;         /* and how long it will, if somebody watches it. */
    bool unwatched;              /* It has warmed for longer than it would, had somebody. */
    drift_time asked_at;
    double round_trip_us;
    char error[160];   /* Why it is down, or cannot tell who holds the lock. */
    char *token;       /* That of the holder; NULL: free, or not known. */
    size_t token_len;  /* It may hold NULs: other programs write what they like. */
    long long ttl_ms;  /* -1: for ever. */
    long long readers; /* If it is shared; then there is no token. */
    bool knows_holder; /* Token, or its absence, is what the master said. */
    long long waiting; /* So many are in its queue (place.h). */
};

/* What all said of the lock. */
struct verdict {
    const struct report *holder; /* One of those with the token that leads; NULL: none. */
    unsigned holders;            /* Masters that store this token. */
    unsigned free;
    unsigned shared;   /* Masters that have readers of it. */
    unsigned known;    /* Masters that said any of these. */
    long long ttl_ms;  /* Until fewer than a majority store it; -1: for ever. */
    long long waiting; /* So many, at least, are in the queues of a majority. */
};

struct status {
    struct cli *cli;
    const char *name; /* NULL: only the masters. */
    bool rates;       /* Those of clocks are wanted, which takes a while. */
    struct redlock *rl;
    unsigned masters, up, warming, over;
    struct report reports[REDLOCK_MASTERS_MAX];
};

static unsigned majority(const struct status *status)
{
    return status->masters / 2 + 1;
}

/* ---- Asking ---- */

static drift_time read_clock(void)
{
    drift_time now = 0;

    (void)drift_now(&now); /* redlock_open() has found that there is this clock. */
    return now;
}

static void finish(struct status *status, struct report *report, bool up, const char *error)
{
    if (report->over)
        return;
    report->over = true;
    report->up = up;
    status->over++;
    status->up += up;
    if (error != NULL)
        (void)snprintf(report->error, sizeof report->error, "%s", error);
}

static void ask_one(struct status *status, unsigned master, enum query query, const char *command,
                    size_t len)
{
    status->reports[master].questions++;
    client_query(status->rl, master, query, command, len);
}

static void ask_name(struct status *status, unsigned master, enum query query, const char *word)
{
    char command[COMMAND_MAX];
    int len = snprintf(command, sizeof command, "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(word),
                       word, strlen(status->name), status->name);

    ask_one(status, master, query, command, (size_t)len);
}

static void ask_queue(struct status *status, unsigned master)
{
    char command[COMMAND_MAX];
    int len = snprintf(command, sizeof command,
                       "*4\r\n$6\r\nZCOUNT\r\n$%zu\r\n" WIRE_QUEUE "%s\r\n$1\r\n0\r\n$3\r\ninf\r\n",
                       WIRE_QUEUE_LEN + strlen(status->name), status->name);

    ask_one(status, master, QUERY_QUEUE, command, (size_t)len);
}

static void ask_readers(struct status *status, unsigned master)
{
    char command[COMMAND_MAX + sizeof COUNT_READERS];
    int len = snprintf(command, sizeof command,
                       "*4\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n1\r\n$%zu\r\n%s\r\n",
                       sizeof COUNT_READERS - 1, COUNT_READERS, strlen(status->name), status->name);

    ask_one(status, master, QUERY_READERS, command, (size_t)len);
}

static void ask(struct status *status, unsigned master)
{
    static const char time[] = "*1\r\n$4\r\nTIME\r\n"; /* Its user may ask this in any case. */
    struct report *report = &status->reports[master];
    char look[WIRE_MAX];

    report->asked = true;
    report->asked_at = read_clock();
    ask_one(status, master, QUERY_TIME, time, sizeof time - 1);
    if (status->rl->options.restart_guard)
        ask_one(status, master, QUERY_LOOK, look,
                marker_look(look, master_info(status->rl->masters[master]),
                            status->rl->options.max_ttl_ms, 0, 0, 0));
    if (status->name != NULL) {
        ask_name(status, master, QUERY_GET, "GET");
        ask_name(status, master, QUERY_PTTL, "PTTL");
        ask_queue(status, master);
        ask_readers(status, master);
    }
}

static void take_token(struct report *report, const struct reply *reply)
{
    if (reply->type == REPLY_ERROR) { /* A key of another type, or no permission. */
        (void)snprintf(report->error, sizeof report->error, "%s", reply->text);
        return;
    }
    report->knows_holder = true;
    if (reply->type != REPLY_TEXT)
        return;
    report->token = malloc(reply->text_len + 1);
    if (report->token == NULL) {
        report->knows_holder = false;
        return;
    }
    memcpy(report->token, reply->text, reply->text_len + 1);
    report->token_len = reply->text_len;
}

/* What GET could make nothing of. */
static void take_readers(struct report *report, const struct reply *reply)
{
    bool is_refused = reply->type == REPLY_ERROR && strstr(reply->text, "WRONGTYPE") == NULL;

    if (is_refused && strncmp(report->error, "WRONGTYPE", 9) == 0)
        (void)snprintf(report->error, sizeof report->error, "may have readers: %s", reply->text);
    if (reply->type != REPLY_INTEGER || reply->integer == 0)
        return;
    report->readers = reply->integer;
    report->knows_holder = true;
    report->error[0] = 0;
}

static void take_look(struct report *report, const struct reply *reply)
{
    struct marker marker;

    if (!marker_parse(reply, &marker))
        return; /* The guard has found that too. */
    report->age_ms = marker.age_ms;
    report->fresh = marker.look.fresh;
}

static void on_answer(struct redlock *rl, unsigned master, uint32_t query,
                      const struct reply *reply)
{
    struct status *status = rl->query_arg;
    struct report *report = &status->reports[master];

    if (report->over)
        return;
    if (reply == NULL) {
        finish(status, report, false, master_error(rl->masters[master]));
        return;
    }
    switch ((enum query)query) {
    case QUERY_TIME: /* Even a refusal makes the round trip. */
        report->round_trip_us = (double)(read_clock() - report->asked_at) / 1e3;
        break;
    case QUERY_LOOK:
        take_look(report, reply);
        break;
    case QUERY_GET:
        take_token(report, reply);
        break;
    case QUERY_PTTL:
        report->ttl_ms = reply->type == REPLY_INTEGER ? reply->integer : 0;
        break;
    case QUERY_QUEUE: /* Who may not ask sees nobody. */
        report->waiting = reply->type == REPLY_INTEGER ? reply->integer : 0;
        break;
    case QUERY_READERS:
        take_readers(report, reply);
        break;
    case QUERIES:
        break;
    }
    report->answers++;
}

/* All is answered: tell whether it may vote, unless it is too early for that. */
static void settle(struct status *status, unsigned m)
{
    struct report *report = &status->reports[m];
    const struct guard *guard = &status->rl->standing.guard;
    const struct guard_look *look = &guard->masters[m].look;
    bool is_asked = guard->masters[m].asked; /* Its answer may be that it has an epoch now. */
    drift_span left;

    if (!status->rl->options.restart_guard || (look->number != 0 && look->ready)) {
        finish(status, report, true, NULL);
        return;
    }
    if (look->number == 0 || is_asked || (status->rl->coming & 1u << m) != 0)
        return; /* All of them are new, and will soon have their epochs. */
    left = marker_left(guard_quarantine(guard), report->age_ms);
    report->warming = true;
    report->warming_ms = drift_to_ms(left);
    report->unwatched = report->age_ms >= drift_to_ms(guard_quarantine(guard));
    status->warming++;
    finish(status, report, false, "is warming up");
}

/* Ask the masters that have come up, and give up those that have not. */
static void look_at_links(struct status *status)
{
    for (unsigned m = 0; m < status->masters; m++) {
        struct report *report = &status->reports[m];
        bool linked = (status->rl->standing.linked & 1u << m) != 0;

        if (report->over)
            continue;
        if (linked && !report->asked)
            ask(status, m);
        else if (linked && report->answers == report->questions)
            settle(status, m);
        else if (!linked && (report->asked || !(status->rl->standing.connecting & 1u << m)))
            finish(status, report, false, master_error(status->rl->masters[m]));
    }
}

static void on_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct status *status = timer->data;

    (void)loop, (void)events;
    for (unsigned m = 0; m < status->masters; m++)
        finish(status, &status->reports[m], false, "does not answer in time"); /* Or not all. */
}

static void ask_all(struct status *status, struct ev_loop *loop)
{
    ev_timer limit;
    double limit_s = (status->cli->connect_timeout_ms + status->cli->reply_timeout_ms) / 1e3;

    status->rl->on_query = on_answer;
    status->rl->query_arg = status;
    ev_now_update(loop);
    ev_timer_init(&limit, on_limit, limit_s, 0);
    ev_set_priority(&limit, EV_MINPRI); /* Answers that are here come first. */
    limit.data = status;
    ev_timer_start(loop, &limit);
    while (status->over < status->masters) {
        ev_run(loop, EVRUN_ONCE);
        look_at_links(status);
    }
    ev_timer_stop(loop, &limit);
    status->rl->on_query = NULL;
}

/* ---- Clocks ---- */

/* A rate takes samples that are a second apart, and they come once a second. */
#define RATES_MAX_S 4.0

static void on_rates_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
    bool *is_over = timer->data;

    (void)loop, (void)events;
    *is_over = true;
}

static bool has_rates(const struct status *status)
{
    struct drift_range rate_ppm;

    for (unsigned m = 0; m < status->masters; m++)
        if ((status->rl->standing.linked & 1u << m) != 0 &&
            drift_node_rate(&status->rl->clocks.nodes[m].node, &rate_ppm) != 0)
            return false;
    return true;
}

static void wait_for_rates(struct status *status, struct ev_loop *loop)
{
    bool is_over = false;
    ev_timer limit;

    ev_now_update(loop);
    ev_timer_init(&limit, on_rates_limit, RATES_MAX_S, 0);
    limit.data = &is_over;
    ev_timer_start(loop, &limit);
    while (!is_over && !has_rates(status))
        ev_run(loop, EVRUN_ONCE);
    ev_timer_stop(loop, &limit);
}

/* What a client that has just begun cannot know does not speak against a master. */
static void look_at_clock(struct status *status, unsigned m, drift_time now)
{
    const struct clocks_node *clock = &status->rl->clocks.nodes[m];
    struct report *report = &status->reports[m];
    char text[sizeof report->error];

    if (!report->up && !report->warming)
        return;
    report->has_offset = clocks_offset(status->rl, m, now, &report->offset) == 0;
    report->has_rate = status->rates && drift_node_rate(&clock->node, &report->rate_ppm) == 0;
    if (!report->up || clock->reason == CLOCKS_NOTHING || clock->reason == CLOCKS_NOT_KNOWN ||
        !clocks_explain(status->rl, m, now, text, sizeof text))
        return;
    report->up = false;
    report->barred = true;
    status->up--;
    (void)snprintf(report->error, sizeof report->error, "%s", text);
}

static void look_at_clocks(struct status *status, struct ev_loop *loop)
{
    if (status->rl->options.clock_guard == REDLOCK_CLOCK_GUARD_OFF)
        return;
    if (status->rates)
        wait_for_rates(status, loop);
    for (unsigned m = 0; m < status->masters; m++)
        look_at_clock(status, m, read_clock());
}

/* ---- Judging ---- */

static bool same_token(const struct report *a, const struct report *b)
{
    if (a->token == NULL || b->token == NULL) /* Readers are alike. */
        return a->token == b->token;
    return a->token_len == b->token_len && memcmp(a->token, b->token, a->token_len) == 0;
}

/* Of masters that may not vote it does not matter what they store. */
static bool counts(const struct report *report)
{
    return report->up && (report->token != NULL || report->readers > 0);
}

/* Until when at least count of those with this token store it: the count-th
 * largest of their times. */
static long long ttl_of_majority(const struct status *status, const struct report *holder,
                                 unsigned count)
{
    long long best = 0;

    for (unsigned i = 0; i < status->masters; i++) {
        const struct report *one = &status->reports[i];
        unsigned longer = 0;

        if (!counts(one) || !same_token(one, holder))
            continue;
        for (unsigned k = 0; k < status->masters; k++) {
            const struct report *other = &status->reports[k];

            longer += counts(other) && same_token(other, holder) &&
                      (other->ttl_ms == -1 || (one->ttl_ms != -1 && other->ttl_ms >= one->ttl_ms));
        }
        if (longer >= count && (one->ttl_ms == -1 || (best != -1 && one->ttl_ms > best)))
            best = one->ttl_ms;
    }
    return best;
}

static long long count_waiting(const struct status *status)
{
    long long best = 0;

    for (unsigned i = 0; i < status->masters; i++) {
        unsigned as_many = 0;

        for (unsigned k = 0; k < status->masters; k++)
            as_many +=
                status->reports[k].up && status->reports[k].waiting >= status->reports[i].waiting;
        if (as_many >= majority(status) && status->reports[i].waiting > best)
            best = status->reports[i].waiting;
    }
    return best;
}

static struct verdict judge(const struct status *status)
{
    struct verdict verdict = {.holder = NULL, .waiting = count_waiting(status)};

    for (unsigned i = 0; i < status->masters; i++) {
        const struct report *one = &status->reports[i];
        unsigned same = 0;

        if (!one->knows_holder || !one->up) /* What it has forgotten is not free. */
            continue;
        verdict.known++;
        verdict.shared += one->readers > 0;
        verdict.free += !counts(one);
        if (!counts(one))
            continue;
        for (unsigned k = 0; k < status->masters; k++)
            same += counts(&status->reports[k]) && same_token(&status->reports[k], one);
        if (same > verdict.holders) {
            verdict.holders = same;
            verdict.holder = one;
        }
    }
    if (verdict.holders >= majority(status))
        verdict.ttl_ms = ttl_of_majority(status, verdict.holder, majority(status));
    return verdict;
}

/* ---- Printing, for people ---- */

static const char *quote(const char *text, size_t len, char buf[QUOTED_MAX])
{
    return error_quote(text, len, buf, QUOTED_MAX);
}

/* The two largest units will do. */
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

static void print_holder(const struct report *report)
{
    char quoted[QUOTED_MAX];

    if (!report->knows_holder) {
        (void)printf("  cannot tell: %s", quote(report->error, strlen(report->error), quoted));
    } else if (report->readers > 0) {
        (void)printf("  held by %lld reader%s ", report->readers, report->readers == 1 ? "" : "s");
        print_time_left(report->ttl_ms);
    } else if (report->token == NULL) {
        (void)printf("  free");
    } else {
        (void)printf("  held by %s ", quote(report->token, report->token_len, quoted));
        print_time_left(report->ttl_ms);
    }
    if (report->waiting > 0)
        (void)printf(", %lld in its queue", report->waiting);
}

/* A user may be forbidden to ask for INFO. */
static bool is_informed(const struct master_info *info)
{
    return strcmp(info->version, "?") != 0;
}

/* "+0.12 ms (-0.01 to 0.25)": the middle, and what it is in for certain. */
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

static void print_master(const struct status *status, unsigned m, int width)
{
    const struct report *report = &status->reports[m];
    const struct master_info *info = master_info(status->rl->masters[m]);
    char quoted[QUOTED_MAX], uptime[32];

    (void)printf("master %-2u  %-*s  ", m + 1, width, master_name(status->rl->masters[m]));
    if (!report->up && !report->warming) {
        (void)printf("%s  %s\n", report->barred ? "barred" : "down",
                     quote(report->error, strlen(report->error), quoted));
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
        print_holder(report);
    (void)printf("\n");
}

/* The first master that does not tell who has the lock, and says why; NULL: there is none. */
static const struct report *find_reason(const struct status *status)
{
    for (unsigned m = 0; m < status->masters; m++) {
        const struct report *report = &status->reports[m];

        if (!(report->up && report->knows_holder) && report->error[0] != 0)
            return report;
    }
    return NULL;
}

static void print_reason(const struct status *status)
{
    const struct report *reason = find_reason(status);
    char quoted[QUOTED_MAX];

    if (reason != NULL)
        (void)printf(": master %u: %s", (unsigned)(reason - status->reports) + 1,
                     quote(reason->error, strlen(reason->error), quoted));
}

static void print_verdict(const struct status *status)
{
    struct verdict verdict = judge(status);
    char quoted[QUOTED_MAX];

    (void)printf("%s: ", quote(status->name, strlen(status->name), quoted));
    if (verdict.holders >= majority(status)) {
        (void)printf("held by %s ",
                     verdict.holder->token == NULL
                         ? "readers"
                         : quote(verdict.holder->token, verdict.holder->token_len, quoted));
        print_time_left(verdict.ttl_ms);
        (void)printf(" on %u of %u masters, a majority\n", verdict.holders, status->masters);
    } else if (verdict.free >= majority(status)) {
        (void)printf("free on %u of %u masters, a majority\n", verdict.free, status->masters);
    } else {
        (void)printf("no majority agrees: of %u masters %u say that it is free, at most %u name "
                     "the same holder, %u do not tell",
                     status->masters, verdict.free, verdict.holders,
                     status->masters - verdict.known);
        print_reason(status);
        (void)printf("\n");
    }
    if (verdict.waiting > 0)
        (void)printf("%s: %lld %s in its queue on a majority of the masters\n",
                     quote(status->name, strlen(status->name), quoted), verdict.waiting,
                     verdict.waiting == 1 ? "waits" : "wait");
}

static void print_warming(const struct status *status)
{
    unsigned unwatched = 0;

    for (unsigned m = 0; m < status->masters; m++)
        unwatched += status->reports[m].warming && status->reports[m].unwatched;
    (void)printf("%u %s no memory, and may vote after one client has watched for so long: "
                 "`redlock init` does, status does not\n",
                 status->warming, status->warming == 1 ? "has" : "have");
    if (unwatched > 0)
        (void)printf("%u of them: no client has watched so far: run `redlock init`\n", unwatched);
}

static void print_text(const struct status *status)
{
    size_t width = 0;

    for (unsigned m = 0; m < status->masters; m++) {
        size_t len = strlen(master_name(status->rl->masters[m]));

        width = len > width ? len : width;
    }
    for (unsigned m = 0; m < status->masters; m++)
        print_master(status, m, (int)width);
    (void)printf("%u of %u masters are up, %s\n", status->up, status->masters,
                 status->up >= majority(status) ? "a majority" : "NO MAJORITY");
    if (status->warming > 0)
        print_warming(status);
    if (status->name != NULL)
        print_verdict(status);
}

/* ---- Printing, for programs ---- */

static void print_json_text(const char *key, const char *text)
{
    (void)printf("\"%s\":", key);
    if (text != NULL)
        cli_json_string(stdout, text);
    else
        (void)printf("null");
}

static void print_json_range(const char *key, const struct drift_range *range, double unit)
{
    (void)printf(",\"%s\":{\"min\":%.3f,\"max\":%.3f}", key, (double)range->lo / unit,
                 (double)range->hi / unit);
}

static void print_json_master(const struct status *status, unsigned m)
{
    const struct report *report = &status->reports[m];
    const struct master_info *info = master_info(status->rl->masters[m]);

    (void)printf("{\"number\":%u,", m + 1);
    print_json_text("endpoint", master_name(status->rl->masters[m]));
    (void)printf(",\"up\":%s,", report->up ? "true" : "false");
    print_json_text("error", report->error[0] != 0 ? report->error : NULL);
    if (report->warming)
        (void)printf(",\"warming_ms\":%llu,\"unwatched\":%s",
                     (unsigned long long)report->warming_ms, report->unwatched ? "true" : "false");
    if (report->up || report->warming) {
        (void)printf(",");
        print_json_text("version", is_informed(info) ? info->version : NULL);
        (void)printf(",");
        print_json_text("role", is_informed(info) ? info->role : NULL);
        (void)printf(",\"round_trip_us\":%.1f", report->round_trip_us);
        if (is_informed(info))
            (void)printf(",\"uptime_s\":%llu", (unsigned long long)info->uptime_s);
    }
    if (report->has_offset)
        print_json_range("clock_offset_us", &report->offset, 1e3);
    if (report->has_rate)
        print_json_range("clock_rate_ppm", &report->rate_ppm, 1);
    if ((report->up || report->warming) && report->knows_holder) {
        (void)printf(",");
        print_json_text("holder", report->token);
        if (report->readers > 0)
            (void)printf(",\"readers\":%lld", report->readers);
        if (report->token != NULL || report->readers > 0)
            (void)printf(",\"ttl_ms\":%lld", report->ttl_ms);
        (void)printf(",\"waiting\":%lld", report->waiting);
    }
    (void)printf("}");
}

static const char *reason_of(const struct status *status)
{
    const struct report *reason = find_reason(status);

    return reason != NULL ? reason->error : NULL;
}

/* state: "held", "shared", "free", or "unknown" where no majority agrees. */
static void print_json_verdict(const struct status *status)
{
    struct verdict verdict = judge(status);
    bool held = verdict.holders >= majority(status);
    bool is_free = verdict.free >= majority(status);
    bool is_shared = verdict.shared >= majority(status);

    (void)printf(",");
    print_json_text("resource", status->name);
    (void)printf(",");
    print_json_text("state", is_shared ? "shared" : held ? "held" : is_free ? "free" : "unknown");
    (void)printf(",");
    print_json_text("reason", held || is_free || is_shared ? NULL : reason_of(status));
    (void)printf(",");
    print_json_text("holder", held ? verdict.holder->token : NULL);
    (void)printf(",\"agreeing\":%u", held        ? verdict.holders
                                     : is_shared ? verdict.shared
                                     : is_free   ? verdict.free
                                                 : 0);
    if (held)
        (void)printf(",\"ttl_ms\":%lld", verdict.ttl_ms);
    (void)printf(",\"waiting\":%lld", verdict.waiting);
}

static void print_json(const struct status *status)
{
    (void)printf("{\"masters\":[");
    for (unsigned m = 0; m < status->masters; m++) {
        (void)printf("%s", m > 0 ? "," : "");
        print_json_master(status, m);
    }
    (void)printf("],\"masters_up\":%u,\"majority\":%s", status->up,
                 status->up >= majority(status) ? "true" : "false");
    if (status->name != NULL)
        print_json_verdict(status);
    (void)printf("}\n");
}

/* ---- The command ---- */

/* If all are new, whoever wants a lock from them gets it at once. */
static void welcome_the_new(struct status *status)
{
    for (unsigned m = 0; m < status->masters; m++)
        if (!status->reports[m].warming || !status->reports[m].fresh)
            return;
    for (unsigned m = 0; m < status->masters; m++) {
        status->reports[m].warming = false;
        status->reports[m].up = true;
        status->reports[m].error[0] = 0;
    }
    status->up = status->masters;
    status->warming = 0;
}

static int ask_and_print(struct status *status, struct ev_loop *loop)
{
    int code;

    status->masters = status->rl->options.masters_len;
    ask_all(status, loop);
    welcome_the_new(status);
    look_at_clocks(status, loop);
    if (status->cli->json)
        print_json(status);
    else
        print_text(status);
    code = cli_flush_output();
    if (code != CLI_OK)
        return code;
    return status->up >= majority(status) ? CLI_OK : CLI_UNREACHABLE;
}

/* Permits are locks with names that no other may have. */
static int check_name(const char *name)
{
    bool is_permit = strncmp(name, WIRE_PERMIT, WIRE_PERMIT_LEN) == 0;

    return options_check_name(is_permit ? name + WIRE_PERMIT_LEN : name);
}

static int status_main(struct cli *cli, int argc, char **argv)
{
    static const struct option own[] = {
        {"clocks", no_argument, NULL, CLI_OPTION_FIRST},
        {NULL, 0, NULL, 0},
    };
    struct status status = {.cli = cli};
    struct ev_loop *loop;
    int code;

    while (cli_getopt(cli, argc, argv, false, own) != -1)
        status.rates = true;
    if (optind < argc) {
        cli_need_arguments(cli, argc, argv, 1, "[NAME]");
        status.name = argv[optind];
        if (check_name(status.name) != REDLOCK_OK)
            cli_usage_error(cli, "%s", redlock_errmsg(NULL));
    }
    loop = ev_loop_new(EVFLAG_AUTO);
    if (loop == NULL) {
        cli_say("cannot make an event loop");
        return CLI_INTERNAL;
    }
    code = cli_open(cli, loop, &status.rl);
    if (code == CLI_OK) {
        status.rl->standing.guard.passive =
            true; /* It may be asked about some of the masters only. */
        code = ask_and_print(&status, loop);
    }
    (void)redlock_close(status.rl);
    for (unsigned m = 0; m < REDLOCK_MASTERS_MAX; m++)
        free(status.reports[m].token);
    ev_loop_destroy(loop);
    return code;
}

const struct cli_command cli_status = {
    .name = "status",
    .run = status_main,
    .usage = "status [--clocks] [NAME]",
    .help = "Print one line for each master: where it is, whether it is up, or else why not,\n"
            "its version, role, round trip, uptime, and how far its wall clock is off the\n"
            "median of all; with NAME also who holds this lock there, and for how long, and\n"
            "whether a majority agrees, and how many wait for it in line (run --fair).  A\n"
            "master without a memory is warming, and counts as if it were down: see\n"
            "`redlock init`; one whose clock is far off is barred.\n"
            "\n"
            "  --clocks               also watch the clocks for two seconds, and print how much\n"
            "                         faster than the clock here they run\n"
            "\n"
            "Exit: 0 a majority is up, 64 usage, 69 no majority is up.\n",
};
