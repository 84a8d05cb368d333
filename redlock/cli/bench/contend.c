/*
 * contend.c - several clients take turns with one lock.  Each has links of its own, as on a host of
 * its own.
 *
 * This measures the hand-over.  It begins with the call that unlocks.  It ends when the next
 * holder, which has waited, gets the lock.
 *
 * A client rests for half as long as it holds the lock.  So it asks again in the middle of the next
 * hold, and nothing but the hand-over happens when that one ends.  If it rested for as long, it
 * would ask just before the release of two clients, and a hand-over would be a race of both.
 *
 * Before that, for comparison, the first client takes and releases the lock alone.  All clients are
 * connected by then.  It rests as long, because processors go to sleep meanwhile: nothing happens
 * for half of the hold before a release, too.
 */
#include "redlock/cli/bench/contend.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>
#include <sodium.h>

#include "redlock/cli/common/loop.h"
#include "redlock/cli/bench/measure.h"
#include "redlock/cli/common/samples.h"
#include "redlock/base/error.h"
#include "redlock/client/inspect.h"

#define QUIET_CYCLES 200 /* Without contention.  Chosen: enough for a median. */
#define QUIET_S 30       /* And then no more of them.  Chosen: 200 may take half an hour. */
#define TELL_S 5         /* Then it says which masters are slow, as run does. */

struct run;

/* The number of failures, and the message of the first, with its identifier. */
struct tally {
    uint32_t len;
    enum msg cause;
    char first[ERROR_MESSAGE_MAX];
};

struct party {
    struct run *run;
    struct redlock *rl;
    struct redlock_lease *lease; /* That it holds or waits for.  NULL: none. */
    uint64_t began_ns;           /* When it asked for the lock. */
    ev_timer hold, rest;
};

struct run {
    struct cli *cli;
    const struct contend *contend;
    struct ev_loop *loop;
    struct party *parties;
    struct redlock_lock_options opts;
    char name[40];
    uint32_t *samples_ns; /* Hand-overs.  While quiet: the times to acquire. */
    uint32_t samples_len, locks, left;
    struct tally errors, unconfirmed; /* Failures; releases without a majority. */
    uint64_t released_ns;
    double quiet_p50_us;
    uint64_t commands;
    uint32_t active;
    ev_timer patience; /* Begins anew with each lock. */
    ev_timer slow, quiet_end;
    bool quiet, gave_up;
};

static void count(struct tally *tally, int status)
{
    if (tally->len++ > 0)
        return;
    tally->cause = cli_cause(status);
    (void)snprintf(tally->first, sizeof tally->first, "%s", redlock_errmsg(NULL));
}

/* ---- A party ---- */

static void on_locked(struct redlock_lease *lease, int status, void *arg);

static void begin(struct party *party)
{
    struct run *run = party->run;
    int status;

    while (run->left > 0) {
        run->left--;
        party->began_ns = samples_now_ns();
        status =
            redlock_lock_async(party->rl, run->name, &run->opts, on_locked, party, &party->lease);
        if (status == REDLOCK_OK)
            return;
        count(&run->errors, status);
    }
    if (--run->active == 0)
        ev_break(run->loop, EVBREAK_ALL);
}

static void on_rest(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    begin(timer->data);
}

static void start_timer(struct party *party, ev_timer *timer, double after_ms)
{
    ev_now_update(party->run->loop);
    ev_timer_set(timer, after_ms / 1e3, 0);
    ev_timer_start(party->run->loop, timer);
}

static void start_hold(struct party *party)
{
    start_timer(party, &party->hold, party->run->contend->hold_ms);
}

static void start_rest(struct party *party)
{
    start_timer(party, &party->rest, party->run->contend->hold_ms / 2.0);
}

/* An unconfirmed release is no error: the masters may announce it all the same.  If a release was
 * late, the hand-over shows it. */
static void on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    struct party *party = arg;

    (void)lease;
    if (status == REDLOCK_UNREACHABLE)
        count(&party->run->unconfirmed, status);
    else if (status != REDLOCK_OK)
        count(&party->run->errors, status);
    if (party->run->quiet)
        start_rest(party);
}

static void unlock(struct party *party)
{
    struct run *run = party->run;

    run->released_ns = samples_now_ns();
    (void)redlock_unlock_async(party->lease, on_unlocked, party); /* Cannot fail: it is held. */
    party->lease = NULL;
    if (!run->quiet)
        start_rest(party);
}

