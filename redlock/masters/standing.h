/*
 * standing.h - which masters may vote now: carries out what guard.c decides.
 *
 * It relates to guard.c as lease.c relates to quorum.c.  It reads the markers of masters, keeps the
 * client's masks of masters that can be asked, and notifies the leases.  With the restart guard off
 * every master whose link is up may vote.  With it, only members of the set may vote (set.h).
 */
#ifndef REDLOCK_STANDING_H
#define REDLOCK_STANDING_H

#include <stdbool.h>

#include "redlock/base/alarm.h"
#include "redlock/core/guard.h"
#include "redlock/masters/queries.h"
#include "redlock/wire/wire.h"

struct ask;
struct founding;
struct peers;
struct reply;
struct seats_change;
struct set;

/* Events for the owner of a struct standing (masters.c). */
struct standing_events {
    /* The master has a new epoch or a new link. */
    void (*on_new_epoch)(void *cookie, unsigned master);
    /* A query shows another text of the field epoch than the query before. */
    void (*on_new_state)(void *cookie, unsigned master);
    /* The master may take commands now and could not before, or the other way round; or earlier
     * requests to it are void. */
    void (*on_change)(void *cookie, unsigned master);
    /* A read of the marker was answered, and this client has taken over what it says. */
    void (*on_read)(void *cookie, unsigned master);
    /* The set has become known, or has changed.  All that is known of the masters is up to date,
     * but for the masks of those that may vote: on_change() follows. */
    void (*on_set)(void *cookie, const struct seats_change *change);
};

struct standing {
    struct peers *peers;
    struct set *set;
    struct founding *founding;
    const struct standing_events *events;
    void *cookie;
    struct guard guard;
    struct queries queries;
    struct alarm alarm;
    bool forgotten;         /* Too few members that answer remember the set. */
    quorum_mask twins;      /* Masters that were reported to have another's epoch. */
    quorum_mask refusing;   /* Masters that were reported to be no witnesses. */
    quorum_mask linked;     /* Masters whose links are up and have room. */
    quorum_mask connecting; /* Masters whose first attempt to connect is under way. */
    drift_time hope_until;  /* Until then, leases wait for masters whose first read is under way. */
    drift_time tidy_at;     /* When to close links to masters that were removed. */
    /* The field epoch of each master, which RAISE names and a proof shows. */
    char states[QUORUM_MASTERS_MAX][WIRE_STATE_MAX + 1];
};

/* Returns 0, or -1 if memory runs out. */
int standing_init(struct standing *standing, struct peers *peers, struct set *set,
                  struct founding *founding, const struct standing_events *events, void *cookie);

/* The link of a master went up or down. */
void standing_on_link(struct standing *standing, unsigned master, bool up);
/* room: the link's queue can take a command.  false: the master counts as down until there is
 * room. */
void standing_on_room(struct standing *standing, unsigned master, bool room);
/* A master answered a read of its marker. */
void standing_on_look(struct standing *standing, unsigned master, const struct reply *reply);
/* A witness answered.  The ask says which warming master it was asked about. */
void standing_on_witness(struct standing *standing, unsigned master, const struct ask *ask,
                         const struct reply *reply);
/* A step of a master's clock was noticed. */
void standing_on_step(struct standing *standing, unsigned master);
/* The alarm of struct standing rang. */
void standing_on_alarm(struct standing *standing);

/* True: enough other masters answer to keep the time of this one.  Then no client has to watch
 * it. */
bool standing_has_witnesses(const struct standing *standing, unsigned master);

/* The set was founded, or could not be, as this master shows. */
void standing_on_founding(struct standing *standing, const struct seats_change *change);
void standing_on_refusal(struct standing *standing, unsigned master);

/* Of a client that obeys no set: the newest configuration, and its members who are asked of guests
 * (guard.c, rule 7). */
void standing_watch(struct standing *standing, const struct config *newest,
                    const struct members *members, quorum_mask guests);

/* A proof shows that the marker has changed. */
void standing_look_again(struct standing *standing, unsigned master);

/* The version of the configuration that this client obeys. */
uint64_t standing_version(const struct standing *standing);

#endif /* REDLOCK_STANDING_H */
