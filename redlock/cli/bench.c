/*
 * bench.c - `redlock bench`: the command line.  measure.c and contend.c do the work.
 */
#include "redlock/cli/cli.h"

#include <string.h>

#include "redlock/cli/contend.h"
#include "redlock/cli/measure.h"
#include "redlock/client/inspect.h"

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

/* The number of options that choose another kind of lock. */
static unsigned count_kinds(const struct measure *measure)
{
    const struct redlock_lock_options *opts = &measure->opts;

    return (unsigned)opts->fence + (opts->permits != 0) + opts->reentrant + opts->shared +
           (measure->resources_len > 1);
}

static void parse(struct measure *measure, struct contend *contend, struct cli *cli, int argc,
                  char **argv)
{
    enum {
        CONTEND = CLI_OPTION_FIRST,
        CYCLES,
        FAIR,
        FENCE,
        HOLD,
        IN_FLIGHT,
        MODE,
        PERMITS,
        REENTRANT,
        RESOURCES,
        SHARED,
        THREADS
    };
    static const struct option own[] = {
        {"contend", required_argument, NULL, CONTEND},
        {"hold-ms", required_argument, NULL, HOLD},
        {"cycles", required_argument, NULL, CYCLES},
        {"fair", no_argument, NULL, FAIR},
        {"fence", no_argument, NULL, FENCE},
        {"in-flight", required_argument, NULL, IN_FLIGHT},
        {"mode", required_argument, NULL, MODE},
        {"permits", required_argument, NULL, PERMITS},
        {"reentrant", no_argument, NULL, REENTRANT},
        {"resources", required_argument, NULL, RESOURCES},
        {"shared", no_argument, NULL, SHARED},
        {"threads", required_argument, NULL, THREADS},
        {NULL, 0, NULL, 0},
    };
    uint32_t in_flight = 0, threads = 0;
    int option;

    while ((option = cli_getopt(cli, argc, argv, false, own)) != -1) {
        if (option == CONTEND)
            contend->clients = cli_number(cli, "--contend", optarg, 1, CONTEND_CLIENTS_MAX);
        else if (option == HOLD)
            contend->hold_ms = cli_number(cli, "--hold-ms", optarg, 0, 10000);
        else if (option == CYCLES)
            measure->cycles = cli_number(cli, "--cycles", optarg, 1, CYCLES_MAX);
        else if (option == FAIR)
            contend->fair = true;
        else if (option == FENCE)
            measure->opts.fence = true;
        else if (option == IN_FLIGHT)
            in_flight = cli_number(cli, "--in-flight", optarg, 1, IN_FLIGHT_MAX);
        else if (option == MODE)
            measure->blocking = parse_mode(cli, optarg);
        else if (option == PERMITS)
            measure->opts.permits = cli_number(cli, "--permits", optarg, 1, REDLOCK_PERMITS_MAX);
        else if (option == REENTRANT)
            measure->opts.reentrant = true;
        else if (option == RESOURCES)
            measure->resources_len = cli_number(cli, "--resources", optarg, 1, REDLOCK_NAMES_MAX);
        else if (option == SHARED)
            measure->opts.shared = true;
        else
            threads = cli_number(cli, "--threads", optarg, 1, THREADS_MAX);
    }
    cli_need_arguments(cli, argc, argv, 0, "none");
    if (measure->blocking && in_flight != 0)
        cli_usage_error(cli, "--in-flight is for --mode loop; use --threads");
    if (!measure->blocking && threads != 0)
        cli_usage_error(cli, "--threads is for --mode blocking; use --in-flight");
    if (count_kinds(measure) > 1)
        cli_usage_error(cli,
                        "only one of --fence, --permits, --reentrant, --resources and --shared "
                        "is allowed");
    if (contend->clients != 0 && count_kinds(measure) != 0)
        cli_usage_error(cli, "--contend is for plain and fair locks");
    measure->workers_len = measure->blocking ? threads : in_flight;
    if (contend->clients != 0 && (measure->workers_len != 0 || measure->blocking))
        cli_usage_error(cli, "--contend does not go with --in-flight or --mode blocking");
    if (contend->clients == 0 && contend->hold_ms != CONTEND_HOLD_DEFAULT_MS)
        cli_usage_error(cli, "--hold-ms is for --contend");
    if (contend->clients == 0 && contend->fair)
        cli_usage_error(cli, "--fair is for --contend");
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
    .run = bench_main,
    .usage = "bench [--in-flight K] [--cycles N] [--mode loop|blocking] [--threads T]\n"
             "              [--fence | --permits K | --reentrant | --resources N | --shared]\n"
             "       redlock bench --contend N [--fair] [--hold-ms MS] [--cycles N]",
    .help = "Lock and unlock the names bench/PID/SLOT, and print one line of figures.\n"
            "\n"
            "  --cycles N             lock and unlock N times in all (20000)\n"
            "  --fence                draw a fencing token with each lock\n"
            "  --mode loop|blocking   use the asynchronous calls, or the blocking ones (loop)\n"
            "  --permits K            take permits of semaphores of K permits each, 1 to 256\n"
            "  --reentrant            take locks that their owner could take again\n"
            "  --resources N          take N names in each lease, 1 to 16\n"
            "  --shared               take each lock as a reader\n"
            "  --in-flight K          K locks at the same time, with --mode loop (1)\n"
            "  --threads T            T threads at the same time, with --mode blocking (1)\n"
            "  --contend N            instead, N clients take turns with one lock, 1000 times in\n"
            "                         all or as --cycles says\n"
            "  --fair                 with --contend: wait in a queue, served in order\n"
            "  --hold-ms MS           with --contend: hold the lock for MS milliseconds (5)\n"
            "\n"
            "Volatile masters may not vote when they have just been started: run `redlock init`\n"
            "first, or measure with --restart-guard off.  With --clock-guard per_vote, bench\n"
            "first watches the clocks of the masters.\n"
            "\n"
            "Exit: 64 usage, 69 too few masters.\n",
};
