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
#include "test/bench/figures.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    COMMAND_MAX = 160,   /* The longest command has 136 bytes with "bench/4095". */
    SHA_LEN = 40,        /* Hexadecimal digits of a SHA-1. */
    SLOT_BITS = 12,      /* FIGURES_IN_FLIGHT_MAX slots. */
    SENT_LEN = 1 << 18,  /* How many commands a master may be behind; see send_all(). */
    INPUT_LEN = 1 << 16, /* More than a turn's answers: 2 * 4096 of 5 bytes. */
    SILENCE_MAX_MS = 5000
};

static const char script[] = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
                             "return redis.call(\"del\",KEYS[1]) else return 0 end";

/* The phase of a slot.  It is also the lowest bit of its step. */
enum phase { ACQUIRE, RELEASE, PHASES };

struct slot {
    uint64_t began_ns; /* When the step under way began. */
    uint32_t step;     /* Counts phases: even ones acquire, odd ones release. */
    uint16_t yes;      /* Expected answers to this step. */
    uint16_t no;       /* Other answers to this step. */
    uint16_t command_len[PHASES];
    char command[PHASES][COMMAND_MAX];
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
static char output[2 * FIGURES_IN_FLIGHT_MAX * COMMAND_MAX];

static unsigned started;  /* Cycles begun. */
static unsigned finished; /* Cycles finished. */

/* Connects with a blocking socket, for the set-up. */
static int dial(const struct figures_master *master)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char port[8];
    int on = 1;
    int fd;
    int rv;

    (void)snprintf(port, sizeof port, "%d", master->port);
    rv = getaddrinfo(master->host, port, &hints, &found);
    if (rv != 0) {
        errno = 0;
        figures_die("%s: %s", master->host, gai_strerror(rv));
    }
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0)
        figures_die("%s:%d", master->host, master->port);
    freeaddrinfo(found);
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        figures_die("TCP_NODELAY");
    return fd;
}

/* Writes a command of `argc` words; returns its length. */
static size_t encode(char *ret_command, size_t size, int argc, const char *const *argv)
{
    int len = snprintf(ret_command, size, "*%d\r\n", argc);

    for (int i = 0; i < argc; i++)
        len += snprintf(ret_command + len, size - (size_t)len, "$%zu\r\n%s\r\n", strlen(argv[i]),
                        argv[i]);
    return (size_t)len;
}

/* Loads the script.  The answer is its SHA-1, the same from every master. */
static void load_script(int fd, char ret_sha[SHA_LEN + 1])
{
    char text[512];
    size_t len = encode(text, sizeof text, 3, (const char *[]){"SCRIPT", "LOAD", script});
    size_t answer_len = sizeof "$40\r\n" - 1 + SHA_LEN + sizeof "\r\n" - 1;

    if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
        figures_die("SCRIPT LOAD");
    if (recv(fd, text, answer_len, MSG_WAITALL) != (ssize_t)answer_len || text[0] != '$')
        figures_die("SCRIPT LOAD: unexpected answer");
    memcpy(ret_sha, text + sizeof "$40\r\n" - 1, SHA_LEN);
    ret_sha[SHA_LEN] = '\0';
}

static void encode_slot(unsigned i, const char *sha)
{
    struct slot *slot = &slots[i];
    char name[32];
    char token[SHA_LEN + 1];

    (void)snprintf(name, sizeof name, "bench/%u", i);
    (void)snprintf(token, sizeof token, "%032x%08x", 0xf100u, i);
    slot->command_len[ACQUIRE] =
        (uint16_t)encode(slot->command[ACQUIRE], COMMAND_MAX, 6,
                         (const char *[]){"SET", name, token, "NX", "PX", "10000"});
    slot->command_len[RELEASE] = (uint16_t)encode(
        slot->command[RELEASE], COMMAND_MAX, 5, (const char *[]){"EVALSHA", sha, "1", name, token});
}

/* Connects, loads the script, encodes the commands; returns the epoll descriptor. */
static int set_up(void)
{
    char sha[SHA_LEN + 1] = "";
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    if (epoll_fd < 0)
        figures_die("epoll");
    for (unsigned i = 0; i < options.masters_len; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
        int fd = dial(&options.masters[i]);

        load_script(fd, sha);
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
    memcpy(output + output_len, slot->command[phase], slot->command_len[phase]);
    output_len += slot->command_len[phase];
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

/* Returns the length of the answer at `at`, or 0 if it is incomplete.  Each answer is one line. */
static size_t parse_answer(const char *at, size_t len, enum phase phase, bool *ret_yes)
{
    static const char expected[PHASES][6] = {"+OK\r\n", ":1\r\n"};
    size_t expected_len = phase == ACQUIRE ? 5 : 4;
    const char *newline;

    *ret_yes = len >= expected_len && memcmp(at, expected[phase], expected_len) == 0;
    if (*ret_yes)
        return expected_len;
    newline = memchr(at, '\n', len);
    return newline == NULL ? 0 : (size_t)(newline - at) + 1;
}

static void take_answers(struct link *link)
{
    size_t taken = 0;

    while (taken < link->input_len && link->answered < sent_len) {
        uint32_t command = sent[link->answered % SENT_LEN];
        bool yes;
        size_t len = parse_answer(link->input + taken, link->input_len - taken,
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
