/*
 * test-live-answers.c - hostile answers: answers without a request, answers that quote a
 * password or contain control characters, and endless refusals.
 */
#include "test/lib/check.h"

#include <hiredis/hiredis.h>

#include "live/cluster.h"
#include "live/fake.h"
#include "live/pilot.h"
#include "redlock/redlock.h"
#include "redlock/wire/script.h"

static char spoken[16 * 1024]; /* All log messages. */
static size_t spoken_len;

static void listen_to(void *arg, enum redlock_level level, const char *message)
{
    (void)arg, (void)level;
    if (spoken_len < sizeof spoken)
        spoken_len +=
            (size_t)snprintf(spoken + spoken_len, sizeof spoken - spoken_len, "%s\n", message);
}

static void set_log(struct redlock_options *opts)
{
    opts->log = listen_to;
}

/* Open a client with this fake as its only master. */
static void open_alone(struct pilot *pilot, enum pilot_kind kind, const char *before,
                       const struct fake *fake)
{
    char masters[64];

    spoken[0] = 0;
    spoken_len = 0;
    (void)snprintf(masters, sizeof masters, "%s127.0.0.1:%u", before, fake->port);
    CHECK_INT(pilot_try_open(pilot, kind, masters, set_log), REDLOCK_OK);
}

/* ---- Unasked ---- */

/* The answers of a whole handshake, and one more: a yes to the next command, which the client
 * has not sent yet: a SET, or with the restart guard the query of the marker. */
static const char *more_than_asked(bool guarded)
{
    static char says[1024];
    int len = snprintf(says, sizeof says,
                       "$62\r\n# role:master\nrun_id:%040x\n\r\n$40\r\n%s\r\n$40\r\n%s\r\n", 1,
                       script_all[SCRIPT_RELEASE].sha1, script_all[SCRIPT_EXTEND].sha1);

    (void)snprintf(says + len, sizeof says - (size_t)len, "%s",
                   guarded ? "*0\r\n*0\r\n$34\r\nready 0123456789abcdef 60000 1 1 1\r\n"
                           : "+OK\r\n");
    return says;
}

/* A reply that comes together with the end of the handshake has no request. */
static void check_unasked(bool guarded)
{
    const struct fake_plan plan = {.way = FAKE_SAYS, .says = more_than_asked(guarded)};
    struct redlock_lease *lease;
    struct fake fake;
    struct pilot pilot;

    check_row = guarded ? "guarded" : "unguarded";
    pilot_guarded = guarded;
    fake_start(&fake, &plan);
    open_alone(&pilot, PILOT_LOOP, "", &fake);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
        CHECK_HAS(pilot.message, "sent a reply without a request");
    }
    CHECK_UINT(pilot_stats(&pilot).connects, 0);
    pilot_close(&pilot);
    fake_stop(&fake);
    pilot_guarded = true;
}

TEST(an_answer_before_the_question_is_no_vote)
{
    check_unasked(false);
    check_unasked(true);
}

/* ---- Nearly a yes ---- */

/* The master has its epoch, but answers SET with a status that no SET has. */
TEST(a_status_that_is_not_ok_is_no_yes)
{
    const struct fake_plan plan = {
        .way = FAKE_SAYS, .greets = true, .says = "+QUEUED\r\n$16\r\n" FAKE_EPOCH "\r\n"};

    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct fake fake;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        fake_start(&fake, &plan);
        open_alone(&pilot, kind, "", &fake);
        CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
        CHECK_HAS(pilot.message, "answered with garbage");
        pilot_close(&pilot);
        fake_stop(&fake);
    }
}

/* ---- No answer to the restart guard ---- */

static void be_hasty(struct redlock_options *opts)
{
    opts->connect_timeout_ms = 500;
}

/* The first lock waits for the guard as long as for a connection.  If that is too short, the
 * message must say what to change. */
TEST(a_guard_without_an_answer_hints_at_the_connect_timeout)
{
    const struct fake_plan plan = {.way = FAKE_GOOD, .look = ""};
    struct fake fake;
    struct pilot pilot;
    char masters[64];

    fake_start(&fake, &plan);
    (void)snprintf(masters, sizeof masters, "127.0.0.1:%u", fake.port);
    CHECK_INT(pilot_try_open(&pilot, PILOT_LOOP, masters, be_hasty), REDLOCK_OK);
    CHECK_INT(
        pilot_until_told(&pilot, "x",
                         "the restart guard has not checked it yet; the connect timeout is 500 ms"),
        REDLOCK_UNREACHABLE);
    pilot_close(&pilot);
    fake_stop(&fake);
}

/* ---- Echoed passwords ---- */

/* How old and new servers without AUTH (rename-command AUTH "") refuse it. */
static const char *const echoes[] = {
    "-ERR unknown command 'AUTH', with args beginning with: 'joe' 'geheim' \r\n",
    "-ERR unknown command `AUTH`, with args beginning with: `joe`, `geheim`, \r\n",
    "-ERR unknown command \"AUTH\" of \"geheim\"\r\n",
};

