/*
 * options.c - turns the caller's options into the machine's settings.
 */
#include "redlock/client/options.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drift/node.h"
#include "redlock/base/error.h"
#include "redlock/base/list_file.h"
#include "redlock/base/note.h"
#include "redlock/base/text.h"
#include "redlock/core/place.h"
#include "redlock/core/wait.h"
#include "redlock/masters/masters.h"
#include "redlock/wire/wire.h"

#define PATH_SHOWN_MAX 200 /* The longest file name in a message, in bytes. */
/* In bytes.  Chosen: a page, larger than any struct of options will be; not measured. */
#define SIZE_MAX_SENSE 4096

/* The first version's structs, up to and with the last field. */
#define OPTIONS_SIZE_1                                   \
    (offsetof(struct redlock_options, tls_server_name) + \
     sizeof(((struct redlock_options *)0)->tls_server_name))
#define LOCK_OPTIONS_SIZE_1 \
    (offsetof(struct redlock_lock_options, note) + sizeof(((struct redlock_lock_options *)0)->note))

static const struct redlock_options default_options = {
    .size = sizeof(struct redlock_options),
    .connect_timeout_ms = 1000,
    .reply_timeout_ms = 50,
    .drift_ppm = 10000,
    .drift_fixed_ms = 2,
    .max_ttl_ms = 60000,
    .restart_guard = true,
    .clock_guard = REDLOCK_CLOCK_GUARD_PERIODIC,
    .tls_verify = true,
};

static const struct redlock_lock_options default_lock_options = {
    .size = sizeof(struct redlock_lock_options),
    .ttl_ms = 10000,
    .retry_delay_min_ms = 50,
    .retry_delay_max_ms = 200,
};

/* Fill a caller's struct, which may be of another version. */
static void init_sized(void *opts, size_t size, const void *defaults, size_t defaults_size)
{
    if (opts == NULL || size < sizeof size)
        return;
    memset(opts, 0, size);
    memcpy(opts, defaults, size < defaults_size ? size : defaults_size);
    memcpy(opts, &size, sizeof size); /* size is the first field of both structs. */
}

void redlock_options_init_sized(struct redlock_options *opts, size_t size)
{
    init_sized(opts, size, &default_options, sizeof default_options);
}

void redlock_lock_options_init_sized(struct redlock_lock_options *opts, size_t size)
{
    init_sized(opts, size, &default_lock_options, sizeof default_lock_options);
}

/* Copy a caller's struct over *ret_full, which holds the defaults of this version. */
static int copy_sized(const void *opts, size_t size, size_t size_min, void *ret_full,
                      size_t full_size)
{
    const unsigned char *bytes = opts;

    if (size < size_min || size > SIZE_MAX_SENSE)
        return error_set(REDLOCK_E_INVAL, "size is %zu: the options were not initialized", size);
    for (size_t i = full_size; i < size; i++) {
        if (bytes[i] != 0)
            return error_set(REDLOCK_E_INVAL,
                             "size is %zu and not %zu: an option of a later version is set", size,
                             full_size);
    }
    memcpy(ret_full, opts, size < full_size ? size : full_size);
    memcpy(ret_full, &full_size, sizeof full_size);
    return REDLOCK_OK;
}

static int check_range(const char *what, uint32_t value, uint32_t min, uint32_t max)
{
    if (value < min || value > max)
        return error_set(REDLOCK_E_INVAL, "%s is %u, must be %u to %u", what, value, min, max);
    return REDLOCK_OK;
}

static struct drift_bound drift_of(const struct redlock_options *opts)
{
    return (struct drift_bound){opts->drift_ppm, opts->drift_fixed_ms * DRIFT_MS};
}

/* The allowance that is subtracted from a lease.  drift_node_allowance() covers all errors,
 * provided that each vote is checked.  Without that check it would promise nothing, and would rule
 * out leases shorter than the tolerance. */
