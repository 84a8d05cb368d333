/*
 * set_report.h - prints what a survey found, for people and as JSON.
 */
#ifndef REDLOCK_SET_REPORT_H
#define REDLOCK_SET_REPORT_H

#include "redlock/cli/set/survey.h"

void set_report_text(const struct survey *survey);
void set_report_json(const struct survey *survey);

/* True: members that give votes now are a majority; while the set changes, of each list. */
bool set_report_has_majority(const struct survey *survey);

/* Say so if the versions of the masters contradict each other: see look_at_versions() of doctor.c.
 */
void set_report_versions(const struct survey *survey);

/* Why a master does not vote. */
struct remark set_report_why(const struct survey *survey, unsigned master);

#endif /* REDLOCK_SET_REPORT_H */
