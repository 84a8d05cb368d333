/*
 * family.c - signals the descendants by their groups and by process descriptors.
 */
#include "redlock/cli/run/family.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redlock/cli/run/descendants.h"

/* How often to search for processes that still run while all are being stopped.  Chosen, not
 * measured: a stopped process does not fork, so a few turns find the others. */
#define STOP_TURNS 8

/* How often our children get SIGSTOP before a search, which takes longer.  Chosen: the second time
 * finds what they forked during the first. */
#define CHILDREN_TURNS 3

/* ---- One process ---- */

/* Use a process descriptor, which never means a later process with the same number.  Without one
 * use the number: before Linux 5.3, in a sandbox, or if no descriptor is free. */
static int signal_process(const struct process *process, int signal)
{
    struct process again;
    enum seen seen;
    int fd, result = -1;

    if (descendants_is_child(process))
        return kill(process->pid, signal);
    fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    seen = descendants_read(process->pid, &again);
    if (seen == HIDDEN)
        errno = EAGAIN;
    else if (seen == GONE || again.started != process->started)
        errno = ESRCH;
    else if (fd < 0 || (syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) != 0 && errno != ESRCH))
        result = kill(process->pid, signal);
    else
        result = 0;
    if (fd >= 0) {
        int error = errno;

        (void)close(fd);
        errno = error;
    }
    return result;
}

/* ---- A table of them ---- */

/* The index of the first process of the group of process i. */
static size_t start_of_group(const struct table *table, size_t i)
{
    const pid_t group = table->list[i].group;

    while (i > 0 && table->list[i - 1].group == group)
        i--;
    return i;
}

/* The index behind the group of process i. */
static size_t end_of_group(const struct table *table, size_t i)
{
    const pid_t group = table->list[i].group;

    while (i < table->len && table->list[i].group == group)
        i++;
    return i;
}

static bool is_meant(pid_t one, pid_t group)
{
    return group > 0 ? one == group : one != -group;
}

/*
 * True: a descendant made the group from process i on, so it contains only descendants.  A
 * descendant made every session but ours, and every group whose leader it is.  Group 0 is of
 * another PID namespace.  Group 1 is excluded, because kill(-1) would signal all processes.
 */
static bool is_made_by_us(const struct table *table, size_t i, size_t end)
{
    const pid_t group = table->list[i].group;

    if (group <= 1 || group == getpgrp())
        return false;
    if (table->list[i].session != getsid(0))
        return true;
    for (; i < end; i++)
        if (table->list[i].pid == group)
            return true;
    return false;
}

/* whole: the group has got the signal, so the process is only counted. */
static void signal_one(const struct process *process, int signal, bool whole,
                       struct family_count *count)
{
    int result;

    if (!process->alive) {
        count->dead++;
        count->zombies += descendants_is_child(process);
        return;
    }
    if (whole || signal == 0 || (signal == SIGSTOP && process->stopped))
        result = kill(process->pid, 0);
    else
        result = signal_process(process, signal);
    if (result == 0)
        count->alive++;
    else if (errno == EPERM)
        count->immune++;
    else if (errno != ESRCH)
        count->hidden = true;
    if (result == 0 && !whole && signal == SIGTERM)
        (void)signal_process(process, SIGCONT);
}

/* Signal the processes from i to end, which are the group. */
static void signal_group(const struct table *table, size_t i, size_t end, int signal, bool whole,
                         struct family_count *count)
{
    const pid_t group = table->list[i].group;

    if (whole)
        (void)kill(-group, signal);
    if (whole && signal == SIGTERM)
        (void)kill(-group, SIGCONT);
    for (; i < end; i++)
        signal_one(&table->list[i], signal, whole, count);
}

/*
 * The kernel signals a group at once, so a process that forks and ends all the time cannot escape.
 * /proc may never show that process itself, only a zombie that it left, which is in its group.
 *
 * SIGKILL goes to children before it goes to their parents.  When the parent of a stopped group
 * dies, the kernel may continue the group (SIGHUP and SIGCONT, see setpgid(2)).
 *
 * Nothing bounds its time but the number of processes, which the time of the search bounds: one
 * that was found gets the signal.
 */
static struct family_count signal_table(const struct table *table, int signal, pid_t group)
{
    struct family_count count = {.zombies = table->moved + table->late};
    size_t i = 0, end = table->len;

    while (i < end) {
        const size_t from = signal == SIGKILL ? start_of_group(table, end - 1) : i;
        const size_t to = signal == SIGKILL ? end : end_of_group(table, i);
        const pid_t one = table->list[from].group;

        if (signal == SIGKILL)
            end = from;
        else
            i = to;
        if (is_meant(one, group))
            signal_group(table, from, to, signal,
                         signal != 0 && (one == group || is_made_by_us(table, from, to)), &count);
    }
    return count;
}