TEST(a_password_that_is_echoed_goes_no_further)
{
    for (size_t i = 0; i < sizeof echoes / sizeof *echoes; i++) {
        for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
            const struct fake_plan plan = {.way = FAKE_SAYS, .says = echoes[i]};
            struct redlock_lease *lease;
            struct fake fake;
            struct pilot pilot;

            check_row = echoes[i];
            fake_start(&fake, &plan);
            open_alone(&pilot, kind, "redis://joe:geheim@", &fake);
            CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
            pilot_close(&pilot);
            CHECK_HAS(pilot.message, "AUTH: ERR unknown command");
            CHECK_HAS(spoken, "AUTH: ERR unknown command");
            CHECK(strstr(pilot.message, "geheim") == NULL);
            CHECK(strstr(spoken, "geheim") == NULL);
            fake_stop(&fake);
        }
    }
}

/* ---- More than text ---- */

static bool is_printable(const char *text)
{
    for (const char *p = text; *p != 0; p++) {
        if ((unsigned char)*p < ' ' || *p == 127)
            return false;
    }
    return true;
}

/* The first text rings the bell and moves the cursor.  The second contains a line break, which
 * hiredis rejects from version 1 on. */
static const struct {
    const char *says, *quiet;
} louds[] = {
    {"-ERR \a\033[2Jone two\tthree\177\r\n", "ERR ??[2Jone two?three?"},
    {"-ERR one\ntwo\r\n",
     HIREDIS_MAJOR < 1 ? "ERR one?two" : "answered with garbage: Bad simple string"},
};

static void check_loud(bool greets, const char *says, const char *quiet)
{
    const struct fake_plan plan = {.way = FAKE_SAYS, .greets = greets, .says = says};
    struct redlock_lease *lease;
    struct fake fake;
    struct pilot pilot;

    check_row = greets ? "later" : "at once";
    fake_start(&fake, &plan);
    open_alone(&pilot, PILOT_LOOP, "", &fake);
    CHECK_INT(pilot_lock(&pilot, "x", NULL, &lease), REDLOCK_UNREACHABLE);
    pilot_close(&pilot);
    fake_stop(&fake);
    CHECK_HAS(pilot.message, quiet);
    CHECK(is_printable(pilot.message));
    if (!greets)
        CHECK_HAS(spoken, quiet);
    for (char *line = strtok(spoken, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        CHECK(is_printable(line));
        /* The library writes all lines.  One warns that there is only one master, and one says that
         * it is a set now. */
        CHECK(strstr(line, "master 1 (127.0.0.1:") != NULL || strstr(line, "masters: 1 ") == line ||
              strstr(line, "masters: they are a set now: 127.0.0.1:") == line);
    }
}

TEST(what_a_master_says_is_one_printable_line)
{
    for (size_t i = 0; i < sizeof louds / sizeof *louds; i++) {
        check_loud(false, louds[i].says, louds[i].quiet);
        check_loud(true, louds[i].says, louds[i].quiet);
    }
}

/* ---- Without end ---- */

static bool has_no_answer_due(void *arg)
{
    const struct fake *fake = arg;

    return atomic_load(&fake->seen->commands) >= FAKE_GREETING + 4;
}

/* A master that never knows a script gets its text once for each operation; then its answer
 * counts as a no.  The test adopts tokens, because the fake grants no lock.  It uses no guard,
 * because the fake has no epoch. */
TEST(a_script_is_sent_in_full_once)
{
    const struct fake_plan plan = {
        .way = FAKE_SAYS, .greets = true, .says = "-NOSCRIPT No matching script.\r\n"};

    for (enum pilot_kind kind = PILOT_LOOP; kind < PILOT_KINDS; kind++) {
        struct redlock_lease *lease;
        struct fake fake;
        struct pilot pilot;

        check_row = pilot_kind_name(kind);
        pilot_guarded = false;
        fake_start(&fake, &plan);
        open_alone(&pilot, kind, "", &fake);
        CHECK(pilot_until_up(&pilot, 1));

        CHECK_INT(redlock_adopt(pilot.rl, "x", "token", NULL, &lease), REDLOCK_OK);
        CHECK_INT(pilot_extend(&pilot, lease, 2000), REDLOCK_UNREACHABLE);
        CHECK_HAS(pilot.message, "NOSCRIPT No matching script");
        CHECK_UINT(pilot_stats(&pilot).commands, 2);
        CHECK_INT(pilot_unlock(&pilot, lease), REDLOCK_UNREACHABLE);
        CHECK_HAS(pilot.message, "NOSCRIPT No matching script");
        CHECK_UINT(pilot_stats(&pilot).commands, 4);

        CHECK(pilot_until_leases(&pilot, 0));
        CHECK(pilot_until(&pilot, has_no_answer_due, &fake));
        CHECK_UINT(atomic_load(&fake.seen->commands), FAKE_GREETING + 4);
        CHECK_UINT(pilot_stats(&pilot).connects, 1);
        pilot_close(&pilot);
        fake_stop(&fake);
        pilot_guarded = true;
    }
}

CHECK_MAIN({"an_answer_before_the_question_is_no_vote", an_answer_before_the_question_is_no_vote},
           {"a_status_that_is_not_ok_is_no_yes", a_status_that_is_not_ok_is_no_yes},
           RUN(a_guard_without_an_answer_hints_at_the_connect_timeout),
           {"a_password_that_is_echoed_goes_no_further", a_password_that_is_echoed_goes_no_further},
           {"what_a_master_says_is_one_printable_line", what_a_master_says_is_one_printable_line},
           {"a_script_is_sent_in_full_once", a_script_is_sent_in_full_once})
