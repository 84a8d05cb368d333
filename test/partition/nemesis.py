"""The schedule of faults: from a seed, faults as lists of steps.  Pure: does nothing itself.

A run is a series of storms with quiet phases between.  In a storm, faults overlap.  Each fault
undoes what it did by its last step.  After a storm all clients must make progress again.
The steps are verbs of a world (cluster.py, docker.py) with their arguments:

    drop, refuse KEY PAIRS       the pairs (source, target) of this fault; [] ends it
    slow KEY PAIRS DELAY_MS      the same; messages take DELAY_MS longer, each way
    stop, go_on WHO              SIGSTOP and SIGCONT, a client's with all that it has started
    kill, start_again WHO        SIGKILL, and start with the data that are left
    empty WHO                    delete the data of a master that is down
    replace WHO                  SIGKILL to a client; another begins on the same host
    step_clock WHO STEP_MS       step a master's wall clock
    rate_clock WHO PPM           too fast by PPM from now on; 0: right again
    forget_scripts, flush WHO    SCRIPT FLUSH, FLUSHALL
    operate, interrupt, halt, conclude, mend: see changes.py

If one fault has stopped or killed a host, other faults leave it alone.  Otherwise the first fault
to end would undo the second.  Several faults may cut one link at a time.
"""

import dataclasses
import random

import changes
from history import CLOCK_WATCH_MS

FAR_MS = 4000  # Below DRIFT_OUTLIER of drift/node.h, even with wrong rates.
QUIET_S = 4  # Between two storms, before the first, and after the last: longer than clients need.
STORM_MIN_S, STORM_MAX_S = 6, 12
# After a storm, the votes of a master whose clock was stepped in it do not count for so long: for
# CLOCK_WATCH_MS from when clients notice it, and they may do so when the storm is over.
CLOCK_BARS_S = 12
HEAL_S = 0.5  # The usual time of healing, for planning only.
MIN_SECONDS = 12  # Without per_vote; see min_seconds().


@dataclasses.dataclass(frozen=True)
class Step:
    at_s: float  # Since the storm began.
    verb: str
    args: tuple


@dataclasses.dataclass
class Fault:
    id: int
    kind: str
    on: list  # Hosts that have the fault.
    source: list  # For faults of links, the hosts whose messages are affected.
    about: str
    steps: list  # Sorted by time.

    @property
    def begin_s(self):
        return self.steps[0].at_s

    @property
    def end_s(self):
        return self.steps[-1].at_s


@dataclasses.dataclass
class Storm:
    length_s: float
    faults: list


def both_ways(sources, targets):
    return one_way(sources, targets) + one_way(targets, sources)


def one_way(sources, targets):
    return [(source, target) for source in sources for target in targets]


def others(hosts, some):
    return [host for host in hosts if host not in some]


def names(hosts):
    return ", ".join(by_number(hosts))


def by_number(hosts):
    """Sort n2 before n10."""
    return sorted(hosts, key=lambda host: (len(host), host))


