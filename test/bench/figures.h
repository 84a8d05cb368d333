/*
 * figures.h - what the programs of this folder share: the command line, the samples, and the
 * line that they print.  `redlock bench` prints the same line, so test/bench/run can compare them.
 */
#ifndef TEST_BENCH_FIGURES_H
#define TEST_BENCH_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/cli/common/samples.h"

enum {
    FIGURES_MASTERS_MAX = 15,      /* The most masters of a client of the library. */
    FIGURES_IN_FLIGHT_MAX = 4096,  /* exchange.c keeps a slot's number in 12 bits. */
    FIGURES_CYCLES_DEFAULT = 20000 /* Chosen: takes two to three seconds, one cycle at a time. */
};

struct figures_master {
    char host[256]; /* 253 is the longest host name (RFC 1035). */
    int port;
};

struct figures_options {
    struct figures_master masters[FIGURES_MASTERS_MAX];
    unsigned masters_len;
    unsigned in_flight; /* Cycles under way at once. */
    unsigned cycles;    /* Cycles to run in total. */
    bool flag;          /* The program's own option was given. */
};

/* Reads --masters HOST:PORT,..., --in-flight K and --cycles N.  `flag` names an option of the
 * program itself, without an argument; or it is NULL.  A bad command line ends the program (64). */
void figures_options_parse(struct figures_options *ret_options, int argc, char **argv,
                           const char *flag);

/* Ends the program (1) with a message, and with the text of errno unless that is 0. */
void figures_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

struct figures {
    uint32_t *acquire_ns; /* One sample for each cycle, in order of arrival. */
    uint32_t *unlock_ns;
    size_t acquire_len;
    size_t unlock_len;
    size_t samples_max;
    uint64_t errors;     /* Answers that were not the expected one. */
    uint64_t elapsed_ns; /* The time between figures_begin() and figures_end(). */
    uint64_t cpu_ns;     /* User and system time of all threads, between the same calls. */
};

/* Makes room for so many cycles, and touches it, so that no cycle has its page faults. */
void figures_init(struct figures *figures, size_t cycles);
void figures_done(struct figures *figures);

void figures_begin(struct figures *figures);
void figures_end(struct figures *figures);

/* Record a sample.  Samples beyond the room are dropped. */
void figures_acquired(struct figures *figures, uint64_t took_ns);
void figures_unlocked(struct figures *figures, uint64_t took_ns);

/* Sorts the samples and prints the line. */
void figures_print(struct figures *figures);

#endif /* TEST_BENCH_FIGURES_H */
