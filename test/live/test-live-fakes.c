/*
 * test-live-fakes.c - masters that misbehave.  With one of five, locking goes on.  With one alone,
 * the message says what is wrong.
 */
#include "test/lib/check.h"

#include <malloc.h>

#include "live/cluster.h"
#include "live/fake.h"
#include "live/pilot.h"
#include "redlock/redlock.h"

static struct cluster four;

/* How a fault affects the connection to its master. */
enum effect {
    STAYS = 0,
    BREAKS = 1,  /* The client gives up the connection, and connects again. */
    IN_VAIN = 2, /* The client notices the fault by a timeout. */
    FORBIDS = 4, /* The status is E_FORBIDDEN. */
};

/* A way to misbehave, and the message about it when the fake is the only master. */
struct fault {
    const char *row;
    struct fake_plan plan;
    const char *message;
    unsigned effects;
};

#define HTTP "HTTP/1.1 400 Bad Request\r\n\r\n"
#define DIGEST "$40\r\n0123456789012345678901234567890123456789\r\n"
#define DEEP "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"

static const struct fault faults[] = {
    {"deaf", {.way = FAKE_DEAF}, "timeout while connecting", IN_VAIN},
    {"silent", {.way = FAKE_SILENT}, "connected, but does not answer", BREAKS | IN_VAIN},
    {"silent later", {.way = FAKE_SILENT, .greets = true}, "no answer within 300 ms", IN_VAIN},
    {"slow",
     {.way = FAKE_GOOD, .greets = true, .delay_ms = 30000},
     "no answer within 300 ms",
     IN_VAIN},
    {"too slow to greet",
     {.way = FAKE_GOOD, .delay_ms = 30000},
     "connected, but does not answer",
     BREAKS | IN_VAIN},
    {"garbage", {.way = FAKE_SAYS, .says = HTTP}, "answered with garbage", BREAKS},
    {"garbage later",
     {.way = FAKE_SAYS, .greets = true, .says = HTTP},
     "answered with garbage",
     BREAKS},
    {"half a reply",
     {.way = FAKE_SAYS, .says = "$400\r\nhalf"},
     "does not answer",
     BREAKS | IN_VAIN},
    {"half a reply later",
     {.way = FAKE_SAYS, .greets = true, .says = "$400\r\nhalf"},
     "no answer within 300 ms",
     IN_VAIN},
    {"NOAUTH",
     {.way = FAKE_SAYS, .says = "-NOAUTH Authentication required.\r\n"},
     "NOAUTH Authentication required",
     BREAKS | FORBIDS},
    {"NOAUTH later",
     {.way = FAKE_SAYS, .greets = true, .says = "-NOAUTH Authentication required.\r\n"},
     "NOAUTH Authentication required",
     BREAKS | FORBIDS},
    {"LOADING",
     {.way = FAKE_SAYS, .says = "-LOADING Redis is loading the dataset in memory\r\n"},
     "is still loading its data",
     BREAKS},
    {"LOADING later",
     {.way = FAKE_SAYS, .greets = true, .says = "-LOADING Redis is loading\r\n"},
     "LOADING Redis is loading",
     BREAKS},
    {"READONLY later",
     {.way = FAKE_SAYS, .greets = true, .says = "-READONLY You can't write\r\n"},
     "READONLY You can't write",
     BREAKS},
    {"out of memory later",
     {.way = FAKE_SAYS, .greets = true, .says = "-OOM command not allowed\r\n"},
     "OOM command not allowed",
     STAYS},
    {"disk full later",
     {.way = FAKE_SAYS, .greets = true, .says = "-MISCONF Errors writing to the AOF file\r\n"},
     "MISCONF Errors writing to the AOF file",
     STAYS},
    {"another error later",
     {.way = FAKE_SAYS, .greets = true, .says = "-ERR unheard of\r\n"},
     "ERR unheard of",
     STAYS},
    {"control characters", /* CSI, a C1 control, as one byte and in UTF-8; letters stay. */
     {.way = FAKE_SAYS,
      .greets = true,
      .says = "-ERR gr\xc3\xbc\xc3\x9f \x9b"
              "2J \xc2\x9b"
              "2J\r\n"},
     "ERR gr\xc3\xbc\xc3\x9f ?2J ??2J",
     STAYS},
    {"wrong digest",
     {.way = FAKE_SAYS, .says = DIGEST},
     "another digest than ours: not a Redis?",
     BREAKS},
    {"a text for an answer",
     {.way = FAKE_SAYS, .greets = true, .says = "$2\r\nOK\r\n"},
     "answered with garbage",
     BREAKS},
    {"numbers",
     {.way = FAKE_SAYS, .greets = true, .says = ":2\r\n"},
     "answered with garbage",
     BREAKS},
    {"no epoch",
     {.way = FAKE_SAYS, .greets = true, .says = "+OK\r\n"},
     "has lost its data",
     BREAKS},
    {"two answers for one", /* An error and the epoch; the latter has no request yet. */
     {.way = FAKE_SAYS, .greets = true, .says = "-ERR one\r\n$18\r\n" FAKE_EPOCH ".1\r\n"},
     "sent a reply without a request",
     BREAKS},
    {"deep",
     {.way = FAKE_SAYS, .greets = true, .says = DEEP},
     "sent an answer that is too long or too deep",
     BREAKS},
    {"endless bulk",
     {.way = FAKE_ENDLESS, .says = "$536870912\r\n"},
     "sent an answer that is too long",
     BREAKS},
    {"endless bulk later",
     {.way = FAKE_ENDLESS, .greets = true, .says = "$536870912\r\n"},
     "sent an answer that is too long",
     BREAKS},
    {"endless line later",
     {.way = FAKE_ENDLESS, .greets = true, .says = "+"},
     "sent an answer that is too long",
     BREAKS},
    {"endless array later",
     {.way = FAKE_ENDLESS, .greets = true, .says = "*2147483647\r\n"},
     "sent an answer that is too long",
     BREAKS},
    {"closes", {.way = FAKE_CLOSES}, "Server closed the connection", BREAKS},
    {"closes later", {.way = FAKE_CLOSES, .greets = true}, "Server closed the connection", BREAKS},
};

