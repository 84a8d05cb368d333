/*
 * runner.c - a thread that lets `redlock run` hold the lock while our command works; command.h has
 * their messages.
 *
 * A hold begins with the first message of the command, and ends with its last.  It claims no
 * deadline, because the command knows none; its writes have one, by its trust.  A fault that stops
 * or kills the client must hit all of its processes, also the guardian of `redlock`: see THE
 * CONTRACT OF RUN in redlock(1).
 */
#include "partition/command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "partition/hold.h"
#include "partition/holder.h"

#define POLL_MS 20
/* A bound for a hang, in units of POLL_MS: far more than waiting, holding and losing take.  A count
 * instead of a time, because a stopped process does not count. */
#define POLLS_MAX 3000
#define SAID_MAX 1000 /* The part of standard error of `redlock` that is read. */
#define TEXT_MAX 32
#define PLAN_MAX 96
#define ARGS_MAX 24

/* Exit codes of redlock(1). */
enum { EXIT_UNREACHABLE = 69, EXIT_HELD = 75, EXIT_LOST = 76, EXIT_CHANGE = 78, EXIT_SIGNAL = 128 };

struct run {
    struct hold hold;
    int socket, said; /* Our end of the socket, and a file for standard error. */
    pid_t pid;
    bool begun, ended; /* The state of the hold; released: it ended by a release. */
    bool released;
    bool late;         /* The command began too late to hold anything. */
    bool asked_to_end; /* It was asked to end before the hold had begun. */
    uint64_t stamp_ns; /* The time in the last message of the command. */
    uint64_t alive_ns; /* The last time at which the command is known to have run. */
};

/* ---- What the command says ---- */

static const struct record *record_of(const struct run *run)
{
    return &run->hold.worker->holder->record;
}

