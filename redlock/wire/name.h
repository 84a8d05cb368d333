/*
 * name.h - which names a lock may have.
 */
#ifndef REDLOCK_NAME_H
#define REDLOCK_NAME_H

/* Check the name of a lock.  A name has 1 to REDLOCK_NAME_MAX bytes, none of them NUL, and is
 * none of the names that keys.h reserves.  Returns OK, or E_INVAL with a message, for NULL as
 * well. */
int name_check(const char *name);

#endif /* REDLOCK_NAME_H */
