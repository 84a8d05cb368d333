"""What a history of a partition run must not contain, and when nothing can be concluded from it.

Each rule is a function from a history to the violations that it finds, each with its evidence.
Each check is a function that says why a history proves nothing, even if no rule is violated: an
empty one violates none.  Both are in tables, so that a test can switch off one at a time and see
that then somebody gets away with it.

Knows nothing of which faults there were to be, or of what is expected to break.
"""

import bisect
import collections
import dataclasses

from history import FOR_EVER, KILL_LAG_NS, NS_PER_MS, NS_PER_S, Problem, Timetable, span_ms
from words import CLOCKS, FAILURES, FORGETTING, STEPPING

# What a lock needs, besides a lease that runs out, until somebody has it when all is well again:
# reconnecting (the library waits 2 s at most) and some attempts.
PROGRESS_SLACK_MS = 2000

# The library tells that a lease is lost a tenth of its ttl before the deadline, or at once when a
# majority says that the key is gone.  What is told sooner than twice that is the latter.
LOST_EARLY_PART = 5

# A FLUSHALL is told of just before it is sent.
FORGET_LAG_NS = 1000 * NS_PER_MS

# A master's clock may be too slow by one part in so many: as the library allows for (drift_ppm).
CLOCK_PART = 100

SECONDS_OF_ALL = 60  # A run of so long has time for everything; no source.

SUSPECTS_MAX = 3  # Releases that are told of as what may have removed a key.
LISTED_MAX = 100  # Violations of one rule that are listed; all are counted.


@dataclasses.dataclass
class Options:
    bound_ms: int = None  # Until somebody must have a free lock; None: ttl and slack.
    holds_min: int = None  # None: one for every second of the run.
    off: frozenset = frozenset()  # Rules and checks that are left out: for tests of the judge.

    def bound_ns(self, history):
        bound_ms = self.bound_ms
        if bound_ms is None:
            bound_ms = history.begin["ttl_ms"] + PROGRESS_SLACK_MS
        return bound_ms * NS_PER_MS

    def least_holds(self, history):
        if self.holds_min is None:
            return max(2, int(history.begin["seconds"]))
        return self.holds_min


@dataclasses.dataclass
class Violation:
    rule: str
    text: str
    since: int  # When it happened; the two are the same if it was at one time.
    until: int
    events: list
    ops: list = dataclasses.field(default_factory=list)
    lock: str = ""


@dataclasses.dataclass
class Verdict:
    violations: list
    counts: collections.Counter
    invalid: list  # Problems.
    bound_ms: int

    @property
    def word(self):
        if self.counts.total():
            return "violated"
        return "invalid" if self.invalid else "clean"


def length(ns):
    return f"{span_ms(ns)} ms"


# ---- 1: nobody has a lock while another has it ----


def overlap(history, _):
    """A hold that begins while the lock is held; named is the hold that would last longest.

    Readers only exclude those who are none.
    """
    for unit in history.units:
        longest = {True: None, False: None}  # Of readers, and of others.
        for second in history.segments(unit):
            others = [longest[False]] if second.op.reads else longest.values()
            first = max((one for one in others if one), key=lambda one: one.until, default=None)
            if first and first.until > second.since and first.op is not second.op:
                yield two_holds(history, unit, first, second)
            own = longest[second.op.reads]
            if own is None or second.until > own.until:
                longest[second.op.reads] = second


def two_holds(history, lock, first, second):
    until = min(first.until, second.until)
    text = (f"{lock}: {second.op.id} had it from {history.ms(second.since)} ms, and {first.op.id} "
            f"until {history.ms(first.until)} ms (its {first.why}): both for "
            f"{length(until - second.since)}")
    releases = released_between(history, lock, first.since, second.since, (first.op, second.op))
    text += meanwhile(releases)
    return Violation("overlap", text, second.since, until,
                     in_order(first.events + second.events + releases), [first.op, second.op],
                     lock)


def released_between(history, lock, since, until, but):
    """The last few releases of others: one of them may have removed a key that was not its own."""
    releases = history.releases(lock)
    found, names = [], [op.id for op in but]
    i = bisect.bisect_right(releases, until, key=lambda event: event["t"])
    while i and releases[i - 1]["t"] >= since and len(found) < SUSPECTS_MAX:
        i -= 1
        if releases[i]["id"] not in names:
            found.append(releases[i])
    return found[::-1]


