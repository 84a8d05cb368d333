/*
 * test-alloc.c - each allocation of a client on real masters fails in turn.  The call that
 * needs it reports the failure, nothing crashes or leaks, and the client works afterwards.
 *
 * Allocations are the library's calls of malloc() and its kin, and calls of other libraries
 * that make something: a connection, a formatted command, a read buffer, a loop, a thread, a
 * descriptor.  The linker's --wrap redirects them to this file.
 */
#include "test/lib/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <ev.h>
#include <hiredis/hiredis.h>

#include "live/cluster.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

#define LEASES 70      /* Chosen: more than the tables and queues have room for at first. */
#define OWNED 18       /* Chosen: more reentrant locks than their table has room for at first. */
#define BLOCKS_MAX 512 /* Chosen: more than are ever in use. */

/* ---- What fails ---- */

static atomic_bool armed; /* Unless set, no allocation is counted or fails. */
static atomic_uint allocations;
static atomic_uint failing; /* The number of the allocation that fails. */
static atomic_bool has_failed;

static bool must_fail(void)
{
    if (!atomic_load(&armed) || atomic_fetch_add(&allocations, 1) != atomic_load(&failing))
        return false;
    atomic_store(&has_failed, true);
    return true;
}

static void fail_at(unsigned number)
{
    atomic_store(&allocations, 0);
    atomic_store(&failing, number);
    atomic_store(&has_failed, false);
    atomic_store(&armed, true);
}

static void fail_no_more(void)
{
    atomic_store(&armed, false);
}

/* ---- What is in use ---- */

static pthread_mutex_t blocks_mutex = PTHREAD_MUTEX_INITIALIZER;
static void *blocks[BLOCKS_MAX]; /* NULL: an empty place. */

/* Replace a block in the table; NULL stands for an empty place.  False: before is not in it. */
static bool replace_block(const void *before, void *after)
{
    bool found = false;

    (void)pthread_mutex_lock(&blocks_mutex);
    for (unsigned i = 0; i < BLOCKS_MAX && !found; i++) {
        if (blocks[i] != before)
            continue;
        blocks[i] = after;
        found = true;
    }
    (void)pthread_mutex_unlock(&blocks_mutex);
    return found;
}

static unsigned count_blocks(void)
{
    unsigned len = 0;

    for (unsigned i = 0; i < BLOCKS_MAX; i++)
        len += blocks[i] != NULL;
    return len;
}

static void *note(void *block)
{
    if (block != NULL && !replace_block(NULL, block))
        cluster_die("alloc: the table of blocks is full");
    return block;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t len, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t len, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : note(__real_malloc(size));
}

