/*
 * environment.c - makes the environment of the command.
 */
#include "redlock/cli/run/environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *make_variable(const char *name, const char *value)
{
    char *text;

    return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

static bool is_ours(const char *variable)
{
    return strncmp(variable, "REDLOCK_RESOURCE=", 17) == 0 ||
           strncmp(variable, "REDLOCK_TOKEN=", 14) == 0 ||
           strncmp(variable, "REDLOCK_FENCE=", 14) == 0 ||
           strncmp(variable, "REDLOCK_PERMIT=", 15) == 0;
}

char **environment_make(const char *name, const char *token, char *fence, char *permit)
{
    size_t len = 0, kept = 0;
    char **envp;

    while (environ[len] != NULL)
        len++;
    envp = calloc(len + 5, sizeof *envp);
    if (envp == NULL)
        return NULL;
    for (size_t i = 0; i < len; i++)
        if (!is_ours(environ[i]))
            envp[kept++] = environ[i];
    envp[kept] = make_variable("REDLOCK_RESOURCE", name);
    envp[kept + 1] = make_variable("REDLOCK_TOKEN", token);
    if (envp[kept] == NULL || envp[kept + 1] == NULL)
        return NULL; /* Nothing is freed: the guardian ends. */
    kept += 2;
    if (fence[0] != 0)
        envp[kept++] = fence;
    if (permit[0] != 0)
        envp[kept] = permit;
    return envp;
}
