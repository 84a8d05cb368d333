/*
 * libuv.h - a pollable client of redlock on a loop of libuv.
 */
#ifndef REDLOCK_ADAPTERS_LIBUV_H
#define REDLOCK_ADAPTERS_LIBUV_H

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <redlock.h>
#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The signal of a descriptor (F_SETSIG) is a mark that each process sees, in any PID namespace.  It
 * has no owner, so none is sent.  <fcntl.h> shows F_SETSIG with _GNU_SOURCE only. */
#ifdef F_SETSIG
#define REDLOCK_LIBUV_SETSIG F_SETSIG
#define REDLOCK_LIBUV_GETSIG F_GETSIG
#else
#define REDLOCK_LIBUV_SETSIG 10
#define REDLOCK_LIBUV_GETSIG 11
#endif
#define REDLOCK_LIBUV_MARK SIGURG

static inline void redlock_libuv_on_closed(uv_handle_t *handle)
{
    free(handle);
}

static inline void redlock_libuv_on_readable(uv_poll_t *handle, int status, int events)
{
    struct redlock *rl = (struct redlock *)handle->data;

    (void)events;
    if (status < 0 || redlock_dispatch(rl) != REDLOCK_OK)
        (void)uv_poll_stop(handle); /* The child of a fork, which may not use the client. */
}

/* Let the loop run the client.  The child of a fork must call uv_loop_fork() before it runs the
 * loop.  NULL: memory ran out, the client is not pollable, or libuv refused. A loop with a client
 * does not end by itself: uv_run() returns after uv_stop(), or after redlock_libuv_detach(). */
static inline uv_poll_t *redlock_libuv_attach(struct redlock *rl, uv_loop_t *loop)
{
    int fd = redlock_fd(rl);
    uv_poll_t *handle = fd >= 0 ? (uv_poll_t *)malloc(sizeof *handle) : NULL;

    if (handle == NULL)
        return NULL;
    (void)fcntl(fd, REDLOCK_LIBUV_SETSIG, REDLOCK_LIBUV_MARK);
    if (uv_poll_init(loop, handle, fd) != 0) {
        free(handle);
        return NULL;
    }
    handle->data = rl;
    if (uv_poll_start(handle, UV_READABLE, redlock_libuv_on_readable) == 0)
        return handle;
    uv_close((uv_handle_t *)handle, redlock_libuv_on_closed);
    return NULL;
}

/* The child of a fork may share the epoll instance of the loop with its parent.  libuv would take
 * the descriptor out of it, and the parent would renew nothing and never hear of the loss.  So in
 * the child another file gets its number, unless one has it already: a daemon may have closed
 * all descriptors, and a file of its own has no such mark. */
static inline void redlock_libuv_replace(int fd)
{
    int other;

    if (fcntl(fd, REDLOCK_LIBUV_GETSIG) != REDLOCK_LIBUV_MARK)
        return;
    other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (other < 0)
        return;
    if (dup2(other, fd) == fd)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)close(other);
}

/* Take the client from the loop, before redlock_close().  It may be called from a callback, and in
 * the child of a fork, where it leaves the loop of the parent alone.  The loop frees the handle at
 * its next turn. */
static inline void redlock_libuv_detach(uv_poll_t *handle)
{
    uv_os_fd_t fd;

    /* In the child of a fork the client has no descriptor. */
    if (redlock_fd((const struct redlock *)handle->data) < 0 &&
        uv_fileno((const uv_handle_t *)handle, &fd) == 0)
        redlock_libuv_replace(fd);
    uv_close((uv_handle_t *)handle, redlock_libuv_on_closed);
}

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_ADAPTERS_LIBUV_H */
