/*
 * holder.c - a client of a partition run: a process that takes locks in every
 * way, writes to the store while it holds them, and records its history.
 *
 * holder --masters LIST --store PATH --history FILE --who NAME --redlock PATH
 *        [--masters-file FILE]
 *        [--locks N | LOCK,LOCK...] [--crowds N] [--workers KIND=N,...] [--ttl-ms MS]
 *        [--long PERCENT] [--reply-timeout-ms MS] [--seed N] [--seconds N]
 *        [--restart-guard on|off] [--clock-guard GUARD]
 *
 * Kinds of workers, all at once, each with one lock at a time:
 *
 *     plain     one round, no renewal, held for a part of the lease     } threads, on one
 *     extended  renewed, or extended on request, held for several       } blocking client
 *     blocking  like either, but waits for the lock                     }
 *     loop      any of these, on a loop and a client of its own
 *     run       `redlock run` with a command that writes
 *     crowd     waits for one of the last N locks, which nobody else takes; on a loop, too
 *     fencer    takes locks of its own in close order, with fencing tokens; on a loop of its own
 *
 * A LOCK is a NAME, or has a mode, which is then always used:
 *
 *     NAME+NAME      several names in one lease
 *     NAME=fair      a fair lock, in the order of a queue
 *     NAME=3         a semaphore of three permits
 *     NAME=shared    held by readers together, or by a writer alone
 *
 * Of a hundred holds, --long (5) last as long as they can, and most of the others are short.  The
 * client ends after --seconds, or on SIGTERM or SIGINT.  Then it releases its locks, ends its waits
 * within two ttl, writes "bye" as the last line of its history, and exits with 0.
 *
 * The commands of `run` get the same list of masters.  With --masters-file they get that of the
 * file, which may change meanwhile.
 *
 * A history never claims more than the library said: see claim.h, hold.h and command.h.  The client
 * does not judge what it sees.
 */
#include "partition/holder.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "partition/command.h"
#include "partition/hold.h"

#define NAP_MS 10         /* How often to look whether to stop. */
#define END_NAPS_MAX 2500 /* How long workers may take to end: naps, see blocker.c. */

/* ---- Naps ---- */

void holder_nap(const struct holder *holder, uint32_t nap_ms)
{
    for (uint32_t left_ms = nap_ms; left_ms > 0 && !atomic_load(&holder->stopping);) {
        uint32_t piece_ms = left_ms < NAP_MS ? left_ms : NAP_MS;

        tool_nap_ms(piece_ms);
        left_ms -= piece_ms;
    }
}

/* ---- Options ---- */

static void free_locks(struct holder *holder)
{
    for (unsigned i = 0; i < holder->locks_len; i++) {
        for (unsigned n = 0; n < holder->locks[i].names_len; n++)
            free(holder->locks[i].names[n]);
        free(holder->locks[i].text);
    }
    holder->locks_len = 0;
}

static char *copy(const char *text)
{
    char *copied = strdup(text);

    if (copied == NULL)
        tool_die("out of memory");
    return copied;
}

static void take_mode(struct resource *resource, const char *word)
{
    if (strcmp(word, "fair") == 0) {
        resource->mode = MODE_FAIR;
    } else if (strcmp(word, "shared") == 0) {
        resource->mode = MODE_SHARED;
    } else {
        resource->mode = MODE_PERMIT;
        resource->permits = (uint32_t)tool_number("--locks: permits", word, 1, REDLOCK_PERMITS_MAX);
    }
}

