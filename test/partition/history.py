"""The history of a partition run: which client claimed which lock, and from when to when.

loader.py makes it from a file, and judge.py judges it.
"""

import bisect
import dataclasses
import itertools

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
FOR_EVER = 1 << 62  # Later than any time.

# A process that is killed may write its last lines after the nemesis has noted its death.  What
# comes later than this is of another process under the same name.
KILL_LAG_NS = 1_000 * NS_PER_MS

# So much later than its sample began a master may have been asked.  No source: some of the others
# were silent for as long as they may be.
BLUR_NS = 250 * NS_PER_MS


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

    def deadline_before(self, event):
        """The latest deadline that it had claimed before an event."""
        known = [claim["deadline"] for claim in self.claims if claim["t"] < event["t"]]
        return FOR_EVER if None in known else max(known, default=self.ok["t"])

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
        found = []
        for there in crowds(ops):
            one = there[-1]
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

    def majority(self):
        return len(self.masters) // 2 + 1

    def last_t(self):
        return self.end["t"] if self.end else self.events[-1]["t"]


def crowds(ops):
    """For each hold of these, in the order in which they begin: the holds that are there then, the
    new one last."""
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
