/*
 * environment.h - what the command finds in its environment.
 */
#ifndef REDLOCK_ENVIRONMENT_H
#define REDLOCK_ENVIRONMENT_H

/*
 * Our own environment, with REDLOCK_RESOURCE=name and REDLOCK_TOKEN=token, and with
 * number, which is "REDLOCK_FENCE=N", "REDLOCK_PERMIT=N", or empty.  Earlier values of
 * these are left out.  NULL without memory.  number must live as long as the result.
 */
char **environment_make(const char *name, const char *token, char *number);

#endif /* REDLOCK_ENVIRONMENT_H */
