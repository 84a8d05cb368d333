"""A program on a terminal of its own, and what that terminal shows."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unicodedata

sys.dont_write_bytecode = True

from command import tools  # noqa: E402 pylint: disable=wrong-import-position
from shell import default_signals  # noqa: E402 pylint: disable=wrong-import-position

ERASE_BELOW = "\033[J"  # The end of a page.
SEQUENCE = re.compile(r"\033\[([0-9;?]*)([A-Za-z])")
BEGUN = re.compile(r"\033(\[[0-9;?]*)?")


class Screen:
    """Draws as a terminal does: text, line ends, and the few sequences that `redlock list` may write.

    A character in the last column leaves the cursor there until another one follows, as in xterm."""

    def __init__(self, rows, columns):
        self.size, self.at, self.colour, self.scrolled = (rows, columns), (0, 0), "", 0
        self.broken = 0  # Sequences that are not whole.  ^C drops what a terminal has not taken yet.
        self.cells = [[(" ", "")] * columns for _ in range(rows)]

    def erase(self, row, column, to_row):
        self.cells[row][column:] = [(" ", "")] * (self.size[1] - column)
        for other in range(row + 1, to_row):
            self.cells[other] = [(" ", "")] * self.size[1]

    def feed_line(self):
        row, column = self.at
        if row + 1 == self.size[0]:
            self.cells = self.cells[1:] + [[(" ", "")] * self.size[1]]
            self.scrolled += 1
        self.at = min(row + 1, self.size[0] - 1), column

    def put(self, char):
        width = 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if self.at[1] + width > self.size[1]:
            self.feed_line()
            self.at = self.at[0], 0
        self.cells[self.at[0]][self.at[1]] = (char, self.colour)
        if width == 2:
            self.cells[self.at[0]][self.at[1] + 1] = ("", self.colour)
        self.at = self.at[0], self.at[1] + width

    def obey(self, numbers, letter):
        row, column = self.at[0], min(self.at[1], self.size[1] - 1)
        if letter == "H" and not numbers:
            self.at = 0, 0
        elif letter == "K" and not numbers:
            self.erase(row, column, row)
        elif letter == "J" and not numbers:
            self.erase(row, column, self.size[0])
        elif letter == "m":
            self.colour = numbers.strip("0")
        else:
            raise AssertionError(f"a sequence that needs no terminal: ESC [ {numbers} {letter}")

    def feed(self, text):
        """Draw it.  Returns the end that is no whole sequence yet."""
        at = 0
        while at < len(text):
            if text[at] == "\033":
                found = SEQUENCE.match(text, at)
                begun = BEGUN.match(text, at)
                if not found and begun.end() == len(text):
                    break
                if found:
                    self.obey(*found.groups())
                else:
                    self.broken += 1
                at = (found or begun).end()
                continue
            if text[at] == "\n":
                self.feed_line()
            elif text[at] == "\r":
                self.at = self.at[0], 0
            else:
                assert text[at].isprintable(), repr(text[at])
                self.put(text[at])
            at += 1
        return text[at:]

    def lines(self):
        return ["".join(char for char, _ in row).rstrip() for row in self.cells]

    def colours(self):
        """The colour in which each line begins."""
        return [row[0][1] for row in self.cells]


class Terminal:
    """redlock ARGS on a terminal of this size."""

    def __init__(self, rows, columns, *args, **env):
        env = tools.environment(**{"TERM": "xterm", "NO_COLOR": None, **env})
        self.screen, self.seen, self.undrawn = Screen(rows, columns), "", ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            default_signals()
            os.execve(tools.redlock, ["redlock", *tools.PATIENT, *args], env)

    def resize(self, rows, columns, told=True):
        """From now on the terminal is of another size, and empty."""
        self.screen = Screen(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows * told, columns * told, 0, 0))

    def read(self):
        """False: it was the end."""
        assert select.select([self.fd], [], [], tools.BOUND_S)[0], f"nothing more comes after {self.seen!r}"
        try:
            data = os.read(self.fd, 65536).decode()
        except OSError:  # The program has ended, and all is read.
            return False
        self.seen += data
        self.undrawn += data
        return data != ""

    def draw(self):
        """Draw up to the end of the next page, or all."""
        page, end, rest = self.undrawn.partition(ERASE_BELOW)
        self.undrawn = self.screen.feed(page + end) + rest

    def wait_for(self, wanted, what):
        """Until the terminal shows lines that `wanted` accepts; it sees each page.  Returns these lines."""
        until = time.monotonic() + tools.BOUND_S
        while not wanted(self.screen.lines()):
            shown = "\n".join(self.screen.lines())
            assert time.monotonic() < until, f"{what}: not shown, but\n{shown}"
            if ERASE_BELOW not in self.undrawn and select.select([self.fd], [], [], 1)[0]:
                assert self.read(), f"{what}: it ended, with\n{shown}"
            self.draw()
        assert self.screen.broken == 0, self.seen
        return self.screen.lines()

    def next_page(self):
        drawn = self.seen.count(ERASE_BELOW) - self.undrawn.count(ERASE_BELOW)
        return self.wait_for(lambda _: self.seen.count(ERASE_BELOW) - self.undrawn.count(ERASE_BELOW) > drawn, "a page")

    def end(self, number=signal.SIGINT):
        """Type ^C, or send another signal.  Returns the signal that has ended the program."""
        if number == signal.SIGINT:
            os.write(self.fd, b"\003")
        else:
            os.kill(self.pid, number)
        while self.read():
            pass
        while ERASE_BELOW in self.undrawn:
            self.draw()
        self.draw()
        return self.reap()

    def hang_up(self):
        """As an ssh that ends.  Returns the signal that has ended the program."""
        os.close(self.fd)
        self.fd = None
        return self.reap()

    def reap(self):
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.fd is not None:
            os.close(self.fd)
