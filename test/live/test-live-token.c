/*
 * test-live-token.c - the token of redlock_lease_info() is always that of the lock that is held.
 * Any thread may read the text without a mutex.
 */
#include "test/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>

#include "live/cluster.h"
#include "live/fake.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "test/lib/info.h"

#define LEASES 32
#define FAKE_DELAY_MS 2000

static struct cluster two, three;

struct reader {
    struct redlock_lease *leases[LEASES];
    const char *texts[LEASES]; /* In the memory of the leases. */
    char tokens[LEASES][REDLOCK_TOKEN_MAX + 1];
    unsigned undone; /* Locks with a lost first round, which the fake was asked to release. */
    atomic_bool stop;
    atomic_uint sweeps, wrong;
};

/* Read the tokens without a pause and without a mutex. */
static void *read_tokens(void *arg)
{
    struct reader *reader = arg;

    while (!atomic_load(&reader->stop)) {
        for (unsigned i = 0; i < LEASES; i++) {
            if (strcmp(reader->texts[i], reader->tokens[i]) != 0)
                atomic_fetch_add(&reader->wrong, 1);
        }
        atomic_fetch_add(&reader->sweeps, 1);
    }
    return NULL;
}

/* A thread that waits for a lock. */
struct locker {
    pthread_t thread;
    struct pilot *pilot;
    const char *name;
    struct redlock_lease *lease;
    int status;
};

static void *lock(void *arg)
{
    struct locker *locker = arg;
    struct redlock_lock_options opts;

    redlock_lock_options_init(&opts);
    opts.ttl_ms = 50000;
    opts.no_renew = true;
    opts.wait_ms = 30000;
    opts.retry_delay_min_ms = opts.retry_delay_max_ms = 50; /* Both masters are free again. */
    locker->status = redlock_lock(locker->pilot->rl, locker->name, &opts, &locker->lease);
    return NULL;
}

/* A waiter that has lost a round sets wait flags (redlock/core/wait.h). */
static bool waits(void *arg)
{
    const struct locker *locker = arg;

    for (unsigned m = 0; m < two.len; m++)
        if (server_int(&two.server[m], "EXISTS redlock:wait:%s", locker->name) == 0)
            return false;
    return true;
}

/* The real masters refuse the lock in the first round, and grant it in a later one. */
static void lock_in_a_later_round(struct pilot *pilot, struct reader *reader, unsigned i)
{
    double begin_s = cluster_now_s();
    char name[32];
    struct locker locker = {.pilot = pilot, .name = name};
    bool refused;

    (void)snprintf(name, sizeof name, "x%u", i);
    for (unsigned m = 0; m < two.len; m++)
        (void)server_text(&two.server[m], "SET %s foreign", name);
    CHECK_INT(pthread_create(&locker.thread, NULL, lock, &locker), 0);
    refused = pilot_until(pilot, waits, &locker);
    for (unsigned m = 0; m < two.len; m++)
        (void)server_int(&two.server[m], "DEL %s", name);
    (void)pthread_join(locker.thread, NULL);
    CHECK(refused);
    CHECK_INT(locker.status, REDLOCK_OK);
    reader->leases[i] = locker.lease;
    reader->texts[i] = info_token(locker.lease);
    (void)snprintf(reader->tokens[i], sizeof reader->tokens[i], "%s", reader->texts[i]);
    /* On a slow machine the real masters may disagree in a round.  Then the client waits for the
     * fake's answer, which is an error, and there may be nothing to release. */
    reader->undone += cluster_now_s() - begin_s < FAKE_DELAY_MS / 1e3;
}

struct answers {
    const struct fake *fake;
    unsigned wanted;
    const struct reader *reader;
};

/* The fake has all commands, and the reader has read all tokens at least once. */
static bool has_all_answers(void *arg)
{
    const struct answers *answers = arg;

    return atomic_load(&answers->fake->seen->commands) >= answers->wanted &&
           atomic_load(&answers->reader->sweeps) > 0;
}

/*
 * A third master answers late that it lacks the script.  So the client sends the release of the
 * first round again, while the lock of a later round is held.  ThreadSanitizer reports a race if
 * the token of one round is written where that of the other is read.
 */