static uint64_t trust_ns(const struct run *run)
{
    return run->hold.ttl_ms * NS_PER_MS / COMMAND_TRUST_SHARE;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void tell_begin(struct run *run, const struct command_message *message)
{
    char numbers[HOLD_NUMBERS_MAX];

    run->begun = true;
    run->hold.permit = message->permit;
    record_line(record_of(run), message->t_ns, "ok",
                ",\"id\":\"%s\",\"deadline\":null,\"token\":\"%.*s\"%s", run->hold.id,
                COMMAND_TOKEN_MAX, message->token,
                hold_numbers(numbers, message->fence, message->permit));
}

static void tell_lost(struct run *run, uint64_t t_ns, const char *why)
{
    run->ended = true;
    record_line(record_of(run), t_ns, "lost", ",\"id\":\"%s\",\"why\":\"%s\"", run->hold.id, why);
}

/* What it may have written in the meantime belongs to the hold. */
static void write_for(struct run *run, uint64_t t_ns)
{
    uint64_t until_ns = t_ns + trust_ns(run);

    hold_write(&run->hold, until_ns);
    run->alive_ns = earlier(tool_now_ns(), until_ns);
}

static void on_message(struct run *run, const struct command_message *message)
{
    uint64_t trusted_until_ns = run->stamp_ns + trust_ns(run);

    run->stamp_ns = run->alive_ns = message->t_ns;
    switch (message->what) {
    case COMMAND_BEGINS:
        tell_begin(run, message);
        break;
    case COMMAND_LATE:
        run->late = true;
        break;
    case COMMAND_STEPS:
        break;
    case COMMAND_WRITES:
        write_for(run, message->t_ns);
        break;
    case COMMAND_ENDS:
        run->ended = run->released = true;
        record_line(record_of(run), message->t_ns, "release", ",\"id\":\"%s\"", run->hold.id);
        break;
    case COMMAND_TOLD:
        tell_lost(run, message->t_ns, "told");
        break;
    case COMMAND_STOPPED:
        tell_lost(run, earlier(message->t_ns, trusted_until_ns), "stopped");
        break;
    }
}

/* False: the command has closed the socket. */
static bool receive(struct run *run)
{
    struct command_message message;
    struct command_answer answer;

    if (recv(run->socket, &message, sizeof message, 0) != sizeof message)
        return false;
    message.token[COMMAND_TOKEN_MAX] = 0;
    on_message(run, &message);
    answer.finish = atomic_load(&run->hold.worker->holder->stopping);
    (void)send(run->socket, &answer, sizeof answer, MSG_NOSIGNAL); /* It may be dead by now. */
    return true;
}

/* ---- The processes ---- */

/* The words that differ from one attempt to the next. */
struct words {
    char ttl[TEXT_MAX], max_ttl[TEXT_MAX], wait[TEXT_MAX], timeout[TEXT_MAX], plan[PLAN_MAX];
    char permits[TEXT_MAX];
    char *names;
};

/* `redlock run`, with its options and the command.  Its words are not const, but only
 * because exec is older than that. */
static void run_redlock(const struct run *run, const struct words *words)
{
    const struct holder *holder = run->hold.worker->holder;
    const char *list[ARGS_MAX] = {"redlock",         "run",
                                  "--ttl",           words->ttl,
                                  "--wait",          words->wait,
                                  "--max-ttl",       words->max_ttl,
                                  "--restart-guard", holder->restart_guard,
                                  "--clock-guard",   holder->clock_guard,
                                  "--reply-timeout", words->timeout};
    const char **next = &list[14];
    char *args[ARGS_MAX];

    if (holder->masters_file != NULL) {
        *next++ = "--masters-file";
        *next++ = holder->masters_file;
    }
    if (run->hold.fenced)
        *next++ = "--fence";
    if (run->hold.resource->mode == MODE_FAIR)
        *next++ = "--fair";
    if (run->hold.reads)
        *next++ = "--shared";
    if (run->hold.resource->mode == MODE_PERMIT) {
        *next++ = "--permits";
        *next++ = words->permits;
    }
    *next++ = words->names;
    *next++ = "--";
    *next++ = holder->program;
    *next++ = "--" COMMAND_OPTION;
    *next++ = words->plan;
    memcpy(args, list, sizeof args);
    (void)execv(holder->redlock, args);
}

/* Runs between fork and exec, so only what is safe in a signal handler. */
static void become(const struct run *run, const struct words *words, int command_end, pid_t parent)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(run->said, STDERR_FILENO) < 0 ||
        fcntl(command_end, F_SETFD, 0) != 0)
        _exit(126);
    run_redlock(run, words);
    _exit(127);
}

