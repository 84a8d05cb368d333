/*
 * forbidden.h - finds the error of a master that refuses a user; pure.
 *
 * A user that no master knows, a wrong password, and a command or a key that the ACL does not
 * allow, have this in common: the master will refuse again until somebody changes the password or
 * the ACL.
 */
#ifndef REDLOCK_FORBIDDEN_H
#define REDLOCK_FORBIDDEN_H

#include <stdbool.h>

/* error: what a master answered, perhaps after words of ours that end in a colon, as in "restart
 * guard: NOPERM ...". */
bool forbidden_is(const char *error);

#endif /* REDLOCK_FORBIDDEN_H */
