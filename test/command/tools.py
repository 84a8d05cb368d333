"""What the tests of the `redlock` command share: masters, the command itself, and what it prints.

Five masters are real redis-servers (scripts/masters) on the first ports that are free from 16301 on.
Tests wait for events, and never sleep instead.  The bounds are for a machine under heavy load.  The file is longer than others:
it is the one place of what all these tests do with masters and with the command.
"""

import contextlib
import hashlib
import json
import os
import re
import select
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

BOUND_S = 60  # Chosen: for short operations; only a hang takes longer.

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECRET = "Geheim-4711"

USAGE, UNREACHABLE, INTERNAL, HELD, LOST, FORBIDDEN, CHANGE = 64, 69, 70, 75, 76, 77, 78

redlock = None  # The program.
work = None  # A folder for this run.


# ---- Masters ----

PORT_FIRST, PORT_LAST = 16301, 16701  # test/live takes some from 17000 on.


def are_free(ports):
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def choose_port():
    """The first of five free ports.  An abstract socket reserves them, so that no other run of this
    test takes them while they are free for a moment."""
    for port in range(PORT_FIRST, PORT_LAST, 10):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0redlock-test-cli-{port}")
        except OSError:
            continue
        if are_free(range(port, port + 5)):
            return port, claim
        claim.close()
    sys.exit(f"no free ports from {PORT_FIRST} to {PORT_LAST}")


PORT, CLAIM = choose_port()
PORTS = list(range(PORT, PORT + 5))
MASTERS = ",".join(f"127.0.0.1:{port}" for port in PORTS)


def masters(*args):
    done = subprocess.run([ROOT + "/scripts/masters", *args], timeout=BOUND_S * 2, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=dict(os.environ, MASTERS_PORT=str(PORT), MASTERS_COUNT="5",
                                   MASTERS_DIR=work + "/masters"))
    assert done.returncode == 0, f"masters {args!r}: {done.stderr.decode()}"


class Lack(Exception):
    """The machine has no such thing, so a test cannot go on, and is skipped (command.py)."""


class Master:
    """One connection to one master, independent of redlock."""

    def __init__(self, number=1, password=None, port=None, bound_s=BOUND_S):
        self.socket = socket.create_connection(("127.0.0.1", port or PORTS[number - 1]), bound_s)
        self.file = self.socket.makefile("rb")
        if password is not None:
            self.ask("AUTH", password)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return rest

    def ask(self, *words):
        command = b"*%d\r\n" % len(words)
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            command += b"$%d\r\n%s\r\n" % (len(word), word)
        self.socket.sendall(command)
        return self.read()


def ask_all(*words, numbers=(1, 2, 3, 4, 5)):
    answers = []
    for number in numbers:
        with Master(number) as master:
            answers.append(master.ask(*words))
    return answers


def holders(name, numbers=(1, 2, 3, 4, 5)):
    return ask_all("GET", name, numbers=numbers)


MARKER = "redlock:master"  # The key by which the restart guard sees whether data was lost.


def season(port, bound_s=BOUND_S, epoch=None, of=()):
    """Write a marker, as if the master had run for long, so that the restart guard lets it vote.  of: the
    ports or places of its set, or ()."""
    epoch = epoch or f"{port:016d}"
    names = sorted(place if isinstance(place, str) else f"127.0.0.1:{place}" for place in of)
    member = ["of", "set", "set", f"{PORT:016d}", "ver", 1, "config", " ".join(names), "name",
              f"127.0.0.1:{port}"] if of else []
    with Master(port=port, bound_s=bound_s) as master:
        info = master.ask("INFO").decode()
        run_id = re.search(r"\nrun_id:([0-9a-f]+)", info).group(1)
        master.ask("HSET", MARKER, "id", run_id, "epoch", f"{epoch}.{1 if of else 0}", "max", 1,
                   "floor", 1, "high", 16385, *member)


def found(*places):
    """Make the masters of PORTS that are in this list its set, as if clients had used it for long."""
    for port in PORTS:
        if port in places:
            season(port, of=places)


