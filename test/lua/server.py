"""A redis-server for one test, and its clients."""

import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

BOUND_S = 60  # Chosen: far longer than any answer takes.
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def end_with_parent():
    """Call between fork and exec: the child is killed when this process ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Refused(Exception):
    """An error reply."""


class Client:
    """One connection."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(BOUND_S)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def read(self):
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:].decode()
        if kind == b"-":
            return Refused(rest)
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest
        if kind == b"$":
            return None if rest == "-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        raise ConnectionError(f"the server answers {line!r}")

    def ask(self, *words):
        words = [str(word).encode() for word in words]
        head = b"*%d\r\n" % len(words)
        self.socket.sendall(head + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        reply = self.read()
        if isinstance(reply, Refused):
            raise reply
        return reply


class Server:
    """A redis-server without a port and without a data file.  under: a program that runs it."""

    def __init__(self, *under):
        # pylint: disable=consider-using-with
        self.folder = tempfile.TemporaryDirectory()
        self.path = str(pathlib.Path(self.folder.name) / "socket")
        self.process = subprocess.Popen(
            [*under, "redis-server", "--port", "0", "--unixsocket", self.path, "--dir", self.folder.name,
             "--save", "", "--logfile", os.devnull], preexec_fn=end_with_parent)
        self.client = self.wait()

    def wait(self):
        give_up = time.monotonic() + BOUND_S
        while True:
            try:
                client = Client(self.path)
                client.ask("PING")
                return client
            except (OSError, Refused):
                if self.process.poll() is not None or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)

    def close(self):
        self.client.close()
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()
