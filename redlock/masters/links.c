/*
 * links.c - makes and frees links, and chooses who is sent a password.
 */
#include "redlock/masters/links.h"

#include <stdlib.h>
#include <string.h>

#include "redlock/base/error.h"
#include "redlock/base/text.h"
#include "redlock/core/seats.h"
#include "redlock/io/tls.h"
#include "redlock/masters/peers.h"

/* ---- Places ---- */

static bool is_same_host(const struct uri *a, const struct uri *b)
{
    return a->host != NULL && b->host != NULL &&
           text_same_letters(a->host, b->host, strlen(a->host) + 1);
}

/* The one rule about where the password of a listed master goes (links.h). */
static bool may_have(const struct links *links, const struct uri *listed, const struct uri *uri)
{
    if (listed->password == NULL || uri->host == NULL)
        return false;
    if (!uri->tls)
        return !listed->tls && is_same_host(listed, uri);
    return is_same_host(listed, uri) || tls_context_is_strict(links->peers->env->tls);
}

/* The first master of the list on the same host decides, and else the first of all. */
unsigned links_login(const struct links *links, const struct uri *uri)
{
    unsigned first = links->list_len;

    for (unsigned i = 0; i < links->list_len; i++) {
        if (!may_have(links, &links->list[i], uri))
            continue;
        if (is_same_host(&links->list[i], uri))
            return i;
        if (first == links->list_len)
            first = i;
    }
    return first;
}

int links_uri(const struct links *links, const char *place, struct uri *ret_uri)
{
    struct uri uri;
    unsigned listed;
    int status = uri_parse(place, strlen(place), &uri);

    if (status != REDLOCK_OK)
        return status;
    listed = links_login(links, &uri);
    if (listed < links->list_len)
        status = uri_copy_login(&uri, &links->list[listed]);
    if (status == REDLOCK_OK)
        *ret_uri = uri;
    else
        uri_done(&uri);
    return status;
}

/* ---- Links ---- */

static int make_link(struct links *links, unsigned m, const struct uri *uri)
{
    struct peers *peers = links->peers;
    struct link_config config = links->config;

    config.uri = uri;
    config.number = m;
    peers->links[m] = link_new(&config, links->events, links->cookie);
    peers->uris[m] = peers->links[m] != NULL ? uri : NULL;
    return peers->links[m] != NULL ? 0 : -1;
}

int links_init(struct links *links, struct peers *peers, const struct link_config *config,
               const struct uri *list, unsigned list_len, const struct link_events *events,
               void *cookie)
{
    links->peers = peers;
    links->config = *config;
    links->events = events;
    links->cookie = cookie;
    links->list = list;
    links->list_len = list_len;
    for (unsigned m = 0; m < list_len; m++)
        if (make_link(links, m, &list[m]) != 0)
            return -1;
    return 0;
}

static void close_link(struct links *links, unsigned m)
{
    struct peers *peers = links->peers;

    if (peers->links[m] != NULL)
        link_free(peers->links[m]);
    peers->links[m] = NULL;
    peers->uris[m] = NULL;
    peers->dirty = mask_without(peers->dirty, m);
    uri_done(&links->made[m]);
}

void links_done(struct links *links)
{
    for (unsigned m = 0; links->peers != NULL && m < QUORUM_MASTERS_MAX; m++)
        close_link(links, m);
}

/* A link that is doomed hands over no more answers. */
void links_change(struct links *links, quorum_mask closed, quorum_mask opened)
{
    struct peers *peers = links->peers;

    for (unsigned m = 0; m < QUORUM_MASTERS_MAX; m++) {
        if ((closed & mask_of(m)) != 0 && peers->links[m] != NULL) {
            link_relink_for(peers->links[m], WHY_LEFT);
            links->to_close |= mask_of(m);
        }
        if ((opened & mask_of(m)) != 0 && m >= peers->len)
            peers->len = m + 1;
    }
    links->to_open = (quorum_mask)((links->to_open & ~closed) | opened);
}

bool links_closes(const struct links *links, unsigned m)
{
    return (links->to_close & mask_of(m)) != 0;
}

/* A member may be the first master that is reached by TLS. */
static int need_tls(struct env *env)
{
    static const struct tls_settings defaults = {.verify = true};
    const struct tls_settings *settings = env->tls_later != NULL ? env->tls_later : &defaults;

    return env->tls != NULL ? REDLOCK_OK : tls_context_new(settings, &env->tls);
}

/* The settings of TLS come first, because they decide who is sent a password. */
static int make_uri(const struct links *links, const char *place, struct uri *ret_uri)
{
    struct uri uri;
    int status = uri_parse(place, strlen(place), &uri);

    if (status != REDLOCK_OK)
        return status;
    if (uri.tls)
        status = need_tls(links->peers->env);
    uri_done(&uri);
    return status == REDLOCK_OK ? links_uri(links, place, ret_uri) : status;
}

/* If memory runs out, the next turn of the loop tries again. */
static void open_link(struct links *links, unsigned m, const char *place)
{
    int status = REDLOCK_OK;

    if (links->made[m].name == NULL)
        status = make_uri(links, place, &links->made[m]);
    if (status == REDLOCK_E_NOMEM)
        return;
    if (status != REDLOCK_OK)
        env_log(links->peers->env, REDLOCK_LOG_WARNING, MSG_NO_CONNECTION,
                "masters: a member has the place %s, which cannot be reached: %s", place,
                error_message());
    else if (make_link(links, m, &links->made[m]) != 0)
        return;
    else
        link_start(links->peers->links[m]);
    links->to_open = mask_without(links->to_open, m);
}

void links_tidy(struct links *links, const struct seats *seats,
                void (*on_close)(void *cookie, unsigned m))
{
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX && links->to_close != 0; m++) {
        if (!links_closes(links, m))
            continue;
        on_close(links->cookie, m);
        close_link(links, m);
        links->to_close = mask_without(links->to_close, m);
    }
    for (unsigned m = 0; m < QUORUM_MASTERS_MAX && links->to_open != 0; m++)
        if (links->to_open & mask_of(m))
            open_link(links, m, seats->seats[m].place);
}
