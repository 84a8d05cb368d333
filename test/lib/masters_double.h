/*
 * masters_double.h - what a test tells the made-up masters.
 */
#ifndef TEST_MASTERS_DOUBLE_H
#define TEST_MASTERS_DOUBLE_H

#include <stddef.h>

#include "redlock/base/mask.h"

/* Masters whose clocks are in doubt, so that their votes do not count. */
extern quorum_mask masters_double_uncounted;

/* The words of a command, with a space between, and / for NUL.  Without the texts of scripts. */
void masters_double_decode(const char *command, size_t len, char *ret_text);

#endif /* TEST_MASTERS_DOUBLE_H */
