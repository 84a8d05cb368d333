/*
 * bench.c - `redlock bench`: the command line.  measure.c and contend.c do the work.
 */
#include "redlock/cli/common/cli.h"

#include <string.h>

#include "redlock/cli/bench/contend.h"
#include "redlock/cli/bench/measure.h"
#include "redlock/client/inspect.h"
#include "redlock/core/combine.h"

enum {
    CYCLES_DEFAULT = 20000, /* Take two to three seconds, one at a time. */
    CYCLES_MAX = 10000000,  /* 80 MB of samples. */
    IN_FLIGHT_MAX = INSPECT_IN_FLIGHT_MAX,
    THREADS_MAX = 1024
};

static bool parse_mode(const struct cli *cli, const char *text)
{
    char shown[CLI_NAMES_SHOWN_MAX];

    if (strcmp(text, "blocking") != 0 && strcmp(text, "loop") != 0)
        cli_usage_error(cli, "--mode is '%s', but must be loop or blocking",
                        cli_show_argument(text, shown));
    return strcmp(text, "blocking") == 0;
}

/* The options that choose another kind of lock. */
static combine_set kinds_of(const struct measure *measure)
{
    const struct redlock_lock_options *opts = &measure->opts;

    return (combine_set)opts->fair << COMBINE_FAIR | (combine_set)opts->fence << COMBINE_FENCE |
           (combine_set)(opts->permits > 0) << COMBINE_PERMITS |
           (combine_set)opts->reentrant << COMBINE_REENTRANT |
           (combine_set)(measure->resources_len > 1) << COMBINE_SEVERAL |
           (combine_set)opts->shared << COMBINE_SHARED;
}

static const char *option_of(enum combine option)
{
    return option == COMBINE_SEVERAL ? "resources" : combine_word(option);
}

static void check_kinds(const struct measure *measure)
{
    const struct combine_clash *clash = combine_clash_in(kinds_of(measure));

    if (clash != NULL)
        cli_usage_error(measure->cli, "--%s and --%s do not go together: %s", option_of(clash->one),
                        option_of(clash->other), clash->why);
    if (measure->opts.fence && !cli_is_guarded(measure->cli))
        cli_usage_error(measure->cli, "--fence needs the restart guard, which is off");
}

/* An option of bench but --mode: a number with its limits, a flag, or a note. */
struct row {
    const char *name;
    uint32_t *number, min, max;
    bool *flag;
    const char **note;
};

static void take_options(const struct row *rows, size_t len, struct measure *measure, int argc,
                         char **argv)
{
    const int mode = CLI_OPTION_FIRST + (int)len;
    struct option own[CLI_OPTIONS_MAX] = {{"mode", required_argument, NULL, mode}};
    int option;

    for (int i = 0; i < (int)len; i++)
        own[i + 1] = (struct option){rows[i].name + 2,
                                     rows[i].flag != NULL ? no_argument : required_argument, NULL,
                                     CLI_OPTION_FIRST + i};
    while ((option = cli_getopt(measure->cli, argc, argv, false, own)) != -1) {
        const struct row *row = &rows[option - CLI_OPTION_FIRST];

        if (option == mode)
            measure->blocking = parse_mode(measure->cli, optarg);
        else if (row->flag != NULL)
            *row->flag = true;
        else if (row->note != NULL)
            *row->note = cli_take_note(measure->cli, optarg);
        else
            *row->number = cli_number(measure->cli, row->name, optarg, row->min, row->max);
    }
}