static struct drift_bound allowance_of(enum redlock_clock_guard guard, struct drift_bound drift)
{
    return guard == REDLOCK_CLOCK_GUARD_PER_VOTE ? drift_node_allowance(drift) : drift;
}

/* How long a lease can be relied on.  0: the allowance is as long as the lease. */
static drift_span validity_of(const struct drift_bound *allowance, uint32_t ttl_ms)
{
    return drift_deadline(0, ttl_ms * DRIFT_MS, allowance);
}

/* With this guard the allowance is 100 ms at least, and twice the rate: it may be above every
 * lease. */
static int check_longest(const struct redlock_options *opts)
{
    const struct drift_bound allowance = allowance_of(opts->clock_guard, drift_of(opts));

    if (opts->clock_guard != REDLOCK_CLOCK_GUARD_PER_VOTE ||
        validity_of(&allowance, opts->max_ttl_ms) > 0)
        return REDLOCK_OK;
    return error_set(REDLOCK_E_INVAL,
                     "max_ttl_ms is %u, not longer than the drift allowance of the clock guard "
                     "per_vote (%u ppm and %u ms): no lock would be valid",
                     opts->max_ttl_ms, allowance.ppm, drift_to_ms(allowance.fixed));
}

static int check_numbers(const struct redlock_options *opts)
{
    int r = check_range("connect_timeout_ms", opts->connect_timeout_ms, 1, 3600000);

    if (r == REDLOCK_OK)
        r = check_range("reply_timeout_ms", opts->reply_timeout_ms, 1, 3600000);
    if (r == REDLOCK_OK)
        r = check_range("drift_ppm", opts->drift_ppm, 0, 500000);
    if (r == REDLOCK_OK)
        r = check_range("drift_fixed_ms", opts->drift_fixed_ms, 0, 60000);
    if (r == REDLOCK_OK)
        r = check_range("max_ttl_ms", opts->max_ttl_ms, 1, WIRE_TTL_MAX_MS);
    if (r == REDLOCK_OK)
        r = check_range("clock_guard", (uint32_t)opts->clock_guard, REDLOCK_CLOCK_GUARD_OFF,
                        REDLOCK_CLOCK_GUARD_PER_VOTE);
    if (r == REDLOCK_OK)
        r = check_longest(opts);
    if (r == REDLOCK_OK && opts->pollable && opts->loop != NULL)
        r = error_set(REDLOCK_E_INVAL, "pollable is set, and loop is, too");
    return r;
}

/* Add the master to the list.  A master that is there already is an error. */
static int add_master(struct options *options, const char *text, size_t text_len)
{
    unsigned number = options->masters_len + 1; /* Messages count from 1. */
    struct uri *uri = &options->masters[options->masters_len];
    int r;

    if (options->masters_len == REDLOCK_MASTERS_MAX)
        return error_set(REDLOCK_E_INVAL, "more than %d masters", REDLOCK_MASTERS_MAX);
    r = uri_parse(text, text_len, uri);
    if (r != REDLOCK_OK)
        return error_wrap(r, "master %u", number);
    options->masters_len++; /* From here on options_done() frees the URI. */
    for (unsigned i = 0; i + 1 < number; i++) {
        if (uri_same_place(&options->masters[i], uri))
            return error_set(REDLOCK_E_INVAL, "master %u and master %u are both %.*s", number,
                             i + 1, (int)uri_place_len(uri), uri->name);
    }
    return REDLOCK_OK;
}

/*
 * Split the list and add each master.  White space, a comma, or a comma with white space around it
 * separates two masters.  A comma always separates two, so an empty master is found.  An unset
 * shell variable makes one.
 */
static int add_masters(struct options *options, const char *list)
{
    static const char space[] = " \t\r\n\v\f";
    static const char stops[] = ", \t\r\n\v\f";
    const char *p = list + strspn(list, space);

    if (*p == '\0')
        return error_set(REDLOCK_E_INVAL, "the list of masters is empty");
    for (;;) {
        size_t len = strcspn(p, stops);
        int r = add_master(options, p, len);

        if (r != REDLOCK_OK)
            return r;
        p += len;
        p += strspn(p, space);
        if (*p == '\0')
            return REDLOCK_OK;
        if (*p == ',') {
            p++;
            p += strspn(p, space);
        }
    }
}