/* Changes text. */
static void take_lock(struct holder *holder, char *text)
{
    struct resource *resource = &holder->locks[holder->locks_len];
    char *rest = text, *word, *name;

    if (holder->locks_len++ == HOLDER_LOCKS_MAX)
        tool_die("--locks: too many");
    *resource = (struct resource){.mode = MODE_ALONE};
    word = strchr(text, '=');
    if (word != NULL) {
        *word = 0;
        take_mode(resource, word + 1);
    }
    resource->text = copy(text);
    while ((name = strsep(&rest, "+")) != NULL) {
        if (resource->names_len == RESOURCE_NAMES_MAX || !tool_is_word(name, RECORD_WORD_MAX))
            tool_die("--locks: too many, or not a name: \"%s\"", name);
        resource->names[resource->names_len++] = copy(name);
    }
    if (resource->names_len > 1 && word != NULL)
        tool_die("--locks: one name only, with \"=\": \"%s\"", resource->text);
    if (resource->names_len > 1)
        resource->mode = MODE_SEVERAL;
}

static void take_locks(struct holder *holder, char *text)
{
    char *rest = text, *lock;

    free_locks(holder);
    if (text[strspn(text, "0123456789")] == 0) {
        unsigned len = (unsigned)tool_number("--locks", text, 1, HOLDER_LOCKS_MAX);

        for (unsigned i = 0; i < len; i++) {
            char name[sizeof "hot-4294967295"];

            (void)snprintf(name, sizeof name, "hot-%u", i + 1);
            take_lock(holder, name);
        }
        return;
    }
    while ((lock = strsep(&rest, ",")) != NULL)
        take_lock(holder, lock);
}

static unsigned *workers_of(struct holder *holder, const char *word)
{
    for (unsigned kind = 0; kind < KINDS_LEN; kind++)
        if (strcmp(hold_kind_word((enum holder_kind)kind), word) == 0)
            return &holder->workers[kind];
    tool_die("--workers: there is no kind \"%s\"", word);
}

static void take_workers(struct holder *holder, char *text)
{
    char *rest = text, *part;
    unsigned sum = 0;

    memset(holder->workers, 0, sizeof holder->workers);
    while ((part = strsep(&rest, ",")) != NULL) {
        char *number = strchr(part, '=');

        if (number == NULL)
            tool_die("--workers must be KIND=N,..., and is \"%s\"", part);
        *number++ = 0;
        *workers_of(holder, part) = (unsigned)tool_number("--workers", number, 0, 16);
    }
    for (unsigned kind = 0; kind < KINDS_LEN; kind++)
        sum += holder->workers[kind];
    if (sum == 0 || sum > HOLDER_WORKERS_MAX)
        tool_die("--workers: 1 to %d in all", HOLDER_WORKERS_MAX);
}

enum {
    OPTION_MASTERS = 256,
    OPTION_MASTERS_FILE,
    OPTION_STORE,
    OPTION_HISTORY,
    OPTION_WHO,
    OPTION_REDLOCK,
    OPTION_LOCKS,
    OPTION_CROWDS,
    OPTION_WORKERS,
    OPTION_TTL,
    OPTION_LONG,
    OPTION_REPLY_TIMEOUT,
    OPTION_GUARD,
    OPTION_CLOCK_GUARD,
    OPTION_SEED,
    OPTION_SECONDS,
    OPTION_COMMAND,
};

static const struct option options[] = {
    {"masters", required_argument, NULL, OPTION_MASTERS},
    {"masters-file", required_argument, NULL, OPTION_MASTERS_FILE},
    {"store", required_argument, NULL, OPTION_STORE},
    {"history", required_argument, NULL, OPTION_HISTORY},
    {"who", required_argument, NULL, OPTION_WHO},
    {"redlock", required_argument, NULL, OPTION_REDLOCK},
    {"locks", required_argument, NULL, OPTION_LOCKS},
    {"crowds", required_argument, NULL, OPTION_CROWDS},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"ttl-ms", required_argument, NULL, OPTION_TTL},
    {"long", required_argument, NULL, OPTION_LONG},
    {"reply-timeout-ms", required_argument, NULL, OPTION_REPLY_TIMEOUT},
    {"restart-guard", required_argument, NULL, OPTION_GUARD},
    {"clock-guard", required_argument, NULL, OPTION_CLOCK_GUARD},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {COMMAND_OPTION, required_argument, NULL, OPTION_COMMAND},
    {NULL, 0, NULL, 0},
};

