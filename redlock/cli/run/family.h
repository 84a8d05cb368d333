/*
 * family.h - the descendants of this process, as /proc shows them.
 *
 * A child subreaper inherits its orphaned descendants, whatever groups and sessions they made.
 * The lists of children in /proc lead to the descendants, so only their number counts for the cost.
 * A kernel without these lists (CONFIG_PROC_CHILDREN) needs a scan of all processes.  Only the
 * table of processes is allocated, and it is kept for the next call.
 */
#ifndef REDLOCK_FAMILY_H
#define REDLOCK_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

struct family_count {
    unsigned alive;   /* Descendants that could be signalled. */
    unsigned immune;  /* Descendants that may not be signalled. */
    unsigned zombies; /* Dead children to be reaped, and processes that moved during the walk.  Of
                       * a group: at least 1 if it has a process that the walk did not find. */
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
 * group 0: signal all.
 *
 * To kill all, call this until none is alive and none is a zombie.  A call may miss a process that
 * forks and ends all the time.  But its first process is then a zombie child of ours.
 */
struct family_count family_signal(int signal, pid_t group);

/* Kill all descendants: stop them first, because a stopped process does not fork. */
struct family_count family_kill(void);

#endif /* REDLOCK_FAMILY_H */
