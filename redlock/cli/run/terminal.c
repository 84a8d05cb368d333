/*
 * terminal.c - gives the terminal to the command, and takes it back.
 */
#include "redlock/cli/run/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static bool group_has_it(const struct terminal *terminal, pid_t group)
{
    return terminal->fd >= 0 && group != 0 && tcgetpgrp(terminal->fd) == group;
}

void terminal_open(struct terminal *terminal)
{
    terminal->fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    (void)signal(SIGTTOU, SIG_IGN);
}

/* In `redlock run x -- cmd | less`, the other processes are in our group and need the terminal as
 * well.  There the command gets the terminal only when it wants it. */
static bool output_is_piped(void)
{
    struct stat info;

    return fstat(STDOUT_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

bool terminal_is_free(const struct terminal *terminal)
{
    return terminal_we_have_it(terminal) && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
           !output_is_piped();
}

bool terminal_we_have_it(const struct terminal *terminal)
{
    return group_has_it(terminal, getpgrp());
}

bool terminal_command_has_it(const struct terminal *terminal)
{
    return group_has_it(terminal, terminal->command);
}

void terminal_give(const struct terminal *terminal)
{
    if (terminal->command != 0 && terminal_we_have_it(terminal))
        (void)tcsetpgrp(terminal->fd, terminal->command); /* Fails if the terminal is gone. */
}

void terminal_take(const struct terminal *terminal)
{
    if (terminal_command_has_it(terminal))
        (void)tcsetpgrp(terminal->fd, getpgrp()); /* Fails if the terminal is gone. */
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->fd >= 0)
        (void)close(terminal->fd);
    terminal->fd = -1;
}
