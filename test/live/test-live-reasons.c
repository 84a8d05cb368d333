/*
 * test-live-reasons.c - what a program reads of the masters at fault (redlock_reason()).
 */
#include "test/lib/check.h"

#include <pthread.h>

#include "live/cluster.h"
#include "live/party.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static struct cluster three;

static struct redlock_reason reason_of(struct redlock *rl, unsigned number)
{
    struct redlock_reason reason = {.size = sizeof reason};

    CHECK_INT(redlock_reason(rl, number, &reason), REDLOCK_OK);
    return reason;
}

static unsigned count(struct redlock *rl)
{
    struct redlock_reason reason = {.size = sizeof reason};
    unsigned len = 0;

    while (len <= REDLOCK_MASTERS_MAX && redlock_reason(rl, len, &reason) == REDLOCK_OK)
        len++;
    CHECK_INT(redlock_reason(rl, len, &reason), REDLOCK_E_INVAL);
    return len;
}

/* At the first and the third nobody listens. */
static const char *two_closed(void)
{
    server_kill(&three.server[0]);
    server_kill(&three.server[2]);
    return cluster_masters(&three);
}

static const char *place_of(const char *masters, unsigned number)
{
    static char place[64];

    for (; number > 0; number--)
        masters = strchr(masters, ',') + 1;
    (void)snprintf(place, sizeof place, "%.*s", (int)strcspn(masters, ","), masters);
    return place;
}

static void each_kind(void (*test)(struct pilot *pilot, const char *masters),
                      const char *(*list)(void), bool guarded)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        const char *masters;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&three, 3);
        masters = list();
        pilot_guarded = guarded;
        pilot_founds = guarded;
        pilot_open(&pilot, kind, masters, 0);
        test(&pilot, masters);
        pilot_close(&pilot);
    }
}

/* ---- Kinds ---- */

static void find_refused_connections(struct pilot *pilot, const char *masters)
{
    struct redlock_lease *lease;
    struct redlock_reason reason;

    CHECK_INT(pilot_until_told(pilot, "x", "refused"), REDLOCK_UNREACHABLE);
    CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    CHECK_UINT(count(pilot->rl), 2);
    for (unsigned i = 0; i < 2; i++) {
        reason = reason_of(pilot->rl, i);
        CHECK_UINT(reason.master, 1 + 2 * i);
        CHECK_STR(reason.address, place_of(masters, 2 * i));
        CHECK_STR(reason.id, "no-connection");
        CHECK(reason.decides);
        CHECK_UINT(reason.over_ms, UINT32_MAX);
        CHECK_STR(reason.words, "");
    }
    CHECK_STR(redlock_errmsg(pilot->rl), pilot->message); /* It is left alone. */
}

TEST(refused_connections)
{
    each_kind(find_refused_connections, two_closed, false);
}

static const char *wrong_password(void)
{
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(server_text(&three.server[m], "ACL SETUSER u reset on >pw ~* &* +@all"), "OK");
    return cluster_masters_by(&three, "redis://u:wrong@127.0.0.1:", "");
}

static void find_refused_passwords(struct pilot *pilot, const char *masters)
{
    struct redlock_reason reason;

    (void)masters;
    CHECK_INT(pilot_until_told(pilot, "x", "masters 1 to 3"), REDLOCK_E_FORBIDDEN);
    CHECK_UINT(count(pilot->rl), 3);
    reason = reason_of(pilot->rl, 2);
    CHECK_UINT(reason.master, 3);
    CHECK_STR(reason.id, "wrong-password");
    CHECK(reason.decides);
    CHECK_HAS(reason.words, "WRONGPASS");
    CHECK(strchr(reason.address, '@') == NULL);
}

TEST(refused_passwords)
{
    each_kind(find_refused_passwords, wrong_password, false);
}

static const char *as_guarded(void)
{
    return cluster_masters(&three);
}

/* Two of three have lost their data. */
static void find_warming(struct pilot *pilot, const char *masters)
{
    struct redlock_reason reason, later;
    uint32_t ready_ms = 0;

    (void)masters;
    CHECK(pilot_until_up(pilot, 3));
    for (unsigned m = 0; m < 2; m++) {
        server_kill(&three.server[m]);
        server_restart(&three.server[m]);
    }
    CHECK_INT(pilot_until_told(pilot, "x", "each is warming up"), REDLOCK_NOT_READY);
    CHECK_UINT(count(pilot->rl), 2);
    reason = reason_of(pilot->rl, 1);
    CHECK_UINT(reason.master, 2);
    CHECK_STR(reason.id, "warming");
    CHECK(reason.decides);
    CHECK(reason.over_ms >= 1 && reason.over_ms <= 120000);
    CHECK_STR(reason.words, "");
    cluster_nap();
    later = reason_of(pilot->rl, 1);
    CHECK(later.over_ms < reason.over_ms); /* The time runs. */
    CHECK_INT(redlock_ready(pilot->rl, &ready_ms), REDLOCK_NOT_READY);
    CHECK_STR(reason_of(pilot->rl, 0).id, "warming"); /* Of redlock_ready(). */
    CHECK(ready_ms >= 1 && ready_ms <= 120000);
}

