/*
 * doctor.h - what `redlock doctor` has found, and how it is printed.
 */
#ifndef REDLOCK_CLI_DOCTOR_H
#define REDLOCK_CLI_DOCTOR_H

#include "redlock/cli/cli.h"

#include "redlock/cli/exam.h"
#include "redlock/cli/rights.h"

#define DOCTOR_KEY_MAX (REDLOCK_NAME_MAX + 40)

struct doctor {
    struct cli *cli;
    struct redlock *rl; /* For its list of masters.  It never connects. */
    unsigned masters, answering, voting, changes;
    struct rights_wanted wanted;
    const char *start;             /* How the names of the locks begin.  "": the user gave none. */
    char own[DOCTOR_KEY_MAX];      /* As in struct exam. */
    char pattern[RIGHTS_RULE_MAX]; /* Fits all names that begin with start. */
    char names[RIGHTS_NAMES_MAX][DOCTOR_KEY_MAX];
    struct exam_target targets[RIGHTS_NAMES_MAX];
    size_t targets_len;
    struct exam all; /* Findings about all masters together. */
    struct exam exams[REDLOCK_MASTERS_MAX];
};

static inline unsigned doctor_majority(const struct doctor *doctor)
{
    return doctor->masters / 2 + 1;
}

void doctor_print_text(const struct doctor *doctor);
void doctor_print_json(const struct doctor *doctor);

#endif /* REDLOCK_CLI_DOCTOR_H */