static void on_hold(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    unlock(timer->data);
}

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    struct party *party = arg;
    struct run *run = party->run;
    uint64_t since_ns = run->quiet ? party->began_ns : run->released_ns;

    (void)lease; /* It is that of the party. */
    if (status != REDLOCK_OK) {
        count(&run->errors, status);
        party->lease = NULL;
        begin(party);
        return;
    }
    run->locks++;
    ev_now_update(run->loop);
    ev_timer_again(run->loop, &run->patience);
    if (run->quiet || party->began_ns < since_ns) /* Else: it did not wait. */
        run->samples_ns[run->samples_len++] = samples_of(samples_now_ns() - since_ns);
    if (run->quiet) {
        unlock(party);
        return;
    }
    start_hold(party);
}

/* ---- Figures ---- */

static uint64_t count_commands(const struct run *run)
{
    uint64_t commands = 0;

    for (uint32_t i = 0; i < run->contend->clients; i++)
        commands += inspect_client(run->parties[i].rl).commands;
    return commands;
}

static void print_figures(struct run *run, uint64_t took_ns)
{
    const char *format = run->cli->json
                             ? "{\"handovers_per_s\":%.0f,\"handover_p50_us\":%.1f,"
                               "\"handover_p99_us\":%.1f,\"quiet_acquire_p50_us\":%.1f,"
                               "\"commands_per_lock\":%.1f,\"errors\":%u,"
                               "\"unconfirmed_releases\":%u}\n"
                             : "handovers_per_s=%.0f handover_p50_us=%.1f handover_p99_us=%.1f "
                               "quiet_acquire_p50_us=%.1f commands_per_lock=%.1f errors=%u "
                               "unconfirmed_releases=%u\n";
    unsigned masters = inspect_client(run->parties[0].rl).masters;
    double p50_us, p99_us;

    samples_sort(run->samples_ns, run->samples_len);
    p50_us = samples_percentile_us(run->samples_ns, run->samples_len, 50);
    p99_us = samples_percentile_us(run->samples_ns, run->samples_len, 99);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)printf(format, run->samples_len / ((double)took_ns / 1e9), p50_us, p99_us,
                 run->quiet_p50_us,
                 run->locks > 0 ? (double)run->commands / masters / run->locks : 0.0,
                 run->errors.len, run->unconfirmed.len);
#pragma GCC diagnostic pop
}

/* ---- Masters that are slow, or give no lock ---- */

/* The reason why a client waits, for as long as the thread's message lasts.  NULL: no master is it.
 */
static const char *reason_of(const struct run *run)
{
    for (uint32_t i = 0; i < run->contend->clients; i++)
        if (run->parties[i].lease != NULL &&
            inspect_wait(run->parties[i].rl, run->parties[i].lease) != REDLOCK_OK)
            return redlock_errmsg(NULL);
    return NULL;
}

static void on_slow(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct run *run = timer->data;
    const char *reason = reason_of(run);

    (void)events;
    if (reason == NULL)
        return;
    cli_hint("still waiting: %s", reason);
    ev_timer_stop(loop, timer);
}

/* No client has got the lock for too long.  Masters may do this for ever, and each lock waits for
 * a minute. */
static void on_patience(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct run *run = timer->data;
    const char *reason = reason_of(run);

    (void)events;
    cli_say(MSG_GAVE_UP, "no client got the lock for %.0f seconds, so bench gives up%s%s",
            timer->repeat, reason != NULL ? ": " : "", reason != NULL ? reason : "");
    run->gave_up = true;
    run->left = 0; /* redlock_close() ends the calls under way: none follows. */
    ev_break(loop, EVBREAK_ALL);
}

static void on_quiet_end(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct run *run = timer->data;

    (void)loop, (void)events;
    run->left = 0;
}

/* The holder may rest before it asks again.  A lock whose release was lost ends with its lease. */
static void start_timers(struct run *run)
{
    ev_init(&run->patience, on_patience);
    run->patience.repeat =
        MEASURE_GIVE_UP_S + (run->contend->ttl_ms + 2 * run->contend->hold_ms) / 1e3;
    ev_timer_init(&run->slow, on_slow, TELL_S, 1);
    ev_timer_init(&run->quiet_end, on_quiet_end, QUIET_S, 0);
    run->patience.data = run->slow.data = run->quiet_end.data = run;
    ev_now_update(run->loop);
    ev_timer_again(run->loop, &run->patience);
    ev_timer_start(run->loop, &run->slow);
    ev_timer_start(run->loop, &run->quiet_end);
}

