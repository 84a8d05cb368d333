/*
 * test-family.c - the descendants of this process are found and signalled, whatever fails.
 */
#include "redlock/cli/run/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/check.h"

/* ---- The kernel's answers, or errors in their place ---- */

static unsigned opened;             /* The number of files and folders. */
static int open_error, pidfd_error; /* 0: the kernel decides. */
static bool lists_no_children;      /* Like a kernel without CONFIG_PROC_CHILDREN. */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* The signals that were sent to processes and groups, but for those that only ask. */
static struct {
    pid_t to;
    int signal;
} sent[100];
static size_t sent_len;

int __real_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal);

int __wrap_kill(pid_t pid, int signal)
{
    if (signal != 0 && sent_len < sizeof sent / sizeof *sent) {
        sent[sent_len].to = pid;
        sent[sent_len++].signal = signal;
    }
    return __real_kill(pid, signal);
}

static void hop_before(const char *path);

int __wrap_open(const char *path, int flags, ...)
{
    opened++;
    hop_before(path);
    if (open_error == 0)
        return __real_open(path, flags);
    errno = open_error;
    return -1;
}

/* Programs that support large files call open() by this name. */
int __wrap_open64(const char *path, int flags, ...)
{
    return __wrap_open(path, flags);
}

DIR *__wrap_opendir(const char *path)
{
    opened++;
    if (open_error == 0)
        return __real_opendir(path);
    errno = open_error;
    return NULL;
}

int __wrap_access(const char *path, int mode)
{
    if (!lists_no_children)
        return __real_access(path, mode);
    errno = ENOENT;
    return -1;
}

long __wrap_syscall(long number, ...)
{
    long args[4];
    va_list list;

    va_start(list, number);
    for (unsigned i = 0; i < 4; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (pidfd_error == 0 || number != SYS_pidfd_open)
        return __real_syscall(number, args[0], args[1], args[2], args[3]);
    errno = pidfd_error;
    return -1;
}

/* ---- A family ---- */

#define LIVE_S 100 /* Chosen: longer than a test.  It ends the family if a test fails. */

/* A child in its own process group has two children.  One is in the same group.  The other has its
 * own session, and a child with its own group. */
struct kin {
    pid_t child;
    int alive; /* A pipe that ends when all are dead. */
};

__attribute__((noreturn)) static void live(int fd)
{
    (void)alarm(LIVE_S);
    if (write(fd, ".", 1) < 0)
        (void)close(fd);
    for (;;)
        pause();
}

__attribute__((noreturn)) static void be_kin(int fd)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)setpgid(0, 0);
    if (fork() == 0)
        live(fd);
    if (fork() == 0) {
        (void)setsid();
        if (fork() == 0) {
            (void)setpgid(0, 0);
            live(fd);
        }
        live(fd);
    }
    live(fd);
}

#define KIN_LEN 4
#define STRANGERS 100 /* Chosen: more than the files that this family needs. */

/* Returns when all processes run. */
static struct kin begin(void)
{
    struct kin kin;
    char byte;
    int pair[2];

    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    CHECK_INT(pipe(pair), 0);
    kin.child = fork();
    if (kin.child == 0) {
        (void)close(pair[0]);
        be_kin(pair[1]);
    }
    (void)setpgid(kin.child, kin.child);
    (void)close(pair[1]);
    kin.alive = pair[0];
    for (unsigned i = 0; i < KIN_LEN; i++)
        CHECK_INT(read(kin.alive, &byte, 1), 1);
    return kin;
}

/* Waits until all processes have ended. */
static void end(struct kin *kin)
{
    char byte;

    CHECK_INT(read(kin->alive, &byte, 1), 0);
    (void)close(kin->alive);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    opened = 0;
    open_error = pidfd_error = 0;
    lists_no_children = false;
}

/* ---- A process that forks and ends ---- */

/* The leader of the group has ended.  The hopper is in its group.  Its parent is not: it has its
 * own session, inherits the processes of the hopper, and has a second child, the witness. */
