/*
 * sd-event.h - a pollable client of redlock on a loop of sd-event (libsystemd).
 */
#ifndef REDLOCK_ADAPTERS_SD_EVENT_H
#define REDLOCK_ADAPTERS_SD_EVENT_H

#include <errno.h>
#include <sys/epoll.h>

#include <redlock.h>
#include <systemd/sd-event.h>

#ifdef __cplusplus
extern "C" {
#endif

/* sd-event turns a source off whose function fails. */
static inline int redlock_sd_event_on_readable(sd_event_source *source, int fd, uint32_t what,
                                               void *rl)
{
    (void)source, (void)fd, (void)what;
    return redlock_dispatch((struct redlock *)rl) == REDLOCK_OK ? 0 : -EINVAL;
}

/* Let the loop run the client.  Returns 0, or a negative errno: -EINVAL if the client is not
 * pollable. */
static inline int redlock_sd_event_attach(struct redlock *rl, sd_event *event,
                                          sd_event_source **ret_source)
{
    int fd = redlock_fd(rl);
    int error =
        fd >= 0 ? sd_event_add_io(event, ret_source, fd, EPOLLIN, redlock_sd_event_on_readable, rl)
                : -EINVAL;

    return error < 0 ? error : 0;
}

/* Take the client from the loop, before redlock_close().  It may be called from a callback. */
static inline void redlock_sd_event_detach(sd_event_source *source)
{
    (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
    (void)sd_event_source_unref(source);
}

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_ADAPTERS_SD_EVENT_H */
