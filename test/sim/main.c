/*
 * main.c - test-sim [FIRST-SEED [COUNT]]
 *
 * Runs so many seeds and prints what was seen.  The last line is "N passed, N failed".
 * SEED=n runs one seed and prints a trace.  "test-sim @FILE" runs the seeds of a file.  A seed is
 * a number, perhaps behind the name of a theme (plan.c): "test-sim clocks:1 1000".
 */
#include "world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "tls.h"

#define COUNT_DEFAULT 2000
#define COUNT_FULL 2000 /* So many seeds must see every outcome and fault. */
#define AGAIN_EVERY 97  /* One of so many seeds is run twice. */

/* ---- The random numbers of libsodium come from the dice ---- */

static const char *name(void)
{
    return "dice";
}

static uint32_t word(void)
{
    return (uint32_t)dice_next();
}

static void bytes(void *buf, size_t len)
{
    unsigned char *p = buf;

    for (size_t i = 0; i < len; i++)
        p[i] = (unsigned char)dice_next();
}

static randombytes_implementation dice = {
    .implementation_name = name,
    .random = word,
    .buf = bytes,
};

/* ---- Failures ---- */

#define RUN_MAX_S 120 /* Chosen: hundreds of times what a run takes under valgrind. */

static void on_crash(int number)
{
    char line[96];
    int len =
        snprintf(line, sizeof line, "seed %s: VIOLATED %s: signal %d\n",
                 world_seed_text(world.seed), number == SIGALRM ? "liveness" : "assertion", number);

    (void)!write(STDOUT_FILENO, line, (size_t)len);
    _exit(1);
}

static uint64_t run(uint64_t seed, bool verbose)
{
    (void)alarm(RUN_MAX_S); /* The library may hang, too. */
    return run_seed(seed, verbose);
}

static void run_twice(uint64_t seed)
{
    uint64_t first = run(seed, false), second = run(seed, false);

    if (first != second)
        world_fail("simulator", "two runs differ: %016" PRIx64 " and %016" PRIx64, first, second);
}

/* ---- Reports ---- */

/* Returns how many were never seen. */
static unsigned report_counts(const char *const *texts, const uint64_t *counts, unsigned len)
{
    unsigned unseen = 0;

    for (unsigned i = 0; i < len; i++) {
        printf("  %10" PRIu64 "  %s\n", counts[i], texts[i]);
        unseen += counts[i] == 0;
    }
    return unseen;
}

static double seconds_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int report(uint64_t hash, double seconds)
{
    unsigned unseen;

    printf("outcomes:\n");
    unseen = report_counts(outcome_texts, tally.outcomes, OUTCOME_LEN);
    printf("faults that hit:\n");
    unseen += report_counts(fault_texts, tally.faults, FAULT_LEN);
    printf("%" PRIu64 " seeds, %" PRIu64 " events, %" PRIu64 " grants, %" PRIu64 " checks, hash "
           "%016" PRIx64 "\n",
           tally.seeds, tally.events, tally.grants, tally.checks, hash);
    printf("%.1f s: %.0f seeds/s, %.0f events/s\n", seconds, (double)tally.seeds / seconds,
           (double)tally.events / seconds);
    if (tally.seeds >= COUNT_FULL && world_theme(world.seed) == THEME_ANY && unseen > 0) {
        printf("FAILED: %u of the outcomes and faults were never seen\n", unseen);
        printf("%" PRIu64 " passed, 1 failed\n", tally.seeds);
        return 1;
    }
    printf("%" PRIu64 " passed, 0 failed\n", tally.seeds);
    return 0;
}

/* ---- Seeds ---- */

static uint64_t parse(const char *text)
{
    uint64_t number;

    if (!world_parse_seed(text, &number)) {
        fprintf(stderr, "test-sim: not a number: %s\n", text);
        exit(64);
    }
    return number;
}

static uint64_t run_range(uint64_t first, uint64_t count)
{
    uint64_t hash = 0;

    for (uint64_t i = 0; i < count; i++) {
        if (i % AGAIN_EVERY == 0)
            run_twice(first + i);
        hash = hash * 31 + run(first + i, false);
        if (isatty(STDERR_FILENO) && i % 500 == 499)
            fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " seeds", i + 1, count);
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    return hash;
}

/* A build without TLS cannot run the theme tls. */
static bool may_run(uint64_t seed)
{
    if (sim_tls_is_built() || world_theme(seed) != THEME_TLS)
        return true;
    printf("seed %s: left out, this build has no TLS\n", world_seed_text(seed));
    return false;
}

/* One seed a line; a '#' begins a comment. */
static uint64_t run_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[256];
    uint64_t hash = 0;

    if (file == NULL) {
        fprintf(stderr, "test-sim: cannot read %s\n", path);
        exit(66);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "# \n")] = '\0';
        if (line[0] != '\0' && may_run(parse(line)))
            hash = hash * 31 + run(parse(line), false);
    }
    fclose(file);
    return hash;
}

int main(int argc, char **argv)
{
    const char *seed = getenv("SEED");
    double began = seconds_now();
    uint64_t first = argc > 1 && argv[1][0] != '@' ? parse(argv[1]) : 1;
    uint64_t count = argc > 2 ? parse(argv[2]) : argc > 1 ? 1 : COUNT_DEFAULT;
    uint64_t hash;

    (void)signal(SIGABRT, on_crash);
    (void)signal(SIGSEGV, on_crash);
    (void)signal(SIGALRM, on_crash);
    dice_seed(0);
    randombytes_set_implementation(&dice);
    if (sodium_init() < 0)
        return 1;
    if (seed != NULL && *seed != '\0')
        hash = run(parse(seed), true);
    else if (argc > 1 && argv[1][0] == '@')
        hash = run_file(argv[1] + 1);
    else
        hash = run_range(first, count);
    return report(hash, seconds_now() - began);
}
