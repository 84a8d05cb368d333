/*
 * set.h - which set of masters the client obeys: carries out what seats.c decides.
 *
 * With the restart guard, the masters say to which set they belong, and which masters are its
 * members.  A client obeys the first set that a master of its list reports, and follows its
 * configurations: each newer one replaces the one before.  The list says only where to look.  If no
 * master of it is in a set, the client founds the set of its list.  Until a set is known no master
 * votes.  A member is known by its place, the host in small letters, so another spelling of a host
 * is another place.  The list may name the member that it reaches elsewhere (#NAME, see uri.h).
 *
 * Another set of the same masters replaces the known set in two cases: no master says any more that
 * it is in the known set, or a minority says so while a majority names the other one.  What was
 * known may have been an old state of a few masters.
 *
 * A master that says something else is refused: its link is closed, with a message.  If the list
 * names a master of no set, or one of another set, all masters are refused.  A client that has
 * obeyed the set for the connect timeout refuses only a master of another set so: it does not stop
 * because a host that was removed long ago comes back empty.
 *
 * A master that was removed from the set is refused alone.  Otherwise it would depend on whether it
 * answers before the first lock is granted whether a client with an old list gets the lock. Nothing
 * may wait for that answer, since then one master that hangs would delay each first lock.
 */
#ifndef REDLOCK_SET_H
#define REDLOCK_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "redlock/base/reason.h"
#include "redlock/core/seats.h"

struct answer_set;
struct peers;
struct uri;

#define SET_TEXT_MAX 600 /* The longest message.  Chosen: two long lists and advice fit. */
#define SET_LIST_MAX 170 /* The longest list in it.  Chosen: an error message has room for two. */
/* The longest list in the reason why one master is refused.  Chosen: a line has room for two. */
#define SET_SHORT_MAX 100
_Static_assert(2 * SET_SHORT_MAX <= REASON_WORDS_MAX, "a reason quotes two lists");

struct set {
    struct peers *peers;
    bool obeys_none; /* Nothing is taken over, refused or founded: the owner judges the reports. */
    struct seats seats;
    struct config list;  /* The client's list, as the configuration that it would found. */
    uint64_t other_id;   /* Another set of the same masters, which one of them reported last. */
    quorum_mask others;  /* Masters that have reported other_id since then. */
    quorum_mask told;    /* Masters that said on this link that they are members of this set. */
    quorum_mask none;    /* Masters that said on this link that they are in no set. */
    quorum_mask gave;    /* Masters to which the query under way sends our version. */
    quorum_mask claimed; /* Members that got the set, but then said that they are in none. */
    quorum_mask behind;  /* Members with epochs that reported a smaller version on this link, and
                          * to which the latest query did not send ours. */
    quorum_mask refused_now; /* Masters that this link refuses for what they say of their set. */
    quorum_mask wrong;       /* Masters that were in refused_now when their latest link or attempt
                              * ended, and have reported nothing since. */
    char why[SET_TEXT_MAX]; /* Why the list is wrong, in full.  "": nothing is known to be wrong. */
    unsigned why_of;        /* The master that shows it. */
    uint64_t mixed;         /* The latest set of other masters that one of the list reported. */
    char mixed_of[SET_LIST_MAX]; /* Its members. */
    bool refused;                /* The list is wrong, so that no master may vote. */
    drift_time judged_until;     /* Until then, any wrong master makes the list wrong. */
    drift_span lasts; /* How long a lease of this client may be stored after it was held. */
};

/* Make the configuration of a list.  Returns CONFIG_OK, or what is wrong with the list: *ret_at is
 * the number of the master.  Two masters must not have one name, and the text must not be longer
 * than a configuration may be. */
enum config_problem set_list(const struct uri *uris, unsigned len, struct config *ret_list,
                             unsigned *ret_at);

/* The list must be one for which set_list() returns CONFIG_OK. */
void set_init(struct set *set, struct peers *peers, const struct uri *uris, unsigned len);

bool set_is_known(const struct set *set);

/* The set has no members until a rescue gives it some (core/rescue.h). */
bool set_is_closed(const struct set *set);

/* The set is to be founded, or the founding is to be finished: all masters have said that they
 * belong to none, or a member is still claimed. */
bool set_wants_founding(const struct set *set);

/* Members to which a query is to send the newest configuration. */
quorum_mask set_uninformed(const struct set *set);

/* The number of the member that this master is, in set->seats.now or, if the set is not known, in
 * set->list. */
unsigned set_member(const struct set *set, unsigned master);

/* The name of a master: as a member, or else as the list has it. */
const char *set_name(const struct set *set, unsigned master);

/* The master is refused for what it says of its set, or was until its link ended. */
bool set_is_wrong(const struct set *set, unsigned master);

/* Events.  set_on_look(): a master answered a query of its marker.  Returns false if the master is
 * to be refused: *ret_why says why.  *ret_change: the set has become known, or has changed. */
void set_on_link(struct set *set, unsigned master);
/* Its link fell, or did not come up.  Call it besides set_on_link(). */
void set_on_fall(struct set *set, unsigned master);
bool set_on_look(struct set *set, unsigned master, const struct answer_set *look,
                 struct reason *ret_why, struct seats_change *ret_change);

/* These numbers belong to other masters from now on, or to none. */
void set_on_left(struct set *set, quorum_mask left);

/* The client has founded this set, or finished its founding. */
void set_on_founding(struct set *set, uint64_t number, struct seats_change *ret_change);

/* Write why the list is wrong, or "".  If it has masters of two sets, it says which are of which,
 * since it is chance which of them is obeyed.  True: it is so. */
bool set_write_why(const struct set *set, char *text, size_t size);

/* Another list (CLAIMED) or another set (OTHER_SET) is in the way.  Write the message in full to
 * set->why, and make the reason of the master. */
void set_refuse(struct set *set, unsigned master, enum why why, const char *other,
                const char *advice, struct reason *ret_why);

/* Put a space between the members, and cut the list where it does not fit. */
void set_print(const struct config *config, char *text, size_t size);

#endif /* REDLOCK_SET_H */