def meanwhile(releases):
    if not releases:
        return ""
    return "; released meanwhile: " + ", ".join(event["id"] for event in releases)


def in_order(events):
    return sorted({id(event): event for event in events}.values(), key=lambda event: event["t"])


# ---- 2: at the store the writes of a hold stand together ----


def store_order(history, _):
    """Told once for every two that come between each other, however often they do.  Readers may
    come between readers."""
    for lock, writes in history.writes.items():
        last_of, told = {}, set()
        last = {True: None, False: None}  # Of readers, and of others.
        for write in writes:
            own, reads = last_of.get(write["id"]), history.ops[write["id"]].reads
            others = [last[False]] if reads else last.values()
            previous = max((one for one in others if one), key=lambda one: one["seq"],
                           default=None)
            if own and previous and previous["seq"] > own["seq"] and \
                    (write["id"], previous["id"]) not in told:
                told.add((write["id"], previous["id"]))
                yield Violation(
                    "store-order", f"{lock}: {write['id']} wrote again (number {write['seq']}) "
                    f"after {previous['id']} (number {previous['seq']}) had written since",
                    own["t"], write["t"], [own, previous, write],
                    [history.ops[write["id"]], history.ops[previous["id"]]], lock)
            last_of[write["id"]] = last[reads] = write


# ---- 3: nobody claims what has run out ----


def past_deadline(history, _):
    for op in history.held():
        deadline = op.ok.get("deadline")
        if deadline is not None and deadline <= op.ok["t"]:
            yield broken(history, op, "past-deadline", op.ok,
                         f"got it {length(op.ok['t'] - deadline)} after its deadline")
        op.segments()  # Finds the late ones.
        for claim in op.late:
            known = last_deadline(op, claim)
            yield broken(history, op, "past-deadline", claim, f"claimed again "
                         f"{length(claim['t'] - known)} after its deadline, until "
                         f"{history.ms(claim['deadline'])} ms, which no renewal before it gives")
        for claim in op.claims:
            if claim.get("unfounded"):
                yield broken(history, op, "past-deadline", claim, "has a later deadline, though "
                             "nothing has made its lease longer")
            most = claim["t"] + op.ttl_ns
            if claim["deadline"] is not None and claim["deadline"] > most:
                yield broken(history, op, "past-deadline", claim, "claims "
                             f"{length(claim['deadline'] - most)} more than its ttl from then on")
        for write in op.writes:
            deadline = write.get("deadline")
            if deadline is None:
                deadline = last_deadline(op, write)
            if write["t"] > deadline:
                yield broken(history, op, "past-deadline", write, "writes, and the store takes "
                             f"it {length(write['t'] - deadline)} after its deadline")


def majority(history):
    return len(history.masters) // 2 + 1


def holds_sampled(history):
    """Each sample of a lock with the operation that had it for all of the time it took, if any."""
    for sample in history.keys:
        for op in holding(history, sample):
            if not op.reads:
                yield sample, op
    for sample in history.readers:
        for op in holding(history, sample):
            if op.reads:
                yield as_keys(sample, op.ok["token"]), op


def holding(history, sample):
    """A sample began at "since" and ended at "t"."""
    since, until = sample["since"], sample["t"]
    for begun, over, segment in history.timetable(sample["lock"]).during(since, since + 1):
        if begun <= since and until < over and segment.op.ok["token"] is not None:
            yield segment.op


def as_keys(sample, token):
    """A sample of all readers, as that of one of them."""
    left_ms = sample["left_ms"]
    return sample | {
        "tokens": {name: None if readers is None else token if token in readers else ""
                   for name, readers in left_ms.items()},
        "left_ms": {name: readers and readers.get(token) for name, readers in left_ms.items()}}


def last_deadline(op, event):
    """The latest deadline that it had claimed before an event."""
    known = [claim["deadline"] for claim in op.claims if claim["t"] < event["t"]]
    return FOR_EVER if None in known else max(known, default=op.ok["t"])