/* ---- One of five ---- */

/* The fake comes before the four real masters, so the client asks it first.  They are a set. */
static const char *with_four(const struct fake *fake)
{
    static char masters[256];

    (void)snprintf(masters, sizeof masters, "127.0.0.1:%u,%s", fake->port, cluster_masters(&four));
    cluster_found(&four, masters);
    return masters;
}

/* Chosen: enough for the others to answer on a busy machine.  Closing waits as long for a master
 * that does not answer. */
static void set_patience(struct redlock_options *opts)
{
    opts->reply_timeout_ms = 2000;
}

/* Locks may need a second attempt on a busy machine, but no call may fail. */
static void work(struct pilot *pilot)
{
    for (unsigned i = 0; i < 10; i++) {
        struct redlock_lease *lease;

        CHECK_INT(pilot_lock_for(pilot, "x", 30000, false, 30000, &lease), REDLOCK_OK);
        CHECK(redlock_remaining_ms(lease) > 0);
        CHECK_INT(pilot_extend(pilot, lease, 0), REDLOCK_OK);
        CHECK_INT(pilot_unlock(pilot, lease), REDLOCK_OK);
    }
}

static bool has_no_keys(void *arg)
{
    (void)arg;
    return cluster_count(&four, "x", NULL) == 0;
}

/* The fake has received a command, or at least a connection attempt. */
static bool was_asked(void *arg)
{
    const struct fake *fake = arg;

    return fake->filler >= 0 || atomic_load(&fake->seen->commands) > 0;
}