def forget_all(bound_s=BOUND_S, numbers=(1, 2, 3, 4, 5)):
    """Delete all data of these masters."""
    for number in numbers:
        with Master(number, bound_s=bound_s) as master:
            master.ask("FLUSHALL")


def flush_all(bound_s=BOUND_S):
    forget_all(bound_s)
    for port in PORTS:
        season(port, bound_s, of=PORTS)


def keys_of(master):
    """How many locks it stores."""
    return master.ask("DBSIZE") - master.ask("EXISTS", MARKER, "redlock:witness")


def count_keys():
    counts = []
    for number in range(1, 6):
        with Master(number) as master:
            counts.append(keys_of(master))
    return counts


def heal():
    """Make every master up, empty, and without a password.  Usually all are up already."""
    try:
        flush_all(bound_s=5)
    except OSError:
        masters("start", "--volatile")
        flush_all()


@contextlib.contextmanager
def trouble(command, *numbers):
    """kill or pause some masters for a while; then they may vote again."""
    try:
        if numbers:
            masters(command, *map(str, numbers))
        yield
    finally:
        masters("start", "--volatile")
        for number in numbers if command == "kill" else ():
            season(PORTS[number - 1], of=PORTS)


@contextlib.contextmanager
def password():
    ask_all("CONFIG", "SET", "requirepass", SECRET)
    try:
        yield "redis://:" + SECRET + "@"
    finally:
        for number in range(1, 6):
            with Master(number, SECRET) as master:
                master.ask("CONFIG", "SET", "requirepass", "")


# ---- Programs ----


UTF8 = {"LC_ALL": "C.UTF-8"}


