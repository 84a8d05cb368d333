/*
 * metrics.c - what a client of this program has seen, as OpenMetrics text for Prometheus.
 *
 * Only the process that uses locks can tell how long it waited for them and held them.  Copy
 * print_metrics() into a program that keeps a client open, and answer GET /metrics with what it
 * prints; the content type is "application/openmetrics-text; version=1.0.0; charset=utf-8".
 *
 * This program takes and releases a lock COUNT times, and prints the metrics of that:
 *
 *     metrics NAME COUNT
 */
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <redlock.h>

#define PREFIX \
    "redlock_client_" /* `redlock status --prometheus` prints redlock_... without client. */
#define LABEL_MAX (2 * REDLOCK_ADDRESS_MAX + 16)

/* A master, with its label: master="10.0.0.1:6379". */
struct master {
    struct redlock_master_stats stats;
    char label[LABEL_MAX];
};

/* ---- The format ---- */

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
    (void)fprintf(out, "# TYPE " PREFIX "%s %s\n# HELP " PREFIX "%s %s\n", name, type, name, help);
}

/* label: "" or of one master.  The counts of buckets add up: each has those of all before. */
static void print_histogram(FILE *out, const char *name, const char *label,
                            const struct redlock_histogram *times)
{
    const char *comma = label[0] == '\0' ? "" : ",";
    const char *open = label[0] == '\0' ? "" : "{", *close = label[0] == '\0' ? "" : "}";
    uint64_t count = 0;

    for (unsigned i = 0; i < REDLOCK_BUCKETS; i++) {
        char limit[32] = "+Inf"; /* The last bucket has no limit. */

        count += times->counts[i];
        if (i < REDLOCK_BUCKETS - 1)
            (void)snprintf(limit, sizeof limit, "%.12g", (double)REDLOCK_BUCKET_US(i) / 1e6);
        (void)fprintf(out, PREFIX "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name, label, comma,
                      limit, count);
    }
    (void)fprintf(out, PREFIX "%s_sum%s%s%s %.9f\n", name, open, label, close,
                  (double)times->sum_ns / 1e9);
    (void)fprintf(out, PREFIX "%s_count%s%s%s %" PRIu64 "\n", name, open, label, close, count);
}

static void print_times(FILE *out, const char *name, const char *help,
                        const struct redlock_histogram *times)
{
    print_head(out, name, "histogram", help);
    print_histogram(out, name, "", times);
}

/* ---- A client ---- */

static void print_client(FILE *out, const struct redlock_stats *stats)
{
    print_times(out, "wait_seconds", "From a call to lock until the lock was granted.",
                &stats->wait);
    print_times(out, "acquire_seconds", "The last round of such a call: requests and votes.",
                &stats->acquire);
    print_times(out, "hold_seconds", "How long a lock was held.", &stats->hold);
    print_times(out, "extend_seconds", "How long a renewal took.", &stats->extend);
    print_head(out, "failed_locks", "counter", "Calls to lock that got none, by reason.");
    (void)fprintf(out, PREFIX "failed_locks_total{reason=\"contended\"} %" PRIu64 "\n",
                  stats->contended);
    (void)fprintf(out, PREFIX "failed_locks_total{reason=\"unreachable\"} %" PRIu64 "\n",
                  stats->unreachable);
    (void)fprintf(out, PREFIX "failed_locks_total{reason=\"too_late\"} %" PRIu64 "\n",
                  stats->too_late);
    print_head(out, "unconfirmed_releases", "counter",
               "Releases that too few masters confirmed: the lock may last until its ttl is over.");
    (void)fprintf(out, PREFIX "unconfirmed_releases_total %" PRIu64 "\n", stats->unconfirmed);
    print_head(out, "lost", "counter", "Locks that were lost while they were held.");
    (void)fprintf(out, PREFIX "lost_total %" PRIu64 "\n", stats->lost);
}

/* ---- Its masters ---- */

/* Quotation marks and backslashes of the address are escaped. */
static void write_label(const char *address, char label[LABEL_MAX])
{
    int len = snprintf(label, LABEL_MAX, "master=\"");

    for (const char *at = address; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            label[len++] = '\\';
        label[len++] = *at;
    }
    label[len++] = '"';
    label[len] = '\0';
}

