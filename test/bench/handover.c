/*
 * handover.c - what a hand-over of a fair lock costs, beside an uncontended acquire, and the floor
 * of both.
 *
 *   handover [--masters HOST:PORT,...] [--cycles N]
 *
 * The clients take their list of masters from REDLOCK_MASTERS, and --masters is for the floor.
 * Prints a line: medians, the medians of the ratios, and which part of the hand-overs took no round
 * of the waiter.
 *
 * Each cycle (300) has four steps, one after the other, so that a disturbance of the machine
 * affects all of them.  The ratio is that of a hand-over to the acquire of the same cycle:
 *  - floor of the acquire: a script that makes one SET, to all masters, until a majority answered;
 *  - floor of the hand-over: a script that makes one SET and one PUBLISH, to all masters, until the
 *    messages of a majority are there;
 *  - acquire: a client takes a fair lock for which no other asks, from the call to its callback;
 *  - hand-over: one client holds a fair lock for which the other waits in the queue, from the call
 *    that unlocks to the callback of the other.
 *
 * The commands and messages of the floor have as many bytes as ours.  It has bare sockets and
 * epoll, and no lock logic.  Before each step nothing happens for REST_MS, because processors go to
 * sleep meanwhile.  All clients are one thread.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>

#include "redlock/redlock.h"
#include "test/bench/figures.h"

#define REST_MS 5 /* Chosen: the hold of `redlock bench --contend`. */
#define CYCLES 300
#define CONNECT_MS 500 /* Chosen: ten times what it takes at 10 ms of distance. */

enum step { FLOOR_ACQUIRE, FLOOR_HANDOVER, ACQUIRE, HANDOVER, STEPS };

static struct figures_options options;
static uint32_t *samples_ns[STEPS];
static unsigned len; /* Of each. */

/* ---- The floor ---- */

#define SHA_LEN 40

struct command {
    char text[512];
    size_t len;
};

static const char acquire_text[] =
    "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) and redis.status_reply('OK')";
static const char handover_text[] = "redis.call('set', KEYS[1], ARGV[1], 'PX', 10000) "
                                    "redis.call('publish', KEYS[1], ARGV[3]) return 1";

static int epoll_fd;
static int links[FIGURES_MASTERS_MAX], listeners[FIGURES_MASTERS_MAX];
static struct command acquire_command, handover_command;

static int dial(const struct figures_master *master)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    char port[8];
    int on = 1, fd;

    (void)snprintf(port, sizeof port, "%d", master->port);
    if (getaddrinfo(master->host, port, &hints, &found) != 0)
        figures_die("%s", master->host);
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        figures_die("%s:%d", master->host, master->port);
    freeaddrinfo(found);
    return fd;
}

static void encode(struct command *ret_command, int argc, const char *const *argv)
{
    char *at = ret_command->text;

    at += sprintf(at, "*%d\r\n", argc);
    for (int i = 0; i < argc; i++)
        at += sprintf(at, "$%zu\r\n%s\r\n", strlen(argv[i]), argv[i]);
    ret_command->len = (size_t)(at - ret_command->text);
}

static void send_command(int fd, const struct command *command)
{
    if (send(fd, command->text, command->len, MSG_NOSIGNAL) != (ssize_t)command->len)
        figures_die("send");
}

/* All answers here are short, and come in one piece. */
static size_t receive(int fd, char *ret_text, size_t size)
{
    ssize_t got = recv(fd, ret_text, size, 0);

    if (got <= 0)
        figures_die("receive");
    return (size_t)got;
}

static void load(int fd, const char *script, char sha[SHA_LEN + 1])
{
    struct command command;
    char text[64];

    encode(&command, 3, (const char *[]){"SCRIPT", "LOAD", script});
    send_command(fd, &command);
    if (receive(fd, text, sizeof text) < SHA_LEN + 5 || text[0] != '$')
        figures_die("SCRIPT LOAD");
    memcpy(sha, text + 5, SHA_LEN);
    sha[SHA_LEN] = '\0';
}

static void watch(int fd, unsigned number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        figures_die("epoll_ctl");
}

