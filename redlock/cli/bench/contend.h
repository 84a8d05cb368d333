/*
 * contend.h - `redlock bench --contend N`: several clients compete for one lock.
 */
#ifndef REDLOCK_CONTEND_H
#define REDLOCK_CONTEND_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/cli/common/cli.h"

enum { CONTEND_CLIENTS_MAX = 256, CONTEND_HOLD_DEFAULT_MS = 5, CONTEND_CYCLES_DEFAULT = 1000 };

struct contend {
    uint32_t clients, cycles, hold_ms, ttl_ms;
    bool fair;
    const char *note; /* NULL: that of the client. */
};

/* Measure, print one line of figures, and return an exit code. */
int contend_run(struct cli *cli, const struct contend *contend);

#endif /* REDLOCK_CONTEND_H */