struct hopping {
    pid_t group, hopper, witness;
    int go, reap; /* Pipes: the hopper forks and ends, and its parent reaps it. */
    int done;     /* A pipe: the parent has noticed that, or has done it. */
    int alive;    /* A pipe with a byte of the process that goes on.  It ends with that process. */
    bool hops;    /* The hopper forks and ends when its file in /proc is opened. */
    bool is_reaped; /* Its parent reaps it when the file of the witness is opened. */
};

static struct hopping hopping;

struct pipes {
    int go[2], reap[2], done[2], alive[2];
};

__attribute__((noreturn)) static void hop_once(const struct pipes *pipes)
{
    char byte;

    (void)alarm(LIVE_S);
    (void)close(pipes->go[1]);
    if (read(pipes->go[0], &byte, 1) == 1 && fork() == 0)
        live(pipes->alive[1]);
    _exit(0);
}

__attribute__((noreturn)) static void be_parent(const struct pipes *pipes)
{
    pid_t pids[2];
    siginfo_t info;
    char byte;

    (void)alarm(LIVE_S);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    pids[0] = fork();
    if (pids[0] == 0)
        hop_once(pipes);
    (void)close(pipes->alive[1]);
    (void)close(pipes->reap[1]);
    (void)setsid();
    pids[1] = fork();
    if (pids[1] == 0)
        live(-1);
    if (write(pipes->done[1], pids, sizeof pids) < 0 ||
        waitid(P_PID, (id_t)pids[0], &info, WEXITED | WNOWAIT) != 0 ||
        write(pipes->done[1], ".", 1) < 0 || read(pipes->reap[0], &byte, 1) != 1)
        _exit(1);
    (void)waitpid(pids[0], NULL, 0);
    live(pipes->done[1]);
}

/* Returns when all processes run, and the leader of the group was reaped. */
static void begin_hopping(void)
{
    struct pipes pipes;
    pid_t pids[2];

    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    CHECK_INT(pipe(pipes.go) + pipe(pipes.reap) + pipe(pipes.done) + pipe(pipes.alive), 0);
    hopping.group = fork();
    if (hopping.group == 0) {
        (void)setpgid(0, 0);
        if (fork() == 0)
            be_parent(&pipes);
        _exit(0);
    }
    (void)close(pipes.go[0]);
    (void)close(pipes.reap[0]);
    (void)close(pipes.done[1]);
    (void)close(pipes.alive[1]);
    hopping.go = pipes.go[1];
    hopping.reap = pipes.reap[1];
    hopping.done = pipes.done[0];
    hopping.alive = pipes.alive[0];
    CHECK_INT(read(hopping.done, pids, sizeof pids), sizeof pids);
    hopping.hopper = pids[0];
    hopping.witness = pids[1];
    CHECK_INT(waitpid(hopping.group, NULL, 0), hopping.group);
}

/* Returns when the hopper is a zombie. */
static void hop(void)
{
    char byte;

    hopping.hops = false;
    CHECK_INT(write(hopping.go, ".", 1), 1);
    CHECK_INT(read(hopping.alive, &byte, 1), 1);
    CHECK_INT(read(hopping.done, &byte, 1), 1);
}

static void reap_hopper(void)
{
    char byte;

    hopping.is_reaped = false;
    CHECK_INT(write(hopping.reap, ".", 1), 1);
    CHECK_INT(read(hopping.done, &byte, 1), 1);
}

static bool is_file_of(pid_t pid, const char *path)
{
    char file[64];

    (void)snprintf(file, sizeof file, "/proc/%d/stat", (int)pid);
    return strcmp(path, file) == 0;
}

static void hop_before(const char *path)
{
    if (hopping.hops && is_file_of(hopping.hopper, path))
        hop();
    else if (!hopping.hops && hopping.is_reaped && is_file_of(hopping.witness, path))
        reap_hopper();
}

static void end_hopping(void)
{
    char byte;

    (void)family_kill(DRIFT_NEVER);
    CHECK_INT(read(hopping.alive, &byte, 1), 0);
    (void)close(hopping.go);
    (void)close(hopping.reap);
    (void)close(hopping.done);
    (void)close(hopping.alive);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}

