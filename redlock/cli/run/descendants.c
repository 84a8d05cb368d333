/*
 * descendants.c - walks from children to their children in /proc.
 */
#include "redlock/cli/run/descendants.h"

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

/* Enough for /proc/PID/task/TID/children. */
#define PATH_MAX_LEN 64

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

enum seen descendants_read(pid_t pid, struct process *ret_process)
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

bool descendants_is_child(const struct process *process)
{
    return process->parent == getpid();
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

/* Without a clock the search has no bound. */
static bool is_late(struct table *table)
{
    drift_time now;

    if (drift_now(&now) != 0 || now < table->until)
        return false;
    table->late = true;
    return true;
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

    if (table->signal != 0 && parent == getpid()) /* At once: it may fork and end. */
        (void)kill(pid, table->signal);
    if (table->is_blind || (table->again && has(table, pid)))
        return;
    seen = descendants_read(pid, &process);

    if (seen == SEEN && (process.parent == parent || descendants_is_child(&process))) {
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
    ssize_t len = 0;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)task);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return seen_by_error();
    while (!is_late(table) && (len = read(fd, text, sizeof text)) > 0)
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
    for (size_t i = first; i < table->len && !is_late(table); i++) {
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
    while (!is_late(table) && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        switch (descendants_read((pid_t)atoi(entry->d_name), &process)) {
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
            process->ours = descendants_is_child(process) || (parent != NULL && parent->ours);
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

/* ---- The order ---- */

static int compare_groups(const void *a, const void *b)
{
    const struct process *first = a, *second = b;

    if (first->group != second->group)
        return (first->group > second->group) - (first->group < second->group);
    return (first->place > second->place) - (first->place < second->place);
}

static int compare_places(const void *a, const void *b)
{
    size_t first = ((const struct process *)a)->place, second = ((const struct process *)b)->place;

    return (first > second) - (first < second);
}

/* A group has the place of its first process.  The search finds a parent before its children, so
 * the parent of that process is in an earlier group. */
static void sort(struct table *table)
{
    struct process *list = table->list;

    if (table->len == 0)
        return;
    for (size_t i = 0; i < table->len; i++)
        list[i].place = i;
    qsort(list, table->len, sizeof *list, compare_groups);
    for (size_t i = 1; i < table->len; i++)
        if (list[i].group == list[i - 1].group)
            list[i].place = list[i - 1].place;
    qsort(list, table->len, sizeof *list, compare_places);
}

/* ---- All of them ---- */

bool descendants_are_known(void)
{
    char text[16];
    ssize_t len = readlink("/proc/self", text, sizeof text - 1);

    if (len <= 0)
        return false;
    text[len] = 0;
    return atoi(text) == getpid();
}

static bool lists_children(void)
{
    char path[PATH_MAX_LEN];

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)syscall(SYS_gettid));
    return access(path, F_OK) == 0;
}

void descendants_find(struct table *table)
{
    table->len = 0;
    table->moved = 0;
    table->late = false;
    table->hidden = !descendants_are_known();
    if (table->hidden)
        return;
    if (lists_children())
        walk(table);
    else
        scan(table);
    sort(table);
}

void descendants_signal_children(struct table *table, int signal)
{
    table->signal = signal;
    table->is_blind = true;
    (void)read_tasks(table, getpid());
    table->is_blind = false;
    table->signal = 0;
}

unsigned long long descendants_start_now(void)
{
    drift_time now;

    return drift_now(&now) == 0 ? now / (DRIFT_S / (drift_span)sysconf(_SC_CLK_TCK)) : 0;
}