static void take_option(struct holder *holder, int option, const char **who)
{
    switch (option) {
    case OPTION_MASTERS:
        holder->masters = optarg;
        break;
    case OPTION_MASTERS_FILE:
        holder->masters_file = optarg;
        break;
    case OPTION_STORE:
        holder->store = optarg;
        break;
    case OPTION_HISTORY:
        holder->history = optarg;
        break;
    case OPTION_WHO:
        *who = optarg;
        break;
    case OPTION_REDLOCK:
        holder->redlock = optarg;
        break;
    case OPTION_LOCKS:
        take_locks(holder, optarg);
        break;
    case OPTION_CROWDS:
        holder->crowds_len = (unsigned)tool_number("--crowds", optarg, 0, HOLDER_LOCKS_MAX);
        break;
    case OPTION_WORKERS:
        take_workers(holder, optarg);
        break;
    case OPTION_TTL:
        holder->ttl_ms = (uint32_t)tool_number("--ttl-ms", optarg, 200, 60000);
        break;
    case OPTION_LONG:
        holder->long_percent = (unsigned)tool_number("--long", optarg, 0, 100);
        break;
    case OPTION_REPLY_TIMEOUT:
        holder->reply_timeout_ms = (uint32_t)tool_number("--reply-timeout-ms", optarg, 1, 3600000);
        break;
    case OPTION_GUARD:
        holder->restart_guard = optarg;
        break;
    case OPTION_CLOCK_GUARD:
        holder->clock_guard = optarg;
        break;
    case OPTION_SEED:
        holder->seed = tool_number("--seed", optarg, 0, UINT64_MAX);
        break;
    case OPTION_SECONDS:
        holder->seconds = tool_number("--seconds", optarg, 1, 86400);
        break;
    case OPTION_COMMAND:
        exit(command_main(optarg));
    default:
        exit(64);
    }
}

static void find_program(struct holder *holder)
{
    ssize_t len = readlink("/proc/self/exe", holder->program, sizeof holder->program - 1);

    if (len <= 0)
        tool_die("cannot find my own program: %s", strerror(errno));
    holder->program[len] = 0;
}

static void parse_options(struct holder *holder, int argc, char **argv)
{
    char locks[] = "3", workers[] = "plain=1,extended=1,blocking=1,run=1,loop=2";
    const char *who = NULL;
    int option;

    holder->ttl_ms = 2000;
    holder->long_percent = 5;
    holder->reply_timeout_ms = 50;
    holder->restart_guard = "on";
    holder->clock_guard = "periodic";
    holder->seconds = 86400;
    take_locks(holder, locks);
    take_workers(holder, workers);
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        take_option(holder, option, &who);
    if (holder->masters == NULL || holder->store == NULL || holder->history == NULL ||
        who == NULL || optind != argc)
        tool_die("needed: --masters, --store, --history and --who");
    if (holder->redlock == NULL && holder->workers[KIND_RUN] > 0)
        tool_die("needed: --redlock, the command, unless --workers are without run");
    if (holder->crowds_len >= holder->locks_len ||
        (holder->crowds_len == 0 && holder->workers[KIND_CROWD] > 0))
        tool_die("--crowds must be some of the locks, if there is a crowd, and not all");
    find_program(holder);
    record_open(&holder->record, holder->history, who);
}

/* ---- Work ---- */

bool holder_is_guarded(const struct holder *holder)
{
    return strcmp(holder->restart_guard, "on") == 0;
}

enum redlock_clock_guard holder_clock_guard(const struct holder *holder)
{
    if (strcmp(holder->clock_guard, "per_vote") == 0)
        return REDLOCK_CLOCK_GUARD_PER_VOTE;
    return strcmp(holder->clock_guard, "off") == 0 ? REDLOCK_CLOCK_GUARD_OFF
                                                   : REDLOCK_CLOCK_GUARD_PERIODIC;
}

void holder_log(void *arg, enum redlock_level level, const char *message)
{
    (void)arg;
    if (level <= REDLOCK_LOG_WARNING)
        (void)fprintf(stderr, "%.3f %s\n", (double)tool_now_ns() / 1e9, message);
}

