/*
 * family.c - reads /proc, and signals processes by their groups and by process descriptors.
 */
#include "redlock/cli/run/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Enough for the fields of /proc/PID/stat up to the start time: a name of 64 bytes at
 * the most, and 21 numbers. */
#define STAT_MAX 600

/* Enough for /proc/PID/task/TID/children. */
#define PATH_MAX_LEN 64

/* How often to search for processes that still run while all are being stopped.  Chosen, not
 * measured: a stopped process does not fork, so a few turns find the others. */
#define STOP_TURNS 8

struct process {
    pid_t pid, parent, group, session;
    unsigned long long started; /* In ticks since the start of the machine. */
    long threads;
    bool alive;   /* It is no zombie. */
    bool stopped; /* It does not run until it is continued. */
    bool unread;  /* A child of ours whose file in /proc cannot be read. */
    bool ours;    /* In a scan of all processes: a descendant. */
};

struct table {
    struct process *list;
    size_t len, max;
    unsigned moved; /* Processes that ended, or got another parent, during the walk. */
    bool hidden;    /* Some processes could not be seen. */
    bool again;     /* Our children are read for the second time. */
    bool stops;     /* Our children get SIGSTOP when they are found. */
};

enum seen { SEEN, GONE, HIDDEN };

/* ---- One process ---- */

/* Parse the fields behind the name in parentheses.  They begin with field 3 of proc(5). */
static bool parse_stat(const char *text, struct process *process)
{
    const char *behind = strrchr(text, ')');
    char state;

    if (behind == NULL ||
        sscanf(behind + 1,
               " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld "
               "%*d %llu",
               &state, &process->parent, &process->group, &process->session, &process->threads,
               &process->started) != 6)
        return false;
    /* A process whose first thread has ended looks like a zombie, but is none. */
    process->alive = (state != 'Z' && state != 'X') || process->threads > 1;
    process->stopped = state == 'T' || state == 't';
    return true;
}

/* Only ENOENT and ESRCH mean that the process has ended.  Others, such as EMFILE, hide it. */
static enum seen seen_by_error(void)
{
    return errno == ENOENT || errno == ESRCH ? GONE : HIDDEN;
}

static enum seen read_process(pid_t pid, struct process *ret_process)
{
    struct process process = {.pid = pid};
    char text[STAT_MAX], path[PATH_MAX_LEN];
    enum seen seen = SEEN;
    ssize_t len;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return seen_by_error();
    len = read(fd, text, sizeof text - 1);
    if (len < 0)
        seen = seen_by_error();
    (void)close(fd);
    if (len <= 0)
        return len == 0 ? GONE : seen;
    text[len] = 0;
    if (!parse_stat(text, &process))
        return HIDDEN;
    *ret_process = process;
    return SEEN;
}

static bool is_there(pid_t pid)
{
    return kill(pid, 0) == 0 || errno == EPERM;
}

/* Only we reap our child, so no other process gets its number before that. */
static bool is_our_child(const struct process *process)
{
    return process->parent == getpid();
}

/* Use a process descriptor, which never means a later process with the same number.  Without one
 * use the number: before Linux 5.3, in a sandbox, or if no descriptor is free. */
static int signal_process(const struct process *process, int signal)
{
    struct process again;
    enum seen seen;
    int fd, result = -1;

    if (is_our_child(process))
        return kill(process->pid, signal);
    fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    seen = read_process(process->pid, &again);
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

/* ---- The table ---- */

/* If there is no memory, the table stays short, and only its processes are signalled. */
static void append(struct table *table, const struct process *process)
{
    if (table->len == table->max) {
        size_t max = table->max != 0 ? 2 * table->max : 64;
        struct process *list = realloc(table->list, max * sizeof *list);

        if (list == NULL) {
            table->hidden = true;
            return;
        }
        table->list = list;
        table->max = max;
    }
    table->list[table->len++] = *process;
}

static bool has(const struct table *table, pid_t pid)
{
    for (size_t i = 0; i < table->len; i++)
        if (table->list[i].pid == pid)
            return true;
    return false;
}

/* Add a child that a task of this parent has, or had a moment ago. */
static void add_child(struct table *table, pid_t pid, pid_t parent)
{
    struct process process = {.pid = pid};
    enum seen seen;

    if (table->again && has(table, pid))
        return;
    if (table->stops && parent == getpid()) /* At once: it may fork and end. */
        (void)kill(pid, SIGSTOP);
    seen = read_process(pid, &process);

    if (seen == SEEN && (process.parent == parent || is_our_child(&process))) {
        append(table, &process);
    } else if (seen == SEEN || !is_there(pid)) {
        table->moved++;
    } else if (parent == getpid()) { /* hidepid=2 hides it if it is not dumpable. */
        process.parent = parent;
        process.group = getpgid(pid);
        process.session = getsid(pid);
        process.alive = process.unread = true;
        append(table, &process);
    } else {
        table->hidden = true; /* We inherit it when its parent is dead. */
    }
}

/* Add the children in the text.  *number may have begun in the text before. */
static void add_children(struct table *table, const char *text, ssize_t len, pid_t parent,
                         pid_t *number)
{
    for (ssize_t i = 0; i < len; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            *number = 10 * *number + (text[i] - '0');
        } else if (*number != 0) {
            add_child(table, *number, parent);
            *number = 0;
        }
    }
}

