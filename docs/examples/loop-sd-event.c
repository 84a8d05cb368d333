/* loop-sd-event.c - hold the lock NAME until standard input ends: with sd-event. */
#include "holder.h"

#include <redlock/adapters/sd-event.h>

static sd_event *loop;

static int on_input(sd_event_source *source, int fd, uint32_t what, void *holder)
{
    (void)fd, (void)what;
    holder_release(holder);
    return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static void on_held(struct holder *holder)
{
    sd_event_add_io(loop, NULL, 0, EPOLLIN, on_input, holder);
}

static void on_end(struct holder *holder)
{
    sd_event_exit(loop, holder->code);
}

int main(int argc, char **argv)
{
    struct holder holder = {.on_held = on_held, .on_end = on_end};
    sd_event_source *client;

    if (sd_event_default(&loop) < 0 || holder_start(&holder, argc, argv) != REDLOCK_OK ||
        redlock_sd_event_attach(holder.rl, loop, &client) < 0)
        return 1;
    sd_event_loop(loop);
    redlock_sd_event_detach(client);
    redlock_close(holder.rl);
    sd_event_unref(loop);
    return holder.code;
}
