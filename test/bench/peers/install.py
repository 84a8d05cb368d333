"""Puts what test/bench/alternatives compares into the build folder, and says how each is started.

Packages come from Debian, crates.io, the Go proxy, npm, Maven Central and PyPI, by their own clients.
Nothing is installed on the machine: packages of Debian are unpacked in the folder.  What cannot be
had is a Missing.
"""

import glob
import os
import pathlib
import shutil
import subprocess
import sys

from servers import Missing

ROOT = pathlib.Path(__file__).resolve().parents[3]
PEERS = ROOT / "test/bench/peers"
INSTALL_S = 900  # Chosen: for a slow registry, and a compiler on a busy machine.
GO_MODULES = ("github.com/go-redsync/redsync/v4@v4.18.1", "github.com/redis/go-redis/v9@v9.23.0",
              "github.com/go-zookeeper/zk@v1.0.4", "github.com/go-sql-driver/mysql@v1.9.3",
              "github.com/jackc/pgx/v5@v5.7.6", "go.etcd.io/etcd/client/v3@v3.6.13",
              "go.uber.org/zap@v1.27.0")


class Installer:
    """Each method returns the start of a command, or the place of what it installed."""

    def __init__(self, build):
        self.build = build
        self.folder = build / "alternatives"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.done = {}

    def once(self, what, install):
        """What install() returned or raised the first time."""
        if what not in self.done:
            print(f"alternatives: {what}: installing what is missing", file=sys.stderr, flush=True)
            try:
                self.done[what] = install()
            except Missing as missing:
                self.done[what] = missing
        if isinstance(self.done[what], Missing):
            raise self.done[what]
        return self.done[what]

    def run(self, command, cwd=None, env=None):
        """Standard output.  The program of the command may be missing, or fail."""
        if not shutil.which(command[0]):
            raise Missing(f"there is no {command[0]}")
        log = self.folder / "install.log"
        with open(log, "a", encoding="utf-8") as file:
            print("$", *command, file=file, flush=True)
            try:
                return subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stderr=file,
                                      stdout=subprocess.PIPE, text=True, timeout=INSTALL_S, check=True).stdout
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                raise Missing(f"{command[0]} failed, see {log}") from error

    def go(self):
        return self.once("go", self.install_go)

    def install_go(self):
        folder = self.folder / "go"
        folder.mkdir(exist_ok=True)
        for source in PEERS.glob("go/*.go"):
            shutil.copy(source, folder)
        if not (folder / "go.sum").exists():
            (folder / "go.mod").unlink(missing_ok=True)
            self.run(["go", "mod", "init", "bench"], folder)
            self.run(["go", "get", *GO_MODULES], folder)
        self.run(["go", "build", "-o", "bench", "."], folder)
        return [folder / "bench"]

    def rslock(self):
        return self.once("rslock", self.install_rslock)

    def install_rslock(self):
        folder = self.folder / "rslock"
        shutil.copytree(PEERS / "rslock", folder, dirs_exist_ok=True)
        self.run(["cargo", "build", "--release", "--target-dir", folder / "target"], folder)
        return [folder / "target/release/rslock-bench"]

    def redis_plus_plus(self):
        return self.once("redis-plus-plus", self.install_redis_plus_plus)

    def install_redis_plus_plus(self):
        try:
            flags = self.run(["pkg-config", "--static", "--cflags", "--libs", "redis++"]).split()
        except Missing as missing:
            raise Missing("pkg-config does not know redis++: no registry has it, so build it from its "
                          "source, and say where in PKG_CONFIG_PATH") from missing
        program = self.folder / "redis++"
        self.run(["g++", "-std=c++17", "-O3", "-o", program, PEERS / "redis++.cpp", *flags, "-pthread"])
        return [program]

    def jars(self, name):
        folder = self.folder / name
        if not (folder / "complete").exists():
            self.run(["mvn", "-q", "-B", "-f", PEERS / name / "pom.xml", "dependency:copy-dependencies",
                      f"-DoutputDirectory={folder}/jars"])
            (folder / "complete").touch()
        return folder / "jars"

    def redisson(self):
        return self.once("redisson", self.install_redisson)

    def install_redisson(self):
        jars = self.jars("redisson")
        self.run(["javac", "-cp", f"{jars}/*", "-d", jars.parent, PEERS / "redisson/Bench.java"])
        return ["java", "-cp", f"{jars.parent}:{jars}/*", "Bench"]

    def zookeeper(self):
        return self.once("zookeeper", lambda: self.jars("zookeeper"))

    def node_redlock(self):
        return self.once("node-redlock", self.install_node_redlock)

    def install_node_redlock(self):
        folder = self.build / "interop"
        self.run([ROOT / "test/interop/run", "--install"], env=dict(os.environ, INTEROP_DIR=str(folder)))
        return ["node", folder / "bench.mjs"]

    def redlock_py(self):
        return self.once("redlock-py", self.install_redlock_py)

    def install_redlock_py(self):
        python = self.folder / "python/bin/python"
        if not python.exists():
            self.run(["python3", "-m", "venv", self.folder / "python"])
        self.run([python, "-m", "pip", "-q", "install", "redlock-py==1.0.8"])
        return [python, PEERS / "redlock-py.py"]

    def debian(self, package, pattern):
        """The file that matches the pattern below the packages unpacked; unpacks if there is none."""
        root = self.folder / "debian"
        if not glob.glob(f"{root}{pattern}"):
            debs = self.folder / "debs" / package
            debs.mkdir(parents=True, exist_ok=True)
            plan = self.run(["apt-get", "-s", "-q", "install", "--no-install-recommends", package])
            names = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
            if names:
                self.run(["apt-get", "-q", "download", *names], debs)
            for deb in debs.glob("*.deb"):
                self.run(["dpkg", "-x", deb, root])
        found = glob.glob(f"{root}{pattern}")
        if not found:
            raise Missing(f"Debian's {package} has no {pattern}")
        return pathlib.Path(found[0])

    def etcd(self):
        return self.once("etcd", lambda: shutil.which("etcd") or self.debian("etcd-server", "/usr/bin/etcd"))

    def mariadb(self):
        """(the prefix of its files, the program)."""
        return self.once("mariadb", self.install_mariadb)

    def install_mariadb(self):
        program = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
        if program:
            return pathlib.Path("/"), program
        return self.folder / "debian", self.debian("mariadb-server-core", "/usr/sbin/mariadbd")

    def postgres(self):
        """The folder of its programs."""
        return self.once("postgresql", self.install_postgres)

    def install_postgres(self):
        there = glob.glob("/usr/lib/postgresql/*/bin/postgres")
        program = there[0] if there else self.debian("postgresql", "/usr/lib/postgresql/*/bin/postgres")
        return pathlib.Path(program).parent
