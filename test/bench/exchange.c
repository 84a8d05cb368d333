/*
 * exchange.c - see exchange.h.
 */
#include "test/bench/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SLOT_BITS = 12,     /* FIGURES_IN_FLIGHT_MAX slots. */
    SENT_LEN = 1 << 18, /* How many commands a master may be behind; see exchange_send(). */
    INPUT_LEN = 1 << 16 /* More than a turn's answers: 2 * 4096 of 5 bytes. */
};

struct link {
    int fd;
    uint64_t answered; /* Commands answered so far; the index of the next answer's command. */
    size_t input_len;  /* Bytes of an incomplete answer. */
    char input[INPUT_LEN];
};

struct exchange_slot exchange_slots[FIGURES_IN_FLIGHT_MAX];

static const struct figures_options *options;
static struct figures *figures;
static exchange_decided_fn *decided;
static unsigned majority;
static char sha[EXCHANGE_SHA_LEN + 1];
static struct link links[FIGURES_MASTERS_MAX];

/* The commands sent so far: for each its slot, and above SLOT_BITS its step. */
static uint64_t sent_len;
static uint32_t sent[SENT_LEN];

/* The commands of this turn. */
static size_t output_len;
static char output[2 * FIGURES_IN_FLIGHT_MAX * EXCHANGE_COMMAND_MAX];

/* ---- The set-up ---- */

const char exchange_script[] = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
                               "return redis.call(\"del\",KEYS[1]) else return 0 end";

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

/* Loads a script.  Its SHA-1 is the same from every master. */
static void load(int fd, const char *script)
{
    char text[2048]; /* Our own script for the release has less than 1 KiB. */
    size_t len = encode(text, sizeof text, 3, (const char *[]){"SCRIPT", "LOAD", script});
    size_t answer_len = sizeof "$40\r\n" - 1 + EXCHANGE_SHA_LEN + sizeof "\r\n" - 1;

    if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
        figures_die("SCRIPT LOAD");
    if (recv(fd, text, answer_len, MSG_WAITALL) != (ssize_t)answer_len || text[0] != '$')
        figures_die("SCRIPT LOAD: unexpected answer");
    memcpy(sha, text + sizeof "$40\r\n" - 1, EXCHANGE_SHA_LEN);
}

void exchange_open(int epoll_fd, const struct figures_options *the_options,
                   struct figures *the_figures, const char *script, exchange_decided_fn *on_decided)
{
    options = the_options;
    figures = the_figures;
    decided = on_decided;
    majority = options->masters_len / 2 + 1;
    for (unsigned i = 0; i < options->masters_len; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
        int fd = dial(&options->masters[i]);

        load(fd, script);
        if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 ||
            epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
            figures_die("set up a socket");
        links[i].fd = fd;
    }
}

void exchange_encode(unsigned slot, const char *name, const char *token)
{
    struct exchange_slot *one = &exchange_slots[slot];

    one->len[ACQUIRE] = (uint16_t)encode(one->text[ACQUIRE], EXCHANGE_COMMAND_MAX, 6,
                                         (const char *[]){"SET", name, token, "NX", "PX", "10000"});
    one->len[RELEASE] = (uint16_t)encode(one->text[RELEASE], EXCHANGE_COMMAND_MAX, 5,
                                         (const char *[]){"EVALSHA", sha, "1", name, token});
}

/* ---- Answers ---- */

/* Returns the length of the answer at `at`, or 0 if it is incomplete.  Each answer is one line. */
static size_t parse(const char *at, size_t len, enum phase phase, bool *ret_yes)
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

static void count_answer(uint32_t command, bool yes)
{
    struct exchange_slot *slot = &exchange_slots[command % FIGURES_IN_FLIGHT_MAX];

    figures->errors += !yes;
    if (command != (slot->step << SLOT_BITS | command % FIGURES_IN_FLIGHT_MAX))
        return; /* It is late: the step is decided already. */
    if (yes)
        slot->yes++;
    else
        slot->no++;
    if (slot->yes != majority && slot->no + majority <= options->masters_len)
        return;
    slot->step++;
    decided(command % FIGURES_IN_FLIGHT_MAX);
}

static void take_answers(struct link *link)
{
    size_t taken = 0;

    while (taken < link->input_len && link->answered < sent_len) {
        uint32_t command = sent[link->answered % SENT_LEN];
        bool yes;
        size_t len = parse(link->input + taken, link->input_len - taken,
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
void exchange_receive(unsigned master)
{
    struct link *link = &links[master];

    for (;;) {
        size_t room = INPUT_LEN - link->input_len;
        ssize_t len = recv(link->fd, link->input + link->input_len, room, 0);

        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (len <= 0)
            figures_die("master %u closed the connection", master + 1);
        link->input_len += (size_t)len;
        take_answers(link);
        if ((size_t)len < room)
            return;
    }
}

int exchange_wait(int epoll_fd, struct epoll_event *events, int events_max)
{
    int len = epoll_wait(epoll_fd, events, events_max, EXCHANGE_SILENCE_MAX_MS);

    if (len == 0) {
        errno = 0;
        figures_die("no answer for %d ms", EXCHANGE_SILENCE_MAX_MS);
    }
    return len;
}

bool exchange_all_answered(void)
{
    for (unsigned i = 0; i < options->masters_len; i++)
        if (links[i].answered < sent_len)
            return false;
    return true;
}

/* ---- Commands ---- */

void exchange_ask(unsigned slot)
{
    struct exchange_slot *one = &exchange_slots[slot];
    enum phase phase = one->step % PHASES;

    one->yes = one->no = 0;
    memcpy(output + output_len, one->text[phase], one->len[phase]);
    output_len += one->len[phase];
    sent[sent_len++ % SENT_LEN] = one->step << SLOT_BITS | slot;
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
        else if (errno != EAGAIN || poll(&writable, 1, EXCHANGE_SILENCE_MAX_MS) != 1)
            figures_die("send to master %td", link - links + 1);
    }
}

void exchange_send(void)
{
    if (output_len == 0)
        return;
    for (unsigned i = 0; i < options->masters_len; i++) {
        /* Keep room for a turn, which adds at most two steps of each slot. */
        if (sent_len - links[i].answered > SENT_LEN - 2 * FIGURES_IN_FLIGHT_MAX) {
            errno = 0;
            figures_die("master %u is too far behind", i + 1);
        }
        send_output(&links[i]);
    }
    output_len = 0;
}