def environment(**extra):
    """Without extra, names are shown in ASCII, whatever the locale of the tests is.  PATH is without folders that this
    user may not read: a command that is nowhere would be EACCES."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("REDLOCK_")}
    path = [folder for folder in os.get_exec_path() if os.access(folder, os.X_OK)]
    env = {**env, "LC_ALL": "C", "PATH": os.pathsep.join(path), "REDLOCK_MASTERS": MASTERS, **extra}
    return {key: value for key, value in env.items() if value is not None}


def has_tls(program):
    """The program, redis-server and openssl can do TLS."""
    if not all(map(shutil.which, ("redis-server", "redis-cli", "openssl"))):
        return False
    probe = subprocess.run([os.path.abspath(program), "--masters", "rediss://127.0.0.1:1", "status"], check=False,
                           timeout=BOUND_S, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment())
    known = subprocess.run(["redis-cli", "--help"], check=False, timeout=BOUND_S, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)  # It is built with the server.
    return b"--tls" in known.stdout and b"this build has no TLS" not in probe.stderr


def known_identifiers():
    with open(ROOT + "/redlock/base/message.h", encoding="utf-8") as table:
        return set(re.findall(r'^    X\(\w+,[\s\\]*"([a-z-]+)"', table.read(), re.MULTILINE))


IDENTIFIERS = known_identifiers()
IN_BRACKETS = re.compile(r" \[([a-z]+(?:-[a-z]+)*(?:, [a-z]+(?:-[a-z]+)*)*)\]$", re.MULTILINE)


class Result:
    """err is without the identifiers of its messages, which are in ids.  So is what doctor prints: findings."""

    def __init__(self, args, code, out, err):
        self.args, self.code, self.printed, self.whole_out = args, code, err, out
        self.err = IN_BRACKETS.sub("", err)
        self.ids = [name for ids in IN_BRACKETS.findall(err) for name in ids.split(", ")]
        self.findings = IN_BRACKETS.findall(out) if "doctor" in args else []
        self.out = IN_BRACKETS.sub("", out) if "doctor" in args else out
        assert set(self.findings) <= IDENTIFIERS, out
        assert set(self.ids) <= IDENTIFIERS, f"{set(self.ids) - IDENTIFIERS} are not in redlock/base/message.h: {err}"

    def __repr__(self):
        return f"{self.args!r}\n  exit {self.code}\n  out {self.out!r}\n  err {self.err!r}"


# These come before the other arguments: a loaded machine may miss a reply timeout of 50 ms.
PATIENT = ["--reply-timeout", "2s"]


def run(*args, stdin=b"", env=None, **extra):
    """Run redlock ARGS to its end."""
    done = subprocess.run([redlock, *PATIENT, *args], input=stdin, timeout=BOUND_S,
                          stdout=extra.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          env=env or environment(), **extra)
    return Result(args, done.returncode, (done.stdout or b"").decode(errors="replace"),
                  done.stderr.decode(errors="replace"))


def expect(result, code, out=None, err=None):
    """err is a part of standard error; "": it must be empty."""
    assert result.code == code, f"want exit {code}: {result}"
    assert out is None or result.out == out, f"want out {out!r}: {result}"
    fits = err is None or (err in result.err if err else result.err == "")
    assert fits, f"want err {err!r}: {result}"
    return result


def is_usage_error(result, err=None):
    expect(result, USAGE, "", err)
    assert all(line.startswith("redlock: ") for line in result.err.splitlines()), result
    assert result.err, result


class Running:
    """redlock ARGS, in the background; its output is read line by line."""

    def __init__(self, *args, env=None, **extra):
        self.args = args
        self.seen = b""
        self.process = subprocess.Popen([redlock, *PATIENT, *args], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=env or environment(), **extra)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(BOUND_S)
        self.process.stdout.close()
        self.process.stderr.close()

    def read(self):
        ready, _, _ = select.select([self.process.stdout], [], [], BOUND_S)
        assert ready, f"{self.args!r}: no more output, after {self.seen!r}"
        data = os.read(self.process.stdout.fileno(), 4096)
        assert data, f"{self.args!r}: output ended, after {self.seen!r}: {self.finish()}"
        self.seen += data

    def has_line(self):
        """True: line() will not wait."""
        while b"\n" not in self.seen and select.select([self.process.stdout], [], [], 0)[0]:
            data = os.read(self.process.stdout.fileno(), 4096)
            self.seen += data
            if not data:
                break
        return b"\n" in self.seen

    def line(self):
        while b"\n" not in self.seen:
            self.read()
        line, self.seen = self.seen.split(b"\n", 1)
        return line.decode()

    def wait_for(self, text):
        while (line := self.line()) != text:
            pass
        return line

    def wait_for_message(self, text):
        """Wait until standard error has this text, and return all.  finish() returns only what comes after it."""
        seen = b""
        while text.encode() not in seen:
            ready, _, _ = select.select([self.process.stderr], [], [], BOUND_S)
            data = os.read(self.process.stderr.fileno(), 4096) if ready else b""
            assert data, f"{self.args!r}: {text!r} is not in {seen!r}"
            seen += data
        return seen.decode()

    def send(self, number):
        self.process.send_signal(number)

    def finish(self):
        """Wait for its end, and return all output."""
        out, err = self.process.communicate(timeout=BOUND_S)
        return Result(self.args, self.process.returncode,
                      (self.seen + out).decode(errors="replace"), err.decode(errors="replace"))


def eventually(check, what):
    until = time.monotonic() + BOUND_S
    while not check():
        assert time.monotonic() < until, f"did not happen: {what}"
        time.sleep(0.01)


# A command ends when a majority has obeyed; the other masters may obey later, or are never asked
# because their links came up too late.


def is_stored(name, token):
    """A majority stores the token, and then all, unless that takes long."""
    eventually(lambda: holders(name).count(token.encode()) > 2, f"a majority stores {token} for {name}")
    until = time.monotonic() + 2
    while holders(name) != [token.encode()] * 5 and time.monotonic() < until:
        time.sleep(0.01)


def lasts(name, more_than_ms, at_most_ms):
    """A majority stores the key for so long, and no master for another time."""
    def all_do():
        stored = [ttl for ttl in ask_all("PTTL", name) if ttl != -2]
        return len(stored) > 2 and all(more_than_ms < ttl <= at_most_ms for ttl in stored)

    eventually(all_do, f"{name} lasts for {more_than_ms} to {at_most_ms} ms")


def is_released(name):
    """The keys are deleted, and do not just expire."""
    while (left_ms := ask_all("PTTL", name)) != [-2] * 5:
        assert all(ms == -2 or ms > 1000 for ms in left_ms), f"{name} is not released: {left_ms}"
        time.sleep(0.01)


def all_are_released():
    """The same for all keys."""
    for number in range(1, 6):
        with Master(number) as master:
            for key in set(master.ask("KEYS", "*")) - {MARKER.encode(), b"redlock:witness"}:
                while (left_ms := master.ask("PTTL", key)) != -2:
                    assert left_ms > 1000, f"{key} is not released: {left_ms}"
                    time.sleep(0.01)


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


# A program that prints each signal named in its arguments.  SIGNAL=CODE makes it exit with CODE;
# after SIGNAL= it goes on.  Otherwise it runs until it is killed.
TELLER = """
import os, signal, sys, time
def on(number, _):
    os.write(1, (signal.Signals(number).name + "\\n").encode())
    if codes[number]:
        os._exit(int(codes[number]))
