"""The history of a partition run, read and put in order: who claimed which lock from when to when.

A history is a file of JSON lines, one event each, of which every one has "t" (CLOCK_MONOTONIC, in
nanoseconds), "who" and "event"; scripts/partition tells which events there are.  They are sorted
by "t" here.  What does not fit together (an ok that nobody asked for, an id used twice, a line that
is no JSON) is noted as a problem and left out.

Judges nothing: whether what is told here may be so is for judge.py to say.
"""

import bisect
import dataclasses
import itertools
import json
import re

from words import FIELDS, MOMENTARY, WORDS

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
FOR_EVER = 1 << 62  # Later than any time.

# A process that is killed may write its last lines after the nemesis has noted its death.  What
# comes later than this is of another process under the same name.
KILL_LAG_NS = 1_000 * NS_PER_MS

# So much later than its sample began a master may have been asked.  No source: some of the others
# were silent for as long as they may be.
BLUR_NS = 250 * NS_PER_MS

CHUNK = 1000  # Lines that are parsed at once.
GARBAGE_LISTED_MAX = 10


class Unreadable(Exception):
    """There is no history in this file."""


@dataclasses.dataclass
class Problem:
    """Something in the history itself is wrong, so that nothing can be concluded from it."""
    kind: str
    text: str
    events: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Segment:
    """A time in which an operation says that it has the lock; `until` is not part of it."""
    op: "Op"
    since: int
    until: int
    why: str  # What ended it.
    events: list  # Those that say when it began and ended.


class Op:
    """One attempt to lock, from invoke to whatever ended it."""

    __slots__ = ("id", "who", "lock", "names", "mode", "kind", "ttl_ns", "invoke", "ok", "fail", "release",
                 "released", "lost", "killed", "claims", "writes", "refused", "last", "_segments",
                 "late")

    def __init__(self, invoke):
        self.id = invoke["id"]
        self.who = invoke["who"]
        self.lock = invoke["lock"]
        self.names = self.lock.split("+")
        self.mode = invoke.get("mode", "alone")
        self.kind = invoke["kind"]
        self.ttl_ns = invoke["ttl_ms"] * NS_PER_MS
        self.invoke = self.last = invoke
        self.ok = self.fail = self.release = self.released = self.lost = None
        self.killed = None  # The fault that killed its client, if it was open then.
        self.claims = []  # ok, extend and write events that say "I have it until ...", in order.
        self.writes = []  # Accepted by the store.
        self.refused = []
        self._segments = None
        self.late = []  # Claims that began a segment although the one before had run out.

    @property
    def permits(self):
        """Of a semaphore, how many there are by its account; 1 of all else."""
        return self.invoke.get("permits") or 1

    @property
    def units(self):
        """What it has and nobody else may, but for other readers: its names, or its permit."""
        if self.mode == "permit":
            return [f"{self.lock}:{self.ok['permit']}"] if self.ok else []
        return self.names

    @property
    def reads(self):
        return self.mode == "reader"

    def stopped(self):
        """When it said itself that the hold is over, and the event; (FOR_EVER, None) if never."""
        ends = [event for event in (self.release, self.lost) if event]
        first = min(ends, key=lambda event: event["t"], default=None)
        return (first["t"], first) if first else (FOR_EVER, None)

    def ended(self):
        """When the attempt was over, got or not; None if it never was."""
        event = self.ok or self.fail or self.killed
        return event["t"] if event else None

    def segments(self):
        """The times it was held by its own account: one, unless it claimed again when it was over.

        A later claim makes the hold longer if the lease can have been renewed in time.  That is
        so also when it is claimed after the deadline known before (the client may have been
        stopped between the renewal and its own look), as long as it ends no later than a renewal
        begun before that deadline makes possible: one ttl after it.

        A command that `redlock run` runs knows no deadline: it holds the lock until it says
        otherwise, and if it is killed, as long as it is known to have run.
        """
        if self._segments is None:
            self._segments = self._find_segments() if self.ok else []
        return self._segments

    def _find_segments(self):
        found, stopped = [], self.stopped()
        since, event = self.ok["t"], self.ok
        until, until_event = self._deadline(self.ok), self.ok
        for claim in self.claims[1:]:
            deadline = self._deadline(claim)
            dead = claim["t"] > stopped[0]
            if deadline <= claim["t"] or deadline <= until and not dead:
                continue
            if dead or claim["t"] >= until and deadline > until + self.ttl_ns:
                if not dead:
                    self.late.append(claim)
                found.append(self._segment(since, event, until, until_event, stopped))
                since, event = claim["t"], claim
                stopped = (FOR_EVER, None)
            until, until_event = deadline, claim
        found.append(self._segment(since, event, until, until_event, stopped))
        return [segment for segment in found if segment.since < segment.until]

    def _segment(self, since, event, until, until_event, stopped):
        if stopped[1] and stopped[0] <= until:
            return Segment(self, since, stopped[0], stopped[1]["event"], [event, stopped[1]])
        if until == FOR_EVER:  # A command that `redlock run` ran, which knows no deadline.
            return Segment(self, since, self.last["t"], self.last["event"], [event, self.last])
        events = [event] if until_event is event else [event, until_event]
        return Segment(self, since, until, "deadline", events)

    @staticmethod
    def _deadline(event):
        deadline = event.get("deadline")
        return FOR_EVER if deadline is None else deadline

    def end(self):
        """When the hold was over for good; None if there was none."""
        segments = self.segments()
        return segments[-1].until if segments else None