TEST(the_token_of_an_old_round_is_not_shown)
{
    const struct fake_plan plan = {.way = FAKE_SAYS,
                                   .greets = true,
                                   .delay_ms = FAKE_DELAY_MS,
                                   .says = "-NOSCRIPT No matching script.\r\n"};
    static struct reader reader;
    struct answers answers;
    struct fake fake;
    struct pilot pilot;
    pthread_t thread;
    char masters[128];
    bool ok;

    pilot_guarded = false; /* The fake cannot answer the proof of a lock. */
    cluster_ready(&two, 2);
    fake_start(&fake, &plan);
    (void)snprintf(masters, sizeof masters, "127.0.0.1:%u,%s", fake.port, cluster_masters(&two));
    cluster_found(&two, masters);
    pilot_open(&pilot, PILOT_BLOCKING, masters, 0);
    CHECK(pilot_until_up(&pilot, 3));
    for (unsigned i = 0; i < LEASES; i++)
        lock_in_a_later_round(&pilot, &reader, i);
    CHECK(reader.undone > 0);
    /* Each lease sends one lock.  Where that was released, it sends the script twice. */
    answers = (struct answers){&fake, FAKE_GREETING + LEASES + 2 * reader.undone, &reader};

    CHECK_INT(pthread_create(&thread, NULL, read_tokens, &reader), 0);
    ok = pilot_until(&pilot, has_all_answers, &answers);
    atomic_store(&reader.stop, true);
    (void)pthread_join(thread, NULL);
    CHECK(ok);
    CHECK_UINT(atomic_load(&reader.wrong), 0);
    for (unsigned i = 0; i < LEASES; i++) {
        CHECK_STR(info_token(reader.leases[i]), reader.tokens[i]);
        CHECK_INT(redlock_detach(reader.leases[i]), REDLOCK_OK);
    }
    pilot_close(&pilot);
    fake_stop(&fake);
}

struct stored {
    const char *key, *token;
};

static bool stores(struct server *server, const struct stored *stored)
{
    const char *text;

    if (strcmp(server_text(server, "TYPE %s", stored->key), "zset") == 0)
        return server_text(server, "ZSCORE %s %s", stored->key, stored->token) != NULL;
    text = server_text(server, "GET %s", stored->key);
    return text != NULL && strcmp(text, stored->token) == 0;
}

/* A majority stores the token with the note, as the value of the key or as a reader, and has
 * extended it.  A master that is late may miss both. */
static bool is_stored(void *arg)
{
    const struct stored *stored = arg;
    unsigned extended = 0;

    for (unsigned m = 0; m < three.len; m++)
        extended += stores(&three.server[m], stored) &&
                    server_int(&three.server[m], "PTTL %s", stored->key) > 30000;
    return extended >= 2;
}

static bool is_gone(void *arg)
{
    const char *key = arg;

    for (unsigned m = 0; m < three.len; m++)
        if (server_int(&three.server[m], "EXISTS %s", key) != 0)
            return false;
    return true;
}

/* The note comes with the token, stays when it is extended, and goes with it. */
static void check_note(struct pilot *pilot, char *key, struct redlock_lock_options opts)
{
    struct stored stored = {.key = key};
    struct redlock_lease *lease;

    opts.ttl_ms = 30000;
    opts.note = "a note: \xc3\xa4";
    CHECK_INT(pilot_lock(pilot, "x", &opts, &lease), REDLOCK_OK);
    CHECK_STR(info_token(lease) + 40, ":a note: \xc3\xa4");
    CHECK_INT(pilot_extend(pilot, lease, 60000), REDLOCK_OK);
    stored.token = info_token(lease);
    CHECK(pilot_until(pilot, is_stored, &stored));
    CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    CHECK(pilot_until(pilot, is_gone, key));
}

TEST(a_note_is_stored_with_the_token_of_each_kind)
{
    char name[] = "x", permit[] = "redlock:permit:x:0";
    struct redlock_lock_options opts;

    for (int kind = 0; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        CHECK(pilot_open_up(&pilot, (enum pilot_kind)kind, &three, 3));
        redlock_lock_options_init(&opts);
        check_note(&pilot, name, opts);
        opts.fence = true;
        check_note(&pilot, name, opts);
        opts.fence = false, opts.fair = true;
        check_note(&pilot, name, opts);
        opts.fair = false, opts.shared = true;
        check_note(&pilot, name, opts);
        opts.shared = false, opts.permits = 1;
        check_note(&pilot, permit, opts);
        pilot_close(&pilot);
    }
}

TEST(a_token_with_its_note_is_adopted)
{
    struct redlock_lease *lease, *adopted;
    char token[REDLOCK_TOKEN_MAX + 1];
    struct pilot pilot;

    CHECK(pilot_open_up(&pilot, PILOT_BLOCKING, &three, 3));
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, false, 0, &lease), REDLOCK_OK);
    (void)snprintf(token, sizeof token, "%s", info_token(lease));
    CHECK(strchr(token, '/') != NULL); /* HOST/PID */
    CHECK_INT(redlock_detach(lease), REDLOCK_OK);
    CHECK_INT(redlock_adopt(pilot.rl, "x", token, NULL, &adopted), REDLOCK_OK);
    CHECK_STR(info_token(adopted), token);
    CHECK_INT(pilot_unlock(&pilot, adopted), REDLOCK_OK);
    pilot_close(&pilot);
}

CHECK_MAIN({"a_note_is_stored_with_the_token_of_each_kind",
            a_note_is_stored_with_the_token_of_each_kind},
           {"a_token_with_its_note_is_adopted", a_token_with_its_note_is_adopted},
           {"the_token_of_an_old_round_is_not_shown", the_token_of_an_old_round_is_not_shown})
