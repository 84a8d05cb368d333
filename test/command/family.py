"""Families of processes, which `redlock run` must end in time."""

import os
import select
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True

from command import tools as cli  # noqa: E402 pylint: disable=wrong-import-position

expect, eventually, BOUND_S = cli.expect, cli.eventually, cli.BOUND_S


# A command that ignores every request to end, and its descendants; argv[2:] chooses them.  "child"
# is in its process group, "group" and "session" have their own, "daemon" has no parent here.
# "nested" is in a session whose parent is in another.  "hopper" is always a new process: it forks,
# and its child goes on.  "guest" is in the group of the guardian, which is never signalled as a
# whole.  Each process holds the FIFO argv[1] open, and writes a byte to it when it has started.
FAMILY = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
fifo = os.open(sys.argv[1], os.O_WRONLY)
null = os.open("/dev/null", os.O_RDWR)
for fd in range(3):
    os.dup2(null, fd)
def here():
    os.write(fifo, b".")
    while True:
        signal.pause()
def group():
    os.setpgid(0, 0)
    here()
def session():
    os.setsid()
    here()
def daemon():
    os.setsid()
    if os.fork() == 0:
        here()
    os._exit(0)
def nested():
    os.setsid()
    if os.fork() == 0:
        session()
    while True:
        signal.pause()
def hopper():
    os.setsid()
    os.write(fifo, b".")
    for _ in range(20000): # Ends even if nothing kills it.
        time.sleep(0.001)
        if os.fork() > 0:
            os._exit(0)
def guest():
    os.setpgid(0, guardian)
    here()
guardian = os.getppid()
for name in sys.argv[2:]:
    if os.fork() == 0:
        {"child": here, "group": group, "session": session, "daemon": daemon, "nested": nested,
         "hopper": hopper, "guest": guest}[name]()
here()
"""
KINDS = ["child", "group", "session", "daemon", "nested", "hopper"]


class Family:
    """A command line for these kinds of descendants, and the reading end of the FIFO."""

    def __init__(self, *kinds, then=None):
        self.path = cli.fifo(f"family-{time.monotonic_ns()}")
        self.fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.size = len(kinds) + 1
        self.command = [sys.executable, "-c", FAMILY, self.path, *kinds]
        if then is not None:  # The command itself does this when all have started.
            self.command[2] = FAMILY.rsplit("here()", 1)[0] + then
            self.size -= 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def arrive(self):
        got = 0
        while got < self.size:
            ready, _, _ = select.select([self.fd], [], [], BOUND_S)
            assert ready, f"{got} of {self.size} are there"
            try:
                got += len(os.read(self.fd, 100))
            except BlockingIOError:
                pass
            time.sleep(0.002 if got < self.size else 0)  # A FIFO without a writer is readable.

    def is_dead(self):
        try:
            return os.read(self.fd, 100) == b""
        except BlockingIOError:
            return False

    def kill_writers(self):
        subprocess.run([sys.executable, "-c", KILL_WRITERS, self.path], check=True, timeout=BOUND_S)
        eventually(self.is_dead, "the test has killed them")

    def next_holder(self):
        """A waiter for the lock x, which says whether it then holds the lock alone."""
        return cli.Running("run", "--wait", "60s", "x", "--", sys.executable, "-c", LOOK, self.path)


# Kills all processes that have a FIFO open for writing.  The test has it open for reading.
KILL_WRITERS = """
import os, signal, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{fd}") == sys.argv[1]:
                with open(f"/proc/{pid}/fdinfo/{fd}") as info:
                    if info.read().split("flags:")[1].split()[0].endswith("1"):
                        os.kill(int(pid), signal.SIGKILL)
    except OSError:
        pass
"""

LOOK = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
try:
    print("alone" if os.read(fd, 1) == b"" else "another process writes")
except BlockingIOError:
    print("two at once")
"""


def children_of(pid):
    """What the first thread of this process has started, in this order."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        return list(map(int, children.read().split()))


def only_child(pid):
    eventually(lambda: len(children_of(pid)) == 1, "it has a child")
    return children_of(pid)[0]


def guardian_of(running):
    """The only child of redlock."""
    return only_child(running.pid)


def threatened(family, running, harm):
    """Do harm when all have started.  The next holder must be alone."""
    family.arrive()
    with family.next_holder() as waiter:
        harm(running)
        expect(waiter.finish(), 0, "alone\n", "")


HARMS = {"redlock killed": lambda holder: holder.send(signal.SIGKILL),
         "redlock stopped": lambda holder: holder.send(signal.SIGSTOP),
         "guardian killed": lambda holder: os.kill(guardian_of(holder), signal.SIGKILL)}


class Crowd:
    """Many descendants that note the time: see crowd.c."""

    LEN_MAX = 4000

    def __init__(self, program, shape, size, spinning):
        self.program, self.size = os.path.abspath(program), size
        self.path = f"{cli.work}/crowd-{time.monotonic_ns()}"
        with open(self.path, "wb") as file:
            file.truncate(8 * (3 + self.LEN_MAX))
        self.command = [self.program, self.path, shape, str(size), str(spinning)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def numbers(self):
        with open(self.path, "rb") as file:
            return struct.unpack(f"={3 + self.LEN_MAX}Q", file.read())

    def arrive(self):
        eventually(lambda: self.numbers()[1] > self.size, "all have started")
        started = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        eventually(lambda: min(self.numbers()[3:4 + self.size]) > started, "all take their later naps")

    def is_empty(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as line:
                    if line.read().split(b"\0")[:2] == [self.program.encode(), self.path.encode()]:
                        return False
            except OSError:
                pass
        return True

    def end(self):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=Q", 1))
        eventually(self.is_empty, "all have ended")

    def beside_ms(self, holder, harm):
        """How long one of them ran beside the next holder.  Negative: all ended before it began."""
        self.arrive()
        with cli.Running("run", "--wait", "60s", "x", "--", self.program, self.path) as waiter:
            harm(holder)
            expect(waiter.finish(), 0)
        time.sleep(3 * max(0.1, self.size / 6000))  # Each that still runs notes the time again.
        holder.send(signal.SIGCONT)
        self.end()
        _, _, began, *last = self.numbers()
        return (max(last) - began) / 1e6
