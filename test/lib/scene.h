/*
 * scene.h - one short function for each event that tests of the machine cause, and
 * for each outcome that they check.
 *
 * There is one scene at a time.  begin_with() makes a new one, with the settings of
 * story_config().  Masters are counted from 0; bit 0 is the first.
 */
#ifndef TEST_SCENE_H
#define TEST_SCENE_H

#include "test/lib/check.h"
#include "test/lib/story.h"

#define YES QUORUM_VOTE_YES
#define NO QUORUM_VOTE_NO
#define NONE QUORUM_VOTE_NONE
#define VOID QUORUM_VOTE_VOID

/* The values of story_config(). */
#define LEASE (9000 * DRIFT_MS)
#define ALLOWANCE (92 * DRIFT_MS)
#define DEADLINE (STORY_START + LEASE - ALLOWANCE)
#define RENEW_AT (STORY_START + LEASE / 3)
#define LOST_AT (DEADLINE - 900 * DRIFT_MS)
#define TIMEOUT (50 * DRIFT_MS)
#define PAUSE_MIN (50 * DRIFT_MS) /* story.random is 0, which picks the shortest pause. */
#define SETTLED (STORY_START + LEASE + ALLOWANCE)

static struct story story;
static struct quorum_config config;

/* ---- Events ---- */

__attribute__((unused)) static void begin_with(unsigned masters)
{
    config = story_config();
    story_begin(&story, &config, masters);
}

/* A new scene, with config as the test has changed it. */
__attribute__((unused)) static void begin_again(void)
{
    story_begin(&story, &config, mask_count(members_all(&story.members)));
}

__attribute__((unused)) static quorum_mask bit(unsigned m)
{
    return (quorum_mask)(1u << m);
}

__attribute__((unused)) static quorum_mask all(void)
{
    return members_all(&story.members);
}

__attribute__((unused)) static unsigned majority(void)
{
    return mask_count(all()) / 2 + 1;
}

__attribute__((unused)) static void acquire(void)
{
    story_step(&story, QUORUM_EV_ACQUIRE);
}

__attribute__((unused)) static void timer_at(drift_time now)
{
    story.now = now;
    story_step(&story, QUORUM_EV_TIMER);
}

/* The masters of mask answer yes, with this number. */
__attribute__((unused)) static void count_to(quorum_mask mask, uint64_t counter)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (mask & bit(m))
            story_count(&story, m, counter);
}

/* The same, with a number that may be lost. */
__attribute__((unused)) static void count_unkept(quorum_mask mask, uint64_t counter)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (mask & bit(m))
            story_count_unkept(&story, m, counter);
}

/* The masters of mask answer their oldest command, in turn. */
__attribute__((unused)) static void answer(quorum_mask mask, enum quorum_vote vote)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (mask & bit(m))
            story_reply(&story, m, vote);
}

/* Each master in turn gives the same answer until it owes nothing. */
__attribute__((unused)) static void answer_everything(enum quorum_vote vote)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        while (story.links[m].asks_len > 0)
            story_reply(&story, m, vote);
}

__attribute__((unused)) static void link_down(unsigned m)
{
    story_link(&story, m, false);
}

__attribute__((unused)) static void link_up(unsigned m)
{
    story_link(&story, m, true);
}

/* One list, or two. */
__attribute__((unused)) static void change(quorum_mask from, quorum_mask to)
{
    story.up |= from | to;
    story_change(&story, (struct members){from, to}, 0);
}

/* All masters grant the lock, and owe nothing. */
__attribute__((unused)) static void hold(void)
{
    acquire();
    answer(all(), YES);
    CHECK_INT(story.q.state, QUORUM_HELD);
}

/* A new scene in which the lock has been asked for. */
__attribute__((unused)) static void begin_acquiring(unsigned masters)
{
    begin_with(masters);
    acquire();
}

/* A new scene in which the lock is held. */
__attribute__((unused)) static void begin_held(unsigned masters)
{
    begin_with(masters);
    hold();
}

/* ---- Outcomes ---- */

__attribute__((unused)) static quorum_mask sent(enum quorum_command command)
{
    quorum_mask mask = 0;

    for (unsigned i = 0; i < story.act.send_len; i++)
        if (story.act.send[i].command == command)
            mask |= story.act.send[i].to;
    return mask;
}

__attribute__((unused)) static void check_sent(quorum_mask set, quorum_mask extend,
                                               quorum_mask release)
{
    CHECK_UINT(sent(QUORUM_CMD_SET), set);
    CHECK_UINT(sent(QUORUM_CMD_EXTEND), extend);
    CHECK_UINT(sent(QUORUM_CMD_RELEASE), release);
}

__attribute__((unused)) static void check_ended(int status)
{
    CHECK(story.act.ended);
    CHECK_INT(story.act.status, status);
}

__attribute__((unused)) static void check_not_ended(void)
{
    CHECK(!story.act.ended);
}

__attribute__((unused)) static drift_span remaining(void)
{
    return quorum_remaining(&story.q, story.now);
}

#endif /* TEST_SCENE_H */
