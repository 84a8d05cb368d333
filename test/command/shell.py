"""An interactive shell on its own terminal, in which tests type."""

import os
import pty
import re
import select
import shlex
import signal
import sys
import time

sys.dont_write_bytecode = True

from command import tools  # noqa: E402 pylint: disable=wrong-import-position


def patient():
    """A program that is redlock with a longer reply timeout."""
    path = tools.work + "/patient"
    with open(path, "w", encoding="utf-8") as script:
        script.write(f'#!/bin/sh\nexec {shlex.join([tools.redlock, *tools.PATIENT])} "$@"\n')
    os.chmod(path, 0o755)
    return path


def default_signals():
    """A shell without job control starts a program in the background with SIGINT and SIGQUIT ignored."""
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP:
        signal.signal(number, signal.SIG_DFL)


class Shell:
    """An interactive shell on its own terminal, for typing."""

    def __init__(self):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            default_signals()
            os.environ.clear()
            os.environ.update(tools.environment(PS1="$ ", TERM="dumb", REDLOCK=patient(), HISTFILE=""))
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self.wait_for("$ ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGHUP)
        os.close(self.fd)
        tools.eventually(lambda: os.waitpid(self.pid, os.WNOHANG)[0] != 0, "the shell ends")

    def wait_for(self, pattern):
        until = time.monotonic() + tools.BOUND_S
        while not (match := re.search(pattern if pattern != "$ " else r"\$ ", self.seen)):
            ready, _, _ = select.select([self.fd], [], [], max(0, until - time.monotonic()))
            assert ready, f"{pattern!r} is not in {self.seen!r}"
            self.seen += os.read(self.fd, 4096).decode(errors="replace")
        self.seen = self.seen[match.end():]
        return match

    def type(self, text):
        os.write(self.fd, text.encode())

    def command(self, line):
        """Type it.  What the terminal echoes is not what the command prints."""
        self.type(line + "\n")
        self.wait_for(re.escape(line) + "\r\n")

    def exit_code(self):
        self.wait_for("$ ")
        self.command("echo code $?")
        code = int(self.wait_for(r"code (\d+)\r\n").group(1))
        self.wait_for("$ ")
        return code
