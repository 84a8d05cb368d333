/*
 * name.h - which names a lock may have.
 */
#ifndef REDLOCK_NAME_H
#define REDLOCK_NAME_H

/* OK if name is legal: 1 to REDLOCK_NAME_MAX bytes, any but NUL, and none of the names in keys.h;
 * else E_INVAL with a message.  NULL is not legal. */
int name_check(const char *name);

#endif /* REDLOCK_NAME_H */
