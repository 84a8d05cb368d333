/*
 * set_refusal.h - what is wrong with a wished change of the set of masters.
 *
 * Each function returns CLI_OK, or another exit code after a message.
 */
#ifndef REDLOCK_SET_REFUSAL_H
#define REDLOCK_SET_REFUSAL_H

#include "redlock/cli/set/survey.h"
#include "redlock/cli/set/wish.h"

/* A server has one vote, and must not have two. */
int set_refusal_two_names(const struct survey *found);

/* It does not answer, is of another set, has a copy of another master's data, or is a member with
 * another name. */
int set_refusal_joiner(const struct survey *found, const struct config_member *joiner);

/* Fewer than a majority of the members may vote. */
int set_refusal_too_few(const struct survey *found);

/* This client cannot log in to a member that stays in the list.  Clients with the same list cannot,
 * either, and a further change could leave them without a majority. */
int set_refusal_login(const struct survey *found, const struct config *list);

/* All that is wrong with the wished list. */
int set_refusal_list(const struct survey *found, const struct wish *wish,
                     const struct config *list);

/* Removing members that do not answer: say that they can be replaced. */
void set_refusal_hint(const struct survey *found, const struct wish *wish);

#endif /* REDLOCK_SET_REFUSAL_H */
