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

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SLOT_BITS = 12,      /* FIGURES_IN_FLIGHT_MAX slots. */
    SENT_LEN = 1 << 18,  /* How many commands a master may be behind; see send_all(). */
    INPUT_LEN = 1 << 16, /* More than a turn's answers: 2 * 4096 of 5 bytes. */
    SILENCE_MAX_MS = 5000
};

struct slot {
    uint64_t began_ns; /* When the step under way began. */
    uint32_t step;     /* Counts phases: even ones acquire, odd ones release. */
    uint16_t yes;      /* Expected answers to this step. */
    uint16_t no;       /* Other answers to this step. */
    struct exchange_commands commands;
};

struct link {
    int fd;
    uint64_t answered; /* Commands answered so far; the index of the next answer's command. */
    size_t input_len;  /* Bytes of an incomplete answer. */
    char input[INPUT_LEN];
};

static struct figures_options options;
static struct figures figures;
static unsigned majority;

static struct link links[FIGURES_MASTERS_MAX];
static struct slot slots[FIGURES_IN_FLIGHT_MAX];

/* The commands sent so far: for each its slot, and above SLOT_BITS its step. */
static uint64_t sent_len;
static uint32_t sent[SENT_LEN];

/* The commands of this turn. */
static size_t output_len;
static char output[2 * FIGURES_IN_FLIGHT_MAX * EXCHANGE_COMMAND_MAX];

static unsigned started;  /* Cycles begun. */
static unsigned finished; /* Cycles finished. */

static void encode_slot(unsigned i, const char *sha)
{
    char name[32];
    char token[EXCHANGE_SHA_LEN + 1];

    (void)snprintf(name, sizeof name, "bench/%u", i);
    (void)snprintf(token, sizeof token, "%032x%08x", 0xf100u, i);
    exchange_encode(&slots[i].commands, name, token, sha);
}

/* Connects, loads the script, encodes the commands; returns the epoll descriptor. */
static int set_up(void)
{
    char sha[EXCHANGE_SHA_LEN + 1] = "";
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    if (epoll_fd < 0)
        figures_die("epoll");
    for (unsigned i = 0; i < options.masters_len; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
        int fd = exchange_dial(&options.masters[i]);

        exchange_load(fd, exchange_script, sha);
        if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 ||
            epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
            figures_die("set up a socket");
        links[i].fd = fd;
    }
    for (unsigned i = 0; i < options.in_flight; i++)
        encode_slot(i, sha);
    return epoll_fd;
}

/* Puts the command of the slot's step into this turn's output. */
static void ask(struct slot *slot, uint64_t now_ns)
{
    enum phase phase = slot->step % PHASES;

    slot->began_ns = now_ns;
    slot->yes = 0;
    slot->no = 0;
    memcpy(output + output_len, slot->commands.text[phase], slot->commands.len[phase]);
    output_len += slot->commands.len[phase];
    sent[sent_len++ % SENT_LEN] = slot->step << SLOT_BITS | (uint32_t)(slot - slots);
}

static void start(struct slot *slot, uint64_t now_ns)
{
    if (started == options.cycles)
        return;
    started++;
    ask(slot, now_ns);
}

/* The step is decided.  Go on with the release, or with the next cycle. */
static void advance(struct slot *slot)
{
    uint64_t now_ns = samples_now_ns();
    enum phase phase = slot->step++ % PHASES;

    if (phase == ACQUIRE) {
        figures_acquired(&figures, now_ns - slot->began_ns);
        ask(slot, now_ns);
    } else {
        figures_unlocked(&figures, now_ns - slot->began_ns);
        finished++;
        start(slot, now_ns);
    }
}

static void count_answer(uint32_t command, bool yes)
{
    struct slot *slot = &slots[command % FIGURES_IN_FLIGHT_MAX];

    figures.errors += !yes;
    if (command != (slot->step << SLOT_BITS | command % FIGURES_IN_FLIGHT_MAX))
        return; /* It is late: the step is decided already. */
    if (yes)
        slot->yes++;
    else
        slot->no++;
    if (slot->yes == majority || slot->no + majority > options.masters_len)
        advance(slot);
}

static void take_answers(struct link *link)
{
    size_t taken = 0;

    while (taken < link->input_len && link->answered < sent_len) {
        uint32_t command = sent[link->answered % SENT_LEN];
        bool yes;
        size_t len = exchange_parse(link->input + taken, link->input_len - taken,
                                    (command >> SLOT_BITS) % PHASES, &yes);

        if (len == 0)
            break;
        taken += len;
        link->answered++;
        count_answer(command, yes);
    }
    link->input_len -= taken;
    if (link->input_len > 0)
        memmove(link->input, link->input + taken, link->input_len);
}

/* Reads until the socket is empty, because epoll is edge-triggered. */
static void receive(struct link *link)
{
    for (;;) {
        size_t room = INPUT_LEN - link->input_len;
        ssize_t len = recv(link->fd, link->input + link->input_len, room, 0);

        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (len <= 0)
            figures_die("master %td closed the connection", link - links + 1);
        link->input_len += (size_t)len;
        take_answers(link);
        if ((size_t)len < room)
            return;
    }
}

/*
 * Sends this turn's commands to one master.  If the socket buffer is full, the master is thousands
 * of commands behind.  The program then waits instead of keeping a queue, because such a run does
 * not measure a floor anyway.
 */
static void send_output(struct link *link)
{
    size_t done = 0;

    while (done < output_len) {
        ssize_t len = send(link->fd, output + done, output_len - done, MSG_NOSIGNAL);
        struct pollfd writable = {.fd = link->fd, .events = POLLOUT};

        if (len >= 0)
            done += (size_t)len;
        else if (errno != EAGAIN || poll(&writable, 1, SILENCE_MAX_MS) != 1)
            figures_die("send to master %td", link - links + 1);
    }
}

static void send_all(void)
{
    if (output_len == 0)
        return;
    for (unsigned i = 0; i < options.masters_len; i++) {
        /* Keep room for a turn, which adds at most two steps of each slot. */
        if (sent_len - links[i].answered > SENT_LEN - 2 * FIGURES_IN_FLIGHT_MAX) {
            errno = 0;
            figures_die("master %u is too far behind", i + 1);
        }
        send_output(&links[i]);
    }
    output_len = 0;
}

static void turn(int epoll_fd)
{
    struct epoll_event events[FIGURES_MASTERS_MAX];
    int len;

    send_all();
    len = epoll_wait(epoll_fd, events, FIGURES_MASTERS_MAX, SILENCE_MAX_MS);
    if (len == 0) {
        errno = 0;
        figures_die("no answer for %d ms", SILENCE_MAX_MS);
    }
    for (int i = 0; i < len; i++)
        receive(&links[events[i].data.u32]);
}

static bool all_answered(void)
{
    for (unsigned i = 0; i < options.masters_len; i++)
        if (links[i].answered < sent_len)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    uint64_t now_ns;
    int epoll_fd;

    figures_options_parse(&options, argc, argv, NULL);
    majority = options.masters_len / 2 + 1;
    figures_init(&figures, options.cycles);
    epoll_fd = set_up();

    figures_begin(&figures);
    now_ns = samples_now_ns();
    for (unsigned i = 0; i < options.in_flight; i++)
        start(&slots[i], now_ns);
    while (finished < options.cycles)
        turn(epoll_fd);
    figures_end(&figures);

    /* Read the late answers of the last cycles, because wrong ones count as errors. */
    while (!all_answered())
        turn(epoll_fd);
    figures_print(&figures);
    figures_done(&figures);
    return EXIT_SUCCESS;
}