codes = {}
for arg in sys.argv[1:]:
    name, code = arg.split("=")
    codes[signal.Signals[name]] = code
    signal.signal(signal.Signals[name], on)
os.write(1, b"ready %d\\n" % os.getpid())
while True:
    time.sleep(1)
"""


def teller(*codes):
    return [sys.executable, "-c", TELLER, *codes]


def ready_pid(running):
    word, pid = running.line().split()
    assert word == "ready", word
    return int(pid)


def fifo(name):
    path = work + "/" + name
    if not os.path.exists(path):
        os.mkfifo(path)
    return path


def left_ms(result):
    """The validity that was left when the command was killed."""
    match = re.search(r"killed the command, (\d+) ms before the lock runs out", result.err)
    assert match, result
    return int(match.group(1))


# ---- What is printed ----

NUMBER = r"[+-]?\d[\d.]*(e[+-]\d+)?"
CLOCK = rf"  clock {NUMBER} ms \({NUMBER} to {NUMBER}\)"
RATE = rf"  rate {NUMBER} ppm \({NUMBER} to {NUMBER}\)"


# ---- Other servers ----


@contextlib.contextmanager
def server(*args, folder=None, seasoned=True, program=("redis-server",)):
    """Starts one more redis-server with these arguments, and gives its port."""
    home = folder or tempfile.mkdtemp(dir=work)

    def start():
        port = 65535
        while port > 55000:  # A node of a cluster needs port + 10000, too.
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
        return port, subprocess.Popen([*program, "--port", str(port), "--bind", "127.0.0.1", "--dir",
                                       home, "--save", "", *args], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      restore_signals=False)  # SIGXFSZ stays ignored, for RLIMIT_FSIZE.

    def listens():
        with socket.socket() as probe:
            return process.poll() is not None or probe.connect_ex(("127.0.0.1", port)) == 0

    port, process = start()
    try:
        for _ in range(10):
            eventually(listens, "redis-server listens")
            if process.poll() is None:
                break
            port, process = start()  # Another process has taken the port meanwhile.
        assert process.poll() is None, f"redis-server {args!r} ends at once: {process.returncode}"
        if seasoned:
            season(port)
        yield port
    finally:
        process.kill()
        process.wait(BOUND_S)


def status_of(number, listed, *args):
    """What `redlock status --json` says of one master."""
    return json.loads(run(*args, "--connect-timeout", "10s", "--masters", listed, "status",
                          "--json").out)["masters"][number - 1]


DURABLE = ["--appendonly", "yes", "--appendfsync", "always"]


@contextlib.contextmanager
def good_servers(seasoned=True, founded=True):
    """Three good servers, which are a set."""
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(server(*DURABLE, seasoned=seasoned)) for _ in range(3)]
        for port in ports if seasoned and founded else ():
            season(port, of=ports)
        yield ports


def doctor(listed, code, *args):
    """The findings of doctor as {(master, name): text}; master 0 means all masters.  Checks that
    text and JSON agree.  Long timeouts keep a busy machine from looking like a slow master."""
    command = ["--reply-timeout", "60s", "--connect-timeout", "10s", "--masters", listed, "doctor", *args]
    text, result = expect(run(*command), code, err=""), expect(run(*command, "--json"), code, err="")
    assert SECRET not in text.out + result.out, text
    got = json.loads(result.out)
    found = {}
    for number, one in enumerate([got, *got["masters"]]):
        for finding in one["findings"]:
            assert (number, finding["name"]) not in found or finding["name"] in ("acl", "error"), got
            found[number, finding["name"]] = found.get((number, finding["name"]), "") + finding["text"]
    lines = [line for line in text.out.splitlines() if line[:4] != "    "]  # Such a line has the places of the finding before.
    changes = sum(finding["change"] is not None for one in [got, *got["masters"]]
                  for finding in one["findings"])
    assert got["changes"] == changes and got["good"] is (changes == 0), got
    assert text.out.replace("\n", "").isprintable(), text
    printed = len(got["findings"]) + len({(finding["text"], finding["change"]) for one in got["masters"] for finding in one["findings"]})
    is_open = f"note: the user default needs no password on {got['masters_open']} of " in text.out
    assert is_open is (got["masters_open"] > 0), (text, got)
    printed += is_open + len(got["not_checked"]) + ("--restart-guard" not in args)  # The first line tells the set.
    assert len(lines) == printed + sum(one["good"] for one in got["masters"]) + 1, (text, got)
    verdict = (f"{got['masters_answering']} of {got['members']} {'members' if got['set'] else 'masters'} answer, "
               f"{got['masters_voting']} may vote, {'a majority' if got['majority'] else 'NO MAJORITY'}: ")
    assert lines[-1].startswith(verdict), (verdict, lines)
    return found


def on(*ports, start=""):
    return ",".join(f"{start}127.0.0.1:{port}" for port in ports)


class Fake(socketserver.ThreadingTCPServer):
    """A fake master with this version and its own clock, which may never answer one command, nor what comes behind it."""

    daemon_threads = True

    def __init__(self, version="7.0.15", ahead_s=0.0, never=None):
        self.info = (f"# Server\r\nredis_version:{version}\r\nredis_mode:standalone\r\nrun_id:{id(self):040x}"
                     "\r\nmaxmemory:0\r\nloading:0\r\naof_enabled:1\r\nrole:master\r\n")
        self.ahead_s, self.never = ahead_s, never
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    @property
    def port(self):
        return self.server_address[1]

    @staticmethod
    def bulk(text):
        return f"${len(text)}\r\n{text}\r\n"

    def answer(self, words):
        now = time.time() + self.ahead_s
        if words[0] == "TIME":
            return "*2\r\n" + self.bulk(str(int(now))) + self.bulk(str(int(now % 1 * 1e6)))
        if words[0] == "CONFIG":
            return "*2\r\n" + self.bulk(words[2]) + self.bulk("always" if words[2] == "appendfsync" else "no")
        if words[0] == "HMGET":
            return "*6\r\n$-1\r\n" + self.bulk(f"{id(self):016x}") + "$-1\r\n" * 4
        if words[0] == "SCRIPT":
            return self.bulk(hashlib.sha1(words[2].encode()).hexdigest())
        return self.bulk(self.info) if words[0] == "INFO" else "+OK\r\n"

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            while line := self.rfile.readline():
                words = []
                for _ in range(int(line[1:])):
                    words.append(self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2].decode())
                if words[0] == self.server.never:
                    self.rfile.read()
                    return
                self.wfile.write(self.server.answer(words).encode())


QUICK = ["--max-ttl", "1s"]  # Masters then warm up in little more than a second.