class Weather:
    """A storm that is being planned: its dice, its faults, and when hosts are stopped or down."""

    def __init__(self, dice, masters, clients, ttl_ms, length_s, first_id, clocks):
        self.dice = dice
        self.masters = masters
        self.clients = clients
        self.ttl_ms = ttl_ms
        self.length_s = length_s
        self.first_id = first_id
        self.faults = []
        self.busy = []
        self.clocks = clocks  # The offset of each master's clock from earlier storms, in ms.
        self.stepped = set()  # The masters whose clock has been stepped.
        self.barred = set()  # Those of earlier storms, if their votes will not count after this.
        self.crew = None  # The set of masters, if it changes; see changes.py.
        self.next_command = 1
        self.majority = len(masters) // 2 + 1
        self.minority = max(1, len(masters) - self.majority)

    @property
    def next_id(self):
        return self.first_id + len(self.faults)

    def add(self, kind, on, source, about, steps):
        steps = sorted(steps, key=lambda step: step.at_s)
        self.faults.append(
            Fault(self.next_id, kind, by_number(on), by_number(source), about, steps))

    def add_steps(self, kind, on, source, about, steps):
        """The same, for steps (at_s, verb, args)."""
        self.add(kind, on, source, about, [Step(*step) for step in steps])

    def uniform(self, low, high):
        return round(self.dice.uniform(low, max(low, high)), 3)

    def part(self):
        """A begin and an end, with a quarter of the storm or more between them."""
        begin = self.uniform(0, 0.5 * self.length_s)
        return begin, self.uniform(begin + 0.25 * self.length_s, self.length_s)

    def some(self, hosts, least, most):
        """Some hosts at random, in random order."""
        most = min(most, len(hosts))
        return self.dice.sample(hosts, self.dice.randint(min(least, most), most))

    def idle(self, hosts, begin, end):
        """The hosts that are never stopped or down between begin and end."""
        return [host for host in hosts
                if not any(host == other and begin <= until and since <= end
                           for other, since, until in self.busy)]

    def claim(self, hosts, least, most, begin, end):
        """Mark some idle hosts as busy, and return them; there may be fewer than least."""
        claimed = self.some(self.idle(hosts, begin, end), least, most)
        self.busy += [(host, begin, end) for host in claimed]
        return claimed

    def reshape(self, begin, end):
        """True for one fault at a time: with two bridges, few clients would see a majority."""
        return self.claim(["the network"], 1, 1, begin, end) != []

    def cut(self, kind, on, source, about, pairs, reshapes=False):
        """Add a fault that drops links for a part of the storm."""
        begin, end = self.part()
        if reshapes and not self.reshape(begin, end):
            return
        self.add(kind, on, source, about, [Step(begin, "drop", (self.next_id, pairs)),
                                           Step(end, "drop", (self.next_id, []))])


# ---- Links ----


def cut_minority(weather):
    masters = weather.some(weather.masters, 1, weather.minority)
    weather.cut("cut-minority", masters, weather.clients, f"{names(masters)} cut from all clients",
                both_ways(weather.clients, masters))


def cut_majority(weather):
    masters = weather.some(weather.masters, weather.majority, len(weather.masters))
    weather.cut("cut-majority", masters, weather.clients, f"{names(masters)} cut from all clients",
                both_ways(weather.clients, masters))


