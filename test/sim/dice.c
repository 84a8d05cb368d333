/*
 * dice.c - SplitMix64 (Steele, Lea, Flood 2014), whose state is one word, the seed.
 */
#include "sim.h"

static uint64_t state;

void dice_seed(uint64_t seed)
{
    state = seed;
    (void)dice_next(); /* After that, neighbouring seeds have nothing in common. */
}

uint64_t dice_next(void)
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Slightly uneven for a large n, which does not matter here. */
uint64_t dice_below(uint64_t n)
{
    return dice_next() % n;
}

uint64_t dice_range(uint64_t low, uint64_t high)
{
    return low + dice_below(high - low + 1);
}

uint64_t dice_magnitude(uint64_t low, uint64_t high)
{
    unsigned doublings = 0;
    uint64_t floor;

    while (low << doublings <= high / 2)
        doublings++;
    floor = low << dice_below(doublings + 1);
    return dice_range(floor, floor > high / 2 ? high : floor * 2);
}

bool dice_chance(unsigned permille)
{
    return permille != 0 && dice_below(1000) < permille;
}
