"""The servers that test/bench/alternatives locks on: all on 127.0.0.1, with new data, ended by pid.

Each class has `places`, the list of its addresses, and methods: start, stop, kill_one, which leaves
a majority, and restart_one.  A server that cannot be had is a Missing.
"""

import contextlib
import glob
import http.client
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
START_S = 60  # Chosen: a bound for a busy machine.  Java takes a few seconds.
STOP_S = 15


class Missing(RuntimeError):
    """Something cannot be had, so what needs it is left out."""


class Masters:
    """Five Redis servers, by scripts/masters."""

    count = 5
    has_majority = True

    def __init__(self, folder, port, redlock, volatile):
        self.start_options = ["--volatile"] if volatile else []
        self.env = dict(os.environ, MASTERS_PORT=str(port), MASTERS_DIR=str(folder),
                        MASTERS_COUNT=str(self.count))
        self.ports = range(port, port + self.count)
        self.places = [f"127.0.0.1:{port}" for port in self.ports]
        self.redlock = redlock

    def do(self, *command):
        subprocess.run([ROOT / "scripts/masters", *command], env=self.env, check=True,
                       stdout=subprocess.DEVNULL)

    def start(self):
        self.do("start", *self.start_options)

    def stop(self):
        self.do("stop")

    def kill_one(self):
        self.do("kill", str(self.count))

    def restart_one(self):
        self.do("restart", str(self.count))

    def renew(self):
        """Deletes all keys, and declares the masters new: then our guard does not wait."""
        for port in self.ports:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
                link.sendall(b"FLUSHALL\r\n")
                if link.recv(16) != b"+OK\r\n":
                    raise RuntimeError(f"FLUSHALL on port {port} failed")
        subprocess.run([self.redlock, "init", "--new", "--masters", ",".join(self.places)],
                       check=True, stdout=subprocess.DEVNULL)


