/*
 * links.h - opens and closes the links to masters.
 *
 * The first links are those of the client's list.  Members that the list does not name get links
 * when a configuration names them, and lose them when they are members no more (core/seats.h).
 *
 * A user and a password of the list go only to hosts that the list names, or to members that TLS
 * proves to be of the user's own CA (tls_ca): a member may name any address, and must not be sent a
 * password there.  So another member gets none.  A password of a host that the list reaches by TLS
 * never goes to a place without TLS.
 */
#ifndef REDLOCK_LINKS_H
#define REDLOCK_LINKS_H

#include <stdbool.h>

#include "redlock/base/mask.h"
#include "redlock/link/link.h"
#include "redlock/link/uri.h"

struct peers;
struct seats;

struct links {
    struct peers *peers;
    struct link_config config; /* Of each link, without its place. */
    const struct link_events *events;
    void *cookie;
    const struct uri *list; /* Lives as long as the client. */
    unsigned list_len;
    struct uri made[QUORUM_MASTERS_MAX]; /* Of members that the list does not name. */
    quorum_mask to_close, to_open;       /* When the event is over. */
};

/* Make the links of the list, without connecting them.  Returns 0, or -1 if memory runs out;
 * links_done() is due in both cases. */
int links_init(struct links *links, struct peers *peers, const struct link_config *config,
               const struct uri *list, unsigned list_len, const struct link_events *events,
               void *cookie);
/* Between events. */
void links_done(struct links *links);

/* The first master of the list whose user and password go to this place, too.  links->list_len: no
 * password does. */
unsigned links_login(const struct links *links, const struct uri *uri);

/* The URI by which a member at this place is asked, with the user and password of the list if they
 * go there.  The caller calls uri_done().  Returns OK, E_NOMEM, or E_INVAL: no such place can be
 * reached.
 */
int links_uri(const struct links *links, const char *place, struct uri *ret_uri);

/* Within an event: these numbers lose their masters, and these get masters after that. */
void links_change(struct links *links, quorum_mask closed, quorum_mask opened);

/* True: the link of this number is to be closed.  What it reports is of no use. */
bool links_closes(const struct links *links, unsigned m);

/* Between events: close and open links.  on_close() is called before a link and its place are
 * freed. */
void links_tidy(struct links *links, const struct seats *seats,
                void (*on_close)(void *cookie, unsigned m));

#endif /* REDLOCK_LINKS_H */
