/*
 * hash.h - the hash of stored worlds and machines.
 */
#ifndef REDLOCK_TEST_MODELS_HASH_H
#define REDLOCK_TEST_MODELS_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An odd number with well mixed bits. */
#define HASH_FACTOR UINT64_C(0x9fb21c651e98df25)

static inline uint64_t hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * HASH_FACTOR;
    return hash ^ hash >> 29;
}

/* Of LEN words of 32 bits.  Four sums, because each step of a sum waits for the one before. */
static inline uint64_t hash_of(const void *words, size_t len)
{
    const unsigned char *bytes = words;
    uint64_t sums[4] = {1, 2, 3, 4}, pair;
    uint32_t word;
    size_t i = 0;

    for (; i + 8 <= len; i += 8)
        for (size_t n = 0; n < 4; n++) {
            memcpy(&pair, bytes + (i + 2 * n) * sizeof word, sizeof pair);
            sums[n] = hash_mix(sums[n], pair);
        }
    for (; i < len; i++) {
        memcpy(&word, bytes + i * sizeof word, sizeof word);
        sums[i & 3] = hash_mix(sums[i & 3], word);
    }
    return hash_mix(hash_mix(hash_mix(sums[0], sums[1]), sums[2]), sums[3]);
}

#endif