def broken(history, op, rule, event, text):
    told = [op.invoke, op.ok, op.release, op.lost]
    told = [other for other in told if other and other["t"] <= event["t"]]
    claims = [claim for claim in op.claims if claim["t"] < event["t"]][-2:]
    return Violation(rule, f"{op.lock}: {op.id} {text}", event["t"], event["t"],
                     in_order(told + claims + [event]), [op], op.lock)


# ---- 4: what is claimed is backed by a majority, for as long as it is claimed ----


def unbacked(history, _):
    """A deadline is claimed that a majority of masters will not keep the key until.

    From samples of how long each will keep it.  Told once for each hold, by the first that shows
    it.  A clock that steps forward makes a key shorter, and this is how that is seen; one that
    steps back makes it longer.  Where it is gone from a majority, foreign_release tells.
    """
    told = set()
    for sample, op in holds_sampled(history):
        claims = [claim["deadline"] for claim in op.claims if claim["t"] <= sample["since"]]
        if None in claims or op.id in told:
            continue
        until, gone = max(claims), without_key(history, sample, op)
        forgot = forgetful(history, op, sample["t"])
        short = [name for name in keeping(sample, op)
                 if name not in forgot and not keeps_until(sample, name, until)]
        if len(gone) < majority(history) <= len(gone) + len(short):
            told.add(op.id)
            yield broken(history, op, "unbacked", sample, f"claims it until {history.ms(until)} "
                         f"ms, but {', '.join(sorted(short + gone))} will not keep its key so long")


def keeps_until(sample, master, until):
    """Whether it may: asked before the sample's end, by a clock that may be slow by CLOCK_PART."""
    left_ms = sample["left_ms"][master]
    if left_ms is None or left_ms < 0:
        return True  # It has run out between two questions, or never does.
    return sample["t"] + (left_ms + 1) * NS_PER_MS * (CLOCK_PART + 1) // CLOCK_PART >= until


def keeping(sample, op):
    """The masters that store the operation's key."""
    return [name for name, token in sample["tokens"].items() if token == op.ok["token"]]


def without_key(history, sample, op):
    """Those that do not, for no reason that is known; masters that did not answer have null."""
    forgot = forgetful(history, op, sample["t"])
    return [name for name, token in sample["tokens"].items()
            if token is not None and token != op.ok["token"] and name not in forgot]


def forgetful(history, op, t):
    """The masters that a fault has taken the keys from, since the operation asked for its own.

    Clocks that are stepped forward do so as well.  Where no guard makes up for that, it is told."""
    kinds = FORGETTING
    if history.begin.get("clock_guard") == "per_vote":
        kinds = FORGETTING + STEPPING
    return {name for fault in history.faults if fault.kind in kinds and fault.since <= t and
            fault.until + FORGET_LAG_NS >= op.invoke["t"] for name in fault.on}


# ---- 5: nobody claims what it has given up, or never had ----


def back_from_dead(history, _):
    for op in history.ops.values():
        if op.ok is None:
            for write in op.writes[:1]:
                yield broken(history, op, "back-from-dead", write,
                             "writes without having got the lock")
            continue
        stopped, end = op.stopped()
        for claim in {id(claim): claim for claim in op.claims + op.writes}.values():
            if claim["t"] > stopped:
                yield broken(history, op, "back-from-dead", claim, f"{verb(claim)} "
                             f"{length(claim['t'] - stopped)} after its {end['event']}")
            elif claim["t"] < op.ok["t"]:
                yield broken(history, op, "back-from-dead", claim, f"{verb(claim)} "
                             f"{length(op.ok['t'] - claim['t'])} before it got the lock")


def verb(claim):
    return "writes" if claim["event"] == "write" else "claims it"


# ---- 6: nobody's release removes another's key ----


def foreign_release(history, _):
    """The key of a hold is gone from a majority before its deadline.

    A deadline is backed by keys on a majority that last longer, so at any time before it a
    majority of masters without the key is impossible, unless somebody removed it (or a master
    lost its memory, or its clock).  Told by: the holder itself, when it is told so in a renewal
    or by its own release; and samples of what masters store.
    """
    for op in history.held():
        end = op.lost or op.released
        if end and forgetful(history, op, end["t"]):
            continue  # The holder does not tell which masters have lost its key.
        if gone_early(op):
            left = last_deadline(op, op.lost) - op.lost["t"]
            yield removed(history, op, op.lost, f"was told that it is lost {length(left)} before "
                          "its deadline: its key is gone")
        elif op.released and not op.lost and op.released["result"] == "LOST":
            left = last_deadline(op, op.released) - op.released["t"]
            if 0 < left < FOR_EVER // 2:
                yield removed(history, op, op.released, "found its key gone when it released it "
                              f"{length(left)} before its deadline")
    yield from sampled(history)


