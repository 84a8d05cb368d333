/*
 * leash.c - forks the guardian, sends orders to it, and receives its reports.
 */
#include "redlock/cli/run/leash.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redlock/cli/run/guardian.h"

/* A guardian that has nothing to do ends in less than a millisecond.  Chosen: long enough for a
 * busy machine, and short enough to wait for one that was stopped. */
#define END_WITHIN_MS 1000

/* How many orphans to reap at a time, because processes that fork and end all the time always leave
 * one more.  Chosen: it takes a few ms. */
#define BURY_MAX 5000

/* True: a program that ran in this process before exec left children. */
static bool have_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static struct leash_shared *share(void)
{
    void *memory = mmap(NULL, sizeof(struct leash_shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory != MAP_FAILED ? memory : NULL;
}

int leash_open(struct leash *leash, struct cli *cli, const char *name, char **argv)
{
    struct guardian_job job = {.cli = cli, .name = name, .argv = argv};
    sigset_t all;
    int pair[2];

    leash->had_children = have_children();
    leash->shared = share();
    if (leash->shared == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    /* The guardian starts with every signal blocked. */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &job.mask);
    leash->pid = fork();
    if (leash->pid == 0) {
        (void)close(pair[0]);
        job.socket = pair[1];
        job.shared = leash->shared;
        guardian_main(&job);
    }
    (void)sigprocmask(SIG_SETMASK, &job.mask, NULL);
    (void)signal(SIGCHLD, SIG_DFL); /* If ignored, the kernel would reap the guardian. */
    (void)close(pair[1]);
    leash->socket = pair[0];
    if (leash->pid > 0 && !leash->had_children)
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    return leash->pid > 0 ? 0 : -1;
}

/* Continue the guardian if it was stopped.  A guardian that runs does not notice. */
static void wake(const struct leash *leash)
{
    if (leash->pid != 0)
        (void)kill(leash->pid, SIGCONT);
}

/* The clock is read before the rest of the lease: the end is never too late. */
void leash_renew(struct leash *leash, const struct redlock_lease *lease)
{
    drift_time now = 0;

    wake(leash);
    if (drift_now(&now) != 0)
        return;
    atomic_store(&leash->shared->end,
                 deadline_end(atomic_load(&leash->shared->end), now, redlock_remaining_ms(lease)));
}

int leash_order(const struct leash *leash, const struct leash_order *order)
{
    ssize_t len = send(leash->socket, order, sizeof *order, MSG_NOSIGNAL | MSG_DONTWAIT);
    int error = len < 0 ? errno : 0;

    wake(leash);
    errno = error;
    return error != 0 && error != EAGAIN ? -1 : 0;
}

int leash_report(const struct leash *leash, struct leash_report *ret_report)
{
    struct leash_report report;
    ssize_t len = -1;

    /* If the guardian died with unread orders, an error comes before its last reports. */
    for (int i = 0; i < 3 && len < 0; i++) {
        len = recv(leash->socket, &report, sizeof report, MSG_DONTWAIT);
        if (len < 0 && errno == EAGAIN)
            return 0;
    }
    if (len != (ssize_t)sizeof report)
        return -1;
    *ret_report = report;
    return 1;
}

void leash_bury(struct leash *leash)
{
    if (leash->pid != 0 && waitpid(leash->pid, &leash->status, WNOHANG) == leash->pid)
        leash->pid = 0;
    for (unsigned i = 0; i < BURY_MAX && !leash->had_children; i++)
        if (waitpid(-1, NULL, WNOHANG) <= 0)
            break;
}

/* The guardian ends by itself, unless it was stopped. */
static void end_guardian(pid_t pid)
{
    struct pollfd guardian = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

    (void)kill(pid, SIGCONT);
    if (guardian.fd >= 0) { /* Linux before 5.3 has none. */
        (void)poll(&guardian, 1, END_WITHIN_MS);
        (void)close(guardian.fd);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

void leash_close(struct leash *leash)
{
    /* Descendants that go on get the parent that they would have without us. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
    (void)close(leash->socket);
    if (leash->pid != 0)
        end_guardian(leash->pid);
    (void)munmap(leash->shared, sizeof *leash->shared);
}