/* As many bytes as the commands of the library, and messages of the same size. */
static void open_floor(void)
{
    char acquire_sha[SHA_LEN + 1], handover_sha[SHA_LEN + 1], text[256], message[132];
    const char *name = "handover/flo", *token = "2e39ad2c84662dd4c3fa69976c085f99f459f3a5:host/123";
    const char *waiter = "714994990f3f6b1669ffc6a1000000000000001d";
    struct command subscribe;

    memset(message, '.', sizeof message - 1);
    message[sizeof message - 1] = '\0';
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    encode(&subscribe, 2, (const char *[]){"SUBSCRIBE", name});
    for (unsigned i = 0; i < options.masters_len; i++) {
        links[i] = dial(&options.masters[i]);
        load(links[i], acquire_text, acquire_sha);
        load(links[i], handover_text, handover_sha);
        watch(links[i], i);
        listeners[i] = dial(&options.masters[i]);
        send_command(listeners[i], &subscribe);
        (void)receive(listeners[i], text, sizeof text);
        watch(listeners[i], i + FIGURES_MASTERS_MAX);
    }
    encode(&acquire_command, 8,
           (const char *[]){"EVALSHA", acquire_sha, "1", name, token, "10000", waiter, "0"});
    encode(&handover_command, 7,
           (const char *[]){"EVALSHA", handover_sha, "1", name, token, waiter, message});
}

/* Sends the command to all masters, and reads all that they answer.  The time until a majority of
 * the answers, or of the messages. */
static uint64_t exchange(const struct command *command, bool is_told)
{
    unsigned answers = 0, messages = 0, majority = options.masters_len / 2 + 1;
    unsigned messages_max = is_told ? options.masters_len : 0;
    uint64_t began_ns = samples_now_ns(), took_ns = 0;
    struct epoll_event events[2 * FIGURES_MASTERS_MAX];
    char text[512];

    for (unsigned i = 0; i < options.masters_len; i++)
        send_command(links[i], command);
    while (answers < options.masters_len || messages < messages_max) {
        int ready = epoll_wait(epoll_fd, events, 2 * FIGURES_MASTERS_MAX, -1);

        for (int i = 0; i < ready; i++) {
            unsigned m = events[i].data.u32;
            bool is_message = m >= FIGURES_MASTERS_MAX;

            (void)receive(is_message ? listeners[m - FIGURES_MASTERS_MAX] : links[m], text,
                          sizeof text);
            messages += is_message;
            answers += !is_message;
            if (is_message == is_told && (is_told ? messages : answers) == majority)
                took_ns = samples_now_ns() - began_ns;
        }
    }
    return took_ns;
}

/* ---- The library ---- */

static struct redlock *holder, *waiter;
static struct redlock_lease *held, *awaited;
static unsigned under_way, passed;
static uint64_t locked_ns;

static void die(const char *what, struct redlock *rl)
{
    errno = 0;
    figures_die("%s: %s", what, redlock_errmsg(rl));
}

static void on_locked(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease, (void)arg;
    locked_ns = samples_now_ns();
    under_way--;
    if (status != REDLOCK_OK)
        die("lock", NULL);
}

static void on_unlocked(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease, (void)arg;
    under_way--;
    if (status != REDLOCK_OK && status != REDLOCK_UNREACHABLE) /* It may be late all the same. */
        die("unlock", NULL);
}

static void lock(struct redlock *rl, const char *name, struct redlock_lease **ret_lease)
{
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.fair = true;
    opts.wait_ms = 10000;
    under_way++;
    if (redlock_lock_async(rl, name, &opts, on_locked, NULL, ret_lease) != REDLOCK_OK)
        die("lock", rl);
}

static void unlock(struct redlock_lease *lease)
{
    under_way++;
    if (redlock_unlock_async(lease, on_unlocked, NULL) != REDLOCK_OK)
        die("unlock", NULL);
}

static void finish(void)
{
    while (under_way > 0)
        (void)ev_run(EV_DEFAULT, EVRUN_ONCE);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)timer, (void)events;
    ev_break(loop, EVBREAK_ALL);
}

/* The clients go on meanwhile. */
static void rest(double ms)
{
    ev_timer timer;

    ev_now_update(EV_DEFAULT);
    ev_timer_init(&timer, on_timer, ms / 1e3, 0);
    ev_timer_start(EV_DEFAULT, &timer);
    (void)ev_run(EV_DEFAULT, 0);
    ev_timer_stop(EV_DEFAULT, &timer);
}

