"""The history of a partition run: which client claimed which lock, and from when to when.

loader.py makes it from a file, and judge.py judges it.
"""

import bisect
import dataclasses
import itertools

import sets

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
FOR_EVER = sets.FOR_EVER  # Later than any time.

# A killed process may write its last lines after the nemesis has noted its death.  Later lines are
# of another process with the same name.
KILL_LAG_NS = 1_000 * NS_PER_MS

# A master may be asked this much later than its sample began, because the sampler first waits for
# silent masters.  Chosen; not measured.
BLUR_NS = 250 * NS_PER_MS


# With the clock guard per_vote, a client does not count a master for this long after it first reads
# its clock, and again after a step or a long cut: see redlock(3).
CLOCK_WATCH_MS = 10_500


@dataclasses.dataclass
class Problem:
    """The history itself is wrong, so nothing can be concluded from it."""
    kind: str
    text: str
    events: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Segment:
    """A time in which an operation claims the lock; `until` is not part of it."""
    op: "Op"
    since: int
    until: int
    why: str  # What ended it.
    events: list  # The events at its begin and its end.


class Op:
    """One attempt to lock, from invoke to its end."""

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
        self.killed = None  # The fault that killed its client while it was open.
        self.claims = []  # ok, extend and write events that say "I have it until ...", in order.
        self.writes = []  # Accepted by the store.
        self.refused = []
        self._segments = None
        self.late = []  # Claims that began a segment after the one before had expired.

    @property
    def permits(self):
        """The number of permits of a semaphore, as the client says; 1 for all other locks."""
        return self.invoke.get("permits") or 1

    @property
    def units(self):
        """What only this operation, or other readers, may have: its names, or its permit."""
        if self.mode == "permit":
            return [f"{self.lock}:{self.ok['permit']}"] if self.ok else []
        return self.names

    @property
    def reads(self):
        return self.mode == "reader"

    def stopped(self):
        """When the client said that the hold is over, and the event; (FOR_EVER, None) if never."""
        ends = [event for event in (self.release, self.lost) if event]
        first = min(ends, key=lambda event: event["t"], default=None)
        return (first["t"], first) if first else (FOR_EVER, None)

    def ended(self):
        """When the attempt ended, with or without the lock; None if it never did."""
        event = self.ok or self.fail or self.killed
        return event["t"] if event else None

    def segments(self):
        """The times of the hold, as the client claims: one, unless it claimed again after the end.

        A later claim extends the hold if the lease can have been renewed in time.  The claim may
        come after the earlier deadline, because the client may have been stopped between the
        renewal and its look.  But it must end at most one ttl after that deadline: a renewal that
        began in time cannot last longer.

        A command of `redlock run` knows no deadline.  It holds the lock until it says otherwise.
        If it is killed, it held the lock as long as it is known to have run.
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
        if until == FOR_EVER:  # A command of `redlock run`, which knows no deadline.
            return Segment(self, since, self.last["t"], self.last["event"], [event, self.last])
        events = [event] if until_event is event else [event, until_event]
        return Segment(self, since, until, "deadline", events)

    @staticmethod
    def _deadline(event):
        deadline = event.get("deadline")
        return FOR_EVER if deadline is None else deadline

    def deadline_before(self, event):
        """The latest deadline that the operation claimed before an event."""
        known = [claim["deadline"] for claim in self.claims if claim["t"] < event["t"]]
        return FOR_EVER if None in known else max(known, default=self.ok["t"])

    def end(self):
        """When the hold was over for good; None if there was none."""
        segments = self.segments()
        return segments[-1].until if segments else None


@dataclasses.dataclass
class Beat:
    """The latest heartbeat of a waiter at a master."""
    since: int
    until: int  # When the master takes the waiter for dead.
    seen: int = 0  # When the waiter was last seen in the queue.
    is_first: bool = False


class Timetable:
    """Things that last, each as (since, until, thing), by when they begin."""

    def __init__(self, entries):
        self.entries = list(entries)
        self.begins = [since for since, _, _ in self.entries]
        self.ends = list(itertools.accumulate((until for _, until, _ in self.entries), max))

    def during(self, since, until):
        """The things that last at some time from since to before until."""
        first = bisect.bisect_right(self.ends, since)
        behind = bisect.bisect_left(self.begins, until)
        return [entry for entry in self.entries[first:behind] if entry[1] > since]

    def busy_until(self, t):
        """The latest end of the things that begin before t; 0 if there is none."""
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
    """The time from the healing of all faults to the next fault."""
    since: int
    until: int
    event: dict
    is_calm: bool = False  # No fault came before, and the set of masters changes.


@dataclasses.dataclass
class Change:
    """A command of an operator that changes the set of masters."""
    id: int
    by: str
    about: str
    since: int
    until: int
    event: dict
    changed: dict = None

    @property
    def is_done(self):
        return self.changed is not None and self.changed.get("status") == 0


def names(value, prefix):
    """A list of names, given as a count, a name, or a list."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [f"{prefix}{number}" for number in range(1, value + 1)]
    return [value] if isinstance(value, str) else [str(name) for name in value]


class History:
    """A whole history.  Times are as recorded; ms() makes them readable."""

    def __init__(self, events, problems):
        self.events = events
        self.problems = problems
        self.begin = self.end = None
        self.ops = {}
        self.locks = {}  # The operations by the lock that they ask for, in order of invoke.
        self.units = {}  # The operations that got a lock, by unit: see Op.units.
        self.faults = []
        self.quiets = []
        self.calms = []  # Quiet phases in which the set of masters changes.
        self.changes = []
        self.clients = {}
        self.masters = []
        self.sets = None
        self.writes = {}  # By lock, in the store's own order.
        self.keys = []
        self.readers = []  # Samples of readers.
        self.queues = {}  # Samples of waiters, by lock.
        self.notices = []
        self._timetables = {}
        self._releases = {}

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
        """When no other client could get this lock: (since, until, segment).

        Each holder of a permit has an entry, which lasts if it had the last free permit, and else
        ends at once.  A dead waiter that is first in the queue of a fair lock counts as a holder,
        without a segment.
        """
        ops = self.locks[lock]
        if ops[0].mode != "permit":
            found = [segment for name in ops[0].names for segment in self.segments(name)]
            return Timetable(sorted([*((one.since, one.until, one) for one in found),
                                     *self.dead_first(lock)], key=lambda entry: entry[:2]))
        found = []
        for there in crowds(ops):
            one = there[-1]
            is_last = len(there) >= one.op.permits
            found.append((one.since, min(other.until for other in there) if is_last else one.since,
                          one))
        return Timetable(found)

    def under_fault(self):
        """The times with some fault, as [since, until]: disjoint, in order."""
        times = []
        for fault in self.faults:
            if times and fault.since <= times[-1][1]:
                times[-1][1] = max(times[-1][1], fault.until)
            else:
                times.append([fault.since, fault.until])
        return times

    def dead_first(self, lock):
        """When a waiter was first in a queue, and sent no heartbeat until its patience ended.

        This happens to a waiter that is killed, or that gives up while it is cut off.
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


def crowds(ops):
    """For each of these holds, in the order of their begin: the holds at that time, the new one
    last."""
    there = []
    for one in sorted((segment for op in ops for segment in op.segments()),
                      key=lambda segment: segment.since):
        there = [other for other in there if other.until > one.since] + [one]
        yield there


def span_ms(ns):
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    whole, rest = divmod(ns, NS_PER_MS)
    digits = f"{rest:06d}"
    return f"{sign}{whole}.{digits[:3]}" + (digits[3:] if digits[3:] != "000" else "")
