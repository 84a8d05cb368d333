/*
 * floor-threads.c - the least that a cycle of lock and unlock can cost threads that block: the
 * exchange of floor-raw.c, with --in-flight K as the number of threads.  Read its head first.
 *
 * Each thread hands its encoded command to one I/O thread, and sleeps until a majority of the
 * masters has answered.  There is no lock logic.  The script of the release is the library's, and
 * names and tokens are as long as those of `redlock bench`: the masters get the same bytes.
 *
 * What makes it a floor, beside what floor-raw.c does:
 * - A thread pushes its slot on a stack without a mutex, which the I/O thread takes as a whole.
 * - An eventfd is written only if the I/O thread sleeps, and by one thread only.
 * - A thread sleeps on a futex of its own.  The I/O thread wakes all whose commands were decided
 *   after it has read from all masters that have answered.
 * - After it woke threads, the I/O thread yields its processor, so that their next commands go to
 *   the masters together.
 */
#include "test/bench/exchange.h"
#include "test/bench/figures.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "redlock/wire/script.h"

enum {
    THREADS_MAX = 256,
    WAKE = FIGURES_MASTERS_MAX /* The number of the eventfd among the sockets. */
};

/* A thread.  Its command is in exchange_slots. */
struct slot {
    struct slot *next;      /* In the stack, or in the list of slots to wake. */
    _Atomic uint32_t asked; /* 1: the thread sleeps, or is about to. */
    pthread_t thread;
    uint32_t cycles; /* How many the thread does. */
};

static struct figures_options options;
static struct figures figures;
static struct slot slots[THREADS_MAX];
static int epoll_fd, wake_fd;

static _Atomic(struct slot *) pushed; /* Slots with a command to send. */
static atomic_bool asleep;            /* The I/O thread sleeps, or is about to. */
static atomic_uint active;            /* Threads with cycles left. */
static struct slot *decided;          /* Slots to wake. */

/* Each thread has room of its own for its samples. */
static uint32_t *acquire_ns[THREADS_MAX], *unlock_ns[THREADS_MAX];
static uint32_t samples_len[THREADS_MAX];

/* ---- The threads ---- */

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    (void)syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void wake_io(void)
{
    const uint64_t one = 1;

    if (atomic_load(&asleep) && atomic_exchange(&asleep, false))
        if (write(wake_fd, &one, sizeof one) != sizeof one)
            figures_die("wake the I/O thread");
}

/* Hands the command of the slot's step over, and sleeps until it is decided. */
static void ask(struct slot *slot)
{
    struct slot *first = atomic_load(&pushed);

    atomic_store(&slot->asked, 1);
    do
        slot->next = first;
    while (!atomic_compare_exchange_weak(&pushed, &first, slot));
    if (first == NULL)
        wake_io();
    while (atomic_load(&slot->asked) == 1)
        futex(&slot->asked, FUTEX_WAIT, 1);
}

static void *run_thread(void *arg)
{
    struct slot *slot = arg;
    size_t n = (size_t)(slot - slots);

    while (slot->cycles-- > 0) {
        uint64_t began = samples_now_ns(), locked;

        ask(slot);
        locked = samples_now_ns();
        ask(slot);
        acquire_ns[n][samples_len[n]] = samples_of(locked - began);
        unlock_ns[n][samples_len[n]++] = samples_of(samples_now_ns() - locked);
    }
    atomic_fetch_sub(&active, 1);
    wake_io();
    return NULL;
}

/* ---- The I/O thread ---- */

static void on_decided(unsigned slot)
{
    slots[slot].next = decided;
    decided = &slots[slot];
}

/* Takes what the threads have handed over, and sends it. */
static void send_pushed(void)
{
    struct slot *slot = atomic_load(&pushed) != NULL ? atomic_exchange(&pushed, NULL) : NULL;

    for (; slot != NULL; slot = slot->next)
        exchange_ask((unsigned)(slot - slots));
    exchange_send();
}

static void wake_decided(void)
{
    struct slot *slot;

    if (decided == NULL)
        return;
    while ((slot = decided) != NULL) {
        decided = slot->next; /* Read it before the thread goes on. */
        atomic_store(&slot->asked, 0);
        futex(&slot->asked, FUTEX_WAKE, 1);
    }
    (void)sched_yield();
}

static void turn(void)
{
    struct epoll_event events[FIGURES_MASTERS_MAX + 1];
    int len;

    send_pushed();
    atomic_store(&asleep, true);
    if (atomic_load(&pushed) != NULL) {
        atomic_store(&asleep, false);
        return;
    }
    len = exchange_wait(epoll_fd, events, FIGURES_MASTERS_MAX + 1);
    atomic_store(&asleep, false);
    for (int i = 0; i < len; i++)
        if (events[i].data.u32 != WAKE)
            exchange_receive(events[i].data.u32);
    wake_decided();
}

/* ---- The whole ---- */

static uint32_t *make_samples(void)
{
    uint32_t *samples = malloc(options.cycles * sizeof *samples);

    if (samples == NULL)
        figures_die("no room for %u samples", options.cycles);
    return samples;
}

static void set_up(void)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = WAKE};

    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (epoll_fd < 0 || wake_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wake_fd, &event) != 0)
        figures_die("epoll");
    exchange_open(epoll_fd, &options, &figures, script_all[SCRIPT_RELEASE].text, on_decided);
    for (unsigned i = 0; i < options.in_flight; i++) {
        char name[32], token[64];

        (void)snprintf(name, sizeof name, "bench/%d/%u", (int)getpid(), i);
        (void)snprintf(token, sizeof token, "%032x%08x:host/1234", 0x7a2eadu, i);
        /* Shares as even as those of `redlock bench`. */
        slots[i].cycles =
            options.cycles / options.in_flight + (i < options.cycles % options.in_flight ? 1 : 0);
        exchange_encode(i, name, token);
        acquire_ns[i] = make_samples();
        unlock_ns[i] = make_samples();
    }
}

static void gather(void)
{
    for (unsigned i = 0; i < options.in_flight; i++) {
        for (uint32_t n = 0; n < samples_len[i]; n++) {
            figures_acquired(&figures, acquire_ns[i][n]);
            figures_unlocked(&figures, unlock_ns[i][n]);
        }
        free(acquire_ns[i]);
        free(unlock_ns[i]);
    }
}

int main(int argc, char **argv)
{
    figures_options_parse(&options, argc, argv, NULL);
    if (options.in_flight > THREADS_MAX)
        options.in_flight = THREADS_MAX;
    figures_init(&figures, options.cycles);
    set_up();
    atomic_store(&active, options.in_flight);

    figures_begin(&figures);
    for (unsigned i = 0; i < options.in_flight; i++)
        if ((errno = pthread_create(&slots[i].thread, NULL, run_thread, &slots[i])) != 0)
            figures_die("start a thread");
    while (atomic_load(&active) > 0)
        turn();
    figures_end(&figures);

    /* Read the late answers of the last cycles, because wrong ones count as errors. */
    while (!exchange_all_answered())
        turn();
    for (unsigned i = 0; i < options.in_flight; i++)
        (void)pthread_join(slots[i].thread, NULL);
    gather();
    figures_print(&figures);
    figures_done(&figures);
    return EXIT_SUCCESS;
}
