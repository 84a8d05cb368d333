/*
 * family.h - signals the descendants of this process.
 *
 * A child subreaper inherits its orphaned descendants, whatever groups and sessions they made.
 */
#ifndef REDLOCK_FAMILY_H
#define REDLOCK_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

#include "drift/drift.h"

/* How long one search may take.  Chosen: finding 3000 descendants took half a second on a machine
 * with 30 processes a processor that wanted to run. */
#define FAMILY_SEARCH_FOR DRIFT_S

/* How long to try to end all, because a process in an uninterruptible sleep may never die, and how
 * long to wait for processes that cannot be killed or seen.  Chosen, not measured. */
#define FAMILY_LOOK_FOR (5 * DRIFT_S)
#define FAMILY_WAIT_FOR (1 * DRIFT_S)

struct family_count {
    unsigned alive;   /* Descendants that could be signalled. */
    unsigned immune;  /* Descendants that may not be signalled. */
    unsigned dead;    /* Zombies, whoever must reap them.  Finding them takes time, too. */
    unsigned zombies; /* Dead children to be reaped, and processes that moved during the search.  At
                       * least 1 if the time was too short to find all, or if the group has a
                       * process that was not found. */
    bool hidden;      /* There may be more, which could not be seen. */
};

/* True: /proc shows the processes of our PID namespace. */
bool family_is_known(void);

/* True: this process has a child, dead or alive.  Without one it has no descendant. */
bool family_is_there(void);

/*
 * Send the signal to every living descendant.  Signal 0 only counts them.  SIGCONT follows SIGTERM,
 * because a stopped process does not handle SIGTERM.  group > 0: signal only this process group,
 * which a descendant must have made.  group < 0: signal only processes outside of group -group.
 * group 0: signal all.  until: end the search then, and signal those that were found.
 *
 * To kill all, call family_kill() until none is alive and none is a zombie.  A call may miss a
 * process that forks and ends all the time.  But its first process is then a zombie child of ours.
 */
struct family_count family_signal(int signal, pid_t group, drift_time until);

/* Kill all descendants: stop them first, because a stopped process neither works nor forks. */
struct family_count family_kill(drift_time until);

/* True: descendants of whom family_kill() counted so many can be killed, or may still end.  since:
 * when the first call was. */
bool family_may_end(const struct family_count *count, drift_time now, drift_time since);

#endif /* REDLOCK_FAMILY_H */
