/* loop-poll.c - hold the lock NAME until standard input ends: with poll(2). */
#include "holder.h"

#include <redlock/adapters/poll.h>

static bool is_over;

static void on_held(struct holder *holder)
{
    (void)holder; /* From now on the loop reads the input. */
}

static void on_end(struct holder *holder)
{
    (void)holder;
    is_over = true;
}

int main(int argc, char **argv)
{
    struct holder holder = {.on_held = on_held, .on_end = on_end};
    struct pollfd fds[2];

    if (holder_start(&holder, argc, argv) != REDLOCK_OK)
        return 1;
    fds[0] = redlock_poll_entry(holder.rl);
    while (!is_over) {
        fds[1] = (struct pollfd){.fd = holder.lease != NULL ? 0 : -1, .events = POLLIN};
        if (poll(fds, 2, -1) <= 0)
            continue;
        if (fds[1].revents != 0)
            holder_release(&holder);
        (void)redlock_poll_done(holder.rl, &fds[0]);
    }
    redlock_close(holder.rl);
    return holder.code;
}
