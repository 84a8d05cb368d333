/*
 * glib.h - a pollable client of redlock in a main loop of GLib (2.36 or later), and so of GTK.
 */
#ifndef REDLOCK_ADAPTERS_GLIB_H
#define REDLOCK_ADAPTERS_GLIB_H

#include <glib-unix.h>
#include <redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The child of a fork may not use the client, so the source goes. */
static inline gboolean redlock_glib_on_readable(gint fd, GIOCondition what, gpointer rl)
{
    (void)fd, (void)what;
    return redlock_dispatch((struct redlock *)rl) == REDLOCK_OK ? G_SOURCE_CONTINUE
                                                                : G_SOURCE_REMOVE;
}

/* Let the main context run the client; NULL: the default context.  Returns NULL if the client is
 * not pollable. */
static inline GSource *redlock_glib_attach(struct redlock *rl, GMainContext *context)
{
    int fd = redlock_fd(rl);
    GSource *source = fd >= 0 ? g_unix_fd_source_new(fd, G_IO_IN) : NULL;

    if (source == NULL)
        return NULL;
    /* GLib calls the function with the types of a source of descriptors. */
    g_source_set_callback(source, (GSourceFunc)(void (*)(void))redlock_glib_on_readable, rl, NULL);
    (void)g_source_attach(source, context);
    return source;
}

/* Take the client from its context, before redlock_close().  It may be called from a callback. */
static inline void redlock_glib_detach(GSource *source)
{
    g_source_destroy(source);
    g_source_unref(source);
}

#ifdef __cplusplus
}
#endif

#endif /* REDLOCK_ADAPTERS_GLIB_H */
