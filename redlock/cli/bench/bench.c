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

/* What an option of bench but --mode sets: a number with its limits, a flag, or a note. */
struct row {
    enum option_value option;
    uint32_t *number, min, max;
    bool *flag;
    const char **note;
};

static void take_options(const struct row *rows, struct measure *measure, int argc, char **argv)
{
    int option;

    while ((option = cli_getopt(measure->cli, argc, argv, false)) != -1) {
        const struct row *row = rows;

        if (option == OPTION_MODE) {
            measure->blocking = parse_mode(measure->cli, optarg);
            continue;
        }
        while (row->option != (enum option_value)option)
            row++;
        if (row->flag != NULL)
            *row->flag = true;
        else if (row->note != NULL)
            *row->note = cli_take_note(measure->cli, optarg);
        else
            *row->number =
                cli_number(measure->cli, options_name(row->option), optarg, row->min, row->max);
    }
}

static void parse(struct measure *measure, struct contend *contend, struct cli *cli, int argc,
                  char **argv)
{
    uint32_t in_flight = 0, threads = 0;
    const struct row rows[] = {
        {OPTION_CONTEND, &contend->clients, 1, CONTEND_CLIENTS_MAX, NULL, NULL},
        {OPTION_CYCLES, &measure->cycles, 1, CYCLES_MAX, NULL, NULL},
        {OPTION_FAIR, .flag = &measure->opts.fair},
        {OPTION_FENCE, .flag = &measure->opts.fence},
        {OPTION_HOLD_MS, &contend->hold_ms, 0, 10000, NULL, NULL},
        {OPTION_IN_FLIGHT, &in_flight, 1, IN_FLIGHT_MAX, NULL, NULL},
        {OPTION_NOTE, .note = &measure->opts.note},
        {OPTION_PERMITS, &measure->opts.permits, 1, REDLOCK_PERMITS_MAX, NULL, NULL},
        {OPTION_REENTRANT, .flag = &measure->opts.reentrant},
        {OPTION_RESOURCES, &measure->resources_len, 1, REDLOCK_NAMES_MAX, NULL, NULL},
        {OPTION_SHARED, .flag = &measure->opts.shared},
        {OPTION_THREADS, &threads, 1, THREADS_MAX, NULL, NULL},
    };

    take_options(rows, measure, argc, argv);
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
    .options = OPTIONS_BENCH,
    .manual = "redlock-bench",
    .run = bench_main,
    .usage = "bench [--in-flight K] [--cycles N] [--mode loop|blocking] [--threads T]\n"
             "              [--fair] [--fence] [--note TEXT] [--permits K] [--reentrant]\n"
             "              [--resources N] [--shared]\n"
             "       redlock bench --contend N [--fair] [--hold-ms MS] [--note TEXT] [--cycles N]",
    .help = "Lock and unlock the names bench/PID/SLOT, and print one line of figures.\n",
    .more = "Volatile masters may not vote when they have just been started: run `redlock init`\n"
            "first, or measure with --restart-guard off.  With --clock-guard per_vote, bench\n"
            "first watches the clocks of the masters.  If no lock succeeds for 10 seconds and a\n"
            "lease, bench gives up.\n"
            "\n"
            "Example: redlock bench --in-flight 16\n"
            "Exit: 0 done, 64 usage, 69 no lock succeeded.\n",
};
