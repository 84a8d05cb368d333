/* loop-libuv.c - hold the lock NAME until standard input ends: with libuv. */
#include "holder.h"

#include <redlock/adapters/libuv.h>

static uv_loop_t loop;
static uv_poll_t input;

static void on_input(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    uv_poll_stop(handle);
    holder_release(handle->data);
}

static void on_held(struct holder *holder)
{
    input.data = holder;
    uv_poll_start(&input, UV_READABLE, on_input);
}

static void on_end(struct holder *holder)
{
    (void)holder;
    uv_stop(&loop);
}

int main(int argc, char **argv)
{
    struct holder holder = {.on_held = on_held, .on_end = on_end};
    uv_poll_t *client;

    if (holder_start(&holder, argc, argv) != REDLOCK_OK || uv_loop_init(&loop) != 0 ||
        uv_poll_init(&loop, &input, 0) != 0 ||
        (client = redlock_libuv_attach(holder.rl, &loop)) == NULL)
        return 1;
    uv_run(&loop, UV_RUN_DEFAULT);
    redlock_libuv_detach(client);
    redlock_close(holder.rl);
    uv_close((uv_handle_t *)&input, NULL);
    uv_run(&loop, UV_RUN_DEFAULT); /* Frees the handles. */
    uv_loop_close(&loop);
    return holder.code;
}
