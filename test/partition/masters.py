"""The masters: real redis-servers, each in a host of its own, with a wall clock of its own.

They keep every write that they have acknowledged (appendonly yes, appendfsync always).  So a killed
master comes back with its data, unless the run empties it.  The preloaded skew.c adds an offset to
the wall clock, which is read from a mapped file, and changes at once.

The run talks to them by a Unix socket, which no fault of the network touches.  Clients never do.
"""

import mmap
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import background

PORT = 6379
SLOW_PORT = 6380  # The port of the relay; see cluster.py.
ANSWER_MAX_S = 2
END_MAX_S = 15  # Bounds for a machine under heavy load; either takes some 20 ms.
START_MAX_S = 30
NS_PER_MS = 1_000_000

ARGUMENTS = ["--protected-mode", "no", "--daemonize", "no", "--save", "", "--appendonly", "yes",
             "--appendfsync", "always"]


class MasterError(Exception):
    """A master does not do what it is told; the text says which, and what."""


class MappedNumber:
    """One native 64-bit number in a file that another process has mapped, too."""

    def __init__(self, path, value=0):
        self.path = path
        path.write_bytes(struct.pack("=q", value))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 8)
        self.value = value

    def set(self, value):
        self.value = value
        self.map[:8] = struct.pack("=q", value)


class WallClock:
    """The offset of a master's wall clock, in nanoseconds.

    A clock that is too fast or too slow is moved by many small steps, because the offset is one
    number.  A step is at most STEP_MAX.  So if a step comes late, the clock is less wrong than
    planned, and does not jump further than clients allow for.
    """

    STEP_EVERY_S = 0.01
    STEP_MAX_NS = 1_000_000  # Half of drift_fixed_ms, which clients allow for on top.

    def __init__(self, path):
        self.number = MappedNumber(path)
        self.lock = threading.Lock()
        self.ppm = 0
        self.since = 0

    def step(self, step_ms):
        """The clock stays there: a step back would be another fault."""
        with self.lock:
            self.number.set(self.number.value + step_ms * NS_PER_MS)

    def rate(self, ppm):
        with self.lock:
            self.ppm = ppm
            self.since = time.monotonic_ns()

    def go_on(self):
        """Call this regularly."""
        with self.lock:
            now = time.monotonic_ns()
            step = (now - self.since) * self.ppm // 1_000_000
            step = max(-self.STEP_MAX_NS, min(self.STEP_MAX_NS, step))
            self.since = now
            if step != 0:
                self.number.set(self.number.value + step)


class ClockWork(background.Background):
    """Moves the clocks that have a wrong rate, from start() to stop()."""

    def __init__(self, clocks):
        super().__init__()
        self.clocks = clocks

    def work(self):
        while not self.over.wait(WallClock.STEP_EVERY_S):
            for clock in self.clocks:
                clock.go_on()


class Conversation:
    """One connection to a server: commands one at a time, as RESP2."""

    def __init__(self, family, address, timeout_s):
        self.socket = socket.socket(family)
        self.socket.settimeout(timeout_s)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self.file = self.socket.makefile("rb")

    @classmethod
    def by_unix(cls, path, timeout_s=ANSWER_MAX_S):
        return cls(socket.AF_UNIX, str(path), timeout_s)

    @classmethod
    def by_tcp(cls, endpoint, timeout_s=ANSWER_MAX_S):
        host, _, port = endpoint.rpartition(":")
        return cls(socket.AF_INET, (host, int(port)), timeout_s)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def ask(self, *words):
        return self.ask_all(words)[0]

    def ask_all(self, *commands):
        """Send several commands at once, and return the answer to each."""
        self.socket.sendall(b"".join(map(self.packed, commands)))
        return [self.read() for _ in commands]

    def send(self, *words):
        """One command, whose answer is read later."""
        self.socket.sendall(self.packed(words))

    @staticmethod
    def packed(words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            word = str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
        return b"".join(parts)

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the connection ended")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise MasterError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2].decode() if rest != b"-1" else None
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return rest.decode()


class Master:
    def __init__(self, name, command, address, home, socket_path, skew):
        """command(argv) gives the command line that runs argv on this master's host."""
        self.name = name
        self.command = command
        self.address = address
        self.home = home
        self.socket_path = socket_path
        self.skew = skew
        self.process = None
        home.mkdir(parents=True, exist_ok=True)
        self.empty()
        self.clock = WallClock(home / "clock")

    def start(self):
        """Does not wait until it answers: see answers()."""
        if self.is_up():
            return
        self.socket_path.unlink(missing_ok=True)
        # A list of libraries cannot name a folder with a blank.
        argv = ["env", f"LD_PRELOAD={self.skew.name}", f"LD_LIBRARY_PATH={self.skew.parent}",
                f"SKEW_FILE={self.clock.number.path}",
                "redis-server", "--bind", self.address, "--port", PORT, "--dir", self.home,
                "--unixsocket", self.socket_path, *ARGUMENTS]
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(argv), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, cwd=self.home,
                                            start_new_session=True)

    def is_up(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """Kill the server, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(END_MAX_S)
        self.process = None

    def stop(self):
        self.send(signal.SIGSTOP)

    def go_on(self):
        self.send(signal.SIGCONT)

    def send(self, number):
        if self.is_up():
            self.process.send_signal(number)

    def empty(self):
        """Delete all data.  The server must be down."""
        shutil.rmtree(self.home / "appendonlydir", ignore_errors=True)
        for path in self.home.glob("*.rdb"):
            path.unlink()

    def ask(self, *words):
        """Send one command.  The master must be neither down nor stopped."""
        with self.conversation() as conversation:
            return conversation.ask(*words)

    def conversation(self, timeout_s=ANSWER_MAX_S):
        return Conversation.by_unix(self.socket_path, timeout_s)

    def answers(self):
        try:
            return self.ask("PING") == "PONG"
        except (OSError, MasterError):
            return False

    def wait_until_answers(self):
        give_up = time.monotonic() + START_MAX_S
        while not self.answers():
            if not self.is_up():
                raise MasterError(f"master {self.name} ended: {self.last_words()}")
            if time.monotonic() > give_up:
                raise MasterError(f"master {self.name} does not answer after {START_MAX_S} s: "
                                  f"{self.last_words()}")
            time.sleep(0.005)

    def last_words(self):
        try:
            return pathlib.Path(self.home / "log").read_text(errors="replace")[-400:].strip()
        except OSError:
            return "no log"


class Masters:
    """All of them, by name."""

    def __init__(self, masters):
        self.by_name = {master.name: master for master in masters}

    def __getitem__(self, name):
        return self.by_name[name]

    def __iter__(self):
        return iter(self.by_name.values())

    def start(self):
        for master in self:
            master.start()
        self.wait_until_all_answer()

    def wait_until_all_answer(self):
        for master in self:
            master.wait_until_answers()

    def kill(self):
        for master in self:
            master.kill()
