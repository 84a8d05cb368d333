/*
 * story.c - step a machine, and describe each step as text.
 */
#include "test/lib/story.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not assert(): a test that asks for the impossible must stop in every build. */
static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "story: %s\n", what);
    abort();
}

struct quorum_config story_config(void)
{
    struct quorum_config config;

    memset(&config, 0, sizeof config); /* Padding too: machines are compared as bytes. */
    config.lease = 9000 * DRIFT_MS;
    config.reply_timeout = 50 * DRIFT_MS;
    config.wait = 0;
    config.pause_min = 50 * DRIFT_MS;
    config.pause_max = 200 * DRIFT_MS;
    config.lost_margin = 900 * DRIFT_MS;
    config.hold_max = DRIFT_NEVER;
    config.drift.ppm = 10000;
    config.drift.fixed = 2 * DRIFT_MS;
    config.renew = true;
    return config;
}

void story_begin(struct story *story, const struct quorum_config *config, unsigned masters)
{
    memset(story, 0, sizeof *story);
    quorum_init(&story->q, config);
    story->before = story->q;
    story->now = STORY_START;
    story->members = members_first(masters);
    story->up = members_all(&story->members);
    story->act.wake_at = DRIFT_NEVER;
    story->wake_before = DRIFT_NEVER;
}

static void note_sends(struct story *story)
{
    for (unsigned i = 0; i < story->act.send_len; i++) {
        const struct quorum_send *send = &story->act.send[i];
        quorum_mask takes = send->command == QUORUM_CMD_RELEASE ? story->linked : 0;

        must((send->to & ~(story->up | takes)) == 0, "sent to a master that is not up");
        for (unsigned m = 0; send->to >> m != 0; m++) {
            struct story_link *link = &story->links[m];

            if (!(send->to & 1u << m))
                continue;
            must(link->asks_len < STORY_ASKS_MAX, "more is sent than this test has room for");
            link->asks[link->asks_len++] = (struct story_ask){send->ask, send->command};
        }
    }
}

static void step(struct story *story, struct quorum_event *event)
{
    event->now = story->now;
    event->members = story->members;
    event->up = story->up;
    event->linked = story->linked;
    event->coming = story->coming;
    event->full = story->full;
    event->random = story->random;
    event->fence = story->q.config.fence ? &story->fence : NULL;
    story->before = story->q;
    story->wake_before = story->act.wake_at;
    quorum_step(&story->q, event, &story->act);
    note_sends(story);
}

void story_step(struct story *story, enum quorum_event_type type)
{
    struct quorum_event event = {.type = type};

    step(story, &event);
}

void story_extend(struct story *story, drift_span lease)
{
    struct quorum_event event = {.type = QUORUM_EV_EXTEND, .lease = lease};

    step(story, &event);
}

static void reply(struct story *story, unsigned m, struct quorum_event event)
{
    struct story_link *link = &story->links[m];

    must(link->asks_len > 0, "a master answers, but owes no answer");
    event.type = QUORUM_EV_REPLY;
    event.master = m;
    event.ask = link->asks[0].ask;
    event.command = link->asks[0].command;
    link->asks_len--;
    memmove(link->asks, link->asks + 1, link->asks_len * sizeof link->asks[0]);
    step(story, &event);
}

void story_reply(struct story *story, unsigned m, enum quorum_vote vote)
{
    reply(story, m, (struct quorum_event){.vote = vote});
}

void story_elsewhere(struct story *story, unsigned m)
{
    reply(story, m, (struct quorum_event){.vote = QUORUM_VOTE_NO, .elsewhere = true});
}

void story_revoked(struct story *story, unsigned m)
{
    reply(story, m, (struct quorum_event){.vote = QUORUM_VOTE_NO, .revoked = true});
}

void story_stand(struct story *story, unsigned m)
{
    reply(story, m, (struct quorum_event){.vote = QUORUM_VOTE_NO, .stands = true});
}

void story_grant(struct story *story, unsigned m, drift_time sent)
{
    struct quorum_event event = {.type = QUORUM_EV_GRANT, .master = (uint8_t)m, .sent = sent};

    step(story, &event);
}

void story_count(struct story *story, unsigned m, uint64_t counter)
{
    reply(story, m, (struct quorum_event){.counter = counter});
}

void story_count_unkept(struct story *story, unsigned m, uint64_t counter)
{
    reply(story, m, (struct quorum_event){.counter = counter, .unkept = true});
}

void story_change(struct story *story, struct members members, quorum_mask left)
{
    struct quorum_event event = {
        .type = QUORUM_EV_CHANGE,
        .joined = members_all(&members) & (quorum_mask)~members_all(&story->members),
        .left = left,
    };

    story->members = members;
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        if (left & 1u << m)
            story->links[m].asks_len = 0;
    step(story, &event);
}

void story_link(struct story *story, unsigned m, bool up)
{
    struct quorum_event event = {.type = QUORUM_EV_LINK, .master = m};
    quorum_mask on = (quorum_mask)(1u << m);

    if (!((story->linked | story->full) & on)) /* The next commands use a new connection. */
        story->links[m].asks_len = 0;
    story->coming &= (quorum_mask)~on;
    story->up &= (quorum_mask)~on;
    if (up)
        story->up |= on;
    step(story, &event);
}

/* ---- As text ---- */

__attribute__((format(printf, 3, 4))) static void append(char *buf, size_t size, const char *format,
                                                         ...)
{
    size_t len = strlen(buf);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(buf + len, size - len, format, args); /* At worst the text is cut short. */
    va_end(args);
}