TEST(warming_masters)
{
    each_kind(find_warming, as_guarded, true);
}

/* Two refuse the name.  The third is not there, so the refusal of one of them is enough. */
static const char *two_limited(void)
{
    static char masters[128];

    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(
            server_text(&three.server[m], "ACL SETUSER u reset on >pw ~ok* ~redlock:* &* +@all"),
            "OK");
    (void)snprintf(masters, sizeof masters,
                   "redis://u:pw@127.0.0.1:%u,redis://u:pw@127.0.0.1:%u,127.0.0.1:%u",
                   three.server[0].port, three.server[1].port, cluster_closed_port());
    return masters;
}

static void find_refused_names(struct pilot *pilot, const char *masters)
{
    struct redlock_reason reason;

    CHECK(pilot_until_up(pilot, 2));
    CHECK_INT(pilot_until_told(pilot, "no", "Connection refused"), REDLOCK_UNREACHABLE);
    CHECK_UINT(count(pilot->rl), 2);
    reason = reason_of(pilot->rl, 0);
    CHECK_UINT(reason.master, 3);
    CHECK_STR(reason.id, "no-connection");
    CHECK(reason.decides);
    CHECK_STR(reason.address, place_of(masters, 2));
    reason = reason_of(pilot->rl, 1);
    CHECK(reason.master == 1 || reason.master == 2);
    CHECK_STR(reason.id, "no-right");
    CHECK(!reason.decides);
    CHECK_HAS(reason.words, "NOPERM");
}

TEST(those_that_decide_come_first)
{
    each_kind(find_refused_names, two_limited, false);
}

/* The first two are a set, and the third is in none. */
static const char *one_stranger(void)
{
    char two[64];

    (void)snprintf(two, sizeof two, "127.0.0.1:%u,127.0.0.1:%u", three.server[0].port,
                   three.server[1].port);
    cluster_unfound(&three);
    cluster_found(&three, two);
    return cluster_masters(&three);
}

/* It is chance which masters the client knows when it refuses the list. */
static void find_a_stranger(struct pilot *pilot, const char *masters)
{
    struct redlock_lease *lease;
    struct redlock_reason reason;

    (void)masters;
    CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_E_WRONG_SET);
    CHECK_UINT(count(pilot->rl), 1);
    reason = reason_of(pilot->rl, 0);
    CHECK_UINT(reason.master, 3);
    CHECK_STR(reason.id, "wrong-set");
    CHECK(reason.decides);
}

static void each_guarded(void (*test)(struct pilot *pilot, const char *masters),
                         const char *(*list)(void))
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&three, 3);
        pilot_guarded = true;
        pilot_founds = false;
        pilot_open(&pilot, kind, list(), 0);
        test(&pilot, "");
        pilot_close(&pilot);
    }
}

TEST(a_stranger_decides)
{
    each_guarded(find_a_stranger, one_stranger);
}

static const char *one_silent(void)
{
    cluster_unfound(&three);
    server_pause(&three.server[0]);
    return cluster_masters(&three);
}

/* All are needed to found a set, and the first does not answer. */
static void find_the_silent(struct pilot *pilot, const char *masters)
{
    struct redlock_lease *lease;
    struct redlock_reason reason;

    (void)masters;
    CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    reason = reason_of(pilot->rl, 0);
    CHECK_UINT(reason.master, 1);
    CHECK_STR(reason.id, "no-answer");
    CHECK(reason.decides);
}

TEST(who_keeps_a_set_from_its_founding_decides)
{
    each_guarded(find_the_silent, one_silent);
}

/* ---- When it is known ---- */