class Nodes:
    """Processes of one program.  A subclass has command(i) and is_ready(i)."""

    count = 3
    has_majority = True
    stop_signal = signal.SIGTERM

    def __init__(self, folder, port):
        self.folder = folder
        self.ports = range(port, port + self.count)
        self.places = [f"127.0.0.1:{port}" for port in self.ports]
        self.processes = {}

    def prepare(self):
        """Writes what the nodes need before they start."""

    def home(self, i):
        return self.folder / str(i)

    def launch(self, i):
        with open(self.folder / f"log-{i}", "ab") as log:
            self.processes[i] = subprocess.Popen(self.command(i), cwd=self.home(i), stdin=subprocess.DEVNULL,
                                                 stdout=log, stderr=log, start_new_session=True)

    def wait_ready(self):
        end = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if all(self.is_ready(i) for i in self.processes):
                    return
            for i, process in self.processes.items():
                if process.poll() is not None:
                    raise Missing(f"it ended at once, see {self.folder}/log-{i}")
            if time.monotonic() > end:
                raise Missing(f"it is not ready after {START_S} s, see {self.folder}/log-0")
            time.sleep(0.1)

    def start(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        for i in range(self.count):
            self.home(i).mkdir(parents=True)
        self.prepare()
        for i in range(self.count):
            self.launch(i)
        self.wait_ready()

    def stop(self):
        for process in self.processes.values():
            process.send_signal(self.stop_signal)
        for process in self.processes.values():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = {}

    def kill_one(self):
        process = self.processes.pop(self.count - 1)
        process.kill()
        process.wait()
        self.wait_ready()

    def restart_one(self):
        self.launch(self.count - 1)
        self.wait_ready()

    def renew(self):
        """Nothing: these need no preparation."""


class Etcd(Nodes):
    """Nodes of etcd."""

    def __init__(self, folder, port, program):
        super().__init__(folder, port)
        self.program = program

    def peer(self, i):
        return f"http://127.0.0.1:{self.ports[i] + self.count}"

    def command(self, i):
        url = f"http://{self.places[i]}"
        cluster = ",".join(f"n{i}={self.peer(i)}" for i in range(self.count))
        return [self.program, "--name", f"n{i}", "--data-dir", self.home(i), "--log-level", "error",
                "--listen-client-urls", url, "--advertise-client-urls", url,
                "--listen-peer-urls", self.peer(i), "--initial-advertise-peer-urls", self.peer(i),
                "--initial-cluster", cluster, "--initial-cluster-state", "new"]

    def is_ready(self, i):
        link = http.client.HTTPConnection("127.0.0.1", self.ports[i], timeout=2)
        with contextlib.closing(link):
            link.request("GET", "/health")
            return b'"true"' in link.getresponse().read()


class ZooKeeper(Nodes):
    """Nodes of ZooKeeper."""

    def __init__(self, folder, port, jars):
        super().__init__(folder, port)
        self.jars = jars

    def prepare(self):
        servers = "".join(f"server.{i + 1}=127.0.0.1:{port + self.count}:{port + 2 * self.count}\n"
                          for i, port in enumerate(self.ports))
        for i, port in enumerate(self.ports):
            (self.home(i) / "myid").write_text(f"{i + 1}\n", encoding="ascii")
            (self.home(i) / "zoo.cfg").write_text(
                f"dataDir={self.home(i)}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
                "tickTime=1000\ninitLimit=30\nsyncLimit=10\nadmin.enableServer=false\n"
                f"4lw.commands.whitelist=srvr\n{servers}", encoding="utf-8")

    def command(self, i):
        return ["java", "-Xmx256m", "-cp", f"{self.jars}/*",
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", self.home(i) / "zoo.cfg"]

    def is_ready(self, i):
        with socket.create_connection(("127.0.0.1", self.ports[i]), timeout=2) as link:
            link.sendall(b"srvr")
            with link.makefile("rb") as answer:
                return b"Mode:" in answer.read()


class OneServer(Nodes):
    """One server, which says in its log that it is ready.  Without it nothing locks."""

    count = 1
    has_majority = False
    ready = ""

    def is_ready(self, i):
        return self.ready in (self.folder / f"log-{i}").read_text(encoding="utf-8", errors="replace")


class MariaDb(OneServer):
    """A server of MariaDB, with its defaults; prefix is where the packages were unpacked, or /."""

    ready = "ready for connections"

    def __init__(self, folder, port, prefix, program):
        super().__init__(folder, port)
        self.prefix = prefix
        self.program = program

    def prepare(self):
        (self.home(0) / "init.sql").write_text(
            "CREATE DATABASE bench;\n"
            "CREATE TABLE bench.held (name VARCHAR(64) PRIMARY KEY, holder VARCHAR(64)) ENGINE=InnoDB;\n"
            "CREATE TABLE bench.names (name VARCHAR(64) PRIMARY KEY) ENGINE=InnoDB;\n", encoding="ascii")

    def command(self, i):
        libraries = ":".join(glob.glob(f"{self.prefix}/usr/lib/*-linux-gnu"))
        user = ["--user=root"] if os.geteuid() == 0 else []
        return ["env", f"LD_LIBRARY_PATH={libraries}", self.program, "--no-defaults", *user,
                f"--datadir={self.home(i)}", "--skip-grant-tables", "--bind-address=127.0.0.1",
                f"--port={self.ports[i]}", "--socket=socket", "--max-connections=300",
                f"--lc-messages-dir={self.prefix}/usr/share/mysql",
                f"--init-file={self.home(i)}/init.sql"]


class Postgres(OneServer):
    """A server of PostgreSQL, with its defaults.  It refuses to run as root, so root makes it nobody."""

    ready = "database system is ready"
    stop_signal = signal.SIGINT  # Fast: it does not wait for clients.

    def __init__(self, folder, port, programs):
        super().__init__(folder, port)
        self.programs = programs
        self.nobody = (["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
                       if os.geteuid() == 0 else [])

    def prepare(self):
        if self.nobody:
            shutil.chown(self.home(0), "nobody", "nogroup")
        made = subprocess.run([*self.nobody, self.programs / "initdb", "-D", self.home(0), "-U", "bench",
                               "-A", "trust"], cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, check=False)
        if made.returncode != 0:
            raise Missing(f"initdb: {made.stderr.strip()[-200:]}")

    def command(self, i):
        return [*self.nobody, self.programs / "postgres", "-D", self.home(i), "-h", "127.0.0.1",
                "-p", str(self.ports[i]), "-k", "", "-c", "max_connections=300"]