static void check_one_of_five(const struct fault *fault, enum pilot_kind kind)
{
    struct fake fake;
    struct pilot pilot;

    fake_start(&fake, &fault->plan);
    cluster_ready(&four, 4);
    CHECK_INT(pilot_try_open(&pilot, kind, with_four(&fake), set_patience), REDLOCK_OK);
    work(&pilot);
    CHECK(pilot_until(&pilot, has_no_keys, NULL));
    CHECK(pilot_until(&pilot, was_asked, &fake));
    pilot_close(&pilot);
    fake_stop(&fake);
}

TEST(one_of_five_on_a_loop)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        check_row = faults[i].row;
        check_one_of_five(&faults[i], PILOT_LOOP);
    }
}

TEST(one_of_five_where_calls_block)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        check_row = faults[i].row;
        check_one_of_five(&faults[i], PILOT_BLOCKING);
    }
}

/* The fake answers well, but after the round is decided. */
TEST(one_of_five_is_late)
{
    const struct fault late = {"late", {.way = FAKE_GOOD, .delay_ms = 30}, NULL, STAYS};

    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        check_row = pilot_kind_name(kind);
        check_one_of_five(&late, kind);
    }
}

/* ---- Alone ---- */

static const char *alone(const struct fake *fake)
{
    static char masters[32];

    (void)snprintf(masters, sizeof masters, "127.0.0.1:%u", fake->port);
    return masters;
}

/* A fake without a fault works.  Without this, the other tests prove nothing. */
TEST(a_good_fake_grants_all)
{
    const struct fake_plan plan = {.way = FAKE_GOOD};
    struct fake fake;
    struct pilot pilot;

    fake_start(&fake, &plan);
    pilot_open(&pilot, PILOT_LOOP, alone(&fake), 0);
    work(&pilot);
    pilot_close(&pilot);
    fake_stop(&fake);
}

static bool is_connected_again(void *arg)
{
    const struct fake *fake = arg;

    return atomic_load(&fake->seen->connections) > 1;
}

static const struct fault *opened_for;

/* Shorten a timeout only if the client notices the fault by it. */
static void set_timeouts(struct redlock_options *opts)
{
    if (!(opened_for->effects & IN_VAIN))
        return;
    if (opened_for->plan.greets)
        opts->reply_timeout_ms = 300;
    else
        opts->connect_timeout_ms = 1000;
}

/* Repeated attempts must not add up in memory. */
static void check_alone(const struct fault *fault)
{
    struct fake fake;
    struct pilot pilot;
    struct redlock_lease *lease;
    size_t heap_before;
    int status = fault->effects & FORBIDS ? REDLOCK_E_FORBIDDEN : REDLOCK_UNREACHABLE;
    char start[120];

    opened_for = fault;
    fake_start(&fake, &fault->plan);
    heap_before = mallinfo2().uordblks;
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, alone(&fake), set_timeouts), REDLOCK_OK);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_INT(pilot_lock_for(&pilot, "x", 30000, false, 0, &lease), status);
        (void)snprintf(start, sizeof start,
                       "acquire x: %s: master 1 (127.0.0.1:", redlock_strerror(status));
        CHECK_HAS(pilot.message, start);
        CHECK_HAS(pilot.message, fault->message);
    }
    CHECK(mallinfo2().uordblks - heap_before < 1u << 20);
    if (fault->effects & BREAKS)
        CHECK(pilot_until(&pilot, is_connected_again, &fake));
    pilot_close(&pilot);
    fake_stop(&fake);
}

TEST(alone_it_is_told_why)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        check_row = faults[i].row;
        check_alone(&faults[i]);
    }
}

/* A hostile master repeats what it was told. */
TEST(an_error_shows_no_password)
{
    const struct fake_plan plan = {
        .way = FAKE_SAYS, .greets = true, .says = "-ERR you said geheim\r\n"};
    struct fake fake;
    struct pilot pilot;
    struct redlock_lease *lease;
    char masters[64];

    fake_start(&fake, &plan);
    (void)snprintf(masters, sizeof masters, "redis://:geheim@127.0.0.1:%u", fake.port);
    pilot_open(&pilot, PILOT_LOOP, masters, 0);
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    CHECK_HAS(pilot.message, "ERR you said ******");
    CHECK(strstr(pilot.message, "geheim") == NULL);
    pilot_close(&pilot);
    fake_stop(&fake);
}

