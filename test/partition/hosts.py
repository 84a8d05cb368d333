"""Hosts of our own: network namespaces around one bridge, and faults on the links between them.

Every host is a namespace with one interface, and the bridge has its own namespace.  So the
machine's own network is neither used nor changed.  Names contain the pid of the run.  So two runs
do not meet, and the next run finds what a killed run has left, processes included.

A fault is a pair (source, target) of host names: one direction of one link.  The target's packet
filter drops, refuses or redirects what the source sends.  apply() gets all pairs of a kind at once,
so that overlapping faults leave nothing behind.

Knows nothing of masters, clients or locks.
"""

import collections
import fcntl
import os
import pathlib
import re
import signal
import subprocess
import time

# Reserved for benchmarks of network devices (RFC 2544), so no real network uses it.
ADDRESSES = "198.18.0.0/15"
PREFIX_LEN = 15
NAMESPACES = pathlib.Path("/run/netns")
TOOL_MAX_S = 20  # A bound for a tool that hangs; each takes milliseconds.
END_MAX_S = 10  # The same bound for processes that were killed.

# The filter of a host without faults.  Packets are dropped and refused after the connection
# tracking that redirecting needs, so that a redirected link can be cut, too.
RULES = """
table inet redlock {
    set dropped { type ipv4_addr; }
    set refused { type ipv4_addr; }
    chain input {
        type filter hook input priority filter; policy accept;
        ip saddr @dropped drop
        ip saddr @refused meta l4proto tcp reject with tcp reset
    }
}
table ip redlock_slow {
    set slow { type ipv4_addr; }
    chain prerouting {
        type nat hook prerouting priority dstnat; policy accept;
        ip saddr @slow tcp dport %(port)d redirect to :%(slow_port)d
    }
}
"""

# What making hosts needs, and its bits in the mask of capabilities(7).
RIGHTS = {"CAP_SYS_ADMIN": 21, "CAP_NET_ADMIN": 12}

# The set of the filter for each kind of fault.
SETS = {"dropped": "inet redlock dropped", "refused": "inet redlock refused",
        "slow": "ip redlock_slow slow"}


class HostError(Exception):
    """A tool failed, or this machine cannot do what is needed; the text says which."""


