/*
 * figures.c - see figures.h.  This code does not depend on how a program talks to its masters.
 */
#include "test/bench/figures.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 64 }; /* EX_USAGE of sysexits.h, as the `redlock` command uses. */

static const char masters_default[] =
    "127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003,127.0.0.1:7004,127.0.0.1:7005";

void figures_die(const char *format, ...)
{
    int error = errno;
    va_list args;

    va_start(args, format);
    (void)fprintf(stderr, "%s: ", program_invocation_short_name);
    (void)vfprintf(stderr, format, args);
    (void)fprintf(stderr, error == 0 ? "\n" : ": %s\n", strerror(error));
    va_end(args);
    exit(EXIT_FAILURE);
}

static void usage_die(const char *what, const char *value)
{
    (void)fprintf(stderr,
                  "%s: %s: %s\n"
                  "usage: %s [--masters HOST:PORT,...] [--in-flight K] [--cycles N]\n",
                  program_invocation_short_name, what, value, program_invocation_short_name);
    exit(EXIT_USAGE);
}

static unsigned parse_count(const char *text, const char *option, unsigned max)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value == 0 || value > max)
        usage_die(option, text);
    return (unsigned)value;
}

/* Parses one HOST:PORT.  The last colon separates the two, so "::1:7001" has the host "::1". */
static void parse_master(struct figures_master *master, const char *text, size_t text_len)
{
    const char *colon = memrchr(text, ':', text_len);
    char port[8];
    size_t host_len;
    size_t port_len;

    if (colon == NULL)
        usage_die("a master without a port", text);
    host_len = (size_t)(colon - text);
    port_len = text_len - host_len - 1;
    if (host_len == 0 || host_len >= sizeof master->host || port_len >= sizeof port)
        usage_die("a malformed master", text);
    memcpy(master->host, text, host_len);
    master->host[host_len] = '\0';
    memcpy(port, colon + 1, port_len);
    port[port_len] = '\0';
    master->port = (int)parse_count(port, "port", UINT16_MAX);
}

static void parse_masters(struct figures_options *options, const char *list)
{
    options->masters_len = 0;
    while (*list != '\0') {
        size_t len = strcspn(list, ",");

        if (options->masters_len == FIGURES_MASTERS_MAX)
            usage_die("too many masters", list);
        parse_master(&options->masters[options->masters_len++], list, len);
        list += len + (list[len] == ',');
    }
    if (options->masters_len == 0)
        usage_die("--masters", "empty");
}

void figures_options_parse(struct figures_options *ret_options, int argc, char **argv,
                           const char *flag)
{
    const struct option longs[] = {
        {"masters", required_argument, NULL, 'm'},
        {"in-flight", required_argument, NULL, 'k'},
        {"cycles", required_argument, NULL, 'n'},
        {flag, no_argument, NULL, 'f'}, /* May be NULL, which ends the table. */
        {NULL, 0, NULL, 0},
    };
    int option;

    *ret_options = (struct figures_options){.in_flight = 1, .cycles = FIGURES_CYCLES_DEFAULT};
    parse_masters(ret_options, masters_default);
    while ((option = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (option == 'm')
            parse_masters(ret_options, optarg);
        else if (option == 'k')
            ret_options->in_flight = parse_count(optarg, "--in-flight", FIGURES_IN_FLIGHT_MAX);
        else if (option == 'n')
            ret_options->cycles = parse_count(optarg, "--cycles", INT32_MAX);
        else if (option == 'f')
            ret_options->flag = true;
        else
            exit(EXIT_USAGE); /* getopt_long() has printed a message. */
    }
    if (optind < argc)
        usage_die("unexpected argument", argv[optind]);
}

void figures_init(struct figures *figures, size_t cycles)
{
    *figures = (struct figures){.samples_max = cycles};
    figures->acquire_ns = malloc(cycles * sizeof *figures->acquire_ns);
    figures->unlock_ns = malloc(cycles * sizeof *figures->unlock_ns);
    if (figures->acquire_ns == NULL || figures->unlock_ns == NULL)
        figures_die("no room for %zu samples", cycles);
    memset(figures->acquire_ns, 0xff, cycles * sizeof *figures->acquire_ns);
    memset(figures->unlock_ns, 0xff, cycles * sizeof *figures->unlock_ns);
}

void figures_done(struct figures *figures)
{
    free(figures->acquire_ns);
    free(figures->unlock_ns);
    *figures = (struct figures){0};
}

void figures_begin(struct figures *figures)
{
    figures->cpu_ns = samples_cpu_ns();
    figures->elapsed_ns = samples_now_ns();
}

void figures_end(struct figures *figures)
{
    figures->elapsed_ns = samples_now_ns() - figures->elapsed_ns;
    figures->cpu_ns = samples_cpu_ns() - figures->cpu_ns;
}

void figures_acquired(struct figures *figures, uint64_t took_ns)
{
    if (figures->acquire_len < figures->samples_max)
        figures->acquire_ns[figures->acquire_len++] = samples_of(took_ns);
}

void figures_unlocked(struct figures *figures, uint64_t took_ns)
{
    if (figures->unlock_len < figures->samples_max)
        figures->unlock_ns[figures->unlock_len++] = samples_of(took_ns);
}

void figures_print(struct figures *figures)
{
    const uint32_t *acquire = figures->acquire_ns;
    const uint32_t *unlock = figures->unlock_ns;
    double cycles = (double)figures->unlock_len;

    samples_sort(figures->acquire_ns, figures->acquire_len);
    samples_sort(figures->unlock_ns, figures->unlock_len);
    (void)printf("cycles_per_s=%.0f acquire_p50_us=%.1f acquire_p99_us=%.1f unlock_p50_us=%.1f "
                 "unlock_p99_us=%.1f cpu_us_per_cycle=%.2f errors=%llu\n",
                 cycles / ((double)figures->elapsed_ns / 1e9),
                 samples_percentile_us(acquire, figures->acquire_len, 50),
                 samples_percentile_us(acquire, figures->acquire_len, 99),
                 samples_percentile_us(unlock, figures->unlock_len, 50),
                 samples_percentile_us(unlock, figures->unlock_len, 99),
                 cycles > 0 ? (double)figures->cpu_ns / 1e3 / cycles : 0.0,
                 (unsigned long long)figures->errors);
}
