"""The world of a run with --docker: masters in containers, clients on this machine.

The verbs are those of cluster.py that docker can do: pause, kill, network disconnect.  Clients see
only the published port of a master, so a master can be cut from all of them, or from none.  Wall
clocks are those of the machine.
"""

import os
import pathlib
import shutil
import subprocess

import cluster
import masters

ROOT = pathlib.Path(__file__).resolve().parents[2]
MASTERS = 5  # The number in docker-compose.yml.
NETWORK = "redlock-containers_default"
# Chosen: answers pass a proxy, and each master first syncs to the engine's file system.  With the
# library's default of 50 ms, a busy disk would look like a lack of progress.
REPLY_TIMEOUT_MS = 250
STOP_MAX_S = 180
COMMAND_MAX_S = 60

KINDS = ["cut-minority", "cut-majority", "pause-master", "pause-client", "kill-master",
         "kill-client", "swizzle", "script-flush"]


class DockerError(Exception):
    """There is no engine, or a command to it failed."""


class Containers:
    """scripts/containers, which keeps the containers while its standard input is open."""

    def __init__(self):
        self.process = subprocess.Popen([ROOT / "scripts/containers"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        start_new_session=True)
        self.values = {}

    def wait_until_ready(self):
        """Without a bound: scripts/containers bounds each of its waits."""
        for line in self.process.stdout:
            if line.strip() == "ready":
                return
            key, _, value = line.strip().partition("=")
            self.values[key] = value
        raise DockerError(f"scripts/containers ended with {self.process.wait(STOP_MAX_S)}")

    def stop(self):
        self.process.stdin.close()
        if self.process.wait(STOP_MAX_S) != 0:
            raise DockerError(f"scripts/containers ended with {self.process.returncode}")


class Master:
    """One container, with the verbs of masters.Master."""

    def __init__(self, name, container, endpoint, docker):
        self.name = name
        self.container = container
        self.endpoint = endpoint
        self.docker = docker

    def kill(self):
        self.docker("kill", "--signal", "KILL", self.container)

    def start(self):
        self.docker("start", self.container)

    def stop(self):
        self.docker("pause", self.container)

    def go_on(self):
        self.docker("unpause", self.container)

    def cut(self):
        self.docker("network", "disconnect", NETWORK, self.container)

    def join(self):
        self.docker("network", "connect", "--alias", self.name, NETWORK, self.container)

    def conversation(self, timeout_s=masters.ANSWER_MAX_S):
        return masters.Conversation.by_tcp(self.endpoint, timeout_s)

    def ask(self, *words):
        with self.conversation() as conversation:
            return conversation.ask(*words)

    def answers(self):
        try:
            return self.ask("PING") == "PONG"
        except (OSError, masters.MasterError):
            return False

    def is_up(self):
        return True  # Not known here; each wait has a bound.

    def last_words(self):
        return "see `docker logs`"

    wait_until_answers = masters.Master.wait_until_answers


class Cluster(cluster.Processes):
    """A context, as cluster.Cluster is."""

    operators = None  # The set of masters does not change.

    def __init__(self, programs, names_of_masters, names_of_clients, folder):
        self.programs = programs
        self.names_of_masters = names_of_masters
        self.names_of_clients = names_of_clients
        self.folder = folder
        self.sockets = cluster.socket_folder(os.getpid())
        self.cut_by = {}  # Fault: the masters that it has cut.
        self.containers = self.masters = self.ensemble = None

    def __enter__(self):
        cluster.remove_leftovers()
        self.sockets.mkdir(mode=0o700)
        try:
            self.containers = Containers()
            self.containers.wait_until_ready()
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def start(self):
        values = self.containers.values
        endpoints = values["REDLOCK_MASTERS"].split(",")
        self.masters = masters.Masters([
            Master(name, values[f"redis-{i}"], endpoints[i - 1], self.docker)
            for i, name in enumerate(self.names_of_masters, 1)])
        self.ensemble = cluster.Ensemble(self.programs, self.names_of_clients, lambda: endpoints,
                                         self.folder, self.sockets, self.command)

    @staticmethod
    def command(_, argv):
        """Runs on this machine, and ends with this process even if that is killed."""
        return ["setpriv", "--pdeathsig", "KILL", *map(str, argv)]

    def remove(self):
        if self.ensemble is not None:
            self.ensemble.kill()
        shutil.rmtree(self.sockets, ignore_errors=True)
        if self.containers is not None:
            self.containers.stop()

    def docker(self, *words):
        environment = dict(os.environ)
        if self.containers.values["DOCKER_HOST"]:
            environment["DOCKER_HOST"] = self.containers.values["DOCKER_HOST"]
        done = subprocess.run(["docker", *words], env=environment, capture_output=True, text=True,
                              timeout=COMMAND_MAX_S, check=False)
        if done.returncode != 0:
            raise DockerError(f"docker {' '.join(words)}: {done.stderr.strip()}")

    # ---- Verbs ----

    def drop(self, key, pairs):
        """Cuts masters from all clients, or from none: other faults are not used here."""
        before = self.cut_masters()
        self.cut_by.pop(key, None)
        if pairs:
            self.cut_by[key] = {name for pair in pairs for name in pair
                                if name in self.masters.by_name}
        after = self.cut_masters()
        for name in sorted(after - before):
            self.masters[name].cut()
        for name in sorted(before - after):
            self.masters[name].join()

    def cut_masters(self):
        return set().union(*self.cut_by.values())

    def forget_scripts(self, who):
        """Does nothing for a master that is cut, because no command reaches it."""
        if who not in self.cut_masters():
            self.masters[who].wait_until_answers()
            self.masters[who].ask("SCRIPT", "FLUSH", "SYNC")

    def settle(self):
        if self.cut_by:
            raise DockerError(f"still cut: {', '.join(sorted(self.cut_masters()))}")
        self.masters.wait_until_all_answer()
        self.ensemble.settle()
