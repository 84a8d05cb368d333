/*
 * options.h - defaults, checking, and deep copies of what the caller asked.
 *
 * Everything past this module is within its limits, in nanoseconds where it
 * is a time, and ours: no pointer of the caller's is kept.
 *
 * Structs grow at their end, so their size tells which version the caller was
 * compiled with.  A smaller one lacks fields, which take their defaults.  A
 * larger one has fields from after our time, which must all be zero: to ignore
 * a wish that we do not understand could be unsafe.  Smaller than the first
 * version, or larger than a page, is no size at all but a struct that was never
 * initialized.
 */
#ifndef REDLOCK_OPTIONS_H
#define REDLOCK_OPTIONS_H

#include "drift/drift.h"
#include "redlock/core/quorum.h"
#include "redlock/redlock.h"
#include "redlock/link/uri.h"

/* Options of a client, checked and copied. */
struct options {
    struct uri masters[REDLOCK_MASTERS_MAX];
    unsigned masters_len;
    struct ev_loop *loop;
    drift_span connect_timeout, reply_timeout;
    uint32_t max_ttl_ms;
    struct drift_bound drift;
    bool restart_guard;
    enum redlock_clock_guard clock_guard;
    void (*log)(void *log_arg, enum redlock_level level, const char *message);
    void *log_arg;
};

/*
 * Check opts (NULL: all defaults; fields past opts->size: theirs) and copy
 * them.  The masters come from opts->masters, or from REDLOCK_MASTERS, which may
 * be "@FILE" (list_file.h).  Gives OK, E_INVAL (none, a bad, a duplicate or a 16th
 * master; a file that cannot be read; a number out of its range; a size that cannot
 * be one), E_NOMEM.  On failure
 * *ret_options is untouched and the message says which option or which master
 * (counted from 1), but nothing of what a master's URI says before its '@'.
 */
int options_copy(const struct redlock_options *opts, struct options *ret_options);

/* Free what options_copy() made.  Zeroes are fine. */
void options_done(struct options *options);

/*
 * Check the options of one lock against those of the client, and turn them
 * into the machine's configuration.  Gives OK, E_INVAL.  E_INVAL where ttl_ms
 * is one that options_check_ttl() refuses, where the delays are out of order,
 * where lost_margin_ms leaves nothing of the lease, or for a size as above.
 * lost and lost_arg are in *ret_opts, a full-sized copy of opts with all defaults put in.
 * The default of the margin is a tenth of the lease, or half of the validity
 * where that is shorter; *ret_config has it to the nanosecond.
 */
int options_lock(const struct options *options, const struct redlock_lock_options *opts,
                 struct redlock_lock_options *ret_opts, struct quorum_config *ret_config);

/* OK if a lease may be so long: neither 0, nor over max_ttl_ms, nor swallowed
 * by its drift allowance; else E_INVAL with a message. */
int options_check_ttl(const struct options *options, uint32_t ttl_ms);

#endif /* REDLOCK_OPTIONS_H */
