/*
 * test-open.c - bad input to redlock_open(): a clear status, a clear message, and no client.
 *
 * Each row names the mistake and the exact message.  No call reaches a master.
 */
#include "test/lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redlock/redlock.h"

/* A failed call must leave this pointer alone.  It is not NULL, and nothing dereferences it. */
static char untouched_byte;
#define UNTOUCHED ((void *)&untouched_byte)

/* What a master without a password is told, for its '@' may be missing. */
#define AT                                                                             \
    "; a password ends with '@', as in redis://USER:PASSWORD@HOST, and has %2C for a " \
    "comma and %20 for a blank"

struct bad_masters {
    const char *row, *masters, *message;
};

static const struct bad_masters bad_masters[] = {
    {"empty", "", "open: the list of masters is empty"},
    {"space", " \t\n", "open: the list of masters is empty"},
    {"comma", ",", "open: master 1: empty: there is no address, or a comma too many"},
    {"comma at the end", "a:1,", "open: master 2: empty: there is no address, or a comma too many"},
    {"duplicate", "a:1,b:1,A:1", "open: master 3 and master 1 are both A:1"},
    {"default port", "a,a:6379", "open: master 2 and master 1 are both a:6379"},
    {"two databases of one", "a:1/1,a:1/2", "open: master 2 and master 1 are both a:1"},
    {"sixteen", "a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8,a:9,a:10,a:11,a:12,a:13,a:14,a:15,a:16",
     "open: more than 15 masters"},
    {"port 0", "a:0", "open: master 1: the port is not a number from 1 to 65535"},
    {"port 65536", "b,a:65536", "open: master 2: the port is not a number from 1 to 65535"},
    {"port text", "a:http", "open: master 1: the port is not a number from 1 to 65535" AT},
    {"port slip", "redis-a:637o", "open: master 1: the port is not a number from 1 to 65535"},
    {"port slip of an address", "10.0.0.1:redis",
     "open: master 1: the port is not a number from 1 to 65535"},
    {"no port", "redis://a:", "open: master 1: the port is not a number from 1 to 65535"},
    {"a password of digits", "me:654321",
     "open: master 1: the port is not a number from 1 to 65535" AT},
    {"a blank before the port", "a :6379",
     "open: master 2: no host before the ':' (a blank or a comma before it ends a master)"},
    {"blanks around the ':'", "redis://a : 6379",
     "open: master 2: no host before the ':' (a blank or a comma before it ends a master)"},
    {"no colon", "redis//a",
     "open: master 1: a colon is missing: write redis://, or rediss:// with TLS"},
    {"scheme", "http://a",
     "open: master 1: unknown scheme: only redis://, rediss://, valkey://, valkeys:// and "
     "unix:// are known"},
    {"tls and plain", "a:1,rediss://a:1", "open: master 2 and master 1 are both rediss://a:1"},
    {"user alone", "hunter2@a",
     "open: master 1: a user needs a password: user:password@host, or :password@host without a "
     "user (an '@' of something else is written %40)"},
    {"a file", "@/etc/redlock/masters",
     "open: '@FILE' is for REDLOCK_MASTERS and the command only"},
    {"bare IPv6", "::1",
     "open: master 1: more than one ':' (an IPv6 address needs brackets, as in [::1]:6379)" AT},
    {"no @", "redis://:hunter2:6379",
     "open: master 1: more than one ':' (an IPv6 address needs brackets, as in [::1]:6379)" AT},
    {"no @ and no port", "redis://:hunter2", "open: master 1: no host before the ':'" AT},
    {"not IPv6", "[hunter2]:1",
     "open: master 1: what is in brackets is not an IPv6 address (zones are not supported)"},
    {"database", "a/hunter2", "open: master 1: the database is not a number from 0 to 65535"},
    {"secret and bad port", "u:hunter2@a:x",
     "open: master 1: the port is not a number from 1 to 65535"},
    {"secret twice", "u:hunter2@a,:hunter2@a", "open: master 2 and master 1 are both a:6379"},
};

TEST(open_refuses_bad_masters)
{
    for (size_t i = 0; i < sizeof bad_masters / sizeof *bad_masters; i++) {
        struct redlock *rl = UNTOUCHED;
        struct redlock_options opts;

        check_row = bad_masters[i].row;
        redlock_options_init(&opts);
        opts.masters = bad_masters[i].masters;
        CHECK_INT(redlock_open(&opts, &rl), REDLOCK_E_INVAL);
        CHECK_STR(redlock_errmsg(NULL), bad_masters[i].message);
        CHECK(rl == UNTOUCHED);
        CHECK(strstr(redlock_errmsg(NULL), "hunter2") == NULL);
    }
}