static enum seen read_task(struct table *table, pid_t pid, pid_t task)
{
    char text[1024], path[PATH_MAX_LEN];
    enum seen seen = SEEN;
    pid_t number = 0;
    ssize_t len;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)task);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return seen_by_error();
    while ((len = read(fd, text, sizeof text)) > 0)
        add_children(table, text, len, pid, &number);
    if (len < 0)
        seen = seen_by_error();
    (void)close(fd);
    return seen;
}

/* Any thread may have children. */
static enum seen read_tasks(struct table *table, pid_t pid)
{
    enum seen seen = SEEN;

    char path[PATH_MAX_LEN];
    struct dirent *entry;
    DIR *folder;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    folder = opendir(path);
    if (folder == NULL)
        return seen_by_error();
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.' && read_task(table, pid, (pid_t)atoi(entry->d_name)) == HIDDEN)
            seen = HIDDEN;
    (void)closedir(folder);
    return seen;
}

/* Append the children of each process.  The loop reaches them later. */
static void walk_from(struct table *table, size_t first)
{
    for (size_t i = first; i < table->len; i++) {
        const struct process process = table->list[i]; /* The table may move. */
        enum seen seen = SEEN;

        if (process.alive && process.threads > 1)
            seen = read_tasks(table, process.pid);
        else if (process.alive) /* A zombie has no children. */
            seen = read_task(table, process.pid, process.pid);
        table->moved += seen == GONE && !process.unread;
        table->hidden = table->hidden || seen == HIDDEN;
    }
}

/* If a process ends during the walk, we inherit its children, and the second turn finds them. */
static void walk(struct table *table)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        const size_t first = table->len;

        table->again = turn > 0;
        table->hidden = read_tasks(table, getpid()) == HIDDEN || table->hidden;
        walk_from(table, first);
    }
}

/* ---- A kernel that lists no children ---- */

static int compare_pids(const void *a, const void *b)
{
    pid_t first = ((const struct process *)a)->pid, second = ((const struct process *)b)->pid;

    return (first > second) - (first < second);
}

static void read_all(struct table *table)
{
    DIR *folder = opendir("/proc");
    struct process process;
    struct dirent *entry;

    if (folder == NULL) {
        table->hidden = true;
        return;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        switch (read_process((pid_t)atoi(entry->d_name), &process)) {
        case SEEN:
            append(table, &process);
            break;
        case HIDDEN:
            table->hidden = true;
            break;
        case GONE:
            break;
        }
    }
    (void)closedir(folder);
    if (table->len > 0)
        qsort(table->list, table->len, sizeof *table->list, compare_pids);
}

/* Each turn marks at least one more generation, so the loop ends. */
static void mark_ours(struct table *table)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < table->len; i++) {
            struct process *process = &table->list[i];
            const struct process key = {.pid = process->parent};
            const struct process *parent;

            if (process->ours)
                continue;
            parent = bsearch(&key, table->list, table->len, sizeof key, compare_pids);
            process->ours = is_our_child(process) || (parent != NULL && parent->ours);
            more = more || process->ours;
        }
    }
}

static void scan(struct table *table)
{
    size_t len = 0;

    read_all(table);
    mark_ours(table);
    for (size_t i = 0; i < table->len; i++)
        if (table->list[i].ours)
            table->list[len++] = table->list[i];
    table->len = len;
}