static void open_client(struct holder *holder)
{
    struct redlock_options opts;

    redlock_options_init(&opts);
    opts.masters = holder->masters;
    opts.reply_timeout_ms = holder->reply_timeout_ms;
    opts.max_ttl_ms = holder->ttl_ms; /* A master that lost its data warms up for this long. */
    opts.restart_guard = holder_is_guarded(holder);
    opts.clock_guard = holder_clock_guard(holder);
    opts.log = holder_log;
    if (redlock_open(&opts, &holder->rl) != REDLOCK_OK)
        tool_die("%s", redlock_errmsg(NULL));
}

/* Each worker has its own dice, seeded by the seed, the client's name and the worker's number. */
static void make_worker(struct holder *holder, struct worker *worker, enum holder_kind kind)
{
    static unsigned number;

    *worker = (struct worker){.holder = holder, .kind = kind, .store = {holder->store, -1}};
    worker->dice.state = holder->seed;
    for (const char *c = holder->record.who; *c != 0; c++)
        worker->dice.state = dice_next(&worker->dice) ^ (unsigned char)*c;
    worker->dice.state = dice_next(&worker->dice) ^ ++number;
}

/* Start a thread for each worker.  The workers of one loop share a thread.  Returns the number of
 * workers. */
static unsigned start_workers(struct holder *holder, struct worker *workers)
{
    static void *(*const run[KINDS_LEN])(void *) = {blocker_thread, blocker_thread, blocker_thread,
                                                    runner_thread,  looper_thread,  looper_thread,
                                                    fencer_thread};
    unsigned len = 0;

    for (unsigned kind = 0; kind < KINDS_LEN; kind++) {
        unsigned first = len;

        for (unsigned i = 0; i < holder->workers[kind]; i++)
            make_worker(holder, &workers[len++], (enum holder_kind)kind);
        for (unsigned i = first; i < len; i++) {
            workers[i].has_thread = i == first || run[kind] != looper_thread;
            if (workers[i].has_thread &&
                pthread_create(&workers[i].thread, NULL, run[kind], &workers[i]) != 0)
                tool_die("cannot start a thread");
        }
    }
    return len;
}

/* Wait until the time is up, or a signal comes. */
static void wait_for_end(const struct holder *holder, const sigset_t *signals)
{
    uint64_t end_ns = tool_now_ns() + holder->seconds * NS_PER_S;

    for (;;) {
        uint64_t now = tool_now_ns(), left = end_ns > now ? end_ns - now : 0;
        struct timespec at_most = {(time_t)(left / NS_PER_S), (long)(left % NS_PER_S)};

        if (sigtimedwait(signals, NULL, &at_most) > 0 || errno == EAGAIN)
            return;
    }
}

/* A worker that does not end hangs in a call of the library. */
static void join_workers(struct worker *workers, unsigned len)
{
    unsigned naps = 0;

    for (unsigned i = 0; i < len; i++) {
        while (workers[i].has_thread && pthread_tryjoin_np(workers[i].thread, NULL) != 0) {
            if (++naps > END_NAPS_MAX)
                tool_die("a worker (%s) does not end", hold_kind_word(workers[i].kind));
            tool_nap_ms(NAP_MS);
        }
    }
}

int main(int argc, char **argv)
{
    static struct holder holder;
    static struct worker workers[HOLDER_WORKERS_MAX];
    unsigned len;
    sigset_t signals;

    parse_options(&holder, argc, argv);
    (void)setenv("REDLOCK_MASTERS", holder.masters, true); /* For the command. */
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    open_client(&holder);
    len = start_workers(&holder, workers);
    wait_for_end(&holder, &signals);
    atomic_store(&holder.stopping, true);
    join_workers(workers, len);
    (void)redlock_close(holder.rl);
    record_line(&holder.record, tool_now_ns(), "bye", "%s", "");
    free_locks(&holder);
    return 0;
}
