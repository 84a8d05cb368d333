/*
 * exchange.h - the exchange with the masters that the raw floors share: connect, load the script,
 * encode the commands, send them to all masters, and count the answers.
 */
#ifndef TEST_BENCH_EXCHANGE_H
#define TEST_BENCH_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "test/bench/figures.h"

enum {
    EXCHANGE_SHA_LEN = 40,      /* Hexadecimal digits of a SHA-1. */
    EXCHANGE_COMMAND_MAX = 192, /* The longest command has 152 bytes, in floor-threads.c. */
    EXCHANGE_SILENCE_MAX_MS = 5000
};

/* The phase of a slot.  It is also the lowest bit of its step. */
enum phase { ACQUIRE, RELEASE, PHASES };

/* A slot repeats a command and its release, one at a time. */
struct exchange_slot {
    uint32_t step; /* Counts phases: even ones acquire, odd ones release. */
    uint16_t yes;  /* Expected answers to this step. */
    uint16_t no;   /* Other answers to this step. */
    uint16_t len[PHASES];
    char text[PHASES][EXCHANGE_COMMAND_MAX]; /* "SET name token NX PX 10000", and EVALSHA. */
};
extern struct exchange_slot exchange_slots[FIGURES_IN_FLIGHT_MAX];

/* A majority has answered the step of this slot as expected, or cannot any more.  The step counts
 * on before the call. */
typedef void exchange_decided_fn(unsigned slot);

/* The published script for the release: compare and delete. */
extern const char exchange_script[];

/* Connects to all masters, loads the script of the release, and watches the sockets,
 * edge-triggered, with the numbers of the masters from 0.  A failure ends the program, here and
 * below. */
void exchange_open(int epoll_fd, const struct figures_options *options, struct figures *figures,
                   const char *script, exchange_decided_fn *on_decided);

/* Encodes the commands of a slot. */
void exchange_encode(unsigned slot, const char *name, const char *token);

/* Puts the command of the slot's step into this turn's output. */
void exchange_ask(unsigned slot);

/* Sends this turn's output to all masters. */
void exchange_send(void);

/* Reads and counts the answers of a master, after its number came from epoll. */
void exchange_receive(unsigned master);

/* Waits for events.  Silence ends the program. */
int exchange_wait(int epoll_fd, struct epoll_event *events, int events_max);

/* True: no answer is missing, late ones included. */
bool exchange_all_answered(void);

#endif /* TEST_BENCH_EXCHANGE_H */