/* A lock that is held keeps the reasons away, as it empties the message. */
static void forget(struct pilot *pilot, const char *masters)
{
    struct redlock_reason reason = {.size = sizeof reason};
    struct redlock_lease *lease, *other;
    struct pilot second;

    pilot_open(&second, pilot->kind, masters, 0);
    CHECK_INT(pilot_lock_for(pilot, "held", 60000, true, 0, &lease), REDLOCK_OK);
    CHECK_INT(redlock_reason(pilot->rl, 0, &reason), REDLOCK_E_INVAL);
    CHECK_INT(pilot_lock(pilot, "held", NULL, &other), REDLOCK_CONTENDED);
    CHECK_INT(redlock_reason(pilot->rl, 0, &reason), REDLOCK_E_INVAL); /* No master's fault. */
    for (unsigned m = 0; m < 2; m++)
        server_kill(&three.server[m]);
    CHECK_INT(pilot_until_told(pilot, "x", "masters 1 and 2"), REDLOCK_UNREACHABLE);
    CHECK_INT(redlock_reason(second.rl, 0, &reason), REDLOCK_E_INVAL); /* Of another client. */
    CHECK_UINT(count(pilot->rl), 2);
    CHECK_INT(redlock_lock(NULL, "x", NULL, &other), REDLOCK_E_INVAL);
    CHECK_INT(redlock_reason(pilot->rl, 0, &reason), REDLOCK_E_INVAL);
    pilot_close(&second);
}

TEST(the_next_call_forgets_it)
{
    each_kind(forget, as_guarded, false);
}

static void use_sizes(struct pilot *pilot, const char *masters)
{
    struct {
        struct redlock_reason reason;
        char more[16];
    } wide = {.reason.size = sizeof wide, .more = "unknown"};
    struct redlock_reason narrow = {.size = offsetof(struct redlock_reason, decides), .id = "old"};

    (void)masters;
    CHECK_INT(pilot_until_told(pilot, "x", "refused"), REDLOCK_UNREACHABLE);
    CHECK_INT(redlock_reason(NULL, 0, &narrow), REDLOCK_E_INVAL);
    CHECK_INT(redlock_reason(pilot->rl, 0, NULL), REDLOCK_E_INVAL);
    CHECK_INT(redlock_reason(pilot->rl, 0, &narrow), REDLOCK_OK);
    CHECK_UINT(narrow.master, 1);
    CHECK_STR(narrow.id, "old");
    CHECK_INT(redlock_reason(pilot->rl, 0, &wide.reason), REDLOCK_OK);
    CHECK_STR(wide.reason.id, "no-connection");
    CHECK_STR(wide.more, "");
    narrow.size = 0;
    CHECK_INT(redlock_reason(pilot->rl, 0, &narrow), REDLOCK_E_INVAL);
    narrow.size = 1000000;
    CHECK_INT(redlock_reason(pilot->rl, 0, &narrow), REDLOCK_E_INVAL);
}

TEST(the_struct_may_grow)
{
    each_kind(use_sizes, two_closed, false);
}

/* ---- Callbacks ---- */

struct scene {
    struct party party;
    atomic_bool is_over;
    int status; /* What redlock_reason() returned there. */
    unsigned len;
    struct redlock_reason first;
    char message[256];
};

static void look(struct scene *scene)
{
    scene->first.size = sizeof scene->first;
    scene->status = redlock_reason(scene->party.rl, 0, &scene->first);
    if (scene->status == REDLOCK_OK)
        scene->len = count(scene->party.rl);
    (void)snprintf(scene->message, sizeof scene->message, "%s", redlock_errmsg(scene->party.rl));
    atomic_store(&scene->is_over, true);
}

static void on_done(struct redlock_lease *lease, int status, void *arg)
{
    (void)lease, (void)status;
    look(arg);
}

static void on_lost(struct redlock_lease *lease, void *arg)
{
    (void)lease;
    look(arg);
}

static bool is_over(void *arg)
{
    struct scene *scene = arg;

    return atomic_load(&scene->is_over);
}

/* The second fails for another reason, in the same turn: each is told its own. */
TEST(each_done_is_told_of_its_lease)
{
    struct scene scenes[2] = {{.len = 0}};
    struct redlock_lease *lease;
    struct pilot driver = {.kind = PILOT_LOOP};

    pilot_guarded = pilot_founds = false;
    cluster_ready(&three, 3);
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(
            server_text(&three.server[m], "ACL SETUSER u reset on >pw ~ok* ~redlock:* &* +@all"),
            "OK");
    party_open(&scenes[0].party, cluster_masters_by(&three, "redis://u:pw@127.0.0.1:", ""),
               PILOT_REPLY_TIMEOUT_MS);
    scenes[1].party.rl = driver.rl = scenes[0].party.rl;
    driver.ev = party_loop;
    CHECK(pilot_until_up(&driver, 3));
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(server_text(&three.server[m], "CONFIG SET maxmemory 1"), "OK");
    CHECK_INT(redlock_lock_async(scenes[0].party.rl, "no", NULL, on_done, &scenes[0], &lease),
              REDLOCK_OK);
    CHECK_INT(redlock_lock_async(scenes[0].party.rl, "ok", NULL, on_done, &scenes[1], &lease),
              REDLOCK_OK);
    for (unsigned i = 0; i < 2; i++) {
        CHECK(party_until(is_over, &scenes[i]));
        CHECK_INT(scenes[i].status, REDLOCK_OK);
        CHECK(scenes[i].len >= 2 && scenes[i].len <= 3);
        CHECK_STR(scenes[i].first.id, i == 0 ? "no-right" : "full");
    }
    CHECK_HAS(scenes[1].first.words, "OOM");
    CHECK_STR(scenes[0].first.words, ""); /* Those of the later refusal are not its own. */
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(server_text(&three.server[m], "CONFIG SET maxmemory 0"), "OK");
    party_close_all(&scenes[0].party, 1);
}

