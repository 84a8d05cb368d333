/*
 * story.h - one machine, its links to imagined masters, and its steps as text.
 *
 * A link only keeps the commands that were sent and not answered, oldest first.
 * The test decides what a master answers, and when.  So the test is the network,
 * the clock and the dice.
 */
#ifndef TEST_STORY_H
#define TEST_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redlock/core/quorum.h"

/* Far from zero, so that an instant used as a span fails the test. */
#define STORY_START (1000 * DRIFT_S)
#define STORY_ASKS_MAX 64

struct story_ask {
    uint32_t ask;
    enum quorum_command command;
};

struct story_link {
    struct story_ask asks[STORY_ASKS_MAX]; /* Unanswered, oldest first. */
    unsigned asks_len;
};

struct story {
    struct quorum q;
    struct quorum before; /* q before the latest step. */
    struct quorum_fence fence;
    struct quorum_actions act; /* Actions of the latest step. */
    drift_time wake_before;    /* wake_at of the step before. */
    drift_time now;
    struct members members;
    quorum_mask up, coming, full, linked;
    uint32_t random;
    struct story_link links[QUORUM_MASTERS_MAX];
};

/* A lease of 9 s (valid for 8908 ms, renewed after 3 s, lost
 * notice at 8008 ms); a reply timeout of 50 ms; no waiting, pauses of 50 to 200 ms. */
struct quorum_config story_config(void);

/* So many masters, all up. */
void story_begin(struct story *story, const struct quorum_config *config, unsigned masters);

/* An event without parameters: any but EXTEND, REPLY and LINK. */
void story_step(struct story *story, enum quorum_event_type type);

void story_extend(struct story *story, drift_span lease);

/* Master m (from 0) answers its oldest unanswered command, of which there must be one. */
void story_reply(struct story *story, unsigned m, enum quorum_vote vote);

/* The same, with a no, and the note that another choice may be free. */
void story_elsewhere(struct story *story, unsigned m);
/* A no to an extension: an operator has revoked the lock there. */
void story_revoked(struct story *story, unsigned m);

/* The same, with a no, but the token may wait at the master. */
void story_stand(struct story *story, unsigned m);

/* A release grants the waiting token at master m.  sent: of the request that is granted. */
void story_grant(struct story *story, unsigned m, drift_time sent);

/* The same, with a yes and the number that the master counted to. */
void story_count(struct story *story, unsigned m, uint64_t counter);
void story_count_unkept(struct story *story, unsigned m, uint64_t counter);

/* The link of master m goes down or comes up.  Its first attempt to connect is over.  If it is
 * linked, only its right to vote ends or begins. */
void story_link(struct story *story, unsigned m, bool up);

/* The members change.  left: masters that go for good, and whose numbers others get. */
void story_change(struct story *story, struct members members, quorum_mask left);

/* "m1-m3 m5", with masters counted from 1; returns buf. */
const char *story_masters(quorum_mask mask, char *buf, size_t size);

/* An instant as the time since start, "+12ms" or "+0.000001ms"; returns buf. */
const char *story_time(drift_time t, drift_time start, char *buf, size_t size);

/* An event as text, "m3 yes to set"; returns buf. */
const char *story_event(const struct quorum_event *event, bool is_up, char *buf, size_t size);

/*
 * What a step did, "set m1-m5, wake +50ms", or "" if it did nothing: commands,
 * notices and outcomes, and the hold and the next wake-up if they changed.
 * Returns buf.
 */
const char *story_tell(const struct quorum *before, const struct quorum *after,
                       const struct quorum_actions *act, drift_time wake_before, drift_time start,
                       char *buf, size_t size);

#endif /* TEST_STORY_H */
