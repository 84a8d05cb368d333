"""The clients as processes.  Each is started, stopped, killed and asked to end as a whole.

A client has children (it runs `redlock run`), which have children, too.  All of them stay in one
session.  So they can be found at any depth, orphans included.
"""

import os
import pathlib
import signal
import subprocess
import time

SETTLE_MAX_S = 10  # Bounds for a machine under heavy load; each takes milliseconds.
END_MAX_S = 30  # Leases, commands, and waits for a lock are all shorter.


class ClientError(Exception):
    """A client does not do what it is told; the text says which, and what."""


def states_of_session(session):
    """{pid: state} of the running processes in a session."""
    states = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = pathlib.Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        # The name, in parentheses, may hold any character.  Then: state, parent, group, session.
        fields = stat.rpartition(")")[2].split()
        if int(fields[3]) == session and fields[0] not in "ZX":
            states[int(name)] = fields[0]
    return states


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # It has ended meanwhile.


class Client:
    """who is its name in the history, host where it runs, preexec_fn as of Popen."""

    def __init__(self, who, host, argv, log, preexec_fn=None):
        self.who = who
        self.host = host
        with open(log, "ab") as output:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, start_new_session=True,
                                            preexec_fn=preexec_fn)

    def stop(self):
        self.settle(signal.SIGSTOP, lambda state: state == "T")

    def go_on(self):
        self.settle(signal.SIGCONT, lambda state: state != "T")

    def kill(self):
        self.settle(signal.SIGKILL, lambda state: False)
        self.process.wait(SETTLE_MAX_S)

    def settle(self, number, settled):
        """Signal all processes until all are settled: they may fork or stop each other."""
        give_up = time.monotonic() + SETTLE_MAX_S
        while True:
            states = states_of_session(self.process.pid)
            waiting = [pid for pid, state in states.items() if not settled(state)]
            if not waiting:
                return
            if time.monotonic() > give_up:
                raise ClientError(f"{self.who}: {waiting} do not heed signal {number}")
            # The leader first, or it would see the change of its children.
            for pid in sorted(waiting, key=lambda pid: pid != self.process.pid):
                send(pid, number)
            time.sleep(0.002)

    def is_stopped(self):
        return "T" in states_of_session(self.process.pid).values()

    def has_ended(self):
        return self.process.poll() is not None

    def ask_to_end(self):
        send(self.process.pid, signal.SIGTERM)

    def wait(self, give_up):
        """The exit status, or None if the client still runs at that time."""
        try:
            return self.process.wait(max(0, give_up - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None