/* The thread of a blocking client has none. */
TEST(lost_is_told_on_a_loop)
{
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct scene scene = {.len = 0};
        struct redlock_lock_options opts;
        struct redlock_lease *lease;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        cluster_ready(&three, 3);
        pilot_guarded = pilot_founds = false;
        pilot_open(&pilot, kind, cluster_masters(&three), 100);
        CHECK(pilot_until_up(&pilot, 3));
        scene.party.rl = pilot.rl;
        redlock_lock_options_init(&opts);
        opts.ttl_ms = 1500;
        opts.lost = on_lost;
        opts.lost_arg = &scene;
        CHECK_INT(pilot_lock(&pilot, "x", &opts, &lease), REDLOCK_OK);
        for (unsigned m = 0; m < 2; m++)
            server_kill(&three.server[m]);
        CHECK(pilot_until(&pilot, is_over, &scene));
        if (kind == PILOT_LOOP) {
            CHECK_INT(scene.status, REDLOCK_OK);
            CHECK_UINT(scene.len, 2);
            CHECK_UINT(scene.first.master, 1);
            CHECK_STR(scene.first.id, "no-connection");
            CHECK_HAS(scene.message, "lease x: ");
            CHECK_HAS(scene.message, "masters 1 and 2 (");
        } else {
            CHECK_INT(scene.status, REDLOCK_E_STATE);
        }
        redlock_cancel(lease);
        pilot_close(&pilot);
    }
}

/* ---- Threads ---- */

#define THREADS 8

struct worker {
    struct redlock *rl;
    unsigned number;
    unsigned good;
};

/* Names with an odd number are forbidden, and the others cannot be stored. */
static void *fail_often(void *arg)
{
    struct worker *worker = arg;
    bool is_odd = worker->number % 2 != 0;
    struct redlock_lease *lease;
    char name[16];

    (void)snprintf(name, sizeof name, "%s%u", is_odd ? "no" : "ok", worker->number);
    for (unsigned i = 0; i < 50; i++) {
        struct redlock_reason reason = {.size = sizeof reason};
        int status = redlock_lock(worker->rl, name, NULL, &lease);

        if (status == (is_odd ? REDLOCK_E_FORBIDDEN : REDLOCK_UNREACHABLE) &&
            redlock_reason(worker->rl, 1, &reason) == REDLOCK_OK &&
            strcmp(reason.id, is_odd ? "no-right" : "full") == 0 && reason.decides)
            worker->good++;
    }
    return NULL;
}

/* A crowd of calls is made by one thread: each caller gets its own reasons. */
TEST(each_thread_is_told_of_its_call)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct pilot pilot;

    pilot_guarded = pilot_founds = false;
    cluster_ready(&three, 3);
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(
            server_text(&three.server[m], "ACL SETUSER u reset on >pw ~ok* ~redlock:* &* +@all"),
            "OK");
    pilot_open(&pilot, PILOT_BLOCKING, cluster_masters_by(&three, "redis://u:pw@127.0.0.1:", ""),
               0);
    CHECK(pilot_until_up(&pilot, 3));
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(server_text(&three.server[m], "CONFIG SET maxmemory 1"), "OK");
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.rl = pilot.rl, .number = i};
        CHECK_INT(pthread_create(&threads[i], NULL, fail_often, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        CHECK_UINT(workers[i].good, 50);
    }
    for (unsigned m = 0; m < 3; m++)
        CHECK_STR(server_text(&three.server[m], "CONFIG SET maxmemory 0"), "OK");
    pilot_close(&pilot);
}

CHECK_MAIN(RUN(refused_connections), RUN(refused_passwords), RUN(warming_masters),
           RUN(those_that_decide_come_first), RUN(a_stranger_decides),
           RUN(who_keeps_a_set_from_its_founding_decides), RUN(the_next_call_forgets_it),
           RUN(the_struct_may_grow), RUN(each_done_is_told_of_its_lease),
           RUN(lost_is_told_on_a_loop), RUN(each_thread_is_told_of_its_call))
