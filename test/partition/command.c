/*
 * command.c - what `redlock run` runs: works for a time, and ends.
 */
#include "partition/command.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "partition/holder.h"

#define WRITES_PERMILLE 250 /* Of steps, which take 10 ms or so. */

struct command {
    int fd, ttl_ms, hold_ms, stubborn;
    struct dice dice;
    uint64_t alive_ns; /* The last time at which it was known to run. */
    bool finish;
};

static volatile sig_atomic_t asked_to_end;

static void on_signal(int number)
{
    (void)number;
    asked_to_end = 1;
}

/* If no answer comes, the runner has ended, and the command ends, too. */
static void say(struct command *command, enum command_what what, uint64_t t_ns)
{
    struct command_message message = {.what = what, .t_ns = t_ns};
    struct command_answer answer;
    const char *token = getenv("REDLOCK_TOKEN"), *fence = getenv("REDLOCK_FENCE");
    const char *permit = getenv("REDLOCK_PERMIT");

    message.fence = fence != NULL ? strtoull(fence, NULL, 10) : 0;
    message.permit = permit != NULL ? (unsigned)strtoul(permit, NULL, 10) : 0;
    (void)snprintf(message.token, sizeof message.token, "%s", token != NULL ? token : "none");
    if (send(command->fd, &message, sizeof message, MSG_NOSIGNAL) != sizeof message)
        _exit(1);
    if (recv(command->fd, &answer, sizeof answer, 0) != sizeof answer)
        _exit(1);
    command->finish = answer.finish;
    command->alive_ns = t_ns;
}

/* The age of this process, rounded up, because the kernel gives its start in ticks. */
static uint64_t age_ns(void)
{
    uint64_t ticks = 0, per_s = (uint64_t)sysconf(_SC_CLK_TCK);
    char text[1024];
    struct timespec now;
    const char *rest;
    ssize_t len;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

    len = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[len > 0 ? len : 0] = 0;
    rest = strrchr(text, ')'); /* The end of the name, the second of 52 fields. */
    if (rest == NULL || clock_gettime(CLOCK_BOOTTIME, &now) != 0 ||
        sscanf(rest,
               ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
               "%" SCNu64,
               &ticks) != 1)
        tool_die("cannot find out how old I am");
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec - ticks * (NS_PER_S / per_s);
}

static void work(struct command *command)
{
    uint64_t trust_ns = (uint64_t)command->ttl_ms * NS_PER_MS / COMMAND_TRUST_SHARE;
    uint64_t end_ns = command->alive_ns + (uint64_t)command->hold_ms * NS_PER_MS;
    uint32_t nap_max_ms = (uint32_t)(trust_ns / NS_PER_MS / 3) + 1;

    for (;;) {
        uint64_t now = tool_now_ns();

        if (now - command->alive_ns > trust_ns) {
            say(command, COMMAND_STOPPED, now);
            return;
        }
        if (asked_to_end && !command->stubborn && !command->finish) {
            say(command, COMMAND_TOLD, now);
            return;
        }
        if (command->finish || now >= end_ns) {
            say(command, COMMAND_ENDS, now);
            return;
        }
        say(command, dice_chance(&command->dice, WRITES_PERMILLE) ? COMMAND_WRITES : COMMAND_STEPS,
            now);
        tool_nap_ms(dice_range(&command->dice, 1, nap_max_ms));
    }
}

int command_main(const char *plan)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct command command = {0};
    uint64_t now;

    if (sscanf(plan, "%d %d %d %d %" SCNu64, &command.fd, &command.ttl_ms, &command.hold_ms,
               &command.stubborn, &command.dice.state) != 5)
        tool_die("--" COMMAND_OPTION " is \"%s\"", plan);
    (void)sigaction(SIGTERM, &action, NULL);
    now = tool_now_ns(); /* First: by then it was not older than what comes out. */
    if (age_ns() > (uint64_t)command.ttl_ms * NS_PER_MS / COMMAND_START_SHARE) {
        say(&command, COMMAND_LATE, now);
        return 0;
    }
    say(&command, COMMAND_BEGINS, now);
    work(&command);
    return 0;
}