TEST(open_takes_masters_from_the_environment)
{
    struct redlock *rl = UNTOUCHED;

    CHECK_INT(unsetenv("REDLOCK_MASTERS"), 0);
    CHECK_INT(redlock_open(NULL, &rl), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL),
              "open: no masters: neither the option masters nor REDLOCK_MASTERS is set");
    CHECK_INT(setenv("REDLOCK_MASTERS", "a:0", 1), 0);
    CHECK_INT(redlock_open(NULL, &rl), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL),
              "open: REDLOCK_MASTERS: master 1: the port is not a number from 1 to 65535");
    CHECK(rl == UNTOUCHED);
    CHECK_INT(setenv("REDLOCK_MASTERS", "127.0.0.1:1", 1), 0);
    CHECK_INT(redlock_open(NULL, NULL), REDLOCK_E_INVAL);
    CHECK_STR(redlock_errmsg(NULL), "open: ret_rl is NULL");
    CHECK_INT(unsetenv("REDLOCK_MASTERS"), 0);
}

struct bad_option {
    const char *row;
    void (*spoil)(struct redlock_options *opts);
    const char *message;
};

static void no_size(struct redlock_options *opts)
{
    opts->size = 0;
}

static void wild_size(struct redlock_options *opts)
{
    opts->size = 1u << 20;
}

static void no_connect_timeout(struct redlock_options *opts)
{
    opts->connect_timeout_ms = 0;
}

static void no_reply_timeout(struct redlock_options *opts)
{
    opts->reply_timeout_ms = 0;
}

static void long_reply_timeout(struct redlock_options *opts)
{
    opts->reply_timeout_ms = 3600001;
}

static void wild_drift(struct redlock_options *opts)
{
    opts->drift_ppm = 500001;
}

static void wild_drift_fixed(struct redlock_options *opts)
{
    opts->drift_fixed_ms = UINT32_MAX;
}

static void no_max_ttl(struct redlock_options *opts)
{
    opts->max_ttl_ms = 0;
}

static void no_valid_ttl(struct redlock_options *opts)
{
    opts->clock_guard = REDLOCK_CLOCK_GUARD_PER_VOTE;
    opts->drift_ppm = 500000;
}

static void two_loops(struct redlock_options *opts)
{
    opts->loop = (struct ev_loop *)opts;
    opts->pollable = true;
}

static const struct bad_option bad_options[] = {
    {"size 0", no_size, "open: size is 0: the options were not initialized"},
    {"size of a megabyte", wild_size, "open: size is 1048576: the options were not initialized"},
    {"connect timeout 0", no_connect_timeout,
     "open: connect_timeout_ms is 0, must be 1 to 3600000"},
    {"reply timeout 0", no_reply_timeout, "open: reply_timeout_ms is 0, must be 1 to 3600000"},
    {"reply timeout", long_reply_timeout,
     "open: reply_timeout_ms is 3600001, must be 1 to 3600000"},
    {"drift", wild_drift, "open: drift_ppm is 500001, must be 0 to 500000"},
    {"fixed drift", wild_drift_fixed, "open: drift_fixed_ms is 4294967295, must be 0 to 60000"},
    {"two loops", two_loops, "open: pollable is set, and loop is, too"},
    {"max ttl 0", no_max_ttl, "open: max_ttl_ms is 0, must be 1 to 86400000"},
    {"drift above each ttl", no_valid_ttl,
     "open: max_ttl_ms is 60000, not longer than the drift allowance of the clock guard per_vote "
     "(1000000 ppm and 102 ms): no lock would be valid"},
};

TEST(open_refuses_bad_options)
{
    for (size_t i = 0; i < sizeof bad_options / sizeof *bad_options; i++) {
        struct redlock *rl = UNTOUCHED;
        struct redlock_options opts;

        check_row = bad_options[i].row;
        redlock_options_init(&opts);
        opts.masters = "127.0.0.1:1";
        bad_options[i].spoil(&opts);
        CHECK_INT(redlock_open(&opts, &rl), REDLOCK_E_INVAL);
        CHECK_STR(redlock_errmsg(NULL), bad_options[i].message);
        CHECK(rl == UNTOUCHED);
    }
}

/* The allowance is twice the rate, 1 %, the fixed 2 ms and 100 ms. */
TEST(per_vote_leaves_something_of_the_longest_lease)
{
    struct redlock *rl = NULL;
    struct redlock_options opts;

    redlock_options_init(&opts);
    opts.masters = "127.0.0.1:1";
    opts.pollable = true;
    opts.clock_guard = REDLOCK_CLOCK_GUARD_PER_VOTE;
    opts.max_ttl_ms = 104;
    CHECK_INT(redlock_open(&opts, &rl), REDLOCK_E_INVAL);
    CHECK_HAS(redlock_errmsg(NULL), "max_ttl_ms is 104, not longer than the drift allowance");
    opts.max_ttl_ms = 105;
    CHECK_INT(redlock_open(&opts, &rl), REDLOCK_OK);
    redlock_close(rl);
}

/* No master is there, so each call ends by itself. */
static struct redlock *open_nowhere(bool pollable)
{
    struct redlock_options opts;
    struct redlock *rl;

    redlock_options_init(&opts);
    opts.masters = "127.0.0.1:1";
    opts.pollable = pollable;
    CHECK_INT(redlock_open(&opts, &rl), REDLOCK_OK);
    return rl;
}