/* ---- The whole ---- */

static bool is_coming(void *arg)
{
    const struct run *run = arg;

    for (uint32_t i = 0; i < run->contend->clients; i++)
        if (inspect_client(run->parties[i].rl).coming != 0)
            return true;
    return false;
}

static void measure_quiet(struct run *run)
{
    run->quiet = true;
    run->left = QUIET_CYCLES;
    run->active = 1;
    begin(&run->parties[0]);
    if (run->active > 0)
        ev_run(run->loop, 0);
    samples_sort(run->samples_ns, run->samples_len);
    run->quiet_p50_us = samples_percentile_us(run->samples_ns, run->samples_len, 50);
    run->samples_len = run->locks = 0;
    run->released_ns = 0;
    run->quiet = false;
}

static int measure(struct run *run)
{
    uint64_t began_ns;
    int code;

    cli_linger(run->loop, is_coming, run, run->cli->connect_timeout_ms);
    code = measure_check_links(run->cli, run->parties[0].rl);
    if (code != CLI_OK)
        return code;
    start_timers(run);
    measure_quiet(run);
    ev_timer_stop(run->loop, &run->quiet_end);
    if (run->gave_up)
        return CLI_UNREACHABLE;
    run->commands = count_commands(run);
    run->left = run->contend->cycles;
    run->active = run->contend->clients;
    began_ns = samples_now_ns();
    for (uint32_t i = 0; i < run->contend->clients; i++)
        begin(&run->parties[i]);
    if (run->active > 0)
        ev_run(run->loop, 0);
    run->commands = count_commands(run) - run->commands;
    if (run->errors.len > 0)
        cli_say(run->errors.cause, "the first of %u errors: %s", run->errors.len,
                run->errors.first);
    if (run->unconfirmed.len > 0)
        cli_say(MSG_MAY_BE_HELD, "the first of %u unconfirmed releases: %s", run->unconfirmed.len,
                run->unconfirmed.first);
    print_figures(run, samples_now_ns() - began_ns);
    return run->locks > 0 && !run->gave_up ? cli_flush_output() : CLI_UNREACHABLE;
}

/* Each cli_open() wipes the list of masters.  Without a list it takes that of the environment. */
static int open_all(struct run *run)
{
    char *masters = run->cli->masters != NULL ? cli_copy(run->cli->masters) : NULL;
    int code = CLI_OK;

    for (uint32_t i = 0; i < run->contend->clients && code == CLI_OK; i++) {
        struct party *party = &run->parties[i];

        if (masters != NULL && run->cli->masters == NULL)
            run->cli->masters = cli_copy(masters);
        party->run = run;
        ev_timer_init(&party->hold, on_hold, 0, 0);
        ev_timer_init(&party->rest, on_rest, 0, 0);
        party->hold.data = party->rest.data = party;
        code = cli_open(run->cli, run->loop, &party->rl);
    }
    if (masters != NULL)
        sodium_memzero(masters, strlen(masters));
    free(masters);
    return code;
}

int contend_run(struct cli *cli, const struct contend *contend)
{
    uint32_t samples_max = contend->cycles > QUIET_CYCLES ? contend->cycles : QUIET_CYCLES;
    struct run run = {.cli = cli, .contend = contend, .loop = loop_new()};
    int code = CLI_INTERNAL;

    run.parties = calloc(contend->clients, sizeof *run.parties);
    run.samples_ns = calloc(samples_max, sizeof *run.samples_ns);
    (void)snprintf(run.name, sizeof run.name, "bench/%d", (int)getpid());
    redlock_lock_options_init(&run.opts);
    run.opts.wait_ms = 60000;
    run.opts.ttl_ms = contend->ttl_ms;
    run.opts.fair = contend->fair;
    run.opts.note = contend->note;
    if (run.parties == NULL || run.samples_ns == NULL)
        cli_say(MSG_NO_MEMORY, "out of memory");
    else if (run.loop != NULL)
        code = open_all(&run);
    if (code == CLI_OK)
        code = measure(&run);
    for (uint32_t i = 0; run.parties != NULL && i < contend->clients; i++)
        (void)redlock_close(run.parties[i].rl);
    if (run.loop != NULL)
        ev_loop_destroy(run.loop);
    free(run.parties);
    free(run.samples_ns);
    return code;
}
