/*
 * words.h - the sentence of a reason, for tests that read it.
 */
#ifndef TEST_WORDS_H
#define TEST_WORDS_H

#include "redlock/base/reason.h"

/* Valid until the next call.  Times are told as from 0. */
static inline const char *words_of(const struct reason *why)
{
    static char text[REASON_TEXT_MAX];

    (void)reason_write(why, 0, text, sizeof text);
    return text;
}

#endif /* TEST_WORDS_H */