static int add_masters_of_file(struct options *options, const char *path)
{
    char shown[PATH_SHOWN_MAX];
    char *list = NULL;
    int r = list_file_read(path, &list);

    if (r != REDLOCK_OK)
        return r;
    r = add_masters(options, list);
    list_file_free(list);
    return r == REDLOCK_OK
               ? r
               : error_wrap(r, "%s", text_quote(path, strlen(path), shown, sizeof shown));
}

static int copy_masters(struct options *options, const char *list)
{
    int r;

    if (list != NULL && list[0] == '@') /* A program that needs a file reads it itself. */
        return error_set(REDLOCK_E_INVAL, "'@FILE' is for REDLOCK_MASTERS and the command only");
    if (list != NULL)
        return add_masters(options, list);
    list = getenv("REDLOCK_MASTERS");
    if (list == NULL)
        return error_set(REDLOCK_E_INVAL,
                         "no masters: neither the option masters nor REDLOCK_MASTERS is set");
    r = list[0] == '@' ? add_masters_of_file(options, list + 1) : add_masters(options, list);
    return r == REDLOCK_OK ? r : error_wrap(r, "REDLOCK_MASTERS");
}

/* The masters must be able to become a set. */
static int check_list(const struct options *options)
{
    struct config list;
    unsigned at = 0;
    enum config_problem problem = set_list(options->masters, options->masters_len, &list, &at);

    if (problem == CONFIG_OK)
        return REDLOCK_OK;
    return error_set(REDLOCK_E_INVAL, "master %u: %s", at + 1, config_problem_text(problem));
}

/* "HOST/PID".  A host with control characters in its name has none here. */
static void write_default_note(char ret_note[REDLOCK_NOTE_MAX + 1])
{
    char host[REDLOCK_NOTE_MAX - sizeof "/-2147483648" + 2] = "";

    if (gethostname(host, sizeof host - 1) != 0 || !note_is_valid(host))
        host[0] = '\0';
    (void)snprintf(ret_note, REDLOCK_NOTE_MAX + 1, "%s/%ld", host, (long)getpid());
}

/* NULL is valid: a default stands for it. */
static int check_note(const char *note)
{
    if (note == NULL || note_is_valid(note))
        return REDLOCK_OK;
    return error_set(REDLOCK_E_INVAL, "note: more than %d bytes, or a control character",
                     REDLOCK_NOTE_MAX);
}

/* "" stands for none. */
static const char *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* True: a master of the list or an option asks for TLS.  Variables do not. */
static bool asks_for_tls(const struct options *options, const struct redlock_options *opts)
{
    bool is_asked = text_or_null(opts->tls_ca) != NULL || text_or_null(opts->tls_cert) != NULL ||
                    text_or_null(opts->tls_key) != NULL ||
                    text_or_null(opts->tls_server_name) != NULL || !opts->tls_verify;

    for (unsigned i = 0; i < options->masters_len; i++)
        is_asked = is_asked || options->masters[i].tls;
    return is_asked;
}

/* The file of this option, which messages call by its name, or of the variable if it is NULL.  A
 * program with more rights than its user (secure_getenv(3)) must not trust the CAs of that user. */
static const char *find_file(const char *option, const char *name, const char *variable,
                             const char **ret_from)
{
    const char *file = text_or_null(option != NULL ? option : secure_getenv(variable));

    *ret_from = option == NULL && file != NULL ? variable : name;
    return file;
}