def run_tool(*argv, text=None):
    try:
        done = subprocess.run(argv, input=text, capture_output=True, text=True,
                              timeout=TOOL_MAX_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{argv[0]}: {error}") from error
    if done.returncode != 0:
        raise HostError(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def pids_in(namespace):
    """The processes that are in this namespace now, or about to enter it."""
    try:
        wanted = os.stat(NAMESPACES / namespace).st_ino
    except OSError:
        wanted = None  # The namespace is not finished, or already gone.
    entering = f"ip\0netns\0exec\0{namespace}\0".encode()
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and (
                    os.stat(f"/proc/{name}/ns/net").st_ino == wanted or
                    pathlib.Path(f"/proc/{name}/cmdline").read_bytes().startswith(entering)):
                found.append(int(name))
        except OSError:
            continue  # It has just ended.
    return found


def end_processes_in(namespace):
    """Kill all processes there, except zombies, which their parents must reap."""
    give_up = time.monotonic() + END_MAX_S
    while pids := [pid for pid in pids_in(namespace) if not is_zombie(pid)]:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > give_up:
            raise HostError(f"processes survive SIGKILL in {namespace}: {pids}")
        time.sleep(0.01)


def is_zombie(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def exists(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not is_zombie(pid)


def namespace_names():
    return [path.name for path in NAMESPACES.iterdir()] if NAMESPACES.is_dir() else []


def remove_namespaces(names):
    for name in names:
        end_processes_in(name)
    for name in names:
        run_tool("ip", "netns", "delete", name)


def missing_rights(status=pathlib.Path("/proc/self/status")):
    """The names of the capabilities that this process lacks."""
    held = int(re.search(r"^CapEff:\s*(\w+)$", status.read_text(), re.MULTILINE)[1], 16)
    return [name for name, bit in RIGHTS.items() if not held >> bit & 1]


def why_not():
    """Why this process cannot make hosts, in one short line.  None: it can."""
    missing = missing_rights()
    if missing:
        return f"network namespaces need {' and '.join(missing)}, which root has outside of containers"
    try:
        probe()
    except HostError as error:
        return f"network namespaces cannot be made here: {str(error).splitlines()[0][:80]}"
    return None


def probe():
    """Raises HostError if this machine cannot make hosts with packet filters."""
    name = f"redlock-{os.getpid()}-probe"
    try:
        run_tool("ip", "netns", "add", name)
        run_tool("ip", "netns", "exec", name, "nft", "-f", "-",
                 text=RULES % {"port": 1, "slow_port": 2})
    finally:
        remove_namespaces([name] if name in namespace_names() else [])


def is_leftover(name):
    found = re.fullmatch(r"redlock-(\d+)-\w+", name)
    return found is not None and not exists(int(found[1]))


def remove_leftovers():
    """Remove what killed runs have left.  A lock keeps two runs from doing so at once."""
    lock = os.open(NAMESPACES.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_namespaces([name for name in namespace_names() if is_leftover(name)])
    finally:
        os.close(lock)


def sources_by_target(pairs):
    """{target: {source, ...}} of pairs (source, target)."""
    sources = collections.defaultdict(set)
    for source, target in pairs:
        sources[target].add(source)
    return sources


class Hosts:
    """A context: the hosts exist within it; after it they and their processes are gone."""

    def __init__(self, names_of_masters, names_of_clients, port, slow_port, others=()):
        self.prefix = f"redlock-{os.getpid()}-"
        self.addresses = {}
        for third, names in ((1, names_of_masters), (2, names_of_clients), (3, others)):
            for number, name in enumerate(names, 1):
                self.addresses[name] = f"198.18.{third}.{number}"
        self.rules = RULES % {"port": port, "slow_port": slow_port}
        self.applied = {kind: {} for kind in SETS}

    def namespace(self, name):
        return self.prefix + name

    def command(self, name, argv):
        """The command line that runs argv on a host."""
        return ["ip", "netns", "exec", self.namespace(name), *map(str, argv)]

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.remove()  # Remove the hosts that exist already.
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def build(self):
        hub = self.namespace("hub")
        run_tool("ip", "netns", "add", hub)
        for name in self.addresses:
            run_tool("ip", "netns", "add", self.namespace(name))
        lines = ["link add bridge0 type bridge", "link set bridge0 up"]
        for name in self.addresses:
            lines += [f"link add {name} type veth peer name eth0 netns {self.namespace(name)}",
                      f"link set {name} master bridge0 up"]
        run_tool("ip", "-netns", hub, "-batch", "-", text="\n".join(lines) + "\n")
        for name, address in self.addresses.items():
            lines = ["link set lo up", f"address add {address}/{PREFIX_LEN} dev eth0",
                     "link set eth0 up"]
            run_tool("ip", "-netns", self.namespace(name), "-batch", "-",
                     text="\n".join(lines) + "\n")
            run_tool(*self.command(name, ["nft", "-f", "-"]), text=self.rules)

    def remove(self):
        remove_namespaces([name for name in namespace_names() if name.startswith(self.prefix)])

    def apply(self, kind, pairs):
        """From now on, exactly these pairs have a fault of this kind: dropped, refused or slow."""
        wanted = sources_by_target(pairs)
        before = self.applied[kind]
        changed = [target for target in self.addresses
                   if wanted.get(target, set()) != before.get(target, set())]
        self.run_on_all({target: self.set_text(kind, wanted.get(target, set()))
                         for target in changed})
        self.applied[kind] = wanted

    def set_text(self, kind, sources):
        text = f"flush set {SETS[kind]}\n"
        if sources:
            addresses = ", ".join(sorted(self.addresses[source] for source in sources))
            text += f"add element {SETS[kind]} {{ {addresses} }}\n"
        return text

    def run_on_all(self, texts):
        """Run nft with these texts on all hosts at once, so that a cut takes milliseconds."""
        started = []
        for name, text in texts.items():
            tool = subprocess.Popen(self.command(name, ["nft", "-f", "-"]), text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE)
            tool.stdin.write(text)
            tool.stdin.close()
            started.append((name, tool))
        for name, tool in started:
            said = tool.stderr.read()
            tool.stderr.close()
            if tool.wait(TOOL_MAX_S) != 0:
                raise HostError(f"nft on {name}: {said.strip()}")

    def rules_of(self, name):
        """The rules of the kernel, for tests."""
        return run_tool(*self.command(name, ["nft", "list", "ruleset"]))
