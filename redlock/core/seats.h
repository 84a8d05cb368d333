/*
 * seats.h - which of a client's masters are members of the set; pure.
 *
 * A *seat* is the number by which a client knows a master.  The first seats are those of the
 * client's list.  The list says only where to look: any member reports the configuration, and the
 * other members then get seats, too.
 *
 * A member is known by its place.  What a master says of its own name is not enough: a copy of its
 * data would say the same.  A list may reach a member at another place, and then names it (#NAME).
 * The name is not enough either, because it may belong to another master now.  So a master that is
 * reached elsewhere must say itself that it is this member, of the newest version.
 */
#ifndef REDLOCK_SEATS_H
#define REDLOCK_SEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "drift/drift.h"
#include "redlock/core/config.h"
#include "redlock/core/members.h"

enum seat_state {
    SEAT_FREE,     /* No master has this number. */
    SEAT_UNKNOWN,  /* Nothing is known of its set. */
    SEAT_NEW,      /* It belongs to no set, and neither does this client yet. */
    SEAT_MEMBER,   /* It is a member by the newest configuration, and says nothing else. */
    SEAT_ALIAS,    /* It is a member that has a seat under its own place. */
    SEAT_STRANGER, /* It belongs to no set, and is no member. */
    SEAT_OTHER,    /* It belongs to another set. */
    SEAT_REMOVED,  /* It was a member, and is none any more. */
};

struct seat {
    bool used;
    bool listed;
    bool was_member; /* While this client knew it. */
    bool has_told;   /* The master has said to which set it belongs, or that it is in none. */
    bool is_alias;   /* The name that the master gives itself is that of a member. */
    bool denies;     /* The seat is a member's, but what the master said shows that it is not that
                        member. */
    uint64_t set;    /* 0: none. */
    drift_time ends_at; /* When a removed member loses this seat. */
    char place[CONFIG_PLACE_MAX + 1];
    char name[CONFIG_PLACE_MAX +
              1]; /* The name that the list gives it.  "": its place is its name. */
};

/* What a master says of its set. */
struct seat_look {
    uint64_t set; /* 0: it belongs to none. */
    uint64_t version;
    const struct config *config; /* NULL: not sent, because its version is not newer than ours. */
    const char *name;            /* Its own name.  "": it is no member. */
};

/* What has changed. */
struct seats_change {
    bool config;        /* There is a newer configuration. */
    quorum_mask joined; /* Members that were none before. */
    quorum_mask opened; /* Seats of masters to connect to. */
    quorum_mask closed; /* Seats whose links are to be closed, before opened. */
    quorum_mask alias;  /* The subset of closed that are members reached at another place. */
};

/* Visible so that it can be embedded.  Only seats.c writes it. */
struct seats {
    struct config now; /* Version 0: the set is not known yet. */
    struct members members;
    struct seat seats[QUORUM_MASTERS_MAX];
};

/* The seat of a list's next master.  name: "", or that of the list.  Call it in the order of the
 * list, before anything else. */
void seats_list(struct seats *s, unsigned seat, const char *place, const char *name);

/* A master says to which set it belongs.  lasts: how long a lease may be stored on it. */
void seats_on_look(struct seats *s, unsigned seat, const struct seat_look *look, drift_time now,
                   drift_span lasts, struct seats_change *ret_change);

/* This client has founded the set, or takes a newer configuration over from elsewhere. */
void seats_take(struct seats *s, const struct config *config, drift_time now, drift_span lasts,
                struct seats_change *ret_change);

/* Give up the seats of masters that were removed long enough ago, unless the set is closed. Returns
 * when to call it next; a new configuration may make it sooner. */
drift_time seats_tidy(struct seats *s, drift_time now, struct seats_change *ret_change);

/* Forget the set and what masters said, but not the list.  The caller may take another set of the
 * same masters then. */
void seats_forget(struct seats *s);

/* True if no set is known, and all masters of the list say that they belong to none. */
bool seats_are_new(const struct seats *s);

/* Masters of the list that make the list wrong: those of another set, or else those of no set.
 * Masters that were removed from the set do not, unless the set is closed. */
quorum_mask seats_wrong(const struct seats *s);

/* Masters that were members while this client knew them, and still have their seats. */
quorum_mask seats_leaving(const struct seats *s);

/* True if the members of this configuration are the present ones, and neither is joint. */
bool seats_same(const struct seats *s, const struct config *config);

/* Seats of members whose masters have not shown that they are these members. */
quorum_mask seats_denied(const struct seats *s);

/* Two links lead to one server, which has one vote.  True: seat is a member's own, and other is
 * not, so other's link does not keep seat's link down.  A list may reach a member elsewhere: once
 * the set is known, a link to such a place has no vote, and it ends when the master says which
 * member it is.  Which of both links came up first is chance. */
bool seats_has_way(const struct seats *s, unsigned seat, unsigned other);

enum seat_state seats_state(const struct seats *s, unsigned seat);

/* The seat of a member of the newest configuration. */
unsigned seats_of(const struct seats *s, unsigned member);

#endif /* REDLOCK_SEATS_H */