static void check_refuses_descriptor(struct redlock *rl, int status, const char *message)
{
    CHECK_INT(redlock_fd(rl), status);
    CHECK_HAS(redlock_errmsg(rl), message);
    CHECK_INT(redlock_dispatch(rl), status);
    CHECK_HAS(redlock_errmsg(rl), message);
}

TEST(only_a_pollable_client_has_a_descriptor)
{
    struct redlock *rl = open_nowhere(false);

    check_refuses_descriptor(rl, REDLOCK_E_STATE, ": the client was opened without pollable");
    check_refuses_descriptor(NULL, REDLOCK_E_INVAL, ": the client is NULL");
    (void)redlock_close(rl);
}

TEST(a_child_of_a_fork_has_no_descriptor)
{
    struct redlock *rl = open_nowhere(true);
    int status;
    pid_t child = fork();

    if (child == 0) {
        check_row = "the child";
        check_refuses_descriptor(rl, REDLOCK_E_STATE, "before the fork");
        _exit(redlock_close(rl) == NULL ? 0 : 1);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK_INT(redlock_dispatch(rl), REDLOCK_OK);
    (void)redlock_close(rl);
}

static void note_status(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease;
    *(int *)arg = status;
}

TEST(a_pollable_client_has_asynchronous_calls)
{
    struct redlock *rl = open_nowhere(true);
    struct pollfd entry = {.fd = redlock_fd(rl), .events = POLLIN};
    struct redlock_lease *lease;
    int status = REDLOCK_OK;

    CHECK(entry.fd >= 0);
    CHECK_INT(redlock_lock(rl, "x", NULL, &lease), REDLOCK_E_STATE);
    CHECK_INT(redlock_lock_async(rl, "x", NULL, note_status, &status, NULL), REDLOCK_OK);
    while (status == REDLOCK_OK) {
        CHECK_INT(poll(&entry, 1, 20000), 1);
        CHECK_INT(redlock_dispatch(rl), REDLOCK_OK);
    }
    CHECK_INT(status, REDLOCK_UNREACHABLE);
    CHECK_INT(redlock_fd(rl), entry.fd);
    (void)redlock_close(rl);
    CHECK_INT(fcntl(entry.fd, F_GETFD), -1);
}

/* ---- Random numbers ---- */

static bool has_no_random;

/* Also libsodium calls this one. */
ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
    if (!has_no_random)
        return syscall(SYS_getrandom, buf, len, flags);
    errno = EPERM;
    return -1;
}

static void check_open_fails(const char *masters)
{
    struct redlock *rl = UNTOUCHED;
    struct redlock_options opts;

    redlock_options_init(&opts);
    opts.masters = masters;
    has_no_random = true;
    CHECK_INT(redlock_open(&opts, &rl), REDLOCK_E_SYSTEM);
    CHECK(rl == UNTOUCHED);
    CHECK_HAS(redlock_errmsg(NULL), "no random numbers can be drawn (getrandom): ");
}

static void open_at_once(void)
{
    check_open_fails("127.0.0.1:1");
}

static void open_with_password(void)
{
    check_open_fails("user:secret@127.0.0.1:1");
}

static void open_another(void)
{
    struct redlock *rl = open_nowhere(true);

    check_open_fails("127.0.0.1:1");
    (void)redlock_close(rl);
}

static void lock_with_owner(void)
{
    struct redlock *rl = open_nowhere(true);
    struct redlock_lock_options opts;
    int status = REDLOCK_OK;

    redlock_lock_options_init(&opts);
    opts.reentrant = true;
    has_no_random = true;
    CHECK_INT(redlock_lock_async(rl, "x", &opts, note_status, &status, NULL), REDLOCK_E_SYSTEM);
    CHECK_HAS(redlock_errmsg(rl), "getrandom");
    (void)redlock_close(rl);
}

/* Each row in a process whose libsodium has not started, so this test is the first. */
TEST(without_random_numbers_a_call_fails_and_the_program_lives)
{
    static const struct {
        const char *row;
        void (*run)(void);
    } rows[] = {{"at once", open_at_once},
                {"with a password", open_with_password},
                {"another client", open_another},
                {"an owner", lock_with_owner}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = -1;
        pid_t child;

        check_row = rows[i].row;
        child = fork();
        if (child == 0) {
            rows[i].run();
            _exit(0);
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
    }
}

CHECK_MAIN(RUN(without_random_numbers_a_call_fails_and_the_program_lives),
           {"open_refuses_bad_masters", open_refuses_bad_masters},
           {"open_takes_masters_from_the_environment", open_takes_masters_from_the_environment},
           {"open_refuses_bad_options", open_refuses_bad_options},
           RUN(per_vote_leaves_something_of_the_longest_lease),
           RUN(only_a_pollable_client_has_a_descriptor), RUN(a_child_of_a_fork_has_no_descriptor),
           RUN(a_pollable_client_has_asynchronous_calls))