def gone_early(op):
    if not op.lost or op.release and op.release["t"] < op.lost["t"]:
        return False
    deadline = last_deadline(op, op.lost)
    return deadline != FOR_EVER and op.lost["t"] < deadline - op.ttl_ns // LOST_EARLY_PART


def sampled(history):
    """Told once for each hold, by the first sample that shows it."""
    told = set()
    for sample, op in holds_sampled(history):
        without = without_key(history, sample, op)
        if len(without) >= majority(history) and op.id not in told:
            told.add(op.id)
            yield removed(history, op, sample,
                          f"holds it, but its key is not on {', '.join(sorted(without))}")


def removed(history, op, event, text):
    found = broken(history, op, "foreign-release", event, text)
    releases = [release for unit in op.units
                for release in released_between(history, unit, op.ok["t"], event["t"], (op,))]
    found.text += meanwhile(in_order(releases))
    found.events = in_order(found.events + releases)
    return found


# ---- 7: whatever was begun came to an end ----


def no_end(history, _):
    if history.end is None:
        return  # The run was cut off, and everything with it; see Sorter.find_ends.
    for op in history.ops.values():
        if op.lost and op.lost.get("told") is False:
            yield unended(op, "ran out, and lost was never called", [op.invoke, op.ok, op.lost])
        if op.killed:
            continue
        if not op.ok and not op.fail:
            yield unended(op, "was never answered", [op.invoke])
        elif op.ok and not op.release and not op.lost:
            yield unended(op, "was neither released nor lost", [op.invoke, op.ok])
        elif op.release and not op.released:
            yield unended(op, "was released, and that never ended", [op.invoke, op.ok, op.release])
    for client in history.clients.values():
        if client.last is None:
            if not client.kills:
                yield Violation("no-end", f"{client.name} was never heard of",
                                history.begin["t"], history.begin["t"], [history.begin])
        elif not client.bye and not any(client.last["t"] <= kill["t"] + KILL_LAG_NS
                                        for kill in client.kills):
            yield Violation("no-end", f"{client.name} fell silent: neither bye nor killed",
                            client.last["t"], client.last["t"], [client.last])


def unended(op, text, events, rule="no-end"):
    return Violation(rule, f"{op.lock}: {op.id} {text}", events[-1]["t"], events[-1]["t"],
                     events, [op], op.lock)


# ---- 8: nothing fails that no fault explains ----


def failure(history, _):
    """Clients that a fault has killed may see their own commands die before them."""
    for op in history.ops.values():
        for event in (op.fail, op.released):
            word = event and event.get("why", event.get("result"))
            if word in FAILURES and not killed_by_then(history, op.who, event["t"]):
                yield unended(op, f"failed with {word}, which nothing that was done to it explains",
                              in_order([op.invoke, event]), "failure")


def killed_by_then(history, who, t):
    return any(kill["t"] <= t for kill in history.clients[who].kills)


# ---- 9: when all is well, somebody gets what is free ----


@dataclasses.dataclass
class Wait:
    """In a quiet phase: nobody has the lock, and somebody wants it, from `since` to `until`."""
    lock: str
    quiet: object
    since: int
    until: int
    ended_by: object  # The operation that got it, None if none did.
    late: list  # Attempts that were still without it when the bound had passed.

    @property
    def length(self):
        return self.until - self.since


def waits(history, bound_ns):
    """Of each lock those that exceed the bound, and the longest."""
    for lock, ops in history.locks.items():
        longest = 0
        tries = Timetable((op.invoke["t"], FOR_EVER if op.ended() is None else op.ended(), op)
                          for op in ops)
        gaps = sorted(free_times(history, lock), key=lambda gap: gap[0] - gap[1])
        for since, until, quiet, ended_by in gaps:
            if until - since <= min(longest, bound_ns):
                break
            wait = one_wait(lock, quiet, tries, since, until, ended_by, bound_ns)
            if wait:
                longest = max(longest, wait.length)
                yield wait


