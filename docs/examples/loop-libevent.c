/* loop-libevent.c - hold the lock NAME until standard input ends: with libevent. */
#include "holder.h"

#include <redlock/adapters/libevent.h>

static struct event_base *base;
static struct event *input;

static void on_input(evutil_socket_t fd, short what, void *holder)
{
    (void)fd, (void)what;
    holder_release(holder);
}

static void on_held(struct holder *holder)
{
    (void)holder;
    event_add(input, NULL);
}

static void on_end(struct holder *holder)
{
    (void)holder;
    event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
    struct holder holder = {.on_held = on_held, .on_end = on_end};
    struct event *client;

    base = event_base_new();
    input = event_new(base, 0, EV_READ, on_input, &holder);
    if (holder_start(&holder, argc, argv) != REDLOCK_OK ||
        (client = redlock_libevent_attach(holder.rl, base)) == NULL)
        return 1;
    event_base_dispatch(base);
    redlock_libevent_detach(client);
    redlock_close(holder.rl);
    event_free(input);
    event_base_free(base);
    return holder.code;
}
