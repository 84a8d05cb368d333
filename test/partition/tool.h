/*
 * tool.h - common tools of the programs of a partition run: the clock of the
 * history, naps, dice, options, and errors.
 *
 * Knows nothing of locks, and links with nothing.
 */
#ifndef PARTITION_TOOL_H
#define PARTITION_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S (1000 * NS_PER_MS)

/* CLOCK_MONOTONIC: the one clock of a history, common to all of its writers. */
uint64_t tool_now_ns(void);

/* Sleep; a signal may end it early. */
void tool_nap_ms(uint32_t nap_ms);

/* SplitMix64 (Steele, Lea, Flood 2014): the state is the seed. */
struct dice {
    uint64_t state;
};
uint64_t dice_next(struct dice *dice);
/* low to high, both included. */
uint32_t dice_range(struct dice *dice, uint32_t low, uint32_t high);
/* True in permille of a thousand cases. */
bool dice_chance(struct dice *dice, unsigned permille);

/* True for 1 to max letters, digits and "-_.:", which need no quoting in JSON or in a line of
 * words. */
bool tool_is_word(const char *text, size_t max);

/* The number in text.  Any other text ends the program. */
uint64_t tool_number(const char *option, const char *text, uint64_t least, uint64_t most);

/* Map this much of a file that another process writes in place, so its bytes may change at any
 * time.  If that fails, or the file is shorter, the program ends. */
const volatile void *tool_map(const char *path, size_t size);

/* Print the reason on standard error, and end the program with 1. */
void tool_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif /* PARTITION_TOOL_H */