static void parse(struct measure *measure, struct contend *contend, struct cli *cli, int argc,
                  char **argv)
{
    uint32_t in_flight = 0, threads = 0;
    const struct row rows[] = {
        {"--contend", &contend->clients, 1, CONTEND_CLIENTS_MAX, NULL, NULL},
        {"--cycles", &measure->cycles, 1, CYCLES_MAX, NULL, NULL},
        {"--fair", .flag = &measure->opts.fair},
        {"--fence", .flag = &measure->opts.fence},
        {"--hold-ms", &contend->hold_ms, 0, 10000, NULL, NULL},
        {"--in-flight", &in_flight, 1, IN_FLIGHT_MAX, NULL, NULL},
        {"--note", .note = &measure->opts.note},
        {"--permits", &measure->opts.permits, 1, REDLOCK_PERMITS_MAX, NULL, NULL},
        {"--reentrant", .flag = &measure->opts.reentrant},
        {"--resources", &measure->resources_len, 1, REDLOCK_NAMES_MAX, NULL, NULL},
        {"--shared", .flag = &measure->opts.shared},
        {"--threads", &threads, 1, THREADS_MAX, NULL, NULL},
    };

    take_options(rows, sizeof rows / sizeof *rows, measure, argc, argv);
    cli_need_arguments(cli, argc, argv, 0, "none");
    if (measure->blocking && in_flight != 0)
        cli_usage_error(cli, "--in-flight is for --mode loop; use --threads");
    if (!measure->blocking && threads != 0)
        cli_usage_error(cli, "--threads is for --mode blocking; use --in-flight");
    check_kinds(measure);
    if (contend->clients != 0 && (kinds_of(measure) & ~(1u << COMBINE_FAIR)) != 0)
        cli_usage_error(cli, "--contend is for plain and fair locks");
    measure->workers_len = measure->blocking ? threads : in_flight;
    if (contend->clients != 0 && (measure->workers_len != 0 || measure->blocking))
        cli_usage_error(cli, "--contend does not go with --in-flight or --mode blocking");
    if (contend->clients == 0 && contend->hold_ms != CONTEND_HOLD_DEFAULT_MS)
        cli_usage_error(cli, "--hold-ms is for --contend");
    contend->fair = measure->opts.fair;
    contend->note = measure->opts.note;
    contend->cycles = measure->cycles != 0 ? measure->cycles : CONTEND_CYCLES_DEFAULT;
    if (measure->cycles == 0)
        measure->cycles = CYCLES_DEFAULT;
    if (measure->workers_len == 0)
        measure->workers_len = 1;
}

static int bench_main(struct cli *cli, int argc, char **argv)
{
    struct contend contend = {.hold_ms = CONTEND_HOLD_DEFAULT_MS};
    struct measure measure = {.cli = cli, .resources_len = 1};

    redlock_lock_options_init(&measure.opts);
    parse(&measure, &contend, cli, argc, argv);
    if (measure.opts.ttl_ms > cli->max_ttl_ms)
        measure.opts.ttl_ms = cli->max_ttl_ms;
    contend.ttl_ms = measure.opts.ttl_ms;
    return contend.clients != 0 ? contend_run(cli, &contend) : measure_run(&measure);
}

const struct cli_command cli_bench = {
    .name = "bench",
    .manual = "redlock-bench",
    .run = bench_main,
    .usage = "bench [--in-flight K] [--cycles N] [--mode loop|blocking] [--threads T]\n"
             "              [--fair] [--fence] [--note TEXT] [--permits K] [--reentrant]\n"
             "              [--resources N] [--shared]\n"
             "       redlock bench --contend N [--fair] [--hold-ms MS] [--note TEXT] [--cycles N]",
    .help = "Lock and unlock the names bench/PID/SLOT, and print one line of figures.\n"
            "\n"
            "  --cycles N             lock and unlock N times in all (20000)\n"
            "  --fence                draw a fencing token with each lock\n"
            "  --mode loop|blocking   use the asynchronous calls, or the blocking ones (loop)\n"
            "  --note TEXT            store TEXT beside each lock; empty: nothing (HOST/PID)\n"
            "  --permits K            take permits of semaphores of K permits each, 1 to 256\n"
            "  --reentrant            take locks that their owner could take again\n"
            "  --resources N          take N names in each lease, 1 to 16\n"
            "  --shared               take each lock as a reader\n"
            "  --in-flight K          K locks at the same time, with --mode loop (1)\n"
            "  --threads T            T threads at the same time, with --mode blocking (1)\n"
            "  --contend N            instead, N clients take turns with one lock, 1000 times in\n"
            "                         all or as --cycles says\n"
            "  --fair                 wait in a queue, served in order\n"
            "  --hold-ms MS           with --contend: hold the lock for MS milliseconds (5)\n"
            "\n"
            "Volatile masters may not vote when they have just been started: run `redlock init`\n"
            "first, or measure with --restart-guard off.  With --clock-guard per_vote, bench\n"
            "first watches the clocks of the masters.  If no lock succeeds for 10 seconds and a\n"
            "lease, bench gives up.\n"
            "\n"
            "Example: redlock bench --in-flight 16\n"
            "Exit: 0 done, 64 usage, 69 no lock succeeded.\n",
};
