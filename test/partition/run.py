"""One run: storms and quiet phases in a world, recorded in a history.

A history has one line of JSON for each event.  Each client, the store and the run write their own
file.  In the end they are merged by time, which is CLOCK_MONOTONIC for all of them.
"""

import json
import threading
import time

import clients
import sampler


class History:
    """The events of the run itself, from any thread.  A context."""

    def __init__(self, path):
        self.file = open(path, "w")
        self.lock = threading.Lock()

    def tell(self, event, **fields):
        with self.lock:
            line = {"t": time.monotonic_ns(), "who": "run", "event": event, **fields}
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


def lines_of(path):
    """(t, line) of each line.  A killed writer may leave a line that cannot be read.  It stays
    behind the line before it, and the checker judges it."""
    last = 0
    with open(path, "rb") as file:
        for line in file:
            try:
                last = json.loads(line)["t"]
            except (ValueError, KeyError, TypeError):
                pass
            yield last, line.rstrip(b"\n") + b"\n"


def merge(paths, output):
    """Merge files by time; lines of one writer with the same time stay in their order."""
    lines = []
    for path in paths:
        lines += lines_of(path)
    lines.sort(key=lambda pair: pair[0])
    with open(output, "wb") as file:
        file.writelines(line for _, line in lines)


def sleep_until(time_s):
    time.sleep(max(0, time_s - time.monotonic()))


class Run:
    """Storms on a world, recorded in a history, and printed."""

    def __init__(self, world, history, say, quiet_s):
        self.quiet_s = quiet_s
        self.world = world
        self.history = history
        self.say = say
        self.samplers = []
        self.began = time.monotonic()

    def perform(self, storms, locks):
        """The run, without the history's begin and end.

        Returns the errors of clients; the history is still complete.
        """
        wrong = []
        self.world.ensemble.start()
        keys = sampler.Sampler(self.world.masters, sampler.keys_of(locks), self.history)
        queues = sampler.Sampler(self.world.masters, sampler.queues_of(locks), self.history,
                                 sampler.QUEUES_EVERY_S)
        sets = sampler.Sampler(self.world.masters, self.sets(), self.history, sampler.SETS_EVERY_S)
        self.samplers = [keys, queues, sets]
        with keys, queues, sets:
            try:
                self.weather(storms)
            except clients.ClientError as error:
                wrong.append(str(error))
            wrong += self.world.ensemble.end()
        return wrong

    def sets(self):
        """What to sample of the set of masters, if operators change it."""
        if self.world.operators is None:
            return []
        self.world.operators.tell = self.history.tell
        return [sampler.Sets(self.world.operators.names)]

    def weather(self, storms):
        self.be_quiet()
        for storm in storms:
            self.take_steps(storm)
            self.be_quiet()

    def take_steps(self, storm):
        """Take all steps of all faults, each at its time; late ones follow at once."""
        steps = [(step.at_s, fault.id, number, step, fault) for fault in storm.faults
                 for number, step in enumerate(fault.steps)]
        began = time.monotonic()
        for at_s, _, number, step, fault in sorted(steps, key=lambda entry: entry[:3]):
            sleep_until(began + at_s)
            if number == 0:
                self.tell_of(fault)
            getattr(self.world, step.verb)(*step.args)
            if step.verb == "replace":
                self.history.tell("client", name=self.world.name_now(*step.args))
            if number == len(fault.steps) - 1:
                self.history.tell("healed", id=fault.id)
        sleep_until(began + storm.length_s)

    def tell_of(self, fault):
        """Record a fault, with the present names of its hosts: a new client has a new name."""
        on, source = ([self.world.name_now(host) for host in hosts]
                      for hosts in (fault.on, fault.source))
        self.history.tell("fault", id=fault.id, kind=fault.kind, on=on, about=fault.about,
                          **{"from": source})
        self.announce(f"{fault.kind:14} {fault.about}")

    def be_quiet(self):
        """All faults are healed: from here on all clients must make progress."""
        self.world.settle()
        self.history.tell("quiet", on=self.world.names_of_masters)
        self.announce("quiet")
        time.sleep(self.quiet_s)
        self.world.settle()
        for each in self.samplers:
            each.check()

    def announce(self, text):
        self.say(f"{time.monotonic() - self.began:6.1f} s  {text}")
