/*
 * family.c - reads /proc, and signals by descriptors of processes.
 */
#include "redlock/cli/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Enough for the fields of /proc/PID/stat up to the start time: a name of 64 bytes at
 * the most, and 21 numbers. */
#define STAT_MAX 600

struct process {
    pid_t pid, parent, group;
    unsigned long long started; /* In ticks since the start of the machine. */
    bool alive;                 /* No zombie. */
    bool ours;                  /* A descendant of this process. */
    bool grouped;               /* It gets its signal with its process group. */
};

struct table {
    struct process *list;
    size_t len, max;
};

/* ---- One process ---- */

/* The file without its name's parentheses is numbers; proc(5) numbers them from 3 behind. */
static bool parse_stat(const char *text, struct process *process)
{
    const char *behind = strrchr(text, ')');
    long threads;
    char state;

    if (behind == NULL ||
        sscanf(behind + 1,
               " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld "
               "%*d %llu",
               &state, &process->parent, &process->group, &threads, &process->started) != 5)
        return false;
    /* A process whose first thread has ended looks like a zombie, and is none. */
    process->alive = (state != 'Z' && state != 'X') || threads > 1;
    process->ours = process->grouped = false;
    return true;
}

/* Errors that say nothing of a process, and pass. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ||
           error == EINTR;
}

/* 1: *ret_process is the process; 0: it is gone, or not ours to see; -1: nobody knows. */
static int read_process(pid_t pid, struct process *ret_process)
{
    struct process process = {.pid = pid};
    char text[STAT_MAX];
    char path[32];
    ssize_t len;
    int fd, error;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return is_shortage(errno) ? -1 : 0;
    len = read(fd, text, sizeof text - 1);
    error = errno;
    (void)close(fd);
    if (len < 0)
        return is_shortage(error) ? -1 : 0;
    text[len] = 0;
    if (!parse_stat(text, &process))
        return 0;
    *ret_process = process;
    return 1;
}

/* A number may be another process's by now: what we signal is the one that we saw. */
static int signal_process(const struct process *process, int signal)
{
    struct process again;
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    int result = -1, seen;

    if (fd < 0 && errno == ESRCH)
        return -1;
    seen = read_process(process->pid, &again);
    if (seen < 0)
        errno = EAGAIN;
    else if (seen == 0 || again.started != process->started)
        errno = ESRCH;
    else if (fd < 0) /* Linux before 5.3, a filter of system calls, too many descriptors. */
        result = kill(process->pid, signal);
    else
        result = (int)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
    if (fd >= 0) {
        int error = errno;

        (void)close(fd);
        errno = error;
    }
    return result;
}

/* ---- All of them ---- */

static bool append(struct table *table, const struct process *process)
{
    if (table->len == table->max) {
        size_t max = table->max != 0 ? 2 * table->max : 512;
        struct process *list = realloc(table->list, max * sizeof *list);

        if (list == NULL)
            return false;
        table->list = list;
        table->max = max;
    }
    table->list[table->len++] = *process;
    return true;
}

static int compare(const void *a, const void *b)
{
    pid_t first = ((const struct process *)a)->pid, second = ((const struct process *)b)->pid;

    return (first > second) - (first < second);
}

/* Where the list is short, what is found is signalled at least.  Returns how many processes could
 * not be looked at; 1 stands for all that were not reached. */
static unsigned read_all(struct table *table)
{
    DIR *folder = opendir("/proc");
    struct process process;
    struct dirent *entry;
    unsigned unseen = 0;
    int seen;

    table->len = 0;
    if (folder == NULL)
        return is_shortage(errno);
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        seen = read_process((pid_t)atoi(entry->d_name), &process);
        unseen += seen < 0;
        if (seen > 0 && !append(table, &process)) {
            unseen++;
            break;
        }
    }
    (void)closedir(folder);
    if (table->len > 0)
        qsort(table->list, table->len, sizeof *table->list, compare);
    return unseen;
}

/* Each turn goes down by one generation at least, so that it ends. */
static void mark_ours(struct table *table)
{
    pid_t self = getpid();
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < table->len; i++) {
            struct process *process = &table->list[i];
            const struct process key = {.pid = process->parent};
            const struct process *parent;

            if (process->ours)
                continue;
            parent = bsearch(&key, table->list, table->len, sizeof key, compare);
            process->ours = process->parent == self || (parent != NULL && parent->ours);
            more = more || process->ours;
        }
    }
}

bool family_is_known(void)
{
    char text[16];
    ssize_t len = readlink("/proc/self", text, sizeof text - 1);

    if (len < 0)
        return is_shortage(errno); /* It is there, as far as we know. */
    text[len] = 0;
    return atoi(text) == getpid();
}

static bool is_meant(const struct process *process, pid_t group)
{
    if (!process->ours)
        return false;
    return group > 0 ? process->group == group : process->group != -group;
}

/* True: no process of somebody else's is in this group.  0 is a group of another PID
 * namespace, and -1 would mean everybody to kill(). */
static bool is_ours_alone(const struct table *table, pid_t group)
{
    if (group <= 1 || group == getpgrp())
        return false;
    for (size_t i = 0; i < table->len; i++)
        if (table->list[i].group == group && !table->list[i].ours)
            return false;
    return true;
}

/* The kernel signals a group in one go: a process that forks and ends all the time cannot
 * escape.  The group of a zombie may be all that we see of it. */
static void signal_groups(struct table *table, int signal, pid_t group)
{
    for (size_t i = 0; i < table->len; i++) {
        const pid_t one = table->list[i].group;

        if (!is_meant(&table->list[i], group) || table->list[i].grouped ||
            !is_ours_alone(table, one))
            continue;
        (void)kill(-one, signal);
        for (size_t k = i; k < table->len; k++)
            if (table->list[k].group == one)
                table->list[k].grouped = true;
    }
}

/* Those that got the signal with their group are only looked at. */
static void signal_one(const struct process *process, int signal, struct family_count *count)
{
    if (!process->alive)
        count->zombies += process->parent == getpid();
    else if (signal_process(process, process->grouped ? 0 : signal) == 0)
        count->alive++;
    else if (errno == EPERM)
        count->immune++;
    else if (errno != ESRCH)
        count->unseen++;
}

struct family_count family_signal(int signal, pid_t group)
{
    static struct table table;
    struct family_count count = {0, 0, 0, 0};

    if (!family_is_known())
        return count;
    count.unseen = read_all(&table);
    mark_ours(&table);
    if (signal != 0)
        signal_groups(&table, signal, group);
    for (size_t i = 0; i < table.len; i++)
        if (is_meant(&table.list[i], group))
            signal_one(&table.list[i], signal, &count);
    return count;
}
