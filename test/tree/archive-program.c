/*
 * archive-program.c - a program that uses the static library, and also defines every
 * internal name of it; see test-archive.
 */
#include <stdio.h>

#include "redlock/redlock.h"

int main(void)
{
    struct redlock_options opts;
    struct redlock *rl;

    redlock_options_init(&opts);
    opts.masters = "127.0.0.1:1"; /* No server answers there: redlock_open() does not wait. */
    if (redlock_open(&opts, &rl) != REDLOCK_OK) {
        (void)fprintf(stderr, "%s\n", redlock_errmsg(NULL));
        return 1;
    }
    return redlock_close(rl) == NULL ? 0 : 1;
}
