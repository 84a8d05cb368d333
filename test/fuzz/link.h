/*
 * link.h - the parts of fuzz-link: what the input decides, the network, the masters.
 *
 * link.c is the program that uses the library, and the fuzz target.  link-net.c implements
 * transport.h and loop.h.  link-peer.c reads the commands and writes the canned answers.
 */
#ifndef FUZZ_LINK_H
#define FUZZ_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "drift/drift.h"
#include "must.h"

/* Print a line of the story, if FUZZ_TELL is in the environment. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The next byte of the input; 0 when there is none left. */
unsigned next_byte(void);

struct ev_loop {
    unsigned unused; /* The library only passes the pointer on. */
};

/* ---- One connection, as its master sees it ---- */

#define COMMANDS_MAX 1024 /* Unanswered commands; more are never answered. */
#define PARTIAL_MAX (32u << 10)

struct command {
    uint8_t verb, script, channel;
    uint64_t number; /* The number that a SCRIPT_RAISE asks for. */
};

struct peer {
    unsigned master;
    struct command commands[COMMANDS_MAX]; /* A ring. */
    unsigned first, len;
    bool overflows;
    bool listens; /* It was asked for messages. */
    size_t partial_len;
    char partial[PARTIAL_MAX]; /* An incomplete command. */
};

#define ANSWER_MAX 1024

/* The configuration of the set that good masters tell. */
extern const char *peer_config;
/* A master told another configuration.  The client may believe it, and then rightly closes its
 * links to those that are no members. */
extern bool peer_told_another_set;

void peer_reset_all(void);
void peer_begin(struct peer *peer, unsigned master);
/* The library wrote these bytes.  They must be known commands. */
void peer_on_bytes(struct peer *peer, const char *bytes, size_t len);
/* Answer the oldest command; variant 0 is the good answer.  Returns the length of the answer;
 * 0: there is no command. */
size_t peer_answer(struct peer *peer, unsigned variant, char buf[ANSWER_MAX]);
/* A message on a channel that was subscribed to. */
size_t peer_message(unsigned channel, unsigned what, uint32_t number, char buf[ANSWER_MAX]);

/* ---- The network ---- */

struct transport;

struct net_settings {
    drift_span tick;      /* Passes whenever the clock is read. */
    bool is_auto;         /* New connections are accepted, and get good answers at once. */
    bool refuses_at_once; /* Connections are refused at once, as with a unix socket. */
    bool rings_early;     /* The timer of the loop rings early. */
};
extern struct net_settings net_settings;

void net_begin(void);
drift_time net_now(void);
/* The first transport from place n on, in a circle; NULL: there is none. */
struct transport *net_pick(unsigned n);
void net_accept(struct transport *transport, bool accept);
void net_feed(struct transport *transport, const char *bytes, size_t len);
void net_answer(struct transport *transport, unsigned variant);
void net_end(struct transport *transport, bool writes_fail);
void net_set_room(struct transport *transport, size_t room);
void net_set_piece(struct transport *transport, size_t piece);
void net_set_auto(struct transport *transport, bool is_auto);
void net_reset_all(void);             /* Every connection ends, and new ones are good. */
void net_forbid_closing(bool forbid); /* The library must not close good connections. */

/* One turn of the loop; turns until nothing is due; and turns for so long. */
void net_turn(void);
void net_settle(void);
void net_pass(drift_span span);
/* The process is paused: nothing rings meanwhile. */
void net_stall(drift_span span);
/* From now on, reading the clock fails. */
void net_break_clock(void);
bool net_has_clock(void);
/* True if the input has used all its turns. */
bool net_is_tired(void);
/* Note that something happened, so that the loop is not idle. */
void net_progress(void);
/* The client is closed: check that no loop and no transport is left. */
void net_check_gone(void);

/* ---- The program ---- */

void calls_open(void); /* Picks the settings. */
void calls_close(void);
bool calls_is_open(void);
void calls_one(unsigned which);
void calls_on_stall(drift_span span);
void calls_on_settled(void); /* No timer is due any more. */

bool calls_is_guarded(void); /* Good masters may be kept from voting. */
bool calls_all_up(void);
/* All masters are good, and no guard is on: check that locks are granted.  A burst makes the ring
 * of unanswered commands grow while it wraps. */
void calls_recovered(bool bursts);

#endif /* FUZZ_LINK_H */