def free_times(history, lock):
    """The parts of quiet phases in which nobody has the lock: (since, until, phase, who had it
    then)."""
    table = history.occupied(lock)
    for quiet in history.quiets:
        free = max(quiet.since, table.busy_until(quiet.since))
        for since, until, segment in table.during(quiet.since, quiet.until):
            if since > free:
                yield free, since, quiet, segment and segment.op
            free = max(free, until)
        if free < quiet.until:
            yield free, quiet.until, quiet, None


def one_wait(lock, quiet, tries, since, until, ended_by, bound_ns):
    """None if nobody wanted it."""
    there = tries.during(since, until)
    if not there:
        return None
    wanted = max(since, min(begun for begun, _, _ in there))
    bound = wanted + bound_ns
    late = [op for begun, over, op in there if over > bound and until > bound and
            (begun <= bound or op.fail and over <= until)]
    return Wait(lock, quiet, wanted, until, ended_by, late)


def no_progress(history, options):
    bound_ns = options.bound_ns(history)
    for wait in waits(history, bound_ns):
        if wait.late:
            op = wait.late[0]
            events = [wait.quiet.event, op.invoke] + [event for event in (op.fail, op.ok) if event]
            yield Violation(
                "no-progress", f"{wait.lock}: all is well and nobody has it, but for "
                f"{length(wait.length)} nobody gets it; {op.id} wants it "
                f"(bound: {length(bound_ns)})",
                wait.since, wait.until, in_order(events), [op], wait.lock)


# ---- 10: a token names one hold ----


def token_reused(history, _):
    seen = {}
    for op in sorted(history.held(), key=lambda op: op.ok["t"]):
        token = op.ok["token"]
        if token is None:
            continue
        if token in seen:
            other = seen[token]
            yield Violation("token-reused", f"{op.lock}: {op.id} has the token of {other.id}",
                            other.ok["t"], op.ok["t"], [other.ok, op.ok], [other, op], op.lock)
        seen[token] = op


# ---- 11: fencing tokens grow ----


def fence_order(history, _):
    """From hold to hold, as they began; and from write to write, as the store took them: it must
    be able to refuse what is older."""
    for lock, ops in history.units.items():
        fenced = {op.id: op for op in ops if op.ok and op.invoke.get("fenced")}
        holds = sorted(fenced.values(), key=lambda op: op.ok["t"])
        yield from falling(lock, [(op, op.ok) for op in holds])
        yield from falling(lock, [(fenced[write["id"]], write)
                                  for write in history.writes.get(lock, [])
                                  if write["id"] in fenced])


def falling(lock, steps):
    """Of (operation, event) those with a number that is not above all before, but for its own."""
    greatest, since = None, None
    for op, event in steps:
        if greatest is None or op.ok["fence"] > greatest.ok["fence"]:
            greatest, since = op, event
        elif op is not greatest:
            yield Violation("fence-order", f"{lock}: {op.id} has the fencing token "
                            f"{op.ok['fence']}, after {greatest.id} with {greatest.ok['fence']}",
                            since["t"], event["t"],
                            in_order([greatest.ok, since, op.invoke, op.ok, event]),
                            [greatest, op], lock)


# ---- 12: no more permits are given away than there are ----


def permits(history, _):
    for lock, ops in history.locks.items():
        if ops[0].mode != "permit":
            continue
        for op in ops:
            if op.ok and op.ok["permit"] > op.permits:
                yield broken(history, op, "permits", op.ok, f"has permit {op.ok['permit']}, and "
                             f"there are {op.permits}")
        there = []
        for one in sorted((segment for op in ops for segment in op.segments()),
                          key=lambda segment: segment.since):
            there = [other for other in there if other.until > one.since] + [one]
            if len(there) > one.op.permits:
                until = min(other.until for other in there)
                yield Violation("permits", f"{lock}: {len(there)} have a permit, and there are "
                                f"{one.op.permits}, for {length(until - one.since)}", one.since,
                                until, in_order([event for other in there
                                                 for event in other.events]),
                                [other.op for other in there], lock)


