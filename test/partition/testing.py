"""What the tests of the programs of a partition run share: starting them, and waiting."""

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

BOUND_S = 60  # For anything that takes a moment; a hang, and nothing else, takes longer.
SKIPPED = 77
NEVER_NS = 1 << 62

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

programs = {}  # By name: those that the command line gave.


def wait_until(true, what):
    """What true() gives, as soon as it is true of it."""
    give_up = time.monotonic() + BOUND_S
    while not (found := true()):
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {BOUND_S} s: {what}")
        time.sleep(0.002)
    return found


def events(path, partial=False):
    """Of a history.  partial: it is still being written."""
    try:
        lines = pathlib.Path(path).read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    if partial and lines and not lines[-1].endswith(b"\n"):
        lines.pop()
    return [json.loads(line) for line in lines]


def ending_with_us():
    """What a child does between fork and exec so that it is killed when this process ends, however
    it does: no clean-up runs in a test that is killed for the time it takes."""
    parent = os.getpid()

    def prepare():
        if LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
            os._exit(1)  # We have ended already, and nobody will tell it.

    return prepare


class Case(unittest.TestCase):
    """A test with a folder of its own, and processes that end with it."""

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
        """It, the path of its socket, and that of its history."""
        path, history = self.folder / "store", self.folder / "store.jsonl"
        store = self.start([programs["store"], "--socket", path, "--history", history])
        wait_until(path.exists, "the store's socket")
        return store, path, history

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(BOUND_S), 0)

    def start_redis(self, name, env=None):
        """A server that is reached by a Unix socket only: it, and the path."""
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
        """What it answers, as redis-cli prints it."""
        done = subprocess.run(["redis-cli", "-s", str(path), *map(str, words)], timeout=BOUND_S,
                              capture_output=True, text=True, check=False)
        return done.stdout.strip()



def main(*names):
    """The tests of the calling file; its first arguments are programs, by these names."""
    if len(sys.argv) <= len(names):
        sys.exit(f"usage: {sys.argv[0]} {' '.join(names).upper()} [TEST...]")
    programs.update(zip(names, (os.path.abspath(path) for path in sys.argv[1:])))
    program = unittest.main(argv=sys.argv[:1] + sys.argv[1 + len(names):], exit=False)
    if program.result.skipped and len(program.result.skipped) == program.result.testsRun:
        sys.exit(SKIPPED)
    sys.exit(0 if program.result.wasSuccessful() and program.result.testsRun else 1)