/* True: some descendants may be hidden.  With hidepid=2, and a kernel that lists no children, we
 * have children and see none. */
static bool is_short(const struct table *table)
{
    return table->hidden || (table->len + table->moved + table->late == 0 && family_is_there());
}

/* It differs if the table has other processes of the group.  0: it has none. */
static unsigned long long sum_of_group(const struct table *table, pid_t group)
{
    unsigned long long sum = 0;

    for (size_t i = 0; i < table->len; i++)
        if (table->list[i].group == group)
            sum += table->list[i].started + (unsigned long long)table->list[i].pid;
    return sum;
}

/* A walk may miss a process that forks and ends while it goes on.  Then the group has other zombies
 * at the next walk.  So only if two walks find the same ones does nothing run there. */
static bool has_only_zombies(struct table *table, pid_t group)
{
    const unsigned long long sum = sum_of_group(table, group);

    if (sum == 0)
        return false;
    descendants_find(table);
    return table->moved == 0 && !table->late && sum_of_group(table, group) == sum;
}

/* If /proc does not show a living process of the group, ask the kernel whether there is one.  The
 * kernel also knows a group of zombies that their parents do not reap. */
static void ask_the_kernel(struct table *table, int signal, pid_t group, struct family_count *count)
{
    if (kill(-group, 0) != 0 && errno == ESRCH) {
        count->zombies = 0; /* Processes that moved are in other groups. */
    } else if (!count->hidden && count->zombies == 0) {
        count->zombies = !has_only_zombies(table, group);
    } else if (count->hidden && kill(-group, signal) == 0) {
        count->alive++;
        if (signal == SIGTERM)
            (void)kill(-group, SIGCONT);
    } else if (count->hidden && errno == EPERM) {
        count->immune++;
    }
}

static struct table table;

bool family_is_known(void)
{
    return descendants_are_known();
}

bool family_is_there(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

struct family_count family_signal(int signal, pid_t group, drift_time until)
{
    struct family_count count;

    if (!family_is_there())
        return (struct family_count){.alive = 0};
    table.until = until;
    descendants_find(&table);
    count = signal_table(&table, signal, group);
    count.hidden = count.hidden || is_short(&table);
    if (group > 0 && count.alive + count.immune == 0)
        ask_the_kernel(&table, signal, group, &count);
    return count;
}

/* True: a process runs that may have started since, and so may have escaped the last search. */
static bool has_new(unsigned long long since)
{
    for (size_t i = 0; i < table.len; i++)
        if (table.list[i].alive && !table.list[i].stopped && table.list[i].started >= since)
            return true;
    return false;
}

/* A process that got SIGSTOP may still look as if it ran, but runs no code of its own.  So a search
 * is repeated for new processes only.  The next call knows the old ones: they get no second look
 * while they die. */
static void stop_all(drift_time until)
{
    static unsigned long long since;
    unsigned turn = 0;
    bool more;

    do {
        const unsigned long long now = descendants_start_now();

        /* If only some are found in time, they are stopped and killed, and the next call finds
         * more.  The others must not stay stopped, so they are found again. */
        table.until = turn == 0 ? until : drift_add(until, FAMILY_SEARCH_FOR);
        for (unsigned i = 0; i < CHILDREN_TURNS; i++)
            descendants_signal_children(&table, SIGSTOP);
        table.signal = SIGSTOP;
        descendants_find(&table);
        table.signal = 0;
        (void)signal_table(&table, SIGSTOP, 0);
        more = has_new(since);
        since = now;
    } while (more && !table.hidden && !table.late && ++turn < STOP_TURNS);
}

struct family_count family_kill(drift_time until)
{
    struct family_count count;

    if (!family_is_there())
        return (struct family_count){.alive = 0};
    stop_all(until);
    count = signal_table(&table, SIGKILL, 0);
    table.until = drift_add(until, FAMILY_SEARCH_FOR);
    descendants_signal_children(&table, SIGKILL); /* Also those for which the time was too short. */
    count.hidden = count.hidden || is_short(&table);
    return count;
}

bool family_may_end(const struct family_count *count, drift_time now, drift_time since)
{
    if (!family_is_there() || now >= drift_add(since, FAMILY_LOOK_FOR))
        return false;
    return count->alive + count->zombies > 0 ||
           (count->immune + count->hidden > 0 && now < drift_add(since, FAMILY_WAIT_FOR));
}
