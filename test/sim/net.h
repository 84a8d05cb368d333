/*
 * net.h - the network: connections between clients and servers.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "sim.h"

struct ev_loop;
struct server;
struct transport;

/* ---- The network (net.c) ---- */

enum message_kind {
    MESSAGE_BYTES,     /* Both ways. */
    MESSAGE_CONNECTED, /* To a client. */
    MESSAGE_REFUSED,
    MESSAGE_RESET,
};

struct message {
    struct message *next;
    sim_time sent, at; /* at: it arrives. */
    enum message_kind kind;
    size_t len, read; /* Bytes, and how many of them the client has read. */
    size_t room;
    char *bytes;
};

struct queue {
    struct message *first, **end;
    sim_time last;          /* Nothing arrives before what was sent earlier. */
    sim_time blocked_until; /* Nothing arrives before; SIM_NEVER: for ever. */
};

struct conn {
    uint64_t number;
    struct server *server;
    struct ev_loop *process;
    struct transport *client; /* NULL: closed by the client; its commands may be on their way. */
    unsigned master;          /* Number of the server, as the client counts. */
    bool accepted;            /* The server was there when the client connected. */
    bool spoken;              /* The client has sent something on it. */
    bool reset;               /* The server does not know it any more. */
    bool mute;                /* Its answers do not come. */
    sim_time mute_until;      /* Then the client's kernel gives it up. */
    enum fault doom;          /* The next commands bring it about; FAULT_LEN: nothing. */
    size_t unread;            /* Bytes on their way to the server, or in its socket. */
    char *inbox;              /* A command of which not all has come. */
    size_t inbox_len, inbox_room;
    unsigned hears; /* Resources of which it is told: a mask. */
    struct queue to_server, to_client;
    struct conn *next; /* Of the same server. */
};

/* A client's kernel gives up a connection at most this long after the server's last packet.
 * redlock/io/connect.c sets the parts: the first probe after 15 s, the second
 * after 5 s more, and 15 s for data sent in between.  The rest is for late timers of the kernel. */
#define NET_SILENCE_MAX (40 * DRIFT_S)
/* The longest pause between two attempts to connect, as in redlock/link/link.c. */
#define NET_RETRY_LAST (2 * DRIFT_S)

void net_begin(void);
struct conn *net_connect(struct ev_loop *process, struct transport *client, unsigned server);
/* The client closes it.  What it sent may arrive or not, now or later. */
void net_close(struct conn *conn);
struct message *net_message(enum message_kind kind, size_t room);
void net_to_server(struct conn *conn, struct message *message);
void net_to_client(struct conn *conn, struct message *message);
/* What has arrived for the client first; NULL: nothing.  To take it out. */
struct message *net_peek(struct conn *conn);
struct message *net_take(struct conn *conn);
bool net_has_arrived(const struct conn *conn);
/* A reset has arrived for the client, perhaps behind what it has not read. */
bool net_was_reset(const struct conn *conn);
/* So many bytes may be written now. */
size_t net_room(const struct conn *conn);
void net_done(struct message *message);
/* Hand over to the server what has arrived there; have the client look. */
void net_deliver(struct conn *conn);
void net_arrive(struct conn *conn);
/* The connection is gone: the client will be told. */
void net_reset(struct conn *conn);
/* From now on the server's packets do not reach the client. */
void net_silence(struct conn *conn);
/* The client's kernel gives up a connection that is still silent. */
void net_give_up(struct conn *conn);
/* Everything arrives now, whatever held it up. */
void net_hurry(struct conn *conn);

#endif /* SIM_NET_H */