/* ---- A majority ---- */

/* A master that is no fake answers sooner, also on a busy machine: else it is to blame, too. */
static void set_impatience(struct redlock_options *opts)
{
    opts->reply_timeout_ms = 1000;
}

static bool blames_the_fakes(void *arg)
{
    struct pilot *pilot = arg;
    struct redlock_lease *lease;

    CHECK_INT(pilot_lock(pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    return pilot_blames(pilot, 0x15);
}

/* Three of five masters misbehave in different ways: locks fail, and no call hangs. */
TEST(three_of_five)
{
    const struct fake_plan plans[] = {
        {.way = FAKE_SILENT, .greets = true},
        {.way = FAKE_SAYS, .says = HTTP},
        {.way = FAKE_CLOSES, .greets = true},
    };
    struct fake fakes[3];
    struct pilot pilot;
    char masters[128];

    cluster_ready(&four, 4);
    for (unsigned i = 0; i < 3; i++)
        fake_start(&fakes[i], &plans[i]);
    (void)snprintf(
        masters, sizeof masters, "127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u",
        fakes[0].port, four.server[0].port, fakes[1].port, four.server[1].port, fakes[2].port);
    cluster_found(&four, masters);
    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        check_row = pilot_kind_name(kind);
        CHECK_INT(pilot_try_open(&pilot, kind, masters, set_impatience), REDLOCK_OK);
        CHECK(pilot_until(&pilot, blames_the_fakes, &pilot)); /* At first it checks the others. */
        for (unsigned i = 0; i < 4; i++)
            CHECK(blames_the_fakes(&pilot));
        CHECK(pilot_until(&pilot, has_no_keys, NULL));
        pilot_close(&pilot);
    }
    for (unsigned i = 0; i < 3; i++)
        fake_stop(&fakes[i]);
}

/* ---- Given up ---- */

static bool is_reset(void *arg)
{
    const struct fake *fake = arg;

    return atomic_load(&fake->seen->resets) > 0;
}

static void set_second(struct redlock_options *opts)
{
    opts->reply_timeout_ms = 1000; /* A link that owes answers is checked as often (link.c). */
}

/* The client resets a link that it gives up.  Otherwise the kernel could deliver old commands after
 * those of the next link. */
TEST(what_is_given_up_is_reset)
{
    const struct fake_plan plan = {.way = FAKE_SILENT, .greets = true};
    struct fake fake;
    struct pilot pilot;
    struct redlock_lease *lease;
    char masters[128];

    cluster_ready(&four, 2);
    fake_start(&fake, &plan);
    (void)snprintf(masters, sizeof masters, "%s,127.0.0.1:%u", cluster_masters(&four), fake.port);
    cluster_found(&four, masters);
    CHECK_INT(pilot_try_open(&pilot, PILOT_BLOCKING, masters, set_second), REDLOCK_OK);
    CHECK(pilot_until_up(&pilot, 3));
    CHECK_INT(pilot_lock_for(&pilot, "x", 30000, true, 30000, &lease), REDLOCK_OK);
    CHECK(pilot_until(&pilot, is_reset, &fake));
    CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_OK);
    pilot_close(&pilot);
    fake_stop(&fake);
}

CHECK_MAIN({"a_good_fake_grants_all", a_good_fake_grants_all},
           {"one_of_five_on_a_loop", one_of_five_on_a_loop},
           {"one_of_five_where_calls_block", one_of_five_where_calls_block},
           {"one_of_five_is_late", one_of_five_is_late},
           {"alone_it_is_told_why", alone_it_is_told_why},
           {"an_error_shows_no_password", an_error_shows_no_password},
           {"three_of_five", three_of_five},
           {"what_is_given_up_is_reset", what_is_given_up_is_reset})
