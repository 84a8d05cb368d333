/*
 * tool.h - what the programs of a partition run have in common: the clock of
 * the history, naps, dice, reading options, and giving up.
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
/* True so many times in a thousand. */
bool dice_chance(struct dice *dice, unsigned permille);

/* 1 to max letters, digits and any of "-_.:": goes into JSON, and into a line
 * of words, as it is. */
bool tool_is_word(const char *text, size_t max);

/* The number that text is, all of it; otherwise the program ends. */
uint64_t tool_number(const char *option, const char *text, uint64_t least, uint64_t most);

/* Map this much of a file that another process writes in place.  Its bytes
 * change at any time.  Where that fails, or it is shorter, the program ends. */
const volatile void *tool_map(const char *path, size_t size);

/* Say why on standard error, and end the program with 1. */
void tool_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif /* PARTITION_TOOL_H */
