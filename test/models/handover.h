/*
 * handover.h - the state of the model in handover.c, its bounds, and the names of its steps.
 */
#ifndef REDLOCK_TEST_MODELS_HANDOVER_H
#define REDLOCK_TEST_MODELS_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "models/check.h"

enum { MASTERS = 3, CLIENTS = 3, MAJORITY = 2, REVOKED = 7 };

enum command { NO_COMMAND, HEARTBEAT, RELEASE, GIVE_BACK, LEAVE, EXTEND };
enum reply { NO_REPLY, WAIT, YES, NO, DONE };
enum phase { GONE, WAITING, HOLDING, RELEASING, LEAVING, DEAD };

/* Times are ages in ticks; they stop at the lease.  A token is the number of one of its client. */
struct request {
    uint16_t command : 3; /* enum command. */
    uint16_t token : 4;
    uint16_t age : 4;    /* Since it was sent. */
    uint16_t ticket : 4; /* HEARTBEAT.  0: none yet. */
};

struct answer {
    uint32_t reply : 3;   /* enum reply. */
    uint32_t command : 3; /* That it answers. */
    uint32_t token : 4;
    uint32_t age : 4;    /* Of the request. */
    uint32_t epoch : 3;  /* Of the master.  0: it is warming. */
    uint32_t number : 4; /* The number of the place. */
};

/* granted TOKEN SENT EPOCH */
struct message {
    uint16_t is_there : 1;
    uint16_t token : 4;
    uint16_t age : 4; /* Since the time that it tells. */
    uint16_t epoch : 3;
};

/* What one client has to do with one master. */
struct link {
    struct answer answer;
    struct request request, stray; /* stray: of a connection that is broken. */
    struct message message;
    uint16_t back;           /* Bit t: token t is to be given back. */
    uint32_t yes : 1;        /* The master's vote for the token. */
    uint32_t age : 4;        /* Of the vote. */
    uint32_t is_passed : 1;  /* A message brought the vote. */
    uint32_t epoch : 3;      /* That the client knows. */
    uint32_t is_pending : 1; /* RELEASE or LEAVE is to be sent. */
    uint32_t is_told : 1;    /* The master has told a number. */
    uint32_t is_clean : 1;   /* It stores no token, as it said. */
    uint32_t forgot : 1;     /* It forgot a key that backs the hold. */
    uint32_t own_age : 4;    /* Of the latest heartbeat that was answered: for the bug own-time. */
};

struct place {
    uint32_t number : 4; /* 0: none. */
    uint32_t token : 4;
    uint32_t left : 4;  /* For so long the waiter counts as alive. */
    uint32_t age : 4;   /* Of the time SENT that is stored. */
    uint32_t waits : 1; /* The token waits: the heartbeat had a ticket. */
};

struct master {
    uint32_t owner : 3; /* A client, from 1; REVOKED; 0: the key is free. */
    uint32_t token : 4;
    uint32_t left : 4;   /* Until the key ends. */
    uint32_t passed : 3; /* How often the key was passed on, and nobody held the lock since. */
    uint32_t epoch : 3;
    uint32_t warms : 4;   /* Ticks until it has an epoch. */
    uint32_t revoked : 2; /* The owner before it was revoked. */
    struct place places[CLIENTS];
};

struct client {
    uint32_t phase : 3; /* enum phase. */
    uint32_t token : 4;
    uint32_t ticket : 4, top : 4;
    uint32_t left : 4;      /* Until its deadline. */
    uint32_t held : 4;      /* The newest token that it held. */
    uint32_t in_line : 1;   /* A majority had its place and its token when the lock was released. */
    uint32_t has_stray : 1; /* A command of it was executed late, or will be. */
};

struct world {
    struct {
        uint32_t epochs : 3, forgets : 2, breaks : 4, lost : 4, deaths : 2, leaves : 3, joins : 3,
            beats : 5, revokes : 2;
    } history;
    struct client clients[CLIENTS];
    struct master masters[MASTERS];
    struct link links[CLIENTS][MASTERS];
};
_Static_assert(sizeof(struct link) == 4 * sizeof(uint32_t), "a world has few words");

enum bug {
    NO_BUG,
    OWN_TIME,
    ARRIVAL,
    NOT_EXTENDED,
    ANY_MESSAGE,
    ANY_ANSWER,
    PING_PONG,
    LEAVE_KEY,
    SAME_TOKEN,
    NO_TICKET,
    LATE,
    KEEP_TOKEN,
    KEEP_PLACE,
    EXTEND_KEEPS,
    NO_WATCH,
    MINORITY,
    BUGS_LEN
};

struct bounds {
    unsigned clients, lease, patience, tokens, start, slack, extend;
    unsigned breaks, lost, forgets, deaths, leaves, joins, beats, revokes;
};

extern struct bounds bounds;

#define ANY_BEATS 31

enum what {
    TICK = 't',
    RELEASES = 'r',
    GIVES_BACK = 'g',
    LEAVES = 'l',
    IS_DONE = 'i',
    JOINS = 'j',
    DIES = 'd',
    SENDS = 's',    /* A command that waits on the way. */
    AT_ONCE = 'q',  /* Sent, executed and answered in one step: no time counts from it. */
    CUT = 'c',      /* The connection breaks behind such a command. */
    EXECUTES = 'e', /* The master, what was sent. */
    STRAYS = 'y',   /* The master, a command of a broken connection. */
    READS = 'a',    /* The client, the answer. */
    HEARS = 'h',    /* The client, the message. */
    LOSES = 'o',    /* The message. */
    BREAKS = 'b',
    ENDS_EARLY = 'k',
    FORGETS = 'f',
    REVOKES = 'v',
};

void handover_begin(void *world);
void handover_steps(const void *world);

/* Of handover-scripts.c. */
void handover_free(struct master *m);
void handover_execute(struct world *w, unsigned client, unsigned master, struct request request,
                      struct answer *ret_answer);
void handover_forget(struct world *w, unsigned master);
void handover_revoke(struct world *w, unsigned master);

/* Whether the master has the key of this client's token, revoked or not. */
bool handover_backs(const struct world *w, unsigned client, unsigned master);

/* Of handover-check.c: what is wrong in the world, or NULL. */
const char *handover_judge(const struct world *w);

#endif /* REDLOCK_TEST_MODELS_HANDOVER_H */
