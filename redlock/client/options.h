/*
 * options.h - defaults, checks, and deep copies of the caller's options.
 *
 * All values behind this module are within their limits, and times are in nanoseconds.  No pointer
 * of the caller's list of masters is kept.
 *
 * Structs grow at their end, so their size tells the version that the caller was compiled with.  A
 * smaller struct lacks fields, which take their defaults.  A larger struct has fields of a later
 * version, which must all be zero: to ignore an unknown option could be unsafe.  A struct smaller
 * than the first version, or larger than a page, was never initialized.
 */
#ifndef REDLOCK_OPTIONS_H
#define REDLOCK_OPTIONS_H

#include "drift/drift.h"
#include "redlock/core/quorum.h"
#include "redlock/io/tls.h"
#include "redlock/redlock.h"
#include "redlock/link/uri.h"

/* What messages call options.  NULL: as redlock.h does. */
struct option_names {
    const char *tls_ca, *tls_cert, *tls_key, *tls_server_name;
};

#define OPTIONS_TLS_FILES 3 /* The CAs, the certificate of the client, and its key. */

/* Options of a client, checked and copied. */
struct options {
    struct uri masters[REDLOCK_MASTERS_MAX];
    unsigned masters_len;
    struct ev_loop *loop;
    bool pollable;
    drift_span connect_timeout, reply_timeout;
    uint32_t max_ttl_ms;
    struct drift_bound drift;
    bool restart_guard;
    enum redlock_clock_guard clock_guard;
    void (*log)(void *log_arg, enum redlock_level level, const char *message);
    void *log_arg;
    char note[REDLOCK_NOTE_MAX + 1];
    struct tls_context *tls; /* NULL: neither the list nor an option asks for TLS. */
    /* Then this is for a member that is reached by TLS, and has these copies. */
    struct tls_settings tls_later;
    char *tls_files[OPTIONS_TLS_FILES];
    bool trusts_all; /* TLS verifies no certificate. */
};

/*
 * Check and copy opts.  NULL: all defaults.  Fields beyond opts->size take their defaults.
 *
 * The masters come from opts->masters, or from REDLOCK_MASTERS, which may be "@FILE" (list_file.h).
 * REDLOCK_TLS_CA, REDLOCK_TLS_CERT and REDLOCK_TLS_KEY stand for options that are NULL.  They alone
 * load nothing: without a list or an option that asks for TLS, they wait for the first such member.
 *
 * Returns OK, E_NOMEM, or E_INVAL.  E_INVAL means: no master, a bad, a duplicate or a 16th master;
 * a file that cannot be read; a number out of its range; or an impossible size.  On failure
 * *ret_options is untouched.  The message names the option, as names does, or the number of the
 * master, counted from 1.  It shows nothing that precedes the '@' of a URI.
 */
int options_copy(const struct redlock_options *opts, const struct option_names *names,
                 struct options *ret_options);

/* Free what options_copy() made.  A zeroed struct is allowed. */
void options_done(struct options *options);

/*
 * Check the options of one lock against those of the client, and make the machine's configuration
 * of them.
 *
 * Returns OK or E_INVAL.  E_INVAL means one of these:
 * - options_check_ttl() refuses ttl_ms.
 * - The minimum of the retry delay exceeds the maximum.
 * - lost_margin_ms leaves nothing of the lease.
 * - fence is set without restart_guard.
 * - permits is too large.
 * - size is impossible.
 *
 * *ret_opts is a full-sized copy of opts, with all defaults put in.  It holds lost and lost_arg.
 * The default margin is a tenth of the lease, or half of the validity if that is shorter.
 * *ret_config has the margin in nanoseconds.
 */
int options_lock(const struct options *options, const struct redlock_lock_options *opts,
                 struct redlock_lock_options *ret_opts, struct quorum_config *ret_config);

/* Check that a lease may have this length.  It must not be 0, not exceed max_ttl_ms, and be
 * longer than its drift allowance.  Returns OK, or E_INVAL with a message. */
int options_check_ttl(const struct options *options, uint32_t ttl_ms);

#endif /* REDLOCK_OPTIONS_H */
