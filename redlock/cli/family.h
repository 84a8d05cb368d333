/*
 * family.h - the descendants of this process, as /proc shows them.
 *
 * A process that is a child subreaper keeps its orphaned descendants, whatever
 * groups and sessions they have made.  Nothing is allocated but the list of
 * processes, which is kept for the next call.
 */
#ifndef REDLOCK_FAMILY_H
#define REDLOCK_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

struct family_count {
    unsigned alive;   /* Descendants that could be signalled. */
    unsigned immune;  /* Descendants that may not be signalled. */
    unsigned zombies; /* Children of this process that it has not reaped. */
    unsigned unseen;  /* Processes that could not be looked at: they may be descendants. */
};

/* Whether /proc shows the processes of our PID namespace. */
bool family_is_known(void);

/*
 * Send the signal to every living descendant; 0 only counts them.  group: only to those in
 * this process group; -group: only to those outside it; 0: to all.  Where the family is not
 * known, nothing is found.
 *
 * Whoever kills calls again until none is alive and none is a zombie.  A process that forks
 * and ends all the time may be missed; but what it was when the call began is a child of this
 * process by then, and a zombie.
 */
struct family_count family_signal(int signal, pid_t group);

#endif /* REDLOCK_FAMILY_H */