static void start(struct run *run)
{
    const struct hold *hold = &run->hold;
    pid_t parent = getpid();
    struct words words;
    int pair[2];

    run->said = memfd_create("said", MFD_CLOEXEC);
    if (run->said < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        tool_die("no socket: %s", strerror(errno));
    run->socket = pair[0];
    (void)snprintf(words.ttl, TEXT_MAX, "%" PRIu32 "ms", hold->ttl_ms);
    (void)snprintf(words.max_ttl, TEXT_MAX, "%" PRIu32 "ms", run->hold.worker->holder->ttl_ms);
    (void)snprintf(words.wait, TEXT_MAX, "%" PRIu32 "ms", hold->wait_ms);
    (void)snprintf(words.timeout, TEXT_MAX, "%" PRIu32 "ms",
                   hold->worker->holder->reply_timeout_ms);
    (void)snprintf(words.plan, PLAN_MAX, "%d %" PRIu32 " %" PRIu32 " %d %" PRIu64, pair[1],
                   hold->ttl_ms, hold->hold_ms, hold->stubborn, dice_next(&hold->worker->dice));
    (void)snprintf(words.permits, TEXT_MAX, "%" PRIu32, hold->resource->permits);
    words.names = hold_names(hold);
    run->pid = fork();
    if (run->pid == 0)
        become(run, &words, pair[1], parent);
    free(words.names);
    if (run->pid < 0)
        tool_die("cannot fork: %s", strerror(errno));
    (void)close(pair[1]);
}

/* Serve the command until all processes are gone. */
static void attend(struct run *run)
{
    struct pollfd readable = {run->socket, POLLIN, 0};

    for (unsigned polls = 0; polls < POLLS_MAX;) {
        if (poll(&readable, 1, POLL_MS) > 0) {
            if (!receive(run))
                return;
            continue;
        }
        polls++;
        if (!run->begun && !run->asked_to_end && atomic_load(&run->hold.worker->holder->stopping)) {
            run->asked_to_end = true;
            (void)kill(run->pid, SIGTERM);
        }
    }
    fprintf(stderr, "%s: redlock run does not end: killed\n", run->hold.id);
    (void)kill(run->pid, SIGKILL);
}

/* The exit code of `redlock`, as a shell gives it. */
static int join(struct run *run)
{
    int status;

    (void)close(run->socket);
    while (waitpid(run->pid, &status, 0) != run->pid)
        if (errno != EINTR)
            tool_die("cannot wait for redlock: %s", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
}

/* ---- How it ended ---- */

static void tell_failed(struct run *run, int code, const char *said)
{
    if (run->late) {
        hold_failed_as(&run->hold, "RAN_OUT");
    } else if (code == EXIT_HELD) {
        hold_failed(&run->hold, REDLOCK_CONTENDED);
    } else if (code == EXIT_UNREACHABLE) {
        hold_failed(&run->hold, REDLOCK_UNREACHABLE);
    } else if (code == EXIT_CHANGE) {
        hold_failed(&run->hold, REDLOCK_E_WRONG_SET);
    } else if (code == EXIT_LOST) {
        hold_failed_as(&run->hold, "RAN_OUT"); /* The command had sent no message yet. */
    } else if (run->asked_to_end) {
        hold_failed_as(&run->hold, "CANCELLED");
    } else {
        hold_failed_as(&run->hold, "E_COMMAND");
        fprintf(stderr, "%s: redlock run ended with %d: %s\n", run->hold.id, code, said);
    }
}

/* A stubborn command may end by itself after `redlock` has asked it to.  Then `redlock` reports
 * that the lock is lost, even if masters still store it. */
static void tell_released(struct run *run, int code, const char *said)
{
    bool unconfirmed = strstr(said, "may be held for") != NULL;
    bool not_held = strstr(said, "was lost while the command ran") != NULL;

    if (code == 0)
        hold_released(&run->hold, unconfirmed ? REDLOCK_UNREACHABLE : REDLOCK_OK);
    else if (code == EXIT_LOST)
        hold_released_as(&run->hold, not_held ? hold_word(REDLOCK_LOST) : "TOLD");
    else
        hold_released_as(&run->hold, "E_COMMAND");
}

static void conclude(struct run *run, int code)
{
    char said[SAID_MAX];
    ssize_t len = pread(run->said, said, sizeof said - 1, 0);

    said[len > 0 ? len : 0] = 0;
    (void)close(run->said);
    if (!run->begun)
        tell_failed(run, code, said);
    else if (!run->ended)
        tell_lost(run, run->alive_ns, "killed");
    else if (run->released)
        tell_released(run, code, said);
}

/* Returns how long to nap before the next attempt. */
static uint32_t attempt(struct worker *worker)
{
    struct run run = {0};

    hold_plan(&run.hold, worker, NULL);
    hold_invoke(&run.hold);
    start(&run);
    attend(&run);
    conclude(&run, join(&run));
    return dice_range(&worker->dice, 20, 200);
}

void *runner_thread(void *arg)
{
    struct worker *worker = arg;

    while (!atomic_load(&worker->holder->stopping))
        holder_nap(worker->holder, attempt(worker));
    storelink_close(&worker->store);
    return NULL;
}