const char *story_masters(quorum_mask mask, char *buf, size_t size)
{
    buf[0] = '\0';
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++) {
        unsigned first = m;

        if (!(mask & 1u << m))
            continue;
        while (mask & 1u << (m + 1))
            m++;
        append(buf, size, "%sm%u", buf[0] != '\0' ? " " : "", first + 1);
        if (m > first)
            append(buf, size, "%sm%u", m > first + 1 ? "-" : " ", m + 1);
    }
    return buf;
}

const char *story_time(drift_time t, drift_time start, char *buf, size_t size)
{
    drift_span ns = t - start;
    size_t len;

    if (t == DRIFT_NEVER) {
        (void)snprintf(buf, size, "never");
        return buf;
    }
    if (ns % DRIFT_MS == 0) {
        (void)snprintf(buf, size, "+%" PRIu64 "ms", ns / DRIFT_MS);
        return buf;
    }
    (void)snprintf(buf, size, "+%" PRIu64 ".%06" PRIu64, ns / DRIFT_MS, ns % DRIFT_MS);
    len = strlen(buf);
    while (buf[len - 1] == '0')
        len--;
    (void)snprintf(buf + len, size - len, "ms");
    return buf;
}

static const char *command_name(enum quorum_command command)
{
    switch (command) {
    case QUORUM_CMD_SET:
        return "set";
    case QUORUM_CMD_EXTEND:
        return "extend";
    case QUORUM_CMD_RELEASE:
        return "release";
    case QUORUM_CMD_FENCE:
        return "fence";
    case QUORUM_CMD_RAISE:
        return "raise";
    case QUORUM_CMD_GIVE:
        return "give";
    }
    return "?";
}

static const char *vote_name(enum quorum_vote vote)
{
    switch (vote) {
    case QUORUM_VOTE_YES:
        return "yes";
    case QUORUM_VOTE_NO:
        return "no";
    case QUORUM_VOTE_VOID:
        return "void";
    case QUORUM_VOTE_NONE:
        return "error";
    }
    return "?";
}

const char *story_event(const struct quorum_event *event, bool is_up, char *buf, size_t size)
{
    static const char *const names[] = {
        [QUORUM_EV_ACQUIRE] = "acquire", [QUORUM_EV_ADOPT] = "adopt",
        [QUORUM_EV_EXTEND] = "extend",   [QUORUM_EV_RELEASE] = "release",
        [QUORUM_EV_CANCEL] = "cancel",   [QUORUM_EV_DETACH] = "detach",
        [QUORUM_EV_REPLY] = "reply",     [QUORUM_EV_LINK] = "link",
        [QUORUM_EV_TIMER] = "timer",     [QUORUM_EV_WAKE] = "wake",
        [QUORUM_EV_CHANGE] = "change",   [QUORUM_EV_GRANT] = "grant",
    };

    if (event->type == QUORUM_EV_REPLY)
        (void)snprintf(buf, size, "m%u %s to %s", event->master + 1, vote_name(event->vote),
                       command_name(event->command));
    else if (event->type == QUORUM_EV_LINK)
        (void)snprintf(buf, size, "m%u %s", event->master + 1, is_up ? "up" : "down");
    else
        (void)snprintf(buf, size, "%s", names[event->type]);
    return buf;
}

static const char *status_name(int status)
{
    switch (status) {
    case REDLOCK_OK:
        return "OK";
    case REDLOCK_CONTENDED:
        return "CONTENDED";
    case REDLOCK_UNREACHABLE:
        return "UNREACHABLE";
    case REDLOCK_TOO_LATE:
        return "TOO_LATE";
    case REDLOCK_LOST:
        return "LOST";
    default: /* The machine has no other outcomes. */
        return "?";
    }
}

static bool is_held(const struct quorum *q)
{
    return q->state == QUORUM_HELD || q->state == QUORUM_EXTENDING;
}

static const char *comma(const char *buf)
{
    return buf[0] != '\0' ? ", " : "";
}

static void tell_sends(const struct quorum_actions *act, char *buf, size_t size)
{
    char masters[96];

    for (unsigned i = 0; i < act->send_len; i++)
        append(buf, size, "%s%s %s", comma(buf), command_name(act->send[i].command),
               story_masters(act->send[i].to, masters, sizeof masters));
}

static void tell_hold(const struct quorum *before, const struct quorum *after, drift_time start,
                      char *buf, size_t size)
{
    char at[48];

    if (is_held(after) && (!is_held(before) || after->deadline != before->deadline))
        append(buf, size, "%sheld until %s", comma(buf),
               story_time(after->deadline, start, at, sizeof at));
    if (is_held(before) && !is_held(after))
        append(buf, size, "%snot held", comma(buf));
}

const char *story_tell(const struct quorum *before, const struct quorum *after,
                       const struct quorum_actions *act, drift_time wake_before, drift_time start,
                       char *buf, size_t size)
{
    char at[48];

    buf[0] = '\0';
    tell_sends(act, buf, size);
    if (act->lost)
        append(buf, size, "%slost", comma(buf));
    if (act->ended)
        append(buf, size, "%s%s", comma(buf), status_name(act->status));
    tell_hold(before, after, start, buf, size);
    if (act->wake_at != wake_before)
        append(buf, size, "%swake %s", comma(buf), story_time(act->wake_at, start, at, sizeof at));
    if (quorum_is_settled(after) && !quorum_is_settled(before))
        append(buf, size, "%sall settled", comma(buf));
    return buf;
}