/* ---- Tests ---- */

TEST(finds_all_whatever_groups_they_have)
{
    for (unsigned i = 0; i < 2; i++) {
        struct kin kin = begin();

        lists_no_children = i == 1;
        CHECK_UINT(family_signal(0, 0, DRIFT_NEVER).alive, KIN_LEN);
        CHECK_UINT(family_signal(0, kin.child, DRIFT_NEVER).alive, 2);
        CHECK_UINT(family_signal(0, -kin.child, DRIFT_NEVER).alive, 2);
        CHECK_UINT(family_signal(0, 0, DRIFT_NEVER).hidden, false);
        CHECK_UINT(family_kill(DRIFT_NEVER).alive, KIN_LEN);
        end(&kin);
    }
    CHECK_UINT(family_signal(SIGKILL, 0, DRIFT_NEVER).alive, 0);
}

/* Called in a process of its own, which ends with its family. */
static int count_opened(void)
{
    (void)begin();
    opened = 0;
    (void)family_signal(SIGKILL, 0, DRIFT_NEVER);
    return opened < STRANGERS ? (int)opened : STRANGERS;
}

/* Other processes of the machine are not examined. */
TEST(costs_go_with_the_number_of_descendants)
{
    pid_t strangers[STRANGERS], counter;
    int status = 0;

    for (unsigned i = 0; i < STRANGERS; i++) {
        strangers[i] = fork();
        if (strangers[i] == 0)
            live(-1);
    }
    counter = fork();
    if (counter == 0)
        _exit(count_opened());
    CHECK_INT(waitpid(counter, &status, 0), counter);
    for (unsigned i = 0; i < STRANGERS; i++)
        (void)kill(strangers[i], SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) > 0);
    CHECK(WEXITSTATUS(status) <= 10 * KIN_LEN);
}

TEST(signals_without_descriptors_of_processes)
{
    static const int errors[] = {EPERM, ENOSYS, EMFILE, ENFILE, ENOMEM};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct kin kin = begin();

        pidfd_error = errors[i];
        CHECK_UINT(family_signal(SIGKILL, 0, DRIFT_NEVER).alive, KIN_LEN);
        end(&kin);
    }
}

/* If no process can be seen, some may still run, so the group is killed. */
TEST(fails_to_the_safe_side)
{
    static const int errors[] = {EMFILE, ENFILE, ENOMEM, EACCES};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct kin kin = begin();
        struct family_count count;

        open_error = errors[i];
        CHECK(family_signal(0, 0, DRIFT_NEVER).hidden);
        count = family_signal(SIGKILL, kin.child, DRIFT_NEVER);
        CHECK(count.hidden && count.alive > 0);
        CHECK(family_kill(DRIFT_NEVER).hidden);
        open_error = 0;
        CHECK_UINT(family_kill(DRIFT_NEVER).hidden, false);
        end(&kin);
    }
}

/* The search finds the zombie, which its parent then reaps, and not the process that goes on in its
 * place. */
TEST(a_process_that_forks_and_ends_during_the_search)
{
    struct family_count count;

    begin_hopping();
    hopping.hops = hopping.is_reaped = true;
    count = family_signal(0, hopping.group, DRIFT_NEVER);
    CHECK(!hopping.hops && !hopping.is_reaped);
    CHECK(count.alive + count.zombies > 0);
    CHECK_UINT(family_signal(SIGKILL, hopping.group, DRIFT_NEVER).alive, 1);
    end_hopping();
}

/* The kernel knows the group as long as its parent does not reap the zombie. */
TEST(a_zombie_of_another_parent_is_not_waited_for)
{
    struct family_count count;
    char byte;

    begin_hopping();
    hop();
    CHECK_UINT(family_signal(SIGKILL, hopping.group, DRIFT_NEVER).alive, 1);
    CHECK_INT(read(hopping.alive, &byte, 1), 0);
    do /* Its descriptors are closed before it is a zombie. */
        count = family_signal(0, hopping.group, DRIFT_NEVER);
    while (count.alive > 0);
    count = family_signal(0, hopping.group, DRIFT_NEVER);
    CHECK_UINT(count.zombies, 0);
    CHECK(count.dead > 0);
    CHECK_INT(kill(-hopping.group, 0), 0);
    end_hopping();
}