/* Returns how many there are.  Numbers may have gaps while the set of masters changes. */
static unsigned read_masters(struct redlock *rl, struct master masters[REDLOCK_MASTERS_MAX])
{
    unsigned len = 0;

    for (unsigned number = 1; number <= REDLOCK_MASTERS_MAX; number++) {
        masters[len].stats.size = sizeof masters[len].stats;
        if (redlock_master_stats(rl, number, &masters[len].stats) != REDLOCK_OK)
            continue;
        write_label(masters[len].stats.address, masters[len].label);
        len++;
    }
    return len;
}

static void print_votes(FILE *out, const struct master *master)
{
    const struct {
        const char *vote;
        uint64_t count;
    } rows[] = {
        {"yes", master->stats.yes},
        {"no", master->stats.no},
        {"void_clock", master->stats.void_clock},
        {"void_state", master->stats.void_state},
        {"forbidden", master->stats.forbidden},
        {"error", master->stats.errors},
        {"timeout", master->stats.timeouts},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        (void)fprintf(out, PREFIX "master_votes_total{%s,vote=\"%s\"} %" PRIu64 "\n", master->label,
                      rows[i].vote, rows[i].count);
}

static void print_masters(FILE *out, const struct master *masters, unsigned len)
{
    print_head(out, "master_up", "gauge", "1: this client can ask the master for a lock.");
    for (unsigned i = 0; i < len; i++)
        (void)fprintf(out, PREFIX "master_up{%s} %d\n", masters[i].label, masters[i].stats.is_up);
    print_head(out, "master_round_trip_seconds", "histogram", "From a request until its answer.");
    for (unsigned i = 0; i < len; i++)
        print_histogram(out, "master_round_trip_seconds", masters[i].label,
                        &masters[i].stats.round_trip);
    print_head(out, "master_votes", "counter", "Answers to requests, and requests without one.");
    for (unsigned i = 0; i < len; i++)
        print_votes(out, &masters[i]);
    print_head(out, "master_breaks", "counter", "Connections that fell, and attempts that failed.");
    for (unsigned i = 0; i < len; i++)
        (void)fprintf(out, PREFIX "master_breaks_total{%s} %" PRIu64 "\n", masters[i].label,
                      masters[i].stats.breaks);
}

/* Any thread may call it, at any time while the client is open.  The program must not have set
 * LC_NUMERIC to a locale with another decimal point. */
static int print_metrics(FILE *out, struct redlock *rl)
{
    struct master masters[REDLOCK_MASTERS_MAX]; /* 17 KB. */
    struct redlock_stats stats = {.size = sizeof stats};
    int status = redlock_stats(rl, &stats);

    if (status != REDLOCK_OK)
        return status;
    print_client(out, &stats);
    print_masters(out, masters, read_masters(rl, masters));
    (void)fprintf(out, "# EOF\n");
    return REDLOCK_OK;
}

/* ---- The program ---- */

int main(int argc, char **argv)
{
    struct redlock_lock_options how;
    struct redlock_options opts;
    struct redlock *rl;

    if (argc != 3)
        errx(64, "usage: metrics NAME COUNT");
    redlock_options_init(&opts); /* REDLOCK_MASTERS names the masters. */
    redlock_lock_options_init(&how);
    how.wait_ms = 60000;
    if (redlock_open(&opts, &rl) != REDLOCK_OK)
        errx(1, "%s", redlock_errmsg(NULL));
    for (long left = strtol(argv[2], NULL, 10); left > 0; left--) {
        struct redlock_lease *lease;

        if (redlock_lock(rl, argv[1], &how, &lease) != REDLOCK_OK)
            errx(1, "%s", redlock_errmsg(rl));
        if (redlock_unlock(lease) != REDLOCK_OK)
            warnx("%s", redlock_errmsg(rl)); /* It ends when its time is over. */
    }
    if (print_metrics(stdout, rl) != REDLOCK_OK)
        errx(1, "the client is closed");
    redlock_close(rl);
    return 0;
}
