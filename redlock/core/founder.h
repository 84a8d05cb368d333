/*
 * founder.h - founds the set of a list of masters.  The machine decides and never
 * acts; pure.
 *
 * A master belongs to one set at most.  A founder *claims* every master of its list,
 * looks at all of them again, and only then writes the set.  So two lists that share
 * a master never become two sets.  test/models/founding.c is the model of the rules,
 * and test/founder drives this machine through every order of events.
 *
 * A founding consists of *attempts*.  An answer that stays away, or a link that
 * breaks, ends an attempt.  The founder withdraws what it may withdraw, waits for a
 * random time, and begins anew with another number.  Nothing is founded unless all
 * masters of the list answer.
 *
 * The founder knows a list by its text only.  The caller makes the text canonical:
 * equal lists must have equal texts.
 */
#ifndef REDLOCK_FOUNDER_H
#define REDLOCK_FOUNDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/base/mask.h"

enum founder_command {
    FOUNDER_CMD_NONE,
    FOUNDER_CMD_CLAIM,    /* claim.lua */
    FOUNDER_CMD_LOOK,     /* claim.lua, without a number: it only reads. */
    FOUNDER_CMD_WRITE,    /* found.lua */
    FOUNDER_CMD_WITHDRAW, /* withdraw.lua */
};

/* What a master says.  The comments name the commands that it may answer so. */
enum founder_word {
    FOUNDER_SAYS_NOTHING, /* LOOK: the master carries neither claim nor set. */
    FOUNDER_SAYS_NEW,     /* CLAIM: it carried nothing, and carries the claim now. */
    FOUNDER_SAYS_TOOK,    /* CLAIM: the claim has replaced another claim of the same list. */
    FOUNDER_SAYS_CLAIM,   /* CLAIM: another list has claimed it.  LOOK: it carries this claim. */
    FOUNDER_SAYS_MEMBER,  /* CLAIM, LOOK: it belongs to this set. */
    FOUNDER_SAYS_YES, /* WRITE, WITHDRAW: it is a member of the set now; the claim is deleted. */
    FOUNDER_SAYS_NO,  /* WRITE, WITHDRAW: it carries something else, and was not changed. */
};

struct founder_answer {
    enum founder_word word;
    uint64_t number;  /* CLAIM: the number of the attempt.  MEMBER: that of the set. */
    uint64_t ver;     /* MEMBER: the version of the configuration. */
    const char *text; /* CLAIM: the list.  MEMBER: the configuration.  Only read during a call. */
    size_t text_len;
};

struct founder_config {
    unsigned masters;
    const char *list; /* The canonical text.  The caller keeps it as long as the founder. */
    size_t list_len;
    uint64_t set; /* The number of the set of this list, not 0: equal lists have equal numbers. */
    drift_span pause_min; /* The first pause between attempts.  It doubles each time. */
    drift_span pause_max; /* The longest pause.  Each pause is shorter by a random part. */
};

enum founder_phase {
    FOUNDER_IDLE,        /* It has not begun. */
    FOUNDER_WAITING,     /* For links to all masters, and for the end of a pause. */
    FOUNDER_CLAIMING,    /* Rule 2. */
    FOUNDER_LOOKING,     /* Rule 3. */
    FOUNDER_WRITING,     /* Rule 4. */
    FOUNDER_WITHDRAWING, /* Rule 5. */
    FOUNDER_FOUNDED,     /* It has ended: a majority belongs to the set. */
    FOUNDER_REFUSED,     /* It has ended: another list or another set is in the way. */
    FOUNDER_STOPPED,     /* It has ended, because the caller stopped it. */
};

/* What is in the way. */
struct founder_other {
    enum founder_word word; /* SAYS_CLAIM or SAYS_MEMBER.  SAYS_NOTHING: nothing is in the way. */
    unsigned master;        /* The master that carries it. */
    uint64_t number, ver;   /* As in struct founder_answer. */
};

/* Visible so that it can be embedded and explored.  Only founder.c writes it. */
struct founder {
    struct founder_config config;
    enum founder_phase phase;
    bool stopping;
    uint8_t asked[QUORUM_MASTERS_MAX]; /* The command that the master has not yet answered. */
    quorum_mask linked;
    quorum_mask own;  /* Masters that carry the claim.  WRITING, FOUNDED: members of the set. */
    quorum_mask took; /* The subset of own whose claim replaced one of the same list, and must
                       * not be withdrawn (rule 5). */
    uint64_t number;  /* The number of the attempt. */
    uint64_t set;     /* WRITING: the set to write.  Before: the set of this list that a member
                       * reported; 0: none did. */
    struct founder_other other;
    drift_span pause; /* The longest that the next pause may be. */
    drift_time at;    /* WAITING: the end of the pause. */
};

/* One command at most goes to each master at a time. */
struct founder_actions {
    quorum_mask claim, look, write, withdraw;
    drift_time wake_at; /* DRIFT_NEVER: no timer. */
};

void founder_init(struct founder *f, const struct founder_config *config);

/* Begin, or begin again after an end.  After FOUNDED this finishes the founding: masters that had
 * not answered become members. */
void founder_begin(struct founder *f, drift_time now);

/* Begin no other attempt.  The founder ends soon: FOUNDED, REFUSED or STOPPED. */
void founder_stop(struct founder *f);

/*
 * Events.  After each, founder_next() says what to do.
 *
 * The caller links to a master only after look.lua has run there, which makes a claim void that may
 * have been forgotten.  Each command gets one answer, or one silence, or its link breaks.  An
 * answer that comes after a silence must not be passed on: it would be taken for the answer to the
 * next command.
 */
void founder_on_link(struct founder *f, unsigned master, bool up);

/* The caller has waited long enough for an answer, or cannot read it, or it is an error. */
void founder_on_silence(struct founder *f, unsigned master);

/* Returns whether f->other is this answer now.  Then the caller copies the text, for its message.
 */
bool founder_on_answer(struct founder *f, unsigned master, const struct founder_answer *answer);

/* What is due now.  Call it after each event and when the timer fires.  random: new for each call,
 * from a generator that no client can guess; never 0.  The founder takes the actions as done. */
void founder_next(struct founder *f, drift_time now, uint64_t random,
                  struct founder_actions *ret_actions);

/* It has ended, and owes no command. */
bool founder_has_ended(const struct founder *f);

#endif /* REDLOCK_FOUNDER_H */