def isolate_client(weather):
    """Cut clients from all masters, or from just enough to leave no majority."""
    clients = weather.some(weather.clients, 1, len(weather.clients) // 2)
    count = weather.dice.choice([weather.majority, len(weather.masters)])
    masters = weather.some(weather.masters, count, count)
    weather.cut("isolate-client", clients, masters,
                f"{names(clients)} cut from {names(masters)}", both_ways(clients, masters))


def bridge(weather):
    middle, pairs = bridge_pairs(weather)
    weather.cut("bridge", weather.masters, weather.clients, about_bridge(middle), pairs,
                reshapes=True)


def bridge_pairs(weather, open_side=False):
    """Two halves of the clients see a majority each.  Returns the common masters, and what is cut.

    With an open side, the second half sees all masters.
    """
    clients = weather.dice.sample(weather.clients, len(weather.clients))
    masters = weather.dice.sample(weather.masters, len(weather.masters))
    half = len(clients) // 2
    left, right = masters[:weather.majority], masters[-weather.majority:]
    pairs = both_ways(clients[:half], others(masters, left))
    if not open_side:
        pairs += both_ways(clients[half:], others(masters, right))
    return [name for name in left if name in right], pairs


def about_bridge(middle, open_side=False):
    if open_side:
        return f"two sides, a bare majority for one, with {names(middle)}, and all for the other"
    return f"two sides, a majority for each; only {names(middle)} in both"


def ring(weather):
    masters = weather.dice.sample(weather.masters, len(weather.masters))
    clients = weather.dice.sample(weather.clients, len(weather.clients))
    pairs = []
    for i, client in enumerate(clients):
        seen = [masters[(i + j) % len(masters)] for j in range(weather.majority)]
        pairs += both_ways([client], others(masters, seen))
    weather.cut("ring", masters, clients, "every client sees another majority", pairs,
                reshapes=True)


def one_way_cut(weather):
    masters = weather.some(weather.masters, 1, len(weather.masters))
    clients = weather.some(weather.clients, 1, len(weather.clients))
    if weather.dice.random() < 0.5:
        weather.cut("one-way", clients, masters, f"answers of {names(masters)} are lost",
                    one_way(masters, clients))
    else:
        weather.cut("one-way", masters, clients, f"requests to {names(masters)} are lost",
                    one_way(clients, masters))


def flap(weather):
    """Links go down and up, for times around the reply timeout and well beyond it."""
    at, end = weather.part()
    masters = weather.some(weather.masters, 1, len(weather.masters))
    clients = weather.some(weather.clients, 1, len(weather.clients))
    pairs, steps = both_ways(clients, masters), []
    while at < end:
        steps.append(Step(at, "drop", (weather.next_id, [] if len(steps) % 2 else pairs)))
        at = round(at + weather.uniform(0.03, 0.5), 3)
    if len(steps) % 2:
        steps.append(Step(end, "drop", (weather.next_id, [])))
    weather.add("flap", masters, clients, f"links of {names(masters)} go up and down", steps)


def reset(weather):
    """For short times, the target's kernel answers every message with a reset."""
    at, end = weather.part()
    masters = weather.some(weather.masters, 1, len(weather.masters))
    clients = weather.some(weather.clients, 1, len(weather.clients))
    requests, answers = one_way(clients, masters), one_way(masters, clients)
    steps = []
    while at < end:
        pairs = weather.dice.choice([requests, answers, requests + answers])
        steps += resets(weather, pairs, at, weather.uniform(0.03, 0.3))
        at = round(steps[-1].at_s + weather.uniform(0.3, 1.5), 3)
    weather.add("reset", masters, clients, f"connections to {names(masters)} are reset", steps)


def resets(weather, pairs, at, takes_s):
    return [Step(at, "refuse", (weather.next_id, pairs)),
            Step(round(at + takes_s, 3), "refuse", (weather.next_id, []))]


def slow_link(weather):
    """Delays around the reply timeout: answers come in time, late, or much too late."""
    begin, end = weather.part()
    delay_ms = weather.dice.choice([5, 10, 20, 20, 40, 80, 200])
    masters = weather.claim(weather.masters, 1, len(weather.masters), begin, end)
    clients = weather.some(weather.clients, 1, len(weather.clients))
    if not masters:
        return
    pairs = both_ways(clients, masters)
    # Only new connections go through the relay, so old ones are reset at the begin and the end.
    steps = [Step(begin, "slow", (weather.next_id, pairs, delay_ms)),
             *resets(weather, pairs, begin, 0.1),
             Step(end, "slow", (weather.next_id, [], 0)),
             *resets(weather, pairs, end, 0.1)]
    weather.add("slow-link", masters, clients,
                f"links of {names(masters)} take {delay_ms} ms longer each way", steps)


# ---- Processes ----


def pause_master(weather):
    pause(weather, "pause-master", weather.masters, weather.majority)


def pause_client(weather):
    pause(weather, "pause-client", weather.clients, max(1, len(weather.clients) // 2))


def pause(weather, kind, hosts, most):
    """Stop hosts for a short time, or well beyond a lease."""
    ttl_s = weather.ttl_ms / 1000
    begin = weather.uniform(0, 0.6 * weather.length_s)
    end = min(round(begin + weather.uniform(0.05, 2.5 * ttl_s), 3), weather.length_s)
    hosts = weather.claim(hosts, 1, most, begin, end)
    if hosts:
        weather.add(kind, hosts, [], f"{names(hosts)} stopped for {end - begin:.1f} s",
                    [Step(begin, "stop", (host,)) for host in hosts] +
                    [Step(end, "go_on", (host,)) for host in hosts])


def kill_master(weather):
    begin = weather.uniform(0, 0.7 * weather.length_s)
    end = round(begin + weather.uniform(0.05, 0.3 * weather.length_s), 3)
    masters = weather.claim(weather.masters, 1, weather.majority, begin, end)
    if masters:
        weather.add("kill-master", masters, [],
                    f"{names(masters)} killed, and started with the data",
                    [Step(begin, "kill", (master,)) for master in masters] +
                    [Step(end, "start_again", (master,)) for master in masters])


def kill_client(weather):
    at = weather.uniform(0, weather.length_s)
    clients = weather.claim(weather.clients, 1, max(1, len(weather.clients) // 4), at, at)
    for client in clients:
        weather.add("kill-client", [client], [], f"{client} killed, another begins there",
                    [Step(at, "replace", (client,))])


def swizzle(weather):
    """Stop or kill masters one by one, and bring them back in random order."""
    begin, end = weather.part()
    masters = weather.claim(weather.masters, 2, len(weather.masters), begin, end)
    middle = (begin + end) / 2
    down, up, words = weather.dice.choice([("stop", "go_on", "stopped"),
                                           ("kill", "start_again", "killed")])
    if masters:
        weather.add("swizzle", masters, [],
                    f"{names(masters)} {words} one by one, back in random order",
                    [Step(weather.uniform(begin, middle), down, (name,)) for name in masters] +
                    [Step(weather.uniform(middle, end), up, (name,)) for name in masters])


# ---- What masters know ----


def script_flush(weather):
    for _ in range(weather.dice.randint(1, 4)):
        at = weather.uniform(0, weather.length_s)
        masters = weather.claim(weather.masters, 1, len(weather.masters), at, at)
        if masters:
            weather.add("script-flush", masters, [], "SCRIPT FLUSH",
                        [Step(at, "forget_scripts", (master,)) for master in masters])


def clock_back(weather):
    """Step back the clocks of at most a minority in one storm: their keys live longer by the step,
    and their votes do not count for ten seconds.  This may outlast the storm, and the next one.

    No two clocks differ by more than FAR_MS, or clients would ignore one of them."""
    at = weather.uniform(0, weather.length_s)
    step_ms = -weather.dice.choice([100, 500, 1000, 3000])
    highest = max(weather.clocks.values())
    near = [master for master in others(weather.masters, weather.stepped)
            if highest - weather.clocks[master] - step_ms <= FAR_MS]
    most = 1 if weather.crew.spares else weather.minority  # Two may be most of three members.
    masters = weather.some(others(near, weather.barred), 1,
                           max(0, most - len(weather.stepped | weather.barred)))
    weather.stepped.update(masters)
    for master in masters:
        weather.clocks[master] += step_ms
    if masters:
        weather.add("clock-back", masters, [],
                    f"wall clock of {names(masters)} steps by {step_ms} ms",
                    [Step(at, "step_clock", (master, step_ms)) for master in masters])


def clock_rate(weather):
    """Clocks run too fast or too slow, by less than clients allow for (drift_ppm, 1 %).

    What they gain or lose by that stays, so it counts for FAR_MS."""
    begin, end = weather.part()
    clocks = weather.claim([f"clock of {master}" for master in weather.masters],
                           weather.majority, len(weather.masters), begin, end)
    masters = [clock.rpartition(" ")[2] for clock in clocks]
    ppm = weather.dice.choice([8000, 8000, -8000])
    after = {**weather.clocks, **{master: weather.clocks[master] + ppm * (end - begin) / 1000
                                  for master in masters}}
    if masters and max(after.values()) - min(after.values()) <= FAR_MS:
        weather.clocks.update(after)
        words = "fast" if ppm > 0 else "slow"
        weather.add("clock-rate", masters, [],
                    f"wall clock of {names(masters)} is too {words} by {abs(ppm) / 10000} %",
                    [Step(begin, "rate_clock", (master, ppm)) for master in masters] +
                    [Step(end, "rate_clock", (master, 0)) for master in masters])


# These faults break the algorithm as published.  Each hits the only masters that both sides of a
# bridge see, several times.  Either side holds its locks with their votes, while the other waits.


def on_the_bridge(weather, kind, about, pauses_s, loss, most=None, undo=None, rest_s=0):
    """loss(at, master) gives the steps of one loss; the next is at least one of pauses_s later.
    There are `most` losses at most, none in the last rest_s; undo(at, master, count) undoes them.

    The masters in the middle stay claimed between the losses, so none is down when a loss comes.
    Half of the time one side sees all masters, and can check those in the middle by the others.
    """
    begin, end = round(0.05 * weather.length_s, 3), weather.length_s
    open_side, every_s = weather.dice.random() < 0.5, weather.dice.choice(pauses_s)
    middle, pairs = bridge_pairs(weather, open_side)
    hit = middle[:1] if weather.crew.spares else middle  # Of three members, two must not forget.
    if weather.idle(middle, 0, end) != middle or not weather.reshape(begin, end):
        return
    weather.busy += [(master, 0, end) for master in middle]
    weather.add("bridge", weather.masters, weather.clients, about_bridge(middle, open_side),
                [Step(begin, "drop", (weather.next_id, pairs)),
                 Step(end, "drop", (weather.next_id, []))])
    at, count = begin + weather.uniform(0.5, 1), 0
    while at + max(every_s, rest_s) < end and (most is None or count < most):
        weather.add(kind, hit, [], f"{names(hit)} {about}",
                    [step for master in hit for step in loss(round(at, 3), master)])
        at, count = at + every_s + weather.uniform(0, 0.5), count + 1
    if undo and count > 0:
        weather.add(kind, hit, [], f"{names(hit)} put right",
                    [step for master in hit for step in undo(end, master, count)])


def restart_empty(weather):
    on_the_bridge(weather, "restart-empty", "killed, and started empty", [0.8, 2.5], lambda at, master: [
        Step(at, "kill", (master,)), Step(at, "empty", (master,)),
        Step(at, "start_again", (master,))])


def flushall(weather):
    on_the_bridge(weather, "flushall", "forgets all: FLUSHALL", [0.4, 2.5], lambda at, master: [
        Step(at, "flush", (master,))])


def clock_forward(weather):
    """Clocks step forward, and are put right in the end, more than one lease later; else they would
    stay far off all others.  The steps are small, because keys that are stored meanwhile and not
    released then live longer by as much."""
    leases = weather.dice.choice([1, 2, 10])
    step_ms = weather.ttl_ms * leases
    if weather.stepped:
        return
    before = len(weather.faults)
    on_the_bridge(weather, "clock-forward", f"steps forward by {step_ms} ms", [0.4, 2.5],
                  lambda at, master: [Step(at, "step_clock", (master, step_ms))],
                  most=max(1, 5 // leases), rest_s=1.2 * weather.ttl_ms / 1000,
                  undo=lambda at, master, count: [
                      Step(at, "step_clock", (master, -count * step_ms))])
    for fault in weather.faults[before:]:
        if fault.kind == "clock-forward":
            weather.stepped.update(fault.on)


SAFE = {
    "cut-minority": cut_minority,
    "cut-majority": cut_majority,
    "bridge": bridge,
    "ring": ring,
    "one-way": one_way_cut,
    "flap": flap,
    "isolate-client": isolate_client,
    "slow-link": slow_link,
    "reset": reset,
    "pause-master": pause_master,
    "pause-client": pause_client,
    "kill-master": kill_master,
    "kill-client": kill_client,
    "swizzle": swizzle,
    "script-flush": script_flush,
    "clock-back": clock_back,
    "clock-rate": clock_rate,
}
CHANGING = {  # These need the restart guard, and a crew.
    "members": changes.members,
    "halt-operator": changes.halt,
    "move": changes.move,
}
FORGETTING = {  # These do no harm with the restart guard.
    "restart-empty": restart_empty,
    "flushall": flushall,
}
STEPPING = {  # This one does no harm with the clock guard per_vote.
    "clock-forward": clock_forward,
}
KINDS = {**SAFE, **FORGETTING, **STEPPING, **CHANGING}

# The texts of --list.
WHAT = {
    "cut-minority": "some masters, fewer than half, cut from all clients",
    "cut-majority": "more than half of the masters cut from all clients",
    "bridge": "two sides, each with a majority, and one master in both",
    "ring": "every client sees a majority, each another one",
    "one-way": "requests get through and answers do not, or the reverse",
    "flap": "links that go down and up, for 30 to 500 ms",
    "isolate-client": "some clients cut from all masters, or from more than half of them",
    "slow-link": "a relay holds back what passes, for 5 to 200 ms",
    "reset": "connections reset by the kernel of either end",
    "pause-master": "SIGSTOP to masters, also for longer than a lease",
    "pause-client": "SIGSTOP to clients and all they run, also for longer than a lease",
    "kill-master": "SIGKILL to masters, which start again with their data",
    "kill-client": "SIGKILL to clients; new ones begin in their place",
    "swizzle": "masters stopped or killed one by one, back in another order",
    "script-flush": "SCRIPT FLUSH on masters",
    "clock-back": "wall clocks of a few masters step back, and stay there",
    "clock-rate": "wall clocks of masters are too fast, or too slow, within what is allowed for",
    "restart-empty": "a master with a decisive vote starts again without its data",
    "flushall": "a master with a decisive vote loses all its keys",
    "clock-forward": "the wall clock of a master with a decisive vote steps forward",
    "members": "operators change the set of masters: killed, cut off, two at once",
    "halt-operator": "operators change the set of masters, and are stopped behind each step",
    "move": "in good health, all masters are replaced one after another; not in `all`",
}


def harmless(guarded, clocked=False):
    """The kinds that must do no harm: guarded with the restart guard, clocked with per_vote.

    Without `move`, whose storms should have no other faults."""
    return list(SAFE) + (list(FORGETTING) + ["members", "halt-operator"] if guarded else []) + \
        (list(STEPPING) if clocked else [])


def breaking(guarded, clocked=False):
    return [kind for kind in {**FORGETTING, **STEPPING} if kind not in harmless(guarded, clocked)]


# ---- The schedule ----


def quiet_s(clocked):
    """The length of a quiet phase.  With per_vote, clients first watch clocks again."""
    return QUIET_S + (CLOCK_WATCH_MS / 1000 if clocked else 0)


def min_seconds(clocked):
    """The shortest run: a quiet phase, a storm, a quiet phase."""
    return MIN_SECONDS - 2 * QUIET_S + 2 * quiet_s(clocked)


def storm_lengths(dice, seconds, quiet):
    """The lengths of storms: with quiet phases around each, they fill the run."""
    typical_s = (STORM_MIN_S + STORM_MAX_S) / 2 + HEAL_S + quiet
    count = max(1, round((seconds - quiet) / typical_s))
    total = seconds - quiet - count * (HEAL_S + quiet)
    shares = [dice.uniform(STORM_MIN_S, STORM_MAX_S) for _ in range(count)]
    return [round(share * total / sum(shares), 3) for share in shares]


def deal(dice, kinds):
    """An endless series of kinds; none comes again before all others."""
    while True:
        yield from dice.sample(kinds, len(kinds))


def schedule(seed, seconds, kinds, masters, clients, ttl_ms, clocked=False, spares=()):
    """The storms of a run.  The same arguments give the same storms."""
    dice = random.Random(seed)
    dealer = deal(dice, sorted(kinds))
    storms, next_id, next_command = [], 1, 1
    clocks = {master: 0 for master in [*masters, *spares]}
    crew = changes.Crew(masters, spares)
    quiet, barred_until = quiet_s(clocked), {}
    now_s = quiet  # Healing may take longer than planned, and is not counted.
    for length_s in storm_lengths(dice, seconds, quiet):
        weather = Weather(dice, crew.on_stage(dice) if spares else masters, clients, ttl_ms,
                          length_s, next_id, clocks)
        weather.crew, weather.next_command = crew, next_command
        now_s += length_s
        weather.barred = {master for master, until in barred_until.items() if until > now_s}
        for _ in range(dice.randint(4, 5)):
            KINDS[next(dealer)](weather)
        storms.append(Storm(length_s, weather.faults))
        next_id, next_command = weather.next_id, weather.next_command
        barred_until |= {master: now_s + CLOCK_BARS_S for master in weather.stepped}
        now_s += quiet
    return storms
