/*
 * founding.h - the state of the model in founding.c, its bounds, and the names of its steps.
 */
#ifndef TEST_MODELS_FOUNDING_H
#define TEST_MODELS_FOUNDING_H

#include <stdbool.h>
#include <stdint.h>

#include "models/check.h"

#define MASTERS 5
#define PROCESSES 4
#define NUMBERS 23 /* 0: none.  Five masters, four processes and a message use 15 at most. */

enum { NOTHING, CLAIM, MEMBER };

struct master {
    uint8_t has;  /* NOTHING, CLAIM or MEMBER. */
    uint8_t list; /* A mask of masters. */
    uint8_t number;
    uint8_t holder;  /* 1 + the process that has its vote, or 0. */
    uint8_t epoch;   /* It may vote. */
    uint8_t forgot;  /* At any time. */
    uint8_t excused; /* It forgot its part in a decision. */
};

enum {
    IDLE,
    CLAIMS, /* Rule 2. */
    LOOKS,  /* Rule 3. */
    FOUNDS, /* Rule 4. */
    BACKS,  /* Rule 5. */
    USES,   /* Rules 6 and 8. */
    DEAD,
};

struct process {
    uint8_t phase;
    uint8_t list;   /* Of the set that it claims or uses. */
    uint8_t number; /* Of its attempt, or of the set that it uses. */
    uint8_t set;    /* What it writes, or a member that it met.  0: none. */
    uint8_t seen;   /* Masters that answered in this phase. */
    uint8_t own;    /* Masters that it claimed; FOUNDS: that it wrote; USES: whose vote it has. */
    uint8_t took;   /* Those of them that carried a claim of its list before. */
    uint8_t clash;  /* It met another list. */
    uint8_t told;   /* IDLE: it showed the message of rule 7.  USES: it reported the founding. */
};

/* A message whose sender does not wait for it any more. */
enum { NO_MAIL, MAIL_CLAIM, MAIL_FOUND, MAIL_WITHDRAW };

struct mail {
    uint8_t what, master, list, number, set;
};

struct state {
    struct master masters[MASTERS];
    struct process processes[PROCESSES];
    struct mail mail;
    uint8_t forgets, crashes, delays;
    uint8_t decided[3]; /* Bit n: all masters of its list carried number n at one time. */
    uint8_t unused[2];  /* The explorer takes whole words. */
};
_Static_assert(sizeof(struct state) % sizeof(uint32_t) == 0, "a state is made of words");

enum bug {
    NO_BUG,
    NO_SECOND_LOOK,
    LOOK_AT_LIST,
    LOOK_AT_OWN,
    TAKE_ANY,
    SAME_NUMBER,
    CLAIM_AGAIN,
    MAJORITY,
    FOUND_ANY,
    WITHDRAW_ANY,
    WITHDRAW_TOOK,
    WITHDRAW_VISITED,
    WITHDRAW_MET,
    REPORT_EARLY,
    KEEP_VER,
    NO_GUARD,
    NO_FINISH,
    NO_WITHDRAW,
    BUGS_LEN
};

struct bounds {
    unsigned lists[PROCESSES];
    unsigned processes, masters, forgets, crashes, delays, locks, alike;
};

extern struct bounds bounds;

enum what {
    BEGIN = 'a',
    FOLLOW,
    DO_CLAIM,
    ALL_CLAIMED,
    DO_LOOK,
    DECIDE,
    GIVE_UP,
    DO_FOUND,
    REPORT,
    NOT_FOUNDED,
    DO_WITHDRAW,
    WITHDRAWN,
    DO_RESTORE,
    VOTE,
    RELEASE,
    FORGET,
    INSTALL,
    DELAY,
    ARRIVE,
    CRASH,
    REVIVE,
};

/* Of a step, as its third operand: who takes it. */
enum kind {
    PLAIN,    /* The protocol. */
    FAULT,    /* Something breaks. */
    OPERATOR, /* A person. */
};

void founding_begin(void *state);
void founding_steps(const void *state);

/* Of founding-check.c: what is wrong in the state, or NULL. */
const char *founding_judge(const struct state *s);

/* ---- founding-state.c ---- */

unsigned founding_count(unsigned mask);
bool founding_is_majority(unsigned list, unsigned mask);
bool founding_is_claim(const struct master *m, unsigned list);
bool founding_is_member(const struct master *m, unsigned list, unsigned number);

/* The members of this set. */
unsigned founding_members(const struct state *s, unsigned list, unsigned number);

/* The process has the votes of a majority of its set. */
bool founding_holds(const struct process *p);

/* All masters of its list carried this number at one time. */
bool founding_is_decided(const struct state *s, unsigned number);

/* A number that nothing carries. */
uint8_t founding_free_number(const struct state *s);

/* Notes decisions, and gives numbers by the order in which they appear.  With bounds.alike,
 * masters of the same lists and processes of the same list change places, so that fewer states
 * differ. */
void founding_settle(struct state *s);

#endif /* TEST_MODELS_FOUNDING_H */
