/*
 * exchange.h - the exchange with a master that the raw floors share: connect, load the script,
 * encode the commands, and read an answer.
 */
#ifndef TEST_BENCH_EXCHANGE_H
#define TEST_BENCH_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct figures_master;

enum {
    EXCHANGE_SHA_LEN = 40,     /* Hexadecimal digits of a SHA-1. */
    EXCHANGE_COMMAND_MAX = 192 /* The longest command has 152 bytes, in floor-threads.c. */
};

/* The phase of a slot.  It is also the lowest bit of its step. */
enum phase { ACQUIRE, RELEASE, PHASES };

/* The commands of a slot: "SET name token NX PX 10000", and the script for the release. */
struct exchange_commands {
    uint16_t len[PHASES];
    char text[PHASES][EXCHANGE_COMMAND_MAX];
};

/* The published script for the release: compare and delete. */
extern const char exchange_script[];

/* Connects with a blocking socket, for the set-up.  A failure ends the program. */
int exchange_dial(const struct figures_master *master);

/* Loads a script.  The answer is its SHA-1, the same from every master. */
void exchange_load(int fd, const char *script, char ret_sha[EXCHANGE_SHA_LEN + 1]);

void exchange_encode(struct exchange_commands *ret_commands, const char *name, const char *token,
                     const char *sha);

/* Returns the length of the answer at `at`, or 0 if it is incomplete.  Each answer is one line. */
size_t exchange_parse(const char *at, size_t len, enum phase phase, bool *ret_yes);

#endif /* TEST_BENCH_EXCHANGE_H */