void *__wrap_calloc(size_t len, size_t size)
{
    return must_fail() ? NULL : note(__real_calloc(len, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    if (must_fail())
        return NULL;
    if (block != NULL)
        (void)replace_block(block, NULL);
    return note(__real_realloc(block, size));
}

void __wrap_free(void *block)
{
    if (block != NULL)
        (void)replace_block(block, NULL);
    __real_free(block);
}

/* ---- What other libraries make ---- */

/* Its result has another type in later versions of hiredis. */
typedef __typeof__(redisFormatCommandArgv((char **)NULL, 0, NULL, NULL)) format_result;

__typeof__(redisReaderCreateWithFunctions) __real_redisReaderCreateWithFunctions,
    __wrap_redisReaderCreateWithFunctions;
__typeof__(redisFormatCommandArgv) __real_redisFormatCommandArgv, __wrap_redisFormatCommandArgv;
__typeof__(redisReaderFeed) __real_redisReaderFeed, __wrap_redisReaderFeed;
__typeof__(ev_loop_new) __real_ev_loop_new, __wrap_ev_loop_new;
__typeof__(eventfd) __real_eventfd, __wrap_eventfd;
__typeof__(timerfd_create) __real_timerfd_create, __wrap_timerfd_create;
__typeof__(epoll_create1) __real_epoll_create1, __wrap_epoll_create1;
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg);

redisReader *__wrap_redisReaderCreateWithFunctions(redisReplyObjectFunctions *functions)
{
    return must_fail() ? NULL : __real_redisReaderCreateWithFunctions(functions);
}

format_result __wrap_redisFormatCommandArgv(char **target, int argc, const char **argv,
                                            const size_t *lens)
{
    return must_fail() ? -1 : __real_redisFormatCommandArgv(target, argc, argv, lens);
}

/* Leaves the reader as hiredis does when it is out of memory. */
int __wrap_redisReaderFeed(redisReader *reader, const char *bytes, size_t len)
{
    if (!must_fail())
        return __real_redisReaderFeed(reader, bytes, len);
    reader->err = REDIS_ERR_OOM;
    (void)snprintf(reader->errstr, sizeof reader->errstr, "Out of memory");
    return REDIS_ERR;
}

struct ev_loop *__wrap_ev_loop_new(unsigned flags)
{
    return must_fail() ? NULL : __real_ev_loop_new(flags);
}

int __wrap_eventfd(unsigned count, int flags)
{
    if (!must_fail())
        return __real_eventfd(count, flags);
    errno = EMFILE;
    return -1;
}

int __wrap_timerfd_create(int clock, int flags)
{
    if (!must_fail())
        return __real_timerfd_create(clock, flags);
    errno = EMFILE;
    return -1;
}

int __wrap_epoll_create1(int flags)
{
    if (!must_fail())
        return __real_epoll_create1(flags);
    errno = EMFILE;
    return -1;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    return must_fail() ? EAGAIN : __real_pthread_create(thread, attr, run, arg);
}

/* ---- A client's life ---- */

static struct cluster five;

static int open_client(struct pilot *pilot, enum pilot_kind kind, const char *masters)
{
    struct redlock_options opts;
    int status;

    *pilot = (struct pilot){.kind = kind};
    redlock_options_init(&opts);
    opts.masters = masters;
    cluster_found_list(masters);
    opts.reply_timeout_ms = opts.connect_timeout_ms = PILOT_REPLY_TIMEOUT_MS;
    if (kind == PILOT_LOOP)
        pilot_set_loop(&opts, pilot->ev = __real_ev_loop_new(EVFLAG_AUTO));
    status = redlock_open(&opts, &pilot->rl);
    if (status == REDLOCK_OK && kind == PILOT_LOOP)
        pilot->io = pilot_watch(&pilot->rl, pilot->ev);
    return status;
}

/* Either the call worked, or it was out of memory, or the link to a master was. */
static void check_status(int status, const char *message)
{
    if (status == REDLOCK_OK)
        return;
    if (status != REDLOCK_UNREACHABLE && status != REDLOCK_NOT_READY)
        CHECK_INT(status, REDLOCK_E_NOMEM);
    CHECK_HAS(message, status == REDLOCK_E_NOMEM              ? "out of memory"
                       : strncmp(message, "release ", 8) == 0 ? "too few masters confirmed it"
                                                              : redlock_strerror(status));
    CHECK(atomic_load(&has_failed));
}

struct crowd {
    unsigned under_way, held;
    int worst;
};

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    struct crowd *crowd = arg;

    (void)lease;
    crowd->under_way--;
    crowd->held += status == REDLOCK_OK;
    if (status != REDLOCK_OK && status != REDLOCK_UNREACHABLE && status != REDLOCK_NOT_READY)
        crowd->worst = status;
}

static bool is_empty(void *arg)
{
    const struct crowd *crowd = arg;

    return crowd->under_way == 0;
}

/* Take so many locks at once that every table has to grow.  Returns the number of held locks. */
static unsigned lock_many(struct pilot *pilot)
{
    struct crowd crowd = {0, 0, REDLOCK_OK};
    struct redlock_lock_options opts;
    char name[16];

    redlock_lock_options_init(&opts);
    for (unsigned i = 0; i < LEASES; i++) {
        int status;

        opts.reentrant = i < OWNED; /* Each reentrant lock needs an allocation. */
        (void)snprintf(name, sizeof name, "many %u", i);
        status = redlock_lock_async(pilot->rl, name, &opts, on_done, &crowd, NULL);
        crowd.under_way += status == REDLOCK_OK;
        check_status(status, redlock_errmsg(pilot->rl));
    }
    CHECK(pilot_until(pilot, is_empty, &crowd));
    CHECK_INT(crowd.worst, REDLOCK_OK);
    return crowd.held;
}