# ---- 13: who is in line comes before who asks later ----


def fair_order(history, _):
    """Who was in line at a majority of masters, with one number at all of these, before another
    asked, and stayed so until that one had it: it was his turn.

    By what masters store, so that it is promised under any faults, but where they forget, or take
    who waits for dead.  What happened between two samples is known while he counts as alive.
    """
    for lock, samples in history.queues.items():
        times, begins = [sample["t"] for sample in samples], [one["since"] for one in samples]
        for op in history.units.get(lock, ()):
            first = bisect.bisect_left(times, op.invoke["t"]) - 1
            last = bisect.bisect_right(begins, op.ok["t"])
            if op.mode != "fair" or first < 0 or last >= len(samples):
                continue
            for waiter, number, where in in_line(history, samples[first:last + 1]):
                yield Violation(
                    "fair-order", f"{lock}: {op.id} got it, and {waiter} was in line before it "
                    f"asked, and still is, with number {number} at {', '.join(where)}",
                    op.invoke["t"], op.ok["t"], [samples[first], op.invoke, op.ok, samples[last]],
                    [op], lock)


def in_line(history, samples):
    """(waiter, number, masters) of those who are there from the first of these to the last."""
    since, until = samples[0]["since"], samples[-1]["t"]
    unsure = {name for fault in history.faults if fault.kind in FORGETTING + CLOCKS and
              fault.since <= until and fault.until + FORGET_LAG_NS >= since for name in fault.on}
    found = collections.defaultdict(list)
    for name in history.masters:
        for waiter, place in (samples[0]["places"][name] or {}).items():
            if name not in unsure and stays(samples, name, waiter, place[0]):
                found[waiter, place[0]].append(name)
    for (waiter, number), where in found.items():
        if len(where) >= majority(history):
            yield waiter, number, where


def stays(samples, name, waiter, number):
    """Whether a master had him in line all the time: he was never found dead, or elsewhere."""
    alive_until = samples[0]["t"]
    for sample in samples:
        places = sample["places"][name]
        if places is None and sample is not samples[-1]:
            continue
        if sample["t"] > alive_until or places is None or waiter not in places or \
                places[waiter][0] != number:
            return False
        alive_until = sample["since"] + places[waiter][1] * NS_PER_MS * 9 // 10
    return True


RULES = {
    "overlap": overlap,
    "store-order": store_order,
    "past-deadline": past_deadline,
    "unbacked": unbacked,
    "back-from-dead": back_from_dead,
    "foreign-release": foreign_release,
    "no-end": no_end,
    "failure": failure,
    "no-progress": no_progress,
    "token-reused": token_reused,
    "fence-order": fence_order,
    "permits": permits,
    "fair-order": fair_order,
}


# ---- What makes a history worthless as a proof ----


def few_holds(history, options):
    least, holds = options.least_holds(history), len(history.held())
    if holds < least:
        yield f"{holds} holds, at least {least} are needed"