/* ---- All of them ---- */

bool family_is_known(void)
{
    char text[16];
    ssize_t len = readlink("/proc/self", text, sizeof text - 1);

    if (len <= 0)
        return false;
    text[len] = 0;
    return atoi(text) == getpid();
}

bool family_is_there(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static int compare_groups(const void *a, const void *b)
{
    pid_t first = ((const struct process *)a)->group, second = ((const struct process *)b)->group;

    return (first > second) - (first < second);
}

static bool lists_children(void)
{
    char path[PATH_MAX_LEN];

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)syscall(SYS_gettid));
    return access(path, F_OK) == 0;
}

static void fill(struct table *table)
{
    table->len = 0;
    table->moved = 0;
    table->hidden = !family_is_known();
    if (table->hidden)
        return;
    if (lists_children())
        walk(table);
    else
        scan(table);
    if (table->len > 0)
        qsort(table->list, table->len, sizeof *table->list, compare_groups);
}

/* The index behind the group of process i.  The table is sorted by groups. */
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
        count->zombies += is_our_child(process);
        return;
    }
    result = whole || signal == 0 ? kill(process->pid, 0) : signal_process(process, signal);
    if (result == 0)
        count->alive++;
    else if (errno == EPERM)
        count->immune++;
    else if (errno != ESRCH)
        count->hidden = true;
    if (result == 0 && !whole && signal == SIGTERM)
        (void)signal_process(process, SIGCONT);
}

/* The kernel signals a group at once, so a process that forks and ends all the time cannot escape.
 * /proc may never show that process itself, only a zombie that it left, which is in its group. */
static struct family_count signal_table(const struct table *table, int signal, pid_t group)
{
    struct family_count count = {.zombies = table->moved};
    size_t end;

    for (size_t i = 0; i < table->len; i = end) {
        const pid_t one = table->list[i].group;
        bool whole;

        end = end_of_group(table, i);
        if (!is_meant(one, group))
            continue;
        whole = signal != 0 && (one == group || is_made_by_us(table, i, end));
        if (whole)
            (void)kill(-one, signal);
        if (whole && signal == SIGTERM)
            (void)kill(-one, SIGCONT);
        for (size_t k = i; k < end; k++)
            signal_one(&table->list[k], signal, whole, &count);
    }
    return count;
}

/* True: some descendants may be hidden.  With hidepid=2, and a kernel that lists no children, we
 * have children and see none. */
static bool is_short(const struct table *table)
{
    return table->hidden || (table->len == 0 && table->moved == 0 && family_is_there());
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

/* A process that forks and ends may escape a walk, but leaves another zombie for the next one, or
 * none.  So the group has only zombies if two walks find the same. */
static bool has_only_zombies(struct table *table, pid_t group)
{
    const unsigned long long sum = sum_of_group(table, group);

    if (sum == 0)
        return false;
    fill(table);
    return table->moved == 0 && sum_of_group(table, group) == sum;
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

struct family_count family_signal(int signal, pid_t group)
{
    struct family_count count;

    if (!family_is_there())
        return (struct family_count){.alive = 0};
    fill(&table);
    count = signal_table(&table, signal, group);
    count.hidden = count.hidden || is_short(&table);
    if (group > 0 && count.alive + count.immune == 0)
        ask_the_kernel(&table, signal, group, &count);
    return count;
}

/* Stop the processes that run.  Returns how many got SIGSTOP. */
static unsigned stop_those_that_run(const struct table *all)
{
    unsigned len = 0;

    for (size_t i = 0; i < all->len; i++) {
        const struct process *process = &all->list[i];

        if (process->alive && !process->stopped && !process->unread)
            len += signal_process(process, SIGSTOP) == 0;
    }
    return len;
}

struct family_count family_kill(void)
{
    struct family_count count;
    unsigned turn = 0;

    if (!family_is_there())
        return (struct family_count){.alive = 0};
    table.stops = true;
    do
        fill(&table);
    while (stop_those_that_run(&table) > 0 && ++turn < STOP_TURNS);
    table.stops = false;
    count = signal_table(&table, SIGKILL, 0);
    count.hidden = count.hidden || is_short(&table);
    return count;
}
