/*
 * name.c - refuses names that masters need for other keys.
 */
#include "redlock/wire/name.h"

#include <string.h>

#include "redlock/base/error.h"
#include "redlock/redlock.h"
#include "redlock/wire/keys.h"

/* All keys of our own begin so. */
static const char own[] = "redlock:";

int name_check(const char *name)
{
    if (name == NULL)
        return error_set(REDLOCK_E_INVAL, "the resource name is NULL");
    if (name[0] == '\0')
        return error_set(REDLOCK_E_INVAL, "the resource name is empty");
    if (strnlen(name, REDLOCK_NAME_MAX + 1) > REDLOCK_NAME_MAX)
        return error_set(REDLOCK_E_INVAL, "the resource name is longer than %d bytes",
                         REDLOCK_NAME_MAX);
    if (strncmp(name, own, sizeof own - 1) != 0)
        return REDLOCK_OK;
    if (strcmp(name, WIRE_MARKER) == 0)
        return error_set(REDLOCK_E_INVAL, "the resource name is that of the masters' markers");
    if (strcmp(name, WIRE_WITNESS) == 0)
        return error_set(REDLOCK_E_INVAL, "the resource name is that of the marks of witnesses");
    if (strncmp(name, WIRE_MARK, WIRE_MARK_LEN) == 0)
        return error_set(REDLOCK_E_INVAL,
                         "the resource name begins with " WIRE_MARK ", as wait flags do");
    if (strncmp(name, WIRE_PERMIT, WIRE_PERMIT_LEN) == 0)
        return error_set(REDLOCK_E_INVAL,
                         "the resource name begins with " WIRE_PERMIT ", as permits do");
    if (strncmp(name, WIRE_QUEUE, WIRE_QUEUE_LEN) == 0)
        return error_set(REDLOCK_E_INVAL,
                         "the resource name begins with " WIRE_QUEUE ", as queues do");
    if (strncmp(name, WIRE_NEXT, WIRE_NEXT_LEN) == 0)
        return error_set(REDLOCK_E_INVAL,
                         "the resource name begins with " WIRE_NEXT ", as waiting tokens do");
    return REDLOCK_OK;
}