static uint64_t count_rounds(struct redlock *rl)
{
    struct redlock_stats stats = {.size = sizeof stats};

    if (redlock_stats(rl, &stats) != REDLOCK_OK)
        die("stats", rl);
    return stats.rounds;
}

static uint64_t acquire(void)
{
    uint64_t began_ns;

    rest(REST_MS);
    began_ns = samples_now_ns();
    lock(holder, "handover/alone", &held);
    finish();
    began_ns = locked_ns - began_ns;
    unlock(held);
    finish();
    return began_ns;
}

/* The waiter joins, and its token comes to the masters with a second heartbeat.  It has both long
 * before the end of its rest: an uncontended acquire is one trip. */
static uint64_t hand_over(uint64_t trip_ns)
{
    uint64_t began_ns, rounds;

    lock(holder, "handover/line", &held);
    finish();
    lock(waiter, "handover/line", &awaited);
    rest(3 * (double)trip_ns / 1e6 + REST_MS);
    rounds = count_rounds(waiter);
    began_ns = samples_now_ns();
    unlock(held);
    finish();
    passed += count_rounds(waiter) == rounds;
    began_ns = locked_ns - began_ns;
    unlock(awaited);
    finish();
    return began_ns;
}

static struct redlock *open_client(void)
{
    struct redlock_options opts;
    struct redlock *rl;

    redlock_options_init(&opts);
    opts.loop = EV_DEFAULT;
    if (redlock_open(&opts, &rl) != REDLOCK_OK)
        die("open", NULL);
    return rl;
}

static void open_library(void)
{
    holder = open_client();
    waiter = open_client();
    rest(CONNECT_MS);
}

/* ---- The whole ---- */

static uint32_t *make_samples(void)
{
    uint32_t *samples = calloc(options.cycles, sizeof *samples);

    if (samples == NULL)
        figures_die("no room for %u samples", options.cycles);
    return samples;
}

static void cycle(void)
{
    rest(REST_MS);
    samples_ns[FLOOR_ACQUIRE][len] = samples_of(exchange(&acquire_command, false));
    rest(REST_MS);
    samples_ns[FLOOR_HANDOVER][len] = samples_of(exchange(&handover_command, true));
    samples_ns[ACQUIRE][len] = samples_of(acquire());
    samples_ns[HANDOVER][len] = samples_of(hand_over(samples_ns[ACQUIRE][len]));
    len++;
}

/* samples_percentile_us() of ratios: one of 1 is 1000 microseconds. */
static void print_figures(const char *prefix, uint32_t *acquire_ns, uint32_t *handover_ns)
{
    uint32_t *ratios = make_samples();

    for (unsigned i = 0; i < len; i++)
        ratios[i] = (uint32_t)(1e6 * handover_ns[i] / acquire_ns[i]);
    samples_sort(acquire_ns, len);
    samples_sort(handover_ns, len);
    samples_sort(ratios, len);
    printf("%sacquire_p50_us=%.1f %shandover_p50_us=%.1f %sratio=%.2f ", prefix,
           samples_percentile_us(acquire_ns, len, 50), prefix,
           samples_percentile_us(handover_ns, len, 50), prefix,
           samples_percentile_us(ratios, len, 50) / 1e3);
    free(ratios);
}

int main(int argc, char **argv)
{
    figures_options_parse(&options, argc, argv, NULL);
    if (options.cycles == FIGURES_CYCLES_DEFAULT)
        options.cycles = CYCLES;
    for (unsigned i = 0; i < STEPS; i++)
        samples_ns[i] = make_samples();
    open_floor();
    open_library();
    while (len < options.cycles)
        cycle();
    print_figures("floor_", samples_ns[FLOOR_ACQUIRE], samples_ns[FLOOR_HANDOVER]);
    print_figures("", samples_ns[ACQUIRE], samples_ns[HANDOVER]);
    printf("passed_on=%.2f\n", passed / (double)len);
    (void)redlock_close(holder);
    (void)redlock_close(waiter);
    for (unsigned i = 0; i < STEPS; i++)
        free(samples_ns[i]);
    return EXIT_SUCCESS;
}
