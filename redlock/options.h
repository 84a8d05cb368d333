/*
 * options.h - defaults, checking, and deep copies of what the caller asked.
 *
 * Everything past this module is within its limits, in nanoseconds where it
 * is a time, and ours: no pointer of the caller's is kept.
 */
#ifndef REDLOCK_OPTIONS_H
#define REDLOCK_OPTIONS_H

#include "drift/drift.h"
#include "redlock/quorum.h"
#include "redlock/redlock.h"
#include "redlock/uri.h"

/* Options of a client, checked and copied. */
struct options {
    struct uri masters[REDLOCK_MASTERS_MAX];
    unsigned masters_len;
    struct ev_loop *loop;
    drift_span connect_timeout, reply_timeout;
    uint32_t max_ttl_ms;
    struct drift_bound drift;
    void (*log)(void *log_arg, enum redlock_level level, const char *message);
    void *log_arg;
};

/*
 * Check opts (NULL: all defaults; fields past opts->size: theirs) and copy
 * them.  The masters come from opts->masters, or from REDLOCK_MASTERS.
 * Gives OK, E_INVAL (none, a bad, a duplicate or a 16th master; a number out
 * of its range; a size that is too small to be one), E_NOMEM.  On failure
 * *ret_options is untouched and the message says which option or which master.
 */
int options_copy(const struct redlock_options *opts, struct options *ret_options);

/* Free what options_copy() made.  Zeroes are fine. */
void options_done(struct options *options);

/*
 * Check the options of one lock against those of the client, and turn them
 * into the machine's configuration.  Gives OK, E_INVAL.  E_INVAL where ttl_ms
 * is 0, over max_ttl_ms, or swallowed by its drift allowance, where the
 * delays are out of order, and where lost_margin_ms leaves nothing of the lease.
 * lost and lost_arg are in *ret_opts, a full-sized copy of opts with all defaults put in.
 */
int options_lock(const struct options *options, const struct redlock_lock_options *opts,
                 struct redlock_lock_options *ret_opts, struct quorum_config *ret_config);

/* OK if name is legal: 1 to REDLOCK_NAME_MAX bytes, any but NUL; else E_INVAL
 * with a message.  NULL is not legal. */
int options_check_name(const char *name);

#endif /* REDLOCK_OPTIONS_H */
