/*
 * leases.c - how much memory a held lease needs, and how much CPU time its renewal takes.
 *
 * One client on a loop takes many locks and holds them all.  mallinfo2() reports how much the heap
 * has grown.  Then the client releases them.  Names do not count, because the caller chooses their
 * length.  The program allocates its own memory before it measures.
 *
 *   leases [--masters LIST] [--leases N] [--limit BYTES] [--ttl MS] [--hold SECONDS] [--note TEXT]
 *
 * With --hold, the leases are held and renewed for so long, and the CPU time is printed.
 *
 * Prints one line of key=value.  Ends with 1 if a lock or unlock fails, or if a lease needs more
 * than the limit; with 77 if mallinfo2() does not cover this malloc, such as a sanitizer's.
 */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <ev.h>

#include "redlock/redlock.h"

enum {
    EXIT_USAGE = 64,
    EXIT_SKIPPED = 77, /* Means "skipped" to meson. */
    LEASES_DEFAULT = 100000,
    LEASES_MAX = 10000000,
    IN_FLIGHT = 256, /* The same as when throughput is measured. */
    WARM_UP = 1,     /* Locks before the measurement, to bring links up.  The client keeps the
                      * memory of each, so more would make the figure too small. */
    TTL_MS = 60000,  /* The longest ttl by default, so that few renewals disturb. */
    HOLD_MAX_S = 3600,
    REPLY_MS = 5000,  /* Chosen: long enough for a busy machine. */
    NAME_MAX_LEN = 32 /* Enough for "leases/<number>". */
};

/* Chosen: ample for the late answers of the last locks.  The memory that the client needs for
 * these is not part of a held lease. */
static const double settle_s = 0.5;

static struct {
    const char *masters;
    unsigned leases_len;
    unsigned limit_bytes; /* 0: no limit. */
    unsigned ttl_ms;
    unsigned hold_s;
    const char *note; /* NULL: that of the client. */
} options = {.leases_len = LEASES_DEFAULT, .ttl_ms = TTL_MS};

static struct ev_loop *loop;
static struct redlock *client;
static struct redlock_lock_options lock_options;

/* The locks or unlocks under way: how many to run, and how many are started and done. */
static unsigned target;
static unsigned started;
static unsigned done;
static struct redlock_lease **leases;
static size_t names_bytes;

static void die(const char *what, int status) __attribute__((noreturn));

static void die(const char *what, int status)
{
    (void)fprintf(stderr, "leases: %s: %s: %s\n", what, redlock_strerror(status),
                  redlock_errmsg(client));
    exit(EXIT_FAILURE);
}

static unsigned parse_count(const char *text, unsigned max)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && text[0] != '-' && value > 0 && value <= max)
        return (unsigned)value;
    (void)fprintf(stderr, "leases: not a number from 1 to %u: %s\n", max, text);
    exit(EXIT_USAGE);
}

static void parse_options(int argc, char **argv)
{
    static const struct option longs[] = {
        {"masters", required_argument, NULL, 'm'},
        {"leases", required_argument, NULL, 'n'},
        {"limit", required_argument, NULL, 'l'},
        {"ttl", required_argument, NULL, 't'},
        {"hold", required_argument, NULL, 'h'},
        {"note", required_argument, NULL, 'o'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (option == 'm')
            options.masters = optarg;
        else if (option == 'n')
            options.leases_len = parse_count(optarg, LEASES_MAX);
        else if (option == 'l')
            options.limit_bytes = parse_count(optarg, INT32_MAX);
        else if (option == 't')
            options.ttl_ms = parse_count(optarg, TTL_MS);
        else if (option == 'h')
            options.hold_s = parse_count(optarg, HOLD_MAX_S);
        else if (option == 'o')
            options.note = optarg;
        else
            exit(EXIT_USAGE); /* getopt_long() has printed a message. */
    }
    if (optind < argc) {
        (void)fprintf(stderr, "leases: unexpected argument: %s\n", argv[optind]);
        exit(EXIT_USAGE);
    }
}

/* Runs `step` for 0 to len - 1, IN_FLIGHT at once, until all are done. */
static void run_all(unsigned len, void (*step)(void))
{
    target = len;
    started = 0;
    done = 0;
    while (started < target && started < IN_FLIGHT)
        step();
    ev_run(loop, 0);
}

static void step_is_done(void (*step)(void))
{
    done++;
    if (started < target)
        step();
    if (done == target)
        ev_break(loop, EVBREAK_ALL);
}

static void lock_next(void);
static void unlock_next(void);

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    if (status != REDLOCK_OK)
        die("lock", status);
    leases[(uintptr_t)arg] = lease;
    step_is_done(lock_next);
}

