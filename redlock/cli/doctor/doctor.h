/*
 * doctor.h - what `redlock doctor` has found, and how it is printed.
 */
#ifndef REDLOCK_CLI_DOCTOR_H
#define REDLOCK_CLI_DOCTOR_H

#include "redlock/cli/common/cli.h"

#include "redlock/cli/doctor/exam.h"
#include "redlock/cli/doctor/rights.h"
#include "redlock/cli/set/survey.h"

#define DOCTOR_KEY_MAX (REDLOCK_NAME_MAX + 40)

struct doctor {
    struct cli *cli;
    struct redlock *rl; /* For its list of masters.  It never connects. */
    unsigned listed;    /* Masters of the list.  They have the first numbers. */
    unsigned masters;   /* These, and the members of their set that the list lacks. */
    struct uri made[REDLOCK_MASTERS_MAX]; /* Of members that the list lacks. */
    struct survey survey; /* What the masters say of their set, by the same numbers. */
    /* Of the members of the set.  If no set is known: of the masters of the list. */
    unsigned members, answering, voting;
    bool is_answered, is_decided; /* A majority answers; a majority may vote. */
    unsigned changes;
    struct rights_wanted wanted;
    char *start;                   /* The name of the lock.  "": the user gave none. */
    char own[DOCTOR_KEY_MAX];      /* As in struct exam. */
    char pattern[RIGHTS_RULE_MAX]; /* Of start, or of --names. */
    char names[RIGHTS_NAMES_MAX][DOCTOR_KEY_MAX];
    struct exam_target targets[RIGHTS_NAMES_MAX];
    size_t targets_len;
    struct exam all; /* Findings about all masters together. */
    struct exam exams[REDLOCK_MASTERS_MAX];
};

static inline unsigned doctor_majority(const struct doctor *doctor)
{
    return doctor->members / 2 + 1;
}

/* Choose the set of masters from the answers so far. */
void doctor_set_choose(struct doctor *doctor);

/* True: the masters are a set, which is not closed. */
bool doctor_set_is_known(const struct doctor *doctor);

/* Number the members of the set that the list lacks.  They are not examined yet. */
void doctor_set_add(struct doctor *doctor);

/* Find out which masters are members, and report those of the list that are none. */
void doctor_set_judge(struct doctor *doctor);
void doctor_set_look_at_change(struct doctor *doctor);
void doctor_set_look_at_versions(struct doctor *doctor);

/* True: a majority of the members answers, and may vote if votes is true.  While the set changes,
 * a majority of each list. */
bool doctor_set_decides(const struct doctor *doctor, bool votes);

void doctor_print_text(const struct doctor *doctor);
void doctor_print_json(const struct doctor *doctor);

#endif /* REDLOCK_CLI_DOCTOR_H */