@dataclasses.dataclass
class Beat:
    """The last that a master heard of one who waits there."""
    since: int
    until: int  # When his patience ends.
    seen: int = 0  # When he was there last.
    is_first: bool = False


class Timetable:
    """Things that last, each as (since, until, thing), by when they begin."""

    def __init__(self, entries):
        self.entries = list(entries)
        self.begins = [since for since, _, _ in self.entries]
        self.ends = list(itertools.accumulate((until for _, until, _ in self.entries), max))

    def during(self, since, until):
        """Those that are there at some time from since to before until."""
        first = bisect.bisect_right(self.ends, since)
        behind = bisect.bisect_left(self.begins, until)
        return [entry for entry in self.entries[first:behind] if entry[1] > since]

    def busy_until(self, t):
        """When the last of those that begin before t ends; 0 if there is none."""
        before = bisect.bisect_left(self.begins, t)
        return self.ends[before - 1] if before else 0


@dataclasses.dataclass
class Fault:
    id: int
    kind: str
    on: list
    source: list
    about: str
    since: int
    until: int
    event: dict
    healed: dict = None


@dataclasses.dataclass
class Client:
    name: str
    first: dict = None
    last: dict = None
    bye: dict = None
    kills: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Quiet:
    """All faults healed, from here to the next one."""
    since: int
    until: int
    event: dict


