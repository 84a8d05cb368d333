/*
 * screen.h - standard output by lines.  On a terminal that is watched they are a page, which is
 * drawn over the one before, and fits.
 */
#ifndef REDLOCK_SCREEN_H
#define REDLOCK_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

enum screen_colour { SCREEN_PLAIN, SCREEN_YELLOW, SCREEN_RED };

/* Zeroes are a screen that shows nothing yet. */
struct screen {
    bool is_page; /* It is a terminal that is watched, and not a dumb one. */
    bool has_colours;
    size_t columns, lines; /* Of a page.  Its cursor has one more line. */
    size_t used;           /* Lines that are written. */
};

/* Begin another page, or go on with plain lines. */
void screen_begin(struct screen *screen, bool is_watched);

/* Write a line.  A page gets it in several if it is longer than that is wide, and drops what is
 * below the last one. */
void screen_line(struct screen *screen, enum screen_colour colour, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* All lines are written. */
void screen_end(struct screen *screen);

#endif /* REDLOCK_SCREEN_H */
