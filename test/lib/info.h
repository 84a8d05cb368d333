/*
 * info.h - one fact of a lease at a time, by redlock_lease_info().  NULL gives what nobody holds.
 */
#ifndef TEST_INFO_H
#define TEST_INFO_H

#include "redlock/redlock.h"

static inline struct redlock_lease_info info_of(const struct redlock_lease *lease)
{
    const struct redlock_lease_info none = {.resource = "", .token = ""};
    struct redlock_lease_info info = {.size = sizeof info};

    return redlock_lease_info(lease, &info) == REDLOCK_OK ? info : none;
}

static inline const char *info_resource(const struct redlock_lease *lease)
{
    return info_of(lease).resource;
}

static inline const char *info_token(const struct redlock_lease *lease)
{
    return info_of(lease).token;
}

static inline uint64_t info_fence(const struct redlock_lease *lease)
{
    return info_of(lease).fence;
}

static inline uint32_t info_permit(const struct redlock_lease *lease)
{
    return info_of(lease).permit;
}

static inline uint32_t info_holds(const struct redlock_lease *lease)
{
    return info_of(lease).holds;
}

#endif /* TEST_INFO_H */