def uncontended(history, options):
    """Exclusion is not tested where nobody has what another had before."""
    count, least = hand_overs(history), max(1, options.least_holds(history) // 10)
    if count < least:
        yield f"a lock went from one client to another {count} times, at least {least} are needed"


def hand_overs(history):
    count = 0
    for unit in history.units:
        segments = history.segments(unit)
        count += sum(one.op.who != other.op.who for one, other in zip(segments, segments[1:]))
    return count


def few_writes(history, options):
    """Nor is it at the resource, where hardly anybody used it."""
    count = sum(bool(op.writes) for op in history.ops.values())
    least = max(1, options.least_holds(history) // 10)
    if count < least:
        yield f"{count} holds wrote to the store, at least {least} are needed"


def wrong_clock(history, _):
    """Times that are no nanoseconds make the run too short, or too long."""
    span_s = (history.last_t() - history.begin["t"]) / 1e9
    seconds = history.begin["seconds"]
    if history.end and not 0.9 * seconds <= span_s <= 20 * seconds + 600:
        yield f"it was to last {seconds} s, and lasted {span_s:g} s by its own clock"


def no_quiet(history, options):
    """Progress is to be shown after faults, too."""
    oks = sorted(op.ok["t"] for op in history.held())
    first_fault = min((fault.since for fault in history.faults), default=0)
    shown = [quiet for quiet in history.quiets if quiet.since > first_fault and
             bisect.bisect_left(oks, quiet.until) > bisect.bisect_left(oks, quiet.since)]
    if not history.quiets:
        yield "there was no quiet phase, so progress was not demanded"
    elif not shown:
        yield "in no quiet phase after a fault anybody got a lock"
    for quiet in history.quiets:
        if quiet.until - quiet.since > options.bound_ns(history) and \
                not any(history.timetable(unit).during(quiet.since, quiet.until)
                        for unit in history.units):
            yield (f"in the quiet phase at {history.ms(quiet.since)} ms nobody had a lock, though "
                   "it lasted longer than the bound")


def no_faults(history, _):
    if history.begin.get("nemesis") and not history.faults:
        yield "there were to be faults, and there was none"
    faulty = history.under_fault()
    tries = sorted(op.invoke["t"] for op in history.ops.values())
    tried = any(bisect.bisect_left(tries, until) > bisect.bisect_left(tries, since)
                for since, until in faulty)
    if not tried and sum(until - since for since, until in faulty) > NS_PER_S:
        yield "while something was wrong, nobody tried to lock"


def no_keys(history, options):
    """That a key was removed under its holder, or is kept too short, only masters can tell."""
    asked = sorted(sample["t"] for sample in history.keys if answered(sample) >= majority(history))
    if not asked:
        yield "there is no sample of what masters store that a majority of them has answered"
        return
    for quiet in history.quiets:
        if quiet.until - quiet.since > options.bound_ns(history) and \
                bisect.bisect_left(asked, quiet.since) == bisect.bisect_left(asked, quiet.until):
            yield (f"in the quiet phase at {history.ms(quiet.since)} ms masters were not asked "
                   "what they store, though it lasted longer than the bound")


def answered(sample):
    return sum(token is not None for token in sample["tokens"].values())


def few_modes(history, _):
    """A long run is to show all ways to hold a lock that there were, and what is particular about
    each: a run that does not proves nothing about it."""
    if history.begin["seconds"] < SECONDS_OF_ALL:
        return
    found = {op.mode for op in history.held()}
    for mode in history.begin.get("modes", []):
        if mode not in found:
            yield f"nobody held a lock as {mode}"
        elif mode in MEETINGS and not MEETINGS[mode](history):
            yield f"of those who held a lock as {mode}, no two met"


def together(history, mode):
    """How often one of them began while another was there."""
    count = 0
    for ops in history.locks.values():
        until = 0
        for segment in sorted((segment for op in ops if op.mode == mode
                               for segment in op.segments()), key=lambda one: one.since):
            count += segment.since < until
            until = max(until, segment.until)
    return count


def orders(history):
    """How often somebody asked for a fair lock, and got it, when others were in line."""
    count = 0
    for lock, samples in history.queues.items():
        times = [sample["t"] for sample in samples]
        for op in history.units.get(lock, ()):
            before = bisect.bisect_left(times, op.invoke["t"]) - 1
            count += before >= 0 and next(in_line(history, [samples[before]]), None) is not None
    return count


MEETINGS = {
    "fair": orders,
    "permit": lambda history: together(history, "permit"),
    "reader": lambda history: together(history, "reader"),
}


CHECKS = {
    "few-holds": few_holds,
    "few-modes": few_modes,
    "uncontended": uncontended,
    "few-writes": few_writes,
    "wrong-clock": wrong_clock,
    "no-quiet": no_quiet,
    "no-faults": no_faults,
    "no-keys": no_keys,
}


def judge(history, options=None):
    options = options or Options()
    violations, counts = [], collections.Counter()
    for name, rule in RULES.items():
        if name in options.off:
            continue
        for violation in rule(history, options):
            counts[name] += 1
            if counts[name] <= LISTED_MAX:
                violations.append(violation)
    invalid = [problem for problem in history.problems if problem.kind not in options.off]
    for name, check in CHECKS.items():
        if name not in options.off:
            invalid += [Problem(name, text) for text in check(history, options)]
    violations.sort(key=lambda violation: violation.since)
    return Verdict(violations, counts, invalid, options.bound_ns(history) // NS_PER_MS)