/* Returns the number of leases that are still held. */
static unsigned use_client(struct pilot *pilot)
{
    struct redlock_lease *lease, *adopted;
    int status = pilot_lock(pilot, "x", NULL, &lease);

    check_status(status, pilot->message);
    if (status == REDLOCK_OK) {
        check_status(pilot_extend(pilot, lease, 0), pilot->message);
        check_status(pilot_unlock(pilot, lease), pilot->message);
    }
    status = redlock_adopt(pilot->rl, "y", "token", NULL, &adopted);
    check_status(status, redlock_errmsg(pilot->rl));
    if (status == REDLOCK_OK)
        CHECK_INT(redlock_detach(adopted), REDLOCK_OK);
    return pilot->kind == PILOT_LOOP ? lock_many(pilot) : 0;
}

/* The client works when no allocation fails. */
static void check_recovered(struct pilot *pilot)
{
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock_for(pilot, "z", 10000, true, 30000, &lease), REDLOCK_OK);
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
}

static void live(enum pilot_kind kind, const char *masters)
{
    struct pilot pilot;
    int status = open_client(&pilot, kind, masters);

    if (status == REDLOCK_OK) {
        unsigned leases = use_client(&pilot);

        fail_no_more();
        check_recovered(&pilot);
        CHECK(pilot_until_leases(&pilot, leases));
        pilot_close(&pilot);
        return;
    }
    fail_no_more();
    CHECK(status == REDLOCK_E_NOMEM || status == REDLOCK_E_SYSTEM);
    CHECK_HAS(redlock_errmsg(NULL), "open: ");
    CHECK(pilot.rl == NULL);
    if (pilot.ev != NULL)
        ev_loop_destroy(pilot.ev);
}

/* ---- Again and again ---- */

/* A thread that resolves a name may end shortly after the client is closed. */
static bool is_clean(void *arg)
{
    const unsigned *descriptors = arg;

    return count_blocks() == 0 && cluster_descriptors() == *descriptors;
}

/* Fail one allocation after the other, until a client has made fewer than that. */
static void fail_each(enum pilot_kind kind, const char *masters)
{
    struct pilot nobody = {.kind = PILOT_BLOCKING};
    unsigned descriptors = cluster_descriptors();
    static char row[64];
    unsigned number = 0;

    do {
        double begun_s = cluster_now_s();

        for (unsigned i = 0; i < five.len; i++) { /* A broken link may have left locks. */
            (void)server_int(&five.server[i], "FLUSHALL");
            server_season(&five.server[i]);
        }
        (void)snprintf(row, sizeof row, "%s, allocation %u", pilot_kind_name(kind), number);
        check_row = row;
        fail_at(number++);
        live(kind, masters);
        CHECK(pilot_until(&nobody, is_clean, &descriptors));
        CHECK(cluster_now_s() - begun_s < 30); /* A missed wake-up would take longer. */
    } while (atomic_load(&has_failed));
    printf("%s: %u allocations failed in turn\n", pilot_kind_name(kind), number - 1);
    CHECK(number > 20);
}

TEST(on_a_loop)
{
    cluster_ready(&five, 1);
    fail_each(PILOT_LOOP, cluster_masters(&five));
}

TEST(where_calls_block)
{
    cluster_ready(&five, 1);
    fail_each(PILOT_BLOCKING, cluster_masters(&five));
}

TEST(with_a_name_to_resolve)
{
    char masters[64];

    cluster_ready(&five, 1);
    (void)snprintf(masters, sizeof masters, "redis://localhost:%u/1", five.server[0].port);
    fail_each(PILOT_LOOP, masters);
    fail_each(PILOT_BLOCKING, masters);
}

TEST(with_five_masters)
{
    cluster_ready(&five, 5);
    fail_each(PILOT_LOOP, cluster_masters(&five));
    fail_each(PILOT_BLOCKING, cluster_masters(&five));
}

CHECK_MAIN({"on_a_loop", on_a_loop}, {"where_calls_block", where_calls_block},
           {"with_a_name_to_resolve", with_a_name_to_resolve},
           {"with_five_masters", with_five_masters})
