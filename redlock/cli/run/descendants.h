/*
 * descendants.h - finds the descendants of this process in /proc.
 *
 * The lists of children in /proc lead to the descendants, so only their number counts for the cost.
 * A kernel without these lists (CONFIG_PROC_CHILDREN) needs a scan of all processes.  Only the
 * table of processes is allocated, and it is kept for the next search.
 */
#ifndef REDLOCK_DESCENDANTS_H
#define REDLOCK_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "drift/drift.h"

struct process {
    pid_t pid, parent, group, session;
    unsigned long long started; /* In ticks since the start of the machine. */
    long threads;
    size_t place; /* While the table is sorted: where its group begins. */
    bool alive;   /* It is no zombie. */
    bool stopped; /* It does not run until it is continued. */
    bool unread;  /* A child of ours whose file in /proc cannot be read. */
    bool ours;    /* In a scan of all processes: a descendant. */
};

struct table {
    struct process *list;
    size_t len, max;
    drift_time until; /* The search ends at this instant. */
    unsigned moved;   /* Processes that ended, or got another parent, during the search. */
    bool late;        /* The time was too short to find all. */
    bool hidden;      /* Some processes could not be seen. */
    bool again;       /* Our children are read for the second time. */
    int signal;       /* Our children get this signal when they are found, unless it is 0. */
    bool is_blind;    /* They get it, and are not read. */
};

enum seen { SEEN, GONE, HIDDEN };

/* Read what /proc shows of this process. */
enum seen descendants_read(pid_t pid, struct process *ret_process);

/* True: it is a child of ours.  Only we reap it, so no other process gets its number before that.
 */
bool descendants_is_child(const struct process *process);

/* True: /proc shows the processes of our PID namespace. */
bool descendants_are_known(void);

/*
 * Fill the table.  The processes of a group stand together.  Where one process started another in
 * the same session, the group of the first comes before that of the other.  A search that takes
 * longer than table->until sets table->late, and one that lacks memory sets table->hidden.
 */
void descendants_find(struct table *table);

/* Send a signal to all our children, dead or alive, until table->until.  Nothing is read of them,
 * so this takes a twentieth of a search.  Processes that fork and end all the time are our
 * children, each for a moment.  On a kernel that lists no children this does nothing. */
void descendants_signal_children(struct table *table, int signal);

/* What processes that start now will have as their start, and no process that runs has a later
 * one.  0: the clock fails. */
unsigned long long descendants_start_now(void);

#endif /* REDLOCK_DESCENDANTS_H */
