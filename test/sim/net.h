/*
 * net.h - the network: connections between clients and servers.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "sim.h"

struct count;
struct ev_loop;
struct server;
struct sim_tls;
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
    sim_time sent, at; /* When it was sent, and when it arrives. */
    enum message_kind kind;
    size_t len, read; /* Bytes, and how many of them the client has read. */
    size_t room;
    char *bytes;
};

struct queue {
    struct message *first, **end;
    sim_time last;          /* When the last message arrives; later ones arrive after it. */
    sim_time blocked_until; /* Nothing arrives before; SIM_NEVER: nothing ever arrives. */
};

/* The group of readers; the others have the numbers of their digits. */
#define GROUP_READERS 16

struct conn {
    uint64_t number;
    struct server *server;
    struct ev_loop *process;
    struct transport *client; /* NULL: the client closed it; commands may still be on the way. */
    unsigned master;          /* The client's number of the server. */
    bool accepted;            /* The server was alive when the client connected. */
    bool spoken;              /* The client has sent something on it. */
    bool reset;               /* The server has dropped the connection. */
    bool mute;                /* Answers do not reach the client. */
    sim_time mute_until;      /* Then the client's kernel gives up the connection. */
    enum fault doom;          /* The next commands cause this fault; FAULT_LEN: none. */
    size_t unread;            /* Bytes on their way to the server, or in its socket. */
    struct sim_tls *tls;      /* The server's side.  NULL: plain. */
    char *inbox;              /* An incomplete command. */
    size_t inbox_len, inbox_room;
    unsigned hears; /* The wait flags whose channels it subscribes to, as a mask. */
    unsigned groups[SIM_RESOURCES_MAX]; /* For each wait flag: its groups, as a mask. */
    char own[25]; /* The digits of the client's own channel, if it subscribes to it; else "". */
    struct count *counts, *last_count; /* Those whose answers are on the way (claims.c). */
    struct queue to_server, to_client;
    struct conn *next; /* The next connection of the same server. */
};

/* A client's kernel gives up a connection at most this long after the server's last packet.
 * redlock/io/connect.c sets the parts: the first probe after 15 s, the second
 * after 5 s more, and 15 s for data sent in between.  The rest is for late timers of the kernel. */
#define NET_SILENCE_MAX (40 * DRIFT_S)
/* The longest pause between two attempts to connect, as in redlock/link/link.c. */
#define NET_RETRY_LAST (2 * DRIFT_S)

void net_begin(void);
struct conn *net_connect(struct ev_loop *process, struct transport *client, unsigned server);
/* The client closes the connection.  Its commands may arrive now, later or never. */
void net_close(struct conn *conn);
struct message *net_message(enum message_kind kind, size_t room);
void net_to_server(struct conn *conn, struct message *message);
void net_to_client(struct conn *conn, struct message *message);
/* The first message that has arrived for the client, or NULL.  net_take() also removes it. */
struct message *net_peek(struct conn *conn);
struct message *net_take(struct conn *conn);
bool net_has_arrived(const struct conn *conn);
/* A reset has arrived for the client, perhaps behind unread messages. */
bool net_was_reset(const struct conn *conn);
/* The number of bytes that the client may write now. */
size_t net_room(const struct conn *conn);
void net_done(struct message *message);
/* Deliver to the server what has arrived there; wake the client for what has arrived here. */
void net_deliver(struct conn *conn);
void net_arrive(struct conn *conn);
/* The connection breaks, and a reset is sent to the client. */
void net_reset(struct conn *conn);
/* From now on the server's packets do not reach the client. */
void net_silence(struct conn *conn);
/* The client's kernel gives up a connection that is still silent. */
void net_give_up(struct conn *conn);
/* All messages arrive now, and the connection is sound again. */
void net_hurry(struct conn *conn);

#endif /* SIM_NET_H */
