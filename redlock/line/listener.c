/*
 * listener.c - a listening link to each master.
 */
#include "redlock/line/listener.h"

#include "redlock/link/link.h"

/* ---- Events ---- */

static void on_link(void *cookie, unsigned master, const struct link_fall *fall)
{
    struct listener *listener = cookie;
    bool up = fall == NULL;

    if (listener->left & mask_of(master))
        return;
    listener->linked = mask_without(listener->linked, master);
    listener->linked |= up ? mask_of(master) : 0;
    listener->events->on_link(listener->cookie, master, up);
}

static void on_reply(void *cookie, unsigned master, const struct ask *ask,
                     const struct reply *reply)
{
    struct listener *listener = cookie;

    (void)ask; /* A listening link sends no asks. */
    listener->events->on_push(listener->cookie, master, reply);
}

static void on_done(void *cookie)
{
    struct listener *listener = cookie;

    listener->events->on_done(listener->cookie);
}

static const struct link_events link_events = {
    .on_link = on_link,
    .on_reply = on_reply,
    .on_done = on_done,
};

/* ---- Begin and end ---- */

void listener_init(struct listener *listener, const struct peers *peers,
                   const struct masters_config *config, const struct listener_events *events,
                   void *cookie)
{
    *listener = (struct listener){
        .peers = peers,
        .config =
            {
                .env = config->env,
                .dirty = &listener->dirty,
                .connect_timeout = config->connect_timeout,
                .reply_timeout = config->reply_timeout,
                .listens = true,
            },
        .events = events,
        .cookie = cookie,
    };
}

void listener_start(struct listener *listener)
{
    struct link_config link = listener->config;

    for (unsigned m = 0; m < listener->peers->len; m++) {
        if (listener->links[m] != NULL || listener->peers->uris[m] == NULL)
            continue;
        link.uri = listener->peers->uris[m];
        link.number = m;
        listener->links[m] = link_new(&link, &link_events, listener);
        if (listener->links[m] != NULL)
            link_start(listener->links[m]);
    }
}

void listener_close(struct listener *listener, unsigned master)
{
    if (listener->links[master] != NULL)
        link_free(listener->links[master]);
    listener->links[master] = NULL;
    listener->linked = mask_without(listener->linked, master);
    listener->dirty = mask_without(listener->dirty, master);
    listener->left = mask_without(listener->left, master);
}

void listener_stop(struct listener *listener)
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++)
        listener_close(listener, m);
}

/* A link that is doomed hands over nothing more. */
void listener_on_left(struct listener *listener, quorum_mask left)
{
    for (unsigned m = 0; left >> m != 0; m++)
        if ((left & mask_of(m)) != 0 && listener->links[m] != NULL) {
            link_relink_for(listener->links[m], WHY_LEFT);
            listener->left |= mask_of(m);
        }
    listener->linked &= (quorum_mask)~left;
}

/* ---- Writing ---- */

bool listener_say(struct listener *listener, unsigned master, const char *command,
                  size_t command_len)
{
    if (!(listener->linked & mask_of(master)))
        return false;
    link_say(listener->links[master], command, command_len);
    return true;
}

void listener_flush(struct listener *listener)
{
    while (listener->dirty != 0) {
        unsigned m = (unsigned)__builtin_ctz(listener->dirty);

        listener->dirty = mask_without(listener->dirty, m);
        link_flush(listener->links[m]);
    }
}

void listener_write(struct listener *listener)
{
    for (quorum_mask left = listener->dirty; left != 0; left &= (quorum_mask)(left - 1)) {
        unsigned m = (unsigned)__builtin_ctz(left);

        listener->dirty = mask_without(listener->dirty, m);
        link_write(listener->links[m]);
    }
}
