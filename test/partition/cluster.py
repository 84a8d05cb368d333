"""The world of a run: masters, clients, relays and the store, on hosts of their own.

Its methods are the verbs of nemesis.py.  It keeps the links that each fault breaks, and gives the
hosts their union.  So faults may overlap in any way.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import changes
import clients
import hosts
import masters
import operators

REPLY_TIMEOUT_MS = 50  # The default.  Delays of slow links are chosen around it.
SOCKETS = pathlib.Path("/run")  # Short, because the name of a Unix socket has at most 107 bytes.
STORE_MAX_S = 10


class Programs:
    """The paths and the arguments of the programs."""

    def __init__(self, build, seed, ttl_ms, reply_timeout_ms, locks, restart_guard="on",
                 clock_guard="periodic", crowds=()):
        """crowds: arguments of a holder that is a part of each crowd."""
        self.folder = build / "test/partition"
        self.redlock = build / "redlock"
        self.seed = seed
        self.ttl_ms = ttl_ms
        self.reply_timeout_ms = reply_timeout_ms
        self.locks = locks
        self.restart_guard = restart_guard
        self.clock_guard = clock_guard
        self.crowds = crowds

    def holder(self, who, number, endpoints, socket, history, list_file=None):
        """With a file, commands of the holder read their list of masters from it."""
        more = ["--masters-file", list_file] if list_file else []
        return [self.folder / "holder", "--who", who, "--masters", ",".join(endpoints), *more,
                "--store", socket, "--history", history, "--locks", ",".join(self.locks),
                "--ttl-ms", self.ttl_ms, "--reply-timeout-ms", self.reply_timeout_ms,
                "--restart-guard", self.restart_guard, "--clock-guard", self.clock_guard,
                "--seed", self.seed * 1000 + number, "--redlock", self.redlock, *self.crowds]

    def store(self, socket, history):
        return [self.folder / "store", "--socket", socket, "--history", history]

    def relay(self, address, delay):
        return [self.folder / "relay", "--listen", f"{address}:{masters.SLOW_PORT}",
                "--to", f"{address}:{masters.PORT}", "--delay-file", delay]

    @property
    def skew(self):
        return self.folder / "libskew.so"


def socket_folder(pid):
    return SOCKETS / f"redlock-partition-{pid}"


def remove_leftovers():
    """Remove what killed runs have left."""
    hosts.remove_leftovers()
    for folder in SOCKETS.glob("redlock-partition-*"):
        pid = folder.name.rpartition("-")[2]
        if pid.isdigit() and not hosts.exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


class Ensemble:
    """The store and the clients: the same in every world.

    run(host, argv) gives the command line that runs argv on the client's host.  endpoints() gives
    the list of masters that a new client gets.
    """

    def __init__(self, programs, names, endpoints, folder, sockets, run, list_file=None):
        self.programs = programs
        self.names = names
        self.endpoints = endpoints
        self.list_file = list_file
        self.folder = folder
        self.socket = sockets / "store"
        self.run = run
        self.on_host = {}
        self.everybody = []
        self.store = None

    def start(self):
        with open(self.folder / "store.log", "ab") as log:
            argv = self.programs.store(self.socket, self.folder / "store.jsonl")
            self.store = subprocess.Popen([str(word) for word in self.run(None, argv)],
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          start_new_session=True)
        self.wait_for_store()
        for name in self.names:
            self.begin(name, name)

    def wait_for_store(self):
        give_up = time.monotonic() + STORE_MAX_S
        while not self.socket.exists():
            if self.store.poll() is not None or time.monotonic() > give_up:
                raise clients.ClientError(f"the store does not start: see {self.folder}/store.log")
            time.sleep(0.005)

    def begin(self, who, host):
        argv = self.programs.holder(who, len(self.everybody) + 1, self.endpoints(), self.socket,
                                    self.folder / f"{who}.jsonl", self.list_file)
        client = clients.Client(who, host, [str(word) for word in self.run(host, argv)],
                                self.folder / f"{who}.log")
        self.on_host[host] = client
        self.everybody.append(client)

    def replace(self, host):
        self.on_host[host].kill()
        self.begin(f"c{len(self.everybody) + 1}", host)

    def end(self):
        """Ask all clients to end, at once.  Returns a text for each that did not end well."""
        wrong = []
        give_up = time.monotonic() + clients.END_MAX_S
        for client in self.on_host.values():
            client.ask_to_end()
        for client in self.on_host.values():
            status = client.wait(give_up)
            if status != 0:
                wrong.append(f"{client.who} " + ("does not end" if status is None else
                                                 f"ended with status {status}") +
                             f", see {self.folder / client.who}.log")
        self.store.send_signal(signal.SIGTERM)
        if self.store.wait(STORE_MAX_S) != 0:
            wrong.append(f"the store ended with status {self.store.returncode}")
        return wrong

    def settle(self):
        """Check that no client has ended by itself, or is still stopped."""
        for client in self.on_host.values():
            if client.has_ended():
                raise clients.ClientError(f"{client.who} ended by itself (status "
                                          f"{client.process.returncode}), see {self.folder}")
            if client.is_stopped():
                raise clients.ClientError(f"{client.who} is still stopped")

    def kill(self):
        for client in self.everybody:
            client.kill()
        if self.store is not None:
            self.store.kill()
            self.store.wait(STORE_MAX_S)


class Processes:
    """Stops and starts masters and clients by name.  A subclass has `masters` and `ensemble`."""

    def name_now(self, host):
        return host if host in self.masters.by_name else self.ensemble.on_host[host].who

    def process(self, who):
        return self.masters[who] if who in self.masters.by_name else self.ensemble.on_host[who]

    def stop(self, who):
        self.process(who).stop()

    def go_on(self, who):
        self.process(who).go_on()

    def kill(self, who):
        self.masters[who].kill()

    def start_again(self, who):
        self.masters[who].start()

    def replace(self, who):
        self.ensemble.replace(who)


class Cluster(Processes):
    """A context.  All hosts and masters exist within it; after it only files are left.

    The caller starts the ensemble once it has begun a history.  With spares, which are masters
    too, operators change the set of masters.
    """

    def __init__(self, programs, names_of_masters, names_of_clients, folder, spares=()):
        self.programs = programs
        self.folder = folder
        self.sockets = socket_folder(os.getpid())
        self.hosts = hosts.Hosts([*names_of_masters, *spares], names_of_clients, masters.PORT,
                                 masters.SLOW_PORT, changes.OPERATORS if spares else [])
        self.members = names_of_masters
        self.names_of_masters = [*names_of_masters, *spares]
        self.operators = None
        self.names_of_clients = names_of_clients
        self.links = {kind: {} for kind in hosts.SETS}  # For each kind, the pairs of each fault.
        self.masters = self.ensemble = None
        self.clock_work = None
        self.relays = []
        self.delays = {}

    def __enter__(self):
        remove_leftovers()
        self.sockets.mkdir(mode=0o700)
        try:
            self.hosts.build()
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def start(self):
        self.masters = masters.Masters([self.new_master(name) for name in self.names_of_masters])
        self.masters.start()
        self.clock_work = masters.ClockWork([master.clock for master in self.masters])
        self.clock_work.start()
        for master in self.masters:
            self.start_relay(master)
        endpoints = {master.name: f"{master.address}:{masters.PORT}" for master in self.masters}
        if self.names_of_masters == self.members:
            self.ensemble = Ensemble(self.programs, self.names_of_clients, lambda: endpoints.values(),
                                     self.folder, self.sockets, self.command)
            return
        self.operators = operators.Operators(self.programs, endpoints, self.members, self.folder,
                                             self.command)
        self.ensemble = Ensemble(self.programs, self.names_of_clients,
                                 self.operators.listed_endpoints, self.folder, self.sockets,
                                 self.command, self.operators.list_file)

    def command(self, host, argv):
        return self.hosts.command(host or "hub", argv)

    def new_master(self, name):
        return masters.Master(name, lambda argv: self.command(name, argv),
                              self.hosts.addresses[name], self.folder / name,
                              self.sockets / name, self.programs.skew)

    def start_relay(self, master):
        delay = masters.MappedNumber(self.folder / master.name / "delay")
        argv = self.command(master.name, self.programs.relay(master.address, delay.path))
        with open(self.folder / f"relay-{master.name}.log", "ab") as log:
            self.relays.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=log, start_new_session=True))
        self.delays[master.name] = delay

    def remove(self):
        """Remove everything that exists, in any state."""
        if self.clock_work is not None:
            self.clock_work.stop()
        if self.operators is not None:
            self.operators.kill()
        for process in self.relays:
            process.kill()
            process.wait(STORE_MAX_S)
        if self.masters is not None:
            self.masters.kill()
        if self.ensemble is not None:
            self.ensemble.kill()
        self.hosts.remove()
        shutil.rmtree(self.sockets, ignore_errors=True)

    # ---- Links ----

    def set_links(self, kind, key, pairs):
        self.links[kind].pop(key, None)
        if pairs:
            self.links[kind][key] = pairs
        self.hosts.apply(kind, {pair for fault in self.links[kind].values() for pair in fault})

    def drop(self, key, pairs):
        self.set_links("dropped", key, pairs)

    def refuse(self, key, pairs):
        self.set_links("refused", key, pairs)

    def slow(self, key, pairs, delay_ms):
        """The relay delays both directions, so only connections to masters are redirected."""
        before = self.links["slow"].get(key, [])
        for _, target in before + pairs:
            if target in self.delays:
                self.delays[target].set(delay_ms * masters.NS_PER_MS)
        self.set_links("slow", key, [pair for pair in pairs if pair[1] in self.delays])

    # ---- Processes ----

    def empty(self, who):
        self.masters[who].empty()

    # ---- The set of masters ----

    def operate(self, number, operator, words):
        self.operators.operate(number, operator, words)

    def interrupt(self, number):
        self.operators.interrupt(number)

    def halt(self, number):
        self.operators.halt(number, list(self.masters))

    def conclude(self, number):
        self.operators.conclude(number)

    def mend(self, goal, forgetting):
        self.masters.wait_until_all_answer()
        self.operators.mend(goal)
        for name in forgetting:
            self.masters[name].kill()
            self.masters[name].empty()
            self.masters[name].start()

    # ---- What masters know ----

    def step_clock(self, who, step_ms):
        self.masters[who].clock.step(step_ms)

    def rate_clock(self, who, ppm):
        self.masters[who].clock.rate(ppm)

    # The master is neither down nor stopped, but it may still be starting.

    def forget_scripts(self, who):
        self.masters[who].wait_until_answers()
        self.masters[who].ask("SCRIPT", "FLUSH", "SYNC")

    def flush(self, who):
        self.masters[who].wait_until_answers()
        self.masters[who].ask("FLUSHALL", "SYNC")

    # ---- After a storm ----

    def settle(self):
        """Check that all faults are undone, and wait until every master answers."""
        self.clock_work.check()
        left = [kind for kind, pairs in self.hosts.applied.items() if pairs]
        if left:
            raise hosts.HostError(f"links are still {', '.join(left)}")
        wrong = [master.name for master in self.masters if master.clock.ppm != 0]
        if wrong:
            raise masters.MasterError(f"clocks still go wrong: {', '.join(wrong)}")
        self.masters.wait_until_all_answer()
        self.ensemble.settle()
