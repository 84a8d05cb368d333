/*
 * environment.h - the environment of the command.
 */
#ifndef REDLOCK_ENVIRONMENT_H
#define REDLOCK_ENVIRONMENT_H

/*
 * Copy our environment, and add REDLOCK_RESOURCE=name, REDLOCK_TOKEN=token, fence and permit.
 * These are "REDLOCK_FENCE=N" and "REDLOCK_PERMIT=N", or empty, and must live as long as the
 * result.  Earlier values of these variables are left out.  Returns NULL if there is no memory.
 */
char **environment_make(const char *name, const char *token, char *fence, char *permit);

#endif /* REDLOCK_ENVIRONMENT_H */