def names(value, prefix):
    """What may be told as a count, a name, or a list of names."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [f"{prefix}{number}" for number in range(1, value + 1)]
    return [value] if isinstance(value, str) else [str(name) for name in value]


class History:
    """All of a history.  Times are as recorded; ms() tells them as people want to see them."""

    def __init__(self, events, problems):
        self.events = events
        self.problems = problems
        self.begin = self.end = None
        self.ops = {}
        self.locks = {}  # The operations by what they ask for, as they were invoked.
        self.units = {}  # Those that got it, by what they had: see Op.units.
        self.faults = []
        self.quiets = []
        self.clients = {}
        self.masters = []
        self.writes = {}  # By lock, in the store's own order.
        self.keys = []
        self.readers = []  # Samples of who reads,
        self.queues = {}  # and by lock of who waits.
        self.notices = []
        self._timetables = {}
        self._releases = {}
        Sorter(self).sort()

    def ms(self, t):
        """Milliseconds since the run began, to the nanosecond where it matters."""
        return span_ms(t - self.begin["t"])

    def held(self):
        """The operations that got their lock."""
        return [op for op in self.ops.values() if op.ok]

    def segments(self, unit):
        """All holds of it, by when they began."""
        return sorted((segment for op in self.units.get(unit, ()) for segment in op.segments()),
                      key=lambda segment: segment.since)

    def occupied(self, lock):
        """When nobody else could have what is asked for as this: (since, until, segment).

        Of a semaphore each entry is about one who got a permit, and lasts if it was the last one:
        else it is over at once, but somebody got what was free.  Of a fair lock those who are dead
        and first in line have it, as it were, with no segment.
        """
        ops = self.locks[lock]
        if ops[0].mode != "permit":
            found = [segment for name in ops[0].names for segment in self.segments(name)]
            return Timetable(sorted([*((one.since, one.until, one) for one in found),
                                     *self.dead_first(lock)], key=lambda entry: entry[:2]))
        found, there = [], []
        for one in sorted((segment for op in ops for segment in op.segments()),
                          key=lambda segment: segment.since):
            there = [other for other in there if other.until > one.since] + [one]
            is_last = len(there) >= one.op.permits
            found.append((one.since, min(other.until for other in there) if is_last else one.since,
                          one))
        return Timetable(found)

    def under_fault(self):
        """The times with some fault, as [since, until]: apart from each other, in order."""
        times = []
        for fault in self.faults:
            if times and fault.since <= times[-1][1]:
                times[-1][1] = max(times[-1][1], fault.until)
            else:
                times.append([fault.since, fault.until])
        return times

    def dead_first(self, lock):
        """When somebody was first in line at a master, and not heard of until his patience ended.

        Who is killed is, and who gave up while he was cut off: what he had sent may come later.
        """
        beats = {}
        for sample in self.queues.get(lock, ()):
            for name, places in sample["places"].items():
                first = min(places or {}, key=places and (lambda waiter: places[waiter][0]),
                            default=None)
                for waiter, (_, left_ms) in (places or {}).items():
                    until = sample["since"] + left_ms * NS_PER_MS
                    beat = beats.get((name, waiter))
                    if beat is None or until > beat.until + BLUR_NS:
                        beat = beats[name, waiter] = Beat(sample["since"], until)
                    beat.seen = sample["t"]
                    beat.is_first |= waiter == first
        return [(beat.since, beat.until, None) for beat in beats.values()
                if beat.is_first and beat.since < beat.until < beat.seen + 2 * BLUR_NS]

    def timetable(self, unit):
        """The segments, to be searched."""
        if unit not in self._timetables:
            self._timetables[unit] = Timetable(
                (segment.since, segment.until, segment) for segment in self.segments(unit))
        return self._timetables[unit]

    def releases(self, unit):
        """The release events of it, by time."""
        if unit not in self._releases:
            self._releases[unit] = sorted((op.release for op in self.units.get(unit, ())
                                           if op.release), key=lambda event: event["t"])
        return self._releases[unit]

    def last_t(self):
        return self.end["t"] if self.end else self.events[-1]["t"]


def span_ms(ns):
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    whole, rest = divmod(ns, NS_PER_MS)
    digits = f"{rest:06d}"
    return f"{sign}{whole}.{digits[:3]}" + (digits[3:] if digits[3:] != "000" else "")


def is_number(value):
    return type(value) is int and value > 0


class Sorter:
    """Takes the events of a history one by one, and puts each where it belongs."""

    def __init__(self, history):
        self.history = history
        self.by_id = {}  # Faults.
        self.told_of = set()  # Clients, by the run.
        self.numbers = set()  # Of all writes.

    def problem(self, kind, text, *events):
        self.history.problems.append(Problem(kind, text, list(events)))

    def sort(self):
        history = self.history
        self.find_ends()
        self.prepare()
        unknown = {}
        takers = {name: (fields, getattr(self, "on_" + name)) for name, fields in FIELDS.items()}
        for event in history.events:
            name = event["event"]
            if name in takers:
                fields, taker = takers[name]
                if self.complete(event, fields):
                    taker(event)
            elif name not in ("begin", "end"):
                unknown.setdefault(name, []).append(event)
        for name, events in sorted(unknown.items()):
            self.problem("unknown", f"there is no event \"{name}\" ({len(events)} of them)",
                         events[0])
        self.finish()

    def find_ends(self):
        history = self.history
        begins = [event for event in history.events
                  if event["event"] == "begin" and event["who"] == "run"]
        ends = [event for event in history.events
                if event["event"] == "end" and event["who"] == "run"]
        if not begins:
            raise Unreadable("there is no begin")
        history.begin = begins[0]
        if len(begins) > 1:
            self.problem("ends", f"{len(begins)} begins: more than one run", *begins[:2])
        if history.events[0] is not begins[0]:
            self.problem("ends", "something happened before the begin", history.events[0])
        if not ends:
            self.problem("ends", "there is no end: the run was cut off", history.events[-1])
            return
        history.end = ends[-1]
        if len(ends) > 1:
            self.problem("ends", f"{len(ends)} ends", *ends[:2])
        if history.events[-1] is not ends[-1]:
            self.problem("ends", "something happened after the end", history.events[-1])

    def prepare(self):
        history, begin = self.history, self.history.begin
        for key, kind in (("seconds", (int, float)), ("ttl_ms", int)):
            if isinstance(begin.get(key), bool) or not isinstance(begin.get(key), kind):
                raise Unreadable(f"the begin has no {key}")
        for key in ("clients", "masters"):
            if not isinstance(begin.get(key), (int, list)):
                raise Unreadable(f"the begin has no {key}")
        for name in names(begin["clients"], "c"):
            history.clients[name] = Client(name)
        self.told_of.update(history.clients)
        history.masters = names(begin["masters"], "n")

    def complete(self, event, fields):
        for key, kind in fields:
            if type(event.get(key)) is not kind:  # True is an int, but not for us.
                self.problem("fields", f"{event['event']} without a proper {key}", event)
                return False
        if type(event.get("deadline")) not in (int, type(None)):
            self.problem("fields", f"{event['event']} with a deadline that is no time", event)
            return False
        for key, words in WORDS.get(event["event"], {}).items():
            if event.get(key, "") not in words:
                self.problem("unknown", f"{event['event']} with a {key} that nobody knows: "
                             f"{event.get(key)!r}", event)
        return True

    # ---- Clients ----

    def client(self, event):
        name = event["who"]
        client = self.history.clients.setdefault(name, Client(name))
        client.first = client.first or event
        client.last = event
        if client.bye:
            self.problem("order", f"{name} goes on after its bye", client.bye, event)
        return client

    def op_of(self, event):
        """The operation that a client's event belongs to; None, and noted, if there is none."""
        self.client(event)
        op = self.history.ops.get(event["id"])
        if op is None:
            self.problem("no-invoke", f"{event['event']} of {event['id']}, which nobody invoked",
                         event)
        elif op.who != event["who"]:
            self.problem("identity", f"{event['id']} of {op.who} is told of by {event['who']}",
                         op.invoke, event)
            op = None
        else:
            op.last = event
        return op

    def once(self, op, event, slot):
        """Note an event that an operation has once at most."""
        if getattr(op, slot):
            self.problem("order", f"{op.id}: {slot} twice", getattr(op, slot), event)
            return False
        setattr(op, slot, event)
        return True

    def on_invoke(self, event):
        self.client(event)
        if event["id"] in self.history.ops:
            self.problem("reused-id", f"{event['id']} is used again",
                         self.history.ops[event["id"]].invoke, event)
        else:
            op = Op(event)
            self.history.ops[op.id] = op
            self.history.locks.setdefault(op.lock, []).append(op)

    def on_ok(self, event):
        op = self.op_of(event)
        if op is None:
            return
        if op.fail:
            self.problem("order", f"{op.id}: ok after fail", op.fail, event)
        elif event.get("deadline") is None and op.kind != "run":
            self.problem("fields", "ok without a proper deadline", event)
        elif self.once(op, event, "ok"):
            op.claims.append(event)
            if type(event.get("token")) is not str or not event["token"]:
                self.problem("fields", "ok without a proper token", event)
                event["token"] = None  # It is a hold nevertheless.
            if (op.mode == "permit") is not is_number(event.get("permit")):
                self.problem("fields", "ok without the number of a permit, or with one that was "
                             "not asked for", op.invoke, event)
                event["permit"] = 0
            if op.invoke.get("fenced", False) is not is_number(event.get("fence")):
                self.problem("fields", "ok without the fencing token that was asked for, or with "
                             "one that was not", op.invoke, event)
                op.invoke["fenced"] = False

    def on_fail(self, event):
        op = self.op_of(event)
        if op is None:
            return
        if op.ok:
            self.problem("order", f"{op.id}: fail after ok", op.ok, event)
        else:
            self.once(op, event, "fail")

    def holding(self, event):
        """The operation, which must have got its lock before."""
        op = self.op_of(event)
        if op and not op.ok:
            self.problem("order", f"{op.id}: {event['event']} before ok", op.invoke, event)
            return None
        return op

    def on_extend(self, event):
        op = self.holding(event)
        if op:
            op.claims.append(event)
            if isinstance(event.get("ttl_ms"), int):
                op.ttl_ns = max(op.ttl_ns, event["ttl_ms"] * NS_PER_MS)

    def on_release(self, event):
        op = self.holding(event)
        if op:
            self.once(op, event, "release")

    def on_released(self, event):
        op = self.holding(event)
        if op and not op.release:
            self.problem("order", f"{op.id}: released before release", event)
        elif op:
            self.once(op, event, "released")

    def on_lost(self, event):
        op = self.holding(event)
        if op:
            self.once(op, event, "lost")

    def on_bye(self, event):
        self.client(event).bye = event

    # ---- The store ----

    def on_write(self, event):
        self.numbers.add(event["seq"])
        op = self.of_store(event)
        if op:
            self.history.writes.setdefault(event["lock"], []).append(event)
            op.writes.append(event)
            op.last = event
            if event.get("deadline") is not None:
                op.claims.append(event)

    def on_refused(self, event):
        op = self.of_store(event)
        if op:
            op.refused.append(event)

    def of_store(self, event):
        op = self.history.ops.get(event["id"])
        if op is None:
            self.problem("no-invoke", f"{event['event']} for {event['id']}, which nobody invoked",
                         event)
            return None
        told = op.units or [event["lock"]]  # Which permit, who got none does not say.
        if event["lock"] not in told or op.who != event.get("by", op.who):
            self.problem("identity", f"{op.id} of {op.who} is for {op.lock}, but writes "
                         f"{event['lock']} as {event.get('by')}", op.invoke, event)
            return None
        return op

    # ---- The run ----

    def on_fault(self, event):
        fault = Fault(event.get("id"), event["kind"], names(event.get("on"), "n"),
                      names(event.get("from"), "c"), str(event.get("about", "")), event["t"],
                      event["t"], event)
        if fault.id is not None and fault.id in self.by_id:
            self.problem("reused-id", f"fault {fault.id} is used again",
                         self.by_id[fault.id].event, event)
        self.by_id[fault.id] = fault
        self.history.faults.append(fault)
        if fault.kind == "kill-client":
            for name in fault.on:
                self.history.clients.setdefault(name, Client(name)).kills.append(event)

    def on_healed(self, event):
        fault = self.by_id.get(event["id"])
        if fault is None or fault.healed:
            self.problem("order", f"fault {event['id']} is healed, but was not there", event)
        else:
            fault.healed, fault.until = event, event["t"]

    def on_quiet(self, event):
        self.history.quiets.append(Quiet(event["t"], event["t"], event))

    def on_client(self, event):
        """One that has taken the place of another."""
        self.told_of.add(event["name"])
        self.history.clients.setdefault(event["name"], Client(event["name"]))

    def on_keys(self, event):
        """A token, "" or null of each master; and how long it keeps it, null where there is none,
        less than 0 if for ever."""
        masters, tokens, left_ms = set(self.history.masters), event["tokens"], event["left_ms"]
        if masters != set(tokens) or masters != set(left_ms) or \
                not all(token is None or type(token) is str for token in tokens.values()) or \
                not all(left is None or type(left) is int for left in left_ms.values()):
            self.problem("fields", "keys that are not those of all masters", event)
        else:
            self.history.keys.append(event)

    def on_readers(self, event):
        """Of each master, for how long it keeps each reader; null: it did not answer."""
        left_ms = event["left_ms"]
        if self.of_all_masters(event, left_ms, lambda left: type(left) is int):
            self.history.readers.append(event)

    def on_queue(self, event):
        """Of each master, who waits, with his number and for how long he counts as alive."""
        if self.of_all_masters(event, event["places"],
                               lambda place: type(place) is list and
                               [type(number) for number in place] == [int, int]):
            self.history.queues.setdefault(event["lock"], []).append(event)

    def of_all_masters(self, event, told, is_one):
        if set(told) == set(self.history.masters) and all(
                found is None or type(found) is dict and all(map(is_one, found.values()))
                for found in told.values()):
            return True
        self.problem("fields", f"{event['event']} that are not those of all masters", event)
        return False

    # ---- What can be told only when all is known ----

    def finish(self):
        history = self.history
        self.end_faults()
        self.check_places()
        self.check_numbers()
        begins = [fault.since for fault in history.faults]
        for quiet in history.quiets:
            following = bisect.bisect_left(begins, quiet.since)
            quiet.until = begins[following] if following < len(begins) else history.last_t()
        for writes in history.writes.values():
            writes.sort(key=lambda event: event["seq"])
            self.check_store(writes)
        for op in history.ops.values():
            self.close(op)
            if op.ok:
                for unit in op.units:
                    history.units.setdefault(unit, []).append(op)

    def end_faults(self):
        """All are to be healed before all is said to be well, or by the end.

        What is not is taken to last until then.  Where there is no end, the run was cut off.
        """
        history = self.history
        quiets = [quiet.event for quiet in history.quiets]
        times = [event["t"] for event in quiets]
        for fault in history.faults:
            following = bisect.bisect_left(times, fault.since)
            well = quiets[following] if following < len(quiets) else history.end
            lasts = not fault.healed and fault.kind not in MOMENTARY
            if well and (lasts or fault.until > well["t"]):
                events = [fault.event, well] + ([fault.healed] if fault.healed else [])
                when = "the run ends" if well is history.end else "all is said to be well"
                self.problem("open-fault", f"{when} while fault {fault.id} ({fault.kind}) is not "
                             "healed", *events)
            if lasts:
                fault.until = well["t"] if well else history.last_t()

    def check_places(self):
        """Faults are on masters and clients that are there, clients that were told of included."""
        known = self.told_of | set(self.history.masters)
        known |= {client.name for client in self.history.clients.values() if client.first}
        for fault in self.history.faults:
            strange = [name for name in fault.on + fault.source if name not in known]
            if strange:
                self.problem("unknown", f"fault {fault.id} ({fault.kind}) is on "
                             f"{', '.join(strange)}, and there is no such host", fault.event)

    def check_numbers(self):
        """The store counts what it accepts, of all locks together: what is not told is missed."""
        missing = set(range(1, len(self.numbers) + 1)) - self.numbers
        if missing:
            self.problem("store", f"there is no write with the number {min(missing)}")

    def check_store(self, writes):
        for before, after in zip(writes, writes[1:]):
            if before["seq"] == after["seq"]:
                self.problem("store", f"two writes of {after['lock']} have the number "
                             f"{after['seq']}", before, after)
            elif before["t"] > after["t"]:
                self.problem("store", f"the store's order of {after['lock']} contradicts its clock",
                             before, after)

    def close(self, op):
        """A client that was killed does not end what it was doing."""
        if op.fail or op.released or op.ok and op.lost and not op.release:
            return
        last = max(event["t"] for event in (op.invoke, op.ok, op.release) if event)
        for kill in self.history.clients[op.who].kills:
            if last <= kill["t"] + KILL_LAG_NS:
                op.killed = kill
                return