static void lock_next(void)
{
    char name[NAME_MAX_LEN];
    unsigned i = started++;
    int status;

    names_bytes += (size_t)snprintf(name, sizeof name, "leases/%u", i) + 1;
    status = redlock_lock_async(client, name, &lock_options, on_locked, (void *)(uintptr_t)i, NULL);
    if (status != REDLOCK_OK)
        die("lock", status);
}

static void on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease;
    (void)arg;
    if (status != REDLOCK_OK)
        die("unlock", status);
    step_is_done(unlock_next);
}

static void unlock_next(void)
{
    int status = redlock_unlock_async(leases[started++], on_unlocked, NULL);

    if (status != REDLOCK_OK)
        die("unlock", status);
}

static void on_settled(struct ev_loop *settled_loop, ev_timer *timer, int events)
{
    (void)timer;
    (void)events;
    ev_break(settled_loop, EVBREAK_ALL);
}

static void run_for(double seconds)
{
    ev_timer timer;

    ev_timer_init(&timer, on_settled, seconds, 0);
    ev_now_update(loop);
    ev_timer_start(loop, &timer);
    ev_run(loop, 0);
}

static void settle(void)
{
    run_for(settle_s);
}

static double cpu_s(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage); /* Cannot fail with these arguments. */
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static struct redlock_stats stats(void)
{
    struct redlock_stats now = {.size = sizeof now};

    if (redlock_stats(client, &now) != REDLOCK_OK)
        die("stats", REDLOCK_E_STATE);
    return now;
}

/* Hold all leases for a while, and print what that took. */
static void hold(void)
{
    struct redlock_stats before = stats(), after;
    double cpu_before_s = cpu_s();

    if (options.hold_s == 0)
        return;
    run_for(options.hold_s);
    after = stats();
    (void)printf("held_s=%u renewed=%llu lost=%llu cpu_percent=%.2f ", options.hold_s,
                 (unsigned long long)(after.extended - before.extended),
                 (unsigned long long)(after.lost - before.lost),
                 100 * (cpu_s() - cpu_before_s) / options.hold_s);
}

/* The bytes in use by malloc, with its overhead and large blocks. */
static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void on_log(void *arg, enum redlock_level level, const char *message)
{
    (void)arg;
    if (level <= REDLOCK_LOG_WARNING)
        (void)fprintf(stderr, "leases: %s\n", message);
}

static void open_client(void)
{
    struct redlock_options client_options;
    int status;

    redlock_options_init(&client_options);
    client_options.note = ""; /* As names, notes are counted aside. */
    client_options.masters = options.masters;
    client_options.loop = loop;
    client_options.reply_timeout_ms = REPLY_MS;
    client_options.log = on_log;
    status = redlock_open(&client_options, &client);
    if (status != REDLOCK_OK)
        die("open", status);
    redlock_lock_options_init(&lock_options);
    lock_options.ttl_ms = options.ttl_ms;
    lock_options.note = options.note;
}

/* Prints the figures.  Returns the exit status. */
static int report(size_t before, size_t held, size_t after)
{
    double len = options.leases_len;
    double bytes_per_lease = ((double)held - (double)before - (double)names_bytes) / len;

    if (held <= before) {
        (void)fprintf(stderr, "leases: SKIPPED: mallinfo2() does not cover this malloc\n");
        return EXIT_SKIPPED;
    }
    (void)printf("leases=%u heap_bytes_per_lease=%.1f name_bytes_per_lease=%.1f "
                 "heap_bytes_kept_per_lease=%.1f\n",
                 options.leases_len, bytes_per_lease, (double)names_bytes / len,
                 ((double)after - (double)before) / len);
    if (options.limit_bytes == 0 || bytes_per_lease <= options.limit_bytes)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "leases: more than %u bytes a lease\n", options.limit_bytes);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    size_t before;
    size_t held;
    size_t after;

    parse_options(argc, argv);
    leases = calloc(options.leases_len, sizeof *leases);
    loop = ev_default_loop(0);
    if (leases == NULL || loop == NULL) {
        (void)fprintf(stderr, "leases: out of memory\n");
        return EXIT_FAILURE;
    }
    open_client();
    run_all(WARM_UP, lock_next);
    run_all(WARM_UP, unlock_next);
    settle();

    names_bytes = 0;
    before = heap_bytes();
    run_all(options.leases_len, lock_next);
    settle();
    hold();
    held = heap_bytes();
    run_all(options.leases_len, unlock_next);
    settle();
    after = heap_bytes();

    client = redlock_close(client);
    ev_loop_destroy(loop);
    free(leases);
    return report(before, held, after);
}