/* Copy the settings for a member that will be reached by TLS. */
static int keep_tls(struct options *options, const struct tls_settings *settings)
{
    const char *const files[OPTIONS_TLS_FILES] = {settings->ca, settings->cert, settings->key};

    for (unsigned i = 0; i < OPTIONS_TLS_FILES; i++) {
        if (files[i] == NULL)
            continue;
        options->tls_files[i] = strdup(files[i]);
        if (options->tls_files[i] == NULL)
            return error_set(REDLOCK_E_NOMEM, "out of memory");
    }
    options->tls_later = *settings;
    options->tls_later.ca = options->tls_files[0];
    options->tls_later.cert = options->tls_files[1];
    options->tls_later.key = options->tls_files[2];
    return REDLOCK_OK;
}

/* Load what TLS needs, or keep the settings if only a member that is not yet known may need it. */
static int load_tls(struct options *options, const struct redlock_options *opts,
                    const struct option_names *names)
{
    const bool is_asked = asks_for_tls(options, opts);
    struct tls_settings settings = {
        .server_name = text_or_null(opts->tls_server_name),
        .server_name_from = names->tls_server_name,
        .verify = opts->tls_verify,
    };

    settings.ca = find_file(opts->tls_ca, names->tls_ca, "REDLOCK_TLS_CA", &settings.ca_from);
    settings.cert =
        find_file(opts->tls_cert, names->tls_cert, "REDLOCK_TLS_CERT", &settings.cert_from);
    settings.key = find_file(opts->tls_key, names->tls_key, "REDLOCK_TLS_KEY", &settings.key_from);
    options->trusts_all = is_asked && !settings.verify;
    return is_asked ? tls_context_new(&settings, &options->tls) : keep_tls(options, &settings);
}

int options_copy(const struct redlock_options *opts, const struct option_names *names,
                 struct options *ret_options)
{
    static const struct option_names own_names; /* As in redlock.h. */
    struct redlock_options full = default_options;
    struct options options = {.masters_len = 0};
    int r = REDLOCK_OK;

    if (opts != NULL)
        r = copy_sized(opts, opts->size, OPTIONS_SIZE_1, &full, sizeof full);
    if (r == REDLOCK_OK)
        r = check_numbers(&full);
    if (r == REDLOCK_OK)
        r = check_note(full.note);
    if (r == REDLOCK_OK)
        r = copy_masters(&options, full.masters);
    if (r == REDLOCK_OK)
        r = check_list(&options);
    if (r == REDLOCK_OK)
        r = load_tls(&options, &full, names != NULL ? names : &own_names);
    if (r != REDLOCK_OK) {
        options_done(&options);
        return r;
    }
    options.loop = full.loop;
    options.pollable = full.pollable;
    options.connect_timeout = full.connect_timeout_ms * DRIFT_MS;
    options.reply_timeout = full.reply_timeout_ms * DRIFT_MS;
    options.max_ttl_ms = full.max_ttl_ms;
    options.drift = drift_of(&full);
    options.restart_guard = full.restart_guard;
    options.clock_guard = full.clock_guard;
    options.log = full.log;
    options.log_arg = full.log_arg;
    if (full.note == NULL)
        write_default_note(options.note);
    else
        memcpy(options.note, full.note, strlen(full.note) + 1);
    *ret_options = options;
    return REDLOCK_OK;
}

void options_done(struct options *options)
{
    for (unsigned i = 0; i < options->masters_len; i++)
        uri_done(&options->masters[i]);
    tls_context_free(options->tls);
    for (unsigned i = 0; i < OPTIONS_TLS_FILES; i++)
        free(options->tls_files[i]);
    *options = (struct options){.masters_len = 0};
}

int options_check_ttl(const struct options *options, uint32_t ttl_ms)
{
    const struct drift_bound allowance = allowance_of(options->clock_guard, options->drift);

    if (ttl_ms == 0)
        return error_set(REDLOCK_E_INVAL, "ttl_ms is 0");
    if (ttl_ms > options->max_ttl_ms)
        return error_set(REDLOCK_E_INVAL, "ttl_ms is %u, over max_ttl_ms, which is %u", ttl_ms,
                         options->max_ttl_ms);
    if (validity_of(&allowance, ttl_ms) == 0)
        return error_set(REDLOCK_E_INVAL,
                         "ttl_ms is %u, not longer than its drift allowance (%u ppm and %u ms)",
                         ttl_ms, allowance.ppm, drift_to_ms(allowance.fixed));
    return REDLOCK_OK;
}

