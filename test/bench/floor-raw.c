/*
 * floor-raw.c - the least that a cycle of lock and unlock can cost: the exchange with the masters
 * and nothing else.
 *
 * The program sends "SET bench/<slot> <token> NX PX 10000" to all masters.  When a majority has
 * answered, it sends the compare-and-delete script to all.  When a majority has answered that, the
 * cycle is over.  It reads and counts late answers, as a real client must.  It does not check
 * whether the lease still holds, and retries nothing.  A master that fails ends the program.
 *
 * What makes it a floor:
 * - Commands are encoded once.  Every master gets the same bytes in the same order.  So a turn's
 *   commands are in one buffer, and each master and turn needs one send().
 * - For the same reason there is one record of the commands sent.  Each link counts its answers,
 *   and the count is the index of the command that the next answer is for.
 * - Edge-triggered epoll, one epoll_wait() a turn, one recv() for each master that has answered.
 * - An answer is compared with the expected one before it is parsed.
 * - Nothing is allocated.
 *
 * A slot uses its name again at once: on each connection its release precedes its next SET.
 */
#include "test/bench/exchange.h"
#include "test/bench/figures.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

static struct figures_options options;
static struct figures figures;
static uint64_t began_ns[FIGURES_IN_FLIGHT_MAX]; /* When the step under way of a slot began. */

static unsigned started;  /* Cycles begun. */
static unsigned finished; /* Cycles finished. */

static void ask(unsigned slot, uint64_t now_ns)
{
    began_ns[slot] = now_ns;
    exchange_ask(slot);
}

static void start(unsigned slot, uint64_t now_ns)
{
    if (started == options.cycles)
        return;
    started++;
    ask(slot, now_ns);
}

/* Goes on with the release, or with the next cycle. */
static void on_decided(unsigned slot)
{
    uint64_t now_ns = samples_now_ns();

    if (exchange_slots[slot].step % PHASES == RELEASE) {
        figures_acquired(&figures, now_ns - began_ns[slot]);
        ask(slot, now_ns);
    } else {
        figures_unlocked(&figures, now_ns - began_ns[slot]);
        finished++;
        start(slot, now_ns);
    }
}

/* Connects, loads the script, encodes the commands; returns the epoll descriptor. */
static int set_up(void)
{
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    if (epoll_fd < 0)
        figures_die("epoll");
    exchange_open(epoll_fd, &options, &figures, exchange_script, on_decided);
    for (unsigned i = 0; i < options.in_flight; i++) {
        char name[32], token[EXCHANGE_SHA_LEN + 1];

        (void)snprintf(name, sizeof name, "bench/%u", i);
        (void)snprintf(token, sizeof token, "%032x%08x", 0xf100u, i);
        exchange_encode(i, name, token);
    }
    return epoll_fd;
}

static void turn(int epoll_fd)
{
    struct epoll_event events[FIGURES_MASTERS_MAX];
    int len;

    exchange_send();
    len = exchange_wait(epoll_fd, events, FIGURES_MASTERS_MAX);
    for (int i = 0; i < len; i++)
        exchange_receive(events[i].data.u32);
}

int main(int argc, char **argv)
{
    uint64_t now_ns;
    int epoll_fd;

    figures_options_parse(&options, argc, argv, NULL);
    figures_init(&figures, options.cycles);
    epoll_fd = set_up();

    figures_begin(&figures);
    now_ns = samples_now_ns();
    for (unsigned i = 0; i < options.in_flight; i++)
        start(i, now_ns);
    while (finished < options.cycles)
        turn(epoll_fd);
    figures_end(&figures);

    /* Read the late answers of the last cycles, because wrong ones count as errors. */
    while (!exchange_all_answered())
        turn(epoll_fd);
    figures_print(&figures);
    figures_done(&figures);
    return EXIT_SUCCESS;
}