# ---- Reading ----


def read(path):
    """The history in a file.  Raises Unreadable if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return read_lines(file)
    except OSError as error:
        raise Unreadable(error.strerror) from error


def numbered(lines):
    """(number, line, what it says as JSON) of each; None if it is no JSON."""
    number = 0
    while chunk := list(itertools.islice(lines, CHUNK)):
        for line, value in zip(chunk, parse(chunk)):
            number += 1
            yield number, line, value


def parse(chunk):
    """Many lines at once, which is quicker by far; if one of them is bad, one by one."""
    try:
        values = json.loads(f"[{','.join(chunk)}]")
        if len(values) == len(chunk):
            return values
    except (ValueError, RecursionError):
        pass
    return [parse_one(line) for line in chunk]


def parse_one(line):
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def is_event(value):
    return (type(value) is dict and type(value.get("t")) is int and
            type(value.get("event")) is str and type(value.get("who")) is str)


def read_lines(lines):
    events, torn, problems, garbage = [], [], [], 0
    for number, line, event in numbered(lines):
        if is_event(event):
            event["line"] = number
            events.append(event)
        elif looks_torn(line):
            torn.append((number, line))
        elif line.strip():
            garbage += 1
            if garbage <= GARBAGE_LISTED_MAX:
                problems.append(Problem("garbage", f"line {number} is no event: "
                                        f"{line.strip()[:60]!r}"))
    if garbage > GARBAGE_LISTED_MAX:
        problems.append(Problem("garbage", f"{garbage} lines in all are no events"))
    if not events:
        raise Unreadable("there is no event in it")
    last_lines = {}
    for event in events:
        last_lines[event["who"]] = event["line"]
    events.sort(key=lambda event: event["t"])
    history = History(events, problems)
    forgive_torn(history, torn, last_lines)
    return history


def looks_torn(line):
    """The beginning of an event: its writer was killed while it wrote."""
    line, start = line.strip(), '{"t":'
    return (line.startswith(start) or start.startswith(line)) and not line.endswith("}")


def forgive_torn(history, torn, last_lines):
    """One line torn for each killing of a client, as the last that it wrote, is as it must be."""
    may_tear = {name: len(client.kills) for name, client in history.clients.items()
                if client.kills}
    for number, line in torn:
        said = re.search(r'"who": *"([^"]*)"', line)
        if said:
            # With as many lives as kills, only the end of the last life is where it can be told.
            name = said[1]
            allowed = may_tear.get(name, 0) > 0 and (
                may_tear[name] > 1 or history.clients[name].bye or
                last_lines.get(name, 0) < number)
        else:
            name = next((name for name, left in may_tear.items() if left > 0), None)
            allowed = name is not None
        if allowed:
            may_tear[name] -= 1
            history.notices.append(f"line {number} is torn: its writer was killed")
        else:
            history.problems.append(Problem("torn", f"line {number} is torn, but "
                                            f"{said[1] if said else 'its writer'} was not killed "
                                            f"then: {line.strip()[:60]!r}"))