/* When to report the loss, before the end.  0: the margin leaves nothing of the lease. */
static drift_span lost_margin_of(const struct redlock_lock_options *opts, drift_span validity)
{
    drift_span margin = opts->lost_margin_ms * DRIFT_MS;

    if (margin == 0) {
        margin = opts->ttl_ms * DRIFT_MS / 10;
        return margin < validity / 2 ? margin : validity / 2;
    }
    return margin < validity ? margin : 0;
}

int options_lock(const struct options *options, const struct redlock_lock_options *opts,
                 struct redlock_lock_options *ret_opts, struct quorum_config *ret_config)
{
    struct redlock_lock_options full = default_lock_options;
    const struct drift_bound allowance = allowance_of(options->clock_guard, options->drift);
    drift_span lost_margin;
    drift_span pause_min, pause_max;
    int r = REDLOCK_OK;

    assert(options->masters_len >= 1);
    if (opts != NULL)
        r = copy_sized(opts, opts->size, LOCK_OPTIONS_SIZE_1, &full, sizeof full);
    if (r == REDLOCK_OK)
        r = check_note(full.note);
    if (r == REDLOCK_OK)
        r = options_check_ttl(options, full.ttl_ms);
    if (r != REDLOCK_OK)
        return r;
    if (full.retry_delay_min_ms > full.retry_delay_max_ms)
        return error_set(REDLOCK_E_INVAL,
                         "retry_delay_min_ms is %u, over retry_delay_max_ms, which is %u",
                         full.retry_delay_min_ms, full.retry_delay_max_ms);
    lost_margin = lost_margin_of(&full, validity_of(&allowance, full.ttl_ms));
    if (full.lost_margin_ms != 0 && lost_margin == 0)
        return error_set(REDLOCK_E_INVAL,
                         "lost_margin_ms is %u, not less than the validity of a ttl_ms of %u",
                         full.lost_margin_ms, full.ttl_ms);
    if (full.fence && !options->restart_guard)
        return error_set(
            REDLOCK_E_INVAL,
            "fence is set, and restart_guard is not: lost counters would go unnoticed");
    if (full.permits > REDLOCK_PERMITS_MAX)
        return error_set(REDLOCK_E_INVAL, "permits is %u, must be 0 to %d", full.permits,
                         REDLOCK_PERMITS_MAX);
    full.lost_margin_ms = drift_to_ms(lost_margin);
    pause_min = full.retry_delay_min_ms * DRIFT_MS;
    pause_max = full.retry_delay_max_ms * DRIFT_MS;
    if (full.fair) { /* Each waiter sends heartbeats, so it asks less often. */
        pause_min *= WAIT_PATIENCE;
        pause_max *= WAIT_PATIENCE;
        place_pauses(&pause_min, &pause_max);
    }
    *ret_config = (struct quorum_config){
        .lease = full.ttl_ms * DRIFT_MS,
        .reply_timeout = options->reply_timeout,
        .wait = full.wait_ms == UINT32_MAX ? DRIFT_NEVER : full.wait_ms * DRIFT_MS,
        .pause_min = pause_min,
        .pause_max = pause_max,
        .lost_margin = lost_margin,
        .hold_max = full.max_hold_ms == 0 ? DRIFT_NEVER : full.max_hold_ms * DRIFT_MS,
        .drift = allowance,
        .renew = !full.no_renew,
        .fence = full.fence,
    };
    ret_config->stands =
        full.fair && !full.fence && options->clock_guard != REDLOCK_CLOCK_GUARD_PER_VOTE &&
        ret_config->lease >= place_patience(WAIT_PATIENCE * full.retry_delay_max_ms * DRIFT_MS +
                                            options->reply_timeout);
    *ret_opts = full;
    return REDLOCK_OK;
}
