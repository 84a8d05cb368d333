/*
 * answer.h - reads the answers that are not votes; pure.
 */
#ifndef REDLOCK_ANSWER_H
#define REDLOCK_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/reason.h"
#include "redlock/core/founder.h"
#include "redlock/core/guard.h"
#include "redlock/wire/reply.h"

/* The field epoch of a marker: EPOCH.VER, or EPOCH.VER.FLOOR. */
struct answer_state {
    uint64_t epoch;
    uint64_t version; /* The version that the master stores.  0: it is in no set. */
    uint64_t floor;   /* 0: the text has none. */
};

/* Read the field epoch.  Returns false if it is malformed. */
bool answer_state(const char *text, size_t text_len, struct answer_state *ret_state);

/* To which set a master says that it belongs.  The texts are those of the reply. */
struct answer_set {
    uint64_t set;     /* 0: none. */
    uint64_t version; /* The version of its configuration. */
    const char *name; /* Its own name.  "", with a length of 0: it has none. */
    size_t name_len;
    const char *config; /* The text of its configuration.  NULL: not sent, because the client knows
                         * this version or a newer one. */
    size_t config_len;
    const char *state; /* A ready master: the field epoch. */
    size_t state_len;
    const char *accepted; /* A ready master: the field accepted, "BALLOT CONFIG".  NULL: none. */
    size_t accepted_len;
};

/* Read the marker from the answer.  ret_set may be NULL.  Returns false if the answer is
 * malformed. */
bool answer_look(const struct reply *reply, struct guard_look *ret_look,
                 struct answer_set *ret_set);

/* What is wrong with an answer that answer_look() does not take, or with its configuration if it
 * does, for people: the first malformed field of the marker, if it looks like an answer. */
void answer_look_fault(const struct reply *reply, struct reason *ret_why);
/* Its field config is malformed. */
void answer_config_fault(struct reason *ret_why);

/* Read the answer of SCRIPT_WITNESS: an age in ms, or -1.  Returns false if it is malformed or an
 * error. */
bool answer_witness(const struct reply *reply, int64_t *ret_age_ms);

/* Read the longest lease from a marker's field.  Returns false if no client may have such a
 * lease. */
bool answer_max(const char *text, uint32_t *ret_max_ttl_ms);

/* Read the answer of SCRIPT_CLAIM, to CLAIM or LOOK.  Its text is that of the reply.  Returns false
 * if the answer is malformed. */
bool answer_claim(const struct reply *reply, struct founder_answer *ret_answer);

/* Read the answer of SCRIPT_FOUND or SCRIPT_WITHDRAW.  Returns false if it is malformed. */
bool answer_done(const struct reply *reply, struct founder_answer *ret_answer);

/* Read the answer to TIME, in microseconds since 1970.  Returns false if the answer is malformed.
 */
bool answer_time(const struct reply *reply, uint64_t *ret_us);

#endif /* REDLOCK_ANSWER_H */
