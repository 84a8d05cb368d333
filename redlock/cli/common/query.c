/*
 * query.c - writes a command of any words.
 */
#include "redlock/cli/common/query.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "redlock/client/inspect.h"

#define COMMAND_MAX 4096 /* Enough for the longest script, of `redlock list`, and two keys. */

void query_send(struct redlock *rl, unsigned m, uint32_t query, const char *const *words)
{
    char command[COMMAND_MAX];
    size_t count = 0, len;

    while (words[count] != NULL)
        count++;
    len = (size_t)snprintf(command, sizeof command, "*%zu\r\n", count);
    for (size_t i = 0; i < count && len < sizeof command; i++)
        len += (size_t)snprintf(command + len, sizeof command - len, "$%zu\r\n%s\r\n",
                                strlen(words[i]), words[i]);
    assert(len < sizeof command);
    inspect_query(rl, m, query, command, len);
}
