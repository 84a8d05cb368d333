/*
 * terminal.h - the terminal, which our process group has, or the command's.
 */
#ifndef REDLOCK_TERMINAL_H
#define REDLOCK_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
    int fd;        /* Our controlling terminal.  -1: we have none. */
    pid_t command; /* The process group of the command.  0: not known yet. */
};

/* Open the terminal, and ignore SIGTTOU from here on.  While the command has the terminal, SIGTTOU
 * could stop us when we print a message (stty tostop), or take the terminal back. */
void terminal_open(struct terminal *terminal);

/* True: the command gets the terminal from the start, because it is our standard input, we have it,
 * and no pipeline needs it. */
bool terminal_is_free(const struct terminal *terminal);

bool terminal_we_have_it(const struct terminal *terminal);
bool terminal_command_has_it(const struct terminal *terminal);

/* Give it to the command, if we have it.  Take it back, if the command has it. */
void terminal_give(const struct terminal *terminal);
void terminal_take(const struct terminal *terminal);

void terminal_close(struct terminal *terminal);

#endif /* REDLOCK_TERMINAL_H */