/* ---- The order of signals ---- */

/* The index of the first signal to this process or group after the first ones.  sent_len: none. */
static size_t find_sent(size_t from, pid_t to, int signal)
{
    while (from < sent_len && (sent[from].to != to || sent[from].signal != signal))
        from++;
    return from;
}

/* A process that is killed later than others would work on beside the next holder of the lock. */
TEST(stops_all_before_it_kills_any)
{
    struct kin kin = begin();
    size_t stopped = 0, first;

    sent_len = 0;
    CHECK_UINT(family_kill(DRIFT_NEVER).alive, KIN_LEN);
    for (first = 0; first < sent_len && sent[first].signal != SIGKILL; first++)
        stopped += sent[first].to < 0 && sent[first].signal == SIGSTOP;
    CHECK(stopped >= 3); /* The groups. */
    CHECK(first < sent_len);
    for (size_t i = first; i < sent_len; i++)
        CHECK_INT(sent[i].signal, SIGKILL);
    end(&kin);
}

/* In one session: a parent that joined the group of its younger child, and an older child with a
 * group of its own.  The number of that group is smaller. */
struct job {
    pid_t parent, older, younger;
};

__attribute__((noreturn)) static void be_job(int fd)
{
    struct job job = {.older = fork()};

    if (job.older == 0) {
        (void)setpgid(0, 0);
        live(-1);
    }
    (void)setpgid(job.older, job.older);
    job.younger = fork();
    if (job.younger == 0) {
        (void)setpgid(0, 0);
        live(-1);
    }
    (void)setpgid(job.younger, job.younger);
    job.parent = getpid();
    if (setpgid(0, job.younger) != 0 || write(fd, &job, sizeof job) < 0)
        _exit(1);
    live(-1);
}

/* Otherwise the kernel continues the stopped group of the child when its parent dies. */
TEST(kills_children_before_their_parents)
{
    struct job job;
    size_t of_parent, of_child;
    int pair[2];

    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    CHECK_INT(pipe(pair), 0);
    if (fork() == 0) {
        (void)setsid();
        if (fork() == 0)
            be_job(pair[1]);
        live(-1);
    }
    CHECK_INT(read(pair[0], &job, sizeof job), sizeof job);
    CHECK(job.older < job.younger);
    sent_len = 0;
    CHECK_UINT(family_kill(DRIFT_NEVER).alive, 4);
    of_child = find_sent(0, -job.older, SIGKILL);
    of_parent = find_sent(0, -job.younger, SIGKILL);
    CHECK(of_child < of_parent && of_parent < sent_len);
    while (waitpid(-1, NULL, 0) > 0 || family_is_there())
        (void)family_kill(DRIFT_NEVER);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

/* A search that finds too little says so, and the children are killed all the same. */
TEST(a_search_that_may_take_no_time)
{
    struct kin kin = begin();
    struct family_count count = family_signal(0, 0, 0);

    CHECK(count.alive == 0 && count.zombies > 0);
    sent_len = 0;
    count = family_kill(0);
    CHECK(count.zombies > 0);
    while (family_is_there()) {
        (void)family_kill(DRIFT_NEVER);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
    }
    end(&kin);
}

CHECK_MAIN(RUN(finds_all_whatever_groups_they_have), RUN(costs_go_with_the_number_of_descendants),
           RUN(signals_without_descriptors_of_processes), RUN(fails_to_the_safe_side),
           RUN(a_process_that_forks_and_ends_during_the_search),
           RUN(a_zombie_of_another_parent_is_not_waited_for), RUN(stops_all_before_it_kills_any),
           RUN(kills_children_before_their_parents), RUN(a_search_that_may_take_no_time))
