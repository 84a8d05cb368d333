/* loop-glib.c - hold the lock NAME until standard input ends: with GLib. */
#include "holder.h"

#include <redlock/adapters/glib.h>

static GMainLoop *loop;

static gboolean on_input(gint fd, GIOCondition what, gpointer holder)
{
    (void)fd, (void)what;
    holder_release(holder);
    return G_SOURCE_REMOVE;
}

static void on_held(struct holder *holder)
{
    g_unix_fd_add(0, G_IO_IN | G_IO_HUP, on_input, holder);
}

static void on_end(struct holder *holder)
{
    (void)holder;
    g_main_loop_quit(loop);
}

int main(int argc, char **argv)
{
    struct holder holder = {.on_held = on_held, .on_end = on_end};
    GSource *client;

    if (holder_start(&holder, argc, argv) != REDLOCK_OK)
        return 1;
    loop = g_main_loop_new(NULL, FALSE);
    client = redlock_glib_attach(holder.rl, NULL);
    g_main_loop_run(loop);
    redlock_glib_detach(client);
    redlock_close(holder.rl);
    g_main_loop_unref(loop);
    return holder.code;
}
