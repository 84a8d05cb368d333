/*
 * terminal.h - who has the terminal: our process group, or the command's.
 */
#ifndef REDLOCK_TERMINAL_H
#define REDLOCK_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
    int fd;        /* Of our controlling terminal; -1: we have none. */
    pid_t command; /* The process group of the command; 0: not known yet. */
};

/* Open the terminal.  From here on SIGTTOU is ignored: a message of ours could stop us
 * (stty tostop) once the terminal is the command's, and so could taking it back. */
void terminal_open(struct terminal *terminal);

/* Whether the command is to have it from the start: it is our standard input, we have it, and
 * no pipeline needs it. */
bool terminal_is_free(const struct terminal *terminal);

bool terminal_we_have_it(const struct terminal *terminal);
bool terminal_command_has_it(const struct terminal *terminal);

/* Hand it over, if we have it; take it back, if the command has it. */
void terminal_give(const struct terminal *terminal);
void terminal_take(const struct terminal *terminal);

void terminal_close(struct terminal *terminal);

#endif /* REDLOCK_TERMINAL_H */
