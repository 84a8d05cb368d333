"""Common tools of the tests for the programs of a partition run: start programs, and wait."""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BOUND_S = 60  # Chosen: for short operations; only a hang takes longer.
SKIPPED = 77
NEVER_NS = 1 << 62

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

programs = {}  # The programs of the command line, by name.


def wait_until(true, what):
    """Calls true() until its result is true, and returns that."""
    give_up = time.monotonic() + BOUND_S
    while not (found := true()):
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {BOUND_S} s: {what}")
        time.sleep(0.002)
    return found


def events(path, partial=False):
    """The events of a history.  With partial, a last line without its end is left out."""
    try:
        lines = pathlib.Path(path).read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    if partial and lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    return [json.loads(line) for line in lines]


def ending_with_us():
    """A function for a child, between fork and exec: the child is killed when this process ends.

    A test that is killed because it takes too long cannot clean up."""
    parent = os.getpid()

    def prepare():
        if LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
            os._exit(1)  # The parent has ended already, so no signal will come.

    return prepare


class Case(unittest.TestCase):
    """A test with a folder of its own.  Its processes end with it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="redlock-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, argv, **options):
        process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL,
                                   preexec_fn=ending_with_us(), **options)
        self.addCleanup(self.finish, process)
        return process

    @staticmethod
    def finish(process):
        process.kill()
        process.wait(BOUND_S)

    def start_store(self):
        """Returns the store, the path of its socket, and the path of its history."""
        path, history = self.folder / "store", self.folder / "store.jsonl"
        store = self.start([programs["store"], "--socket", path, "--history", history])
        wait_until(path.exists, "the store's socket")
        return store, path, history

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(BOUND_S), 0)

    def start_redis(self, name, env=None):
        """Starts a server on a Unix socket only.  Returns the server and the path."""
        path = self.folder / name
        log = open(self.folder / f"{name}.log", "wb")
        self.addCleanup(log.close)
        try:
            server = self.start(["redis-server", "--port", "0", "--unixsocket", path, "--save", "",
                                 "--appendonly", "yes", "--appendfsync", "always", "--dir", self.folder],
                                stdout=log, stderr=log, env=dict(os.environ, **(env or {})))
        except FileNotFoundError:
            self.skipTest("there is no redis-server")

        def answers():
            self.assertIsNone(server.poll(), f"redis-server ended, see {self.folder}/{name}.log")
            return path.exists() and "PONG" in self.redis(path, "PING")

        wait_until(answers, "redis-server answers")
        return server, path

    @staticmethod
    def redis(path, *words):
        """The answer to a command, as redis-cli prints it."""
        done = subprocess.run(["redis-cli", "-s", str(path), *map(str, words)], timeout=BOUND_S,
                              capture_output=True, text=True, check=False)
        return done.stdout.strip()


def main(*names):
    """Runs the tests of the calling file.  Its first arguments are programs, with these names."""
    if len(sys.argv) <= len(names):
        sys.exit(f"usage: {sys.argv[0]} {' '.join(names).upper()} [TEST...]")
    programs.update(zip(names, (os.path.abspath(path) for path in sys.argv[1:])))
    program = unittest.main(argv=sys.argv[:1] + sys.argv[1 + len(names):], exit=False)
    if program.result.skipped and len(program.result.skipped) == program.result.testsRun:
        sys.exit(SKIPPED)
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun else 1)
