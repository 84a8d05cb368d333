/*
 * family.h - the descendants of this process, as /proc shows them.
 *
 * A process that is a child subreaper keeps its orphaned descendants, whatever groups and
 * sessions they have made.  Descendants are found by the children that /proc lists for each
 * task, so that the cost goes with their number.  A kernel without these lists
 * (CONFIG_PROC_CHILDREN) costs a scan of all processes.  Nothing is allocated but the table of
 * processes, which is kept for the next call.
 */
#ifndef REDLOCK_FAMILY_H
#define REDLOCK_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

struct family_count {
    unsigned alive;   /* Descendants that could be signalled. */
    unsigned immune;  /* Descendants that may not be signalled. */
    unsigned zombies; /* Dead children that are not reaped, and processes that moved meanwhile. */
    bool hidden;      /* There may be more that could not be seen. */
};

/* Whether /proc shows the processes of our PID namespace. */
bool family_is_known(void);

/* Whether this process has any child, dead or alive.  Without one it has no descendant. */
bool family_is_there(void);

/*
 * Send the signal to every living descendant; 0 only counts them.  SIGTERM is followed by
 * SIGCONT, for a stopped process would not hear it.  group: only to those in this process
 * group, which must be one that a descendant made; -group: only to those outside it; 0: to all.
 *
 * A caller that kills calls again until none is alive and none is a zombie.  A process that forks
 * and ends all the time may be missed.  But what it was when the call began is then a child of
 * this process, and a zombie.
 */
struct family_count family_signal(int signal, pid_t group);

/* Kill all descendants: stop them first, because a stopped process does not fork. */
struct family_count family_kill(void);

#endif /* REDLOCK_FAMILY_H */
