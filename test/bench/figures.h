/*
 * figures.h - what the programs of this folder share: their command line, the clocks they measure
 * with, and the line they print.  The line is that of `redlock bench`, so that test/bench/run can
 * put them side by side.
 */
#ifndef TEST_BENCH_FIGURES_H
#define TEST_BENCH_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FIGURES_MASTERS_MAX = 15,    /* As many as a client of the library accepts. */
    FIGURES_IN_FLIGHT_MAX = 4096 /* floor-raw.c keeps a slot's number in 12 bits. */
};

struct figures_master {
    char host[256]; /* 253 is the longest host name (RFC 1035). */
    int port;
};

struct figures_options {
    struct figures_master masters[FIGURES_MASTERS_MAX];
    unsigned masters_len;
    unsigned in_flight; /* Cycles under way at once. */
    unsigned cycles;    /* Cycles to run in all. */
    bool flag;          /* The program's own option was given. */
};

/* Reads --masters HOST:PORT,..., --in-flight K and --cycles N, and `flag`, the name of one option
 * of the program's own without argument, or NULL.  A bad command line ends the program (64). */
void figures_options_parse(struct figures_options *ret_options, int argc, char **argv,
                           const char *flag);

/* Ends the program (1) with a message, and the text of errno where that is not 0. */
void figures_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

struct figures {
    uint32_t *acquire_ns; /* One sample a cycle, in order of arrival. */
    uint32_t *unlock_ns;
    size_t acquire_len;
    size_t unlock_len;
    size_t samples_max;
    uint64_t errors;     /* Answers that were not the expected one. */
    uint64_t elapsed_ns; /* Between figures_begin() and figures_end(), as is the next one. */
    uint64_t cpu_ns;     /* User and system time of this process, all its threads. */
};

/* Room for so many cycles, touched beforehand: page faults are no part of a cycle. */
void figures_init(struct figures *figures, size_t cycles);
void figures_done(struct figures *figures);

void figures_begin(struct figures *figures);
void figures_end(struct figures *figures);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t figures_now_ns(void);

/* Samples past the room given are dropped. */
void figures_acquired(struct figures *figures, uint64_t took_ns);
void figures_unlocked(struct figures *figures, uint64_t took_ns);

/* Sorts the samples and prints the line. */
void figures_print(struct figures *figures);

#endif /* TEST_BENCH_FIGURES_H */
