"""The safety rules of the judge: what must never happen, whatever faults there are.

Each rule is a function from a history to the violations that it finds, each with its evidence.
"""

import bisect
import collections

from history import FOR_EVER, NS_PER_MS, crowds
from violation import Violation, in_order, length
from words import CLOCKS, FORGETTING, STEPPING

# The library calls lost a tenth of the ttl before the deadline, or at once if a majority says that
# the key is gone.  A loss earlier than two tenths before the deadline is of the second kind.
LOST_EARLY_PART = 5

# The history records a FLUSHALL just before it is sent.
FORGET_LAG_NS = 1000 * NS_PER_MS

# A master's clock may be too slow by one part in this many: the library allows for it (drift_ppm).
CLOCK_PART = 100

SUSPECTS_MAX = 3  # Releases that are shown because they may have removed a key.


# ---- No client has a lock while another has it ----


def overlap(history, _):
    """A hold begins while the lock is held.  The violation names the hold that would last longest.

    Readers do not exclude readers.
    """
    for unit in history.units:
        longest = {True: None, False: None}  # For readers, and for others.
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
    text = (f"{lock}: {second.op.id} held it from {history.ms(second.since)} ms, {first.op.id} "
            f"until {history.ms(first.until)} ms ({first.why}): both for "
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
    return "; other releases meanwhile: " + ", ".join(event["id"] for event in releases)


# ---- No other hold writes between two writes of a hold ----


def store_order(history, _):
    """Writes of one hold come between writes of another.  Each pair of holds gives one violation.
    Readers may come between readers."""
    for lock, writes in history.writes.items():
        last_of, told = {}, set()
        last = {True: None, False: None}  # For readers, and for others.
        for write in writes:
            own, reads = last_of.get(write["id"]), history.ops[write["id"]].reads
            others = [last[False]] if reads else last.values()
            previous = max((one for one in others if one), key=lambda one: one["seq"],
                           default=None)
            if own and previous and previous["seq"] > own["seq"] and \
                    (write["id"], previous["id"]) not in told:
                told.add((write["id"], previous["id"]))
                yield Violation(
                    "store-order", f"{lock}: {write['id']} made the writes {own['seq']} and "
                    f"{write['seq']}, and {previous['id']} made {previous['seq']} in between",
                    own["t"], write["t"], [own, previous, write],
                    [history.ops[write["id"]], history.ops[previous["id"]]], lock)
            last_of[write["id"]] = last[reads] = write


# ---- No client claims a lock after its deadline ----


def past_deadline(history, _):
    for op in history.held():
        deadline = op.ok.get("deadline")
        if deadline is not None and deadline <= op.ok["t"]:
            yield broken(history, op, "past-deadline", op.ok,
                         f"got the lock {length(op.ok['t'] - deadline)} after its deadline")
        op.segments()  # This finds the late claims.
        for claim in op.late:
            known = op.deadline_before(claim)
            yield broken(history, op, "past-deadline", claim, "claims the lock "
                         f"{length(claim['t'] - known)} after its deadline, until "
                         f"{history.ms(claim['deadline'])} ms; no renewal in time lasts so long")
        for claim in op.claims:
            if claim.get("unfounded"):
                yield broken(history, op, "past-deadline", claim, "claims a later deadline, but "
                             "its lease was not renewed")
            most = claim["t"] + op.ttl_ns
            if claim["deadline"] is not None and claim["deadline"] > most:
                yield broken(history, op, "past-deadline", claim, "claims "
                             f"{length(claim['deadline'] - most)} more than its ttl")
        for write in op.writes:
            deadline = write.get("deadline")
            if deadline is None:
                deadline = op.deadline_before(write)
            if write["t"] > deadline:
                yield broken(history, op, "past-deadline", write, "writes "
                             f"{length(write['t'] - deadline)} after its deadline, and the store "
                             "accepts it")


def holds_sampled(history):
    """Each sample of a lock, with the operation that held it during the whole sample, if any."""
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
    """Turns a sample of all readers into one of this reader's key."""
    left_ms = sample["left_ms"]
    return sample | {
        "tokens": {name: None if readers is None else token if token in readers else ""
                   for name, readers in left_ms.items()},
        "left_ms": {name: readers and readers.get(token) for name, readers in left_ms.items()}}


def broken(history, op, rule, event, text):
    told = [op.invoke, op.ok, op.release, op.lost]
    told = [other for other in told if other and other["t"] <= event["t"]]
    claims = [claim for claim in op.claims if claim["t"] < event["t"]][-2:]
    return Violation(rule, f"{op.lock}: {op.id} {text}", event["t"], event["t"],
                     in_order(told + claims + [event]), [op], op.lock)


# ---- A majority keeps the key of a hold for as long as the client claims ----


def unbacked(history, _):
    """A client claims a deadline, but a majority of masters will not keep the key until then.

    Samples show how long each master will keep the key.  The first such sample gives one violation
    for each hold.  A clock that steps forward shortens the key, which this rule sees; a clock that
    steps back makes it longer.  If the key is gone from a majority, see foreign_release.
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
        window = in_use(sample, op)
        if not history.sets.are_blocked(gone, *window) and \
                history.sets.are_blocked(gone + short, *window):
            told.add(op.id)
            yield broken(history, op, "unbacked", sample, "claims the lock until "
                         f"{history.ms(until)} ms, but {', '.join(sorted(short + gone))} will not "
                         "keep its key until then")


def in_use(sample, op):
    """The time in which the lease that the operation had at this sample was asked for.  It began at
    most one ttl before."""
    return max(op.invoke["t"], sample["since"] - op.ttl_ns), sample["t"]


def keeps_until(sample, master, until):
    """True if the master may keep the key until then.

    It was asked before the sample's end, and its clock may be slow by CLOCK_PART."""
    left_ms = sample["left_ms"][master]
    if left_ms is None or left_ms < 0:
        return True  # The key expired between two queries, or never expires.
    return sample["t"] + (left_ms + 1) * NS_PER_MS * (CLOCK_PART + 1) // CLOCK_PART >= until


def keeping(sample, op):
    """The masters that store the operation's key."""
    return [name for name, token in sample["tokens"].items() if token == op.ok["token"]]


def without_key(history, sample, op):
    """The masters without the key and without a known reason.  null: the master did not answer."""
    forgot = forgetful(history, op, sample["t"])
    return [name for name, token in sample["tokens"].items()
            if token is not None and token != op.ok["token"] and name not in forgot]


def forgetful(history, op, t):
    """The masters whose keys a fault has removed since the operation asked for its own.

    A clock that steps forward removes keys, too.  Without a guard against that, it is no excuse."""
    kinds = FORGETTING
    if history.begin.get("clock_guard") == "per_vote":
        kinds = FORGETTING + STEPPING
    return {name for fault in history.faults if fault.kind in kinds and fault.since <= t and
            fault.until + FORGET_LAG_NS >= op.invoke["t"] for name in fault.on}


# ---- No client claims a lock after its release or loss, or before it has the lock ----


def back_from_dead(history, _):
    for op in history.ops.values():
        if op.ok is None:
            for write in op.writes[:1]:
                yield broken(history, op, "back-from-dead", write,
                             "writes, but never got the lock")
            continue
        stopped, end = op.stopped()
        for claim in {id(claim): claim for claim in op.claims + op.writes}.values():
            if claim["t"] > stopped:
                yield broken(history, op, "back-from-dead", claim, f"{verb(claim)} "
                             f"{length(claim['t'] - stopped)} after its "
                             f"{'loss' if end is op.lost else 'release'}")
            elif claim["t"] < op.ok["t"]:
                yield broken(history, op, "back-from-dead", claim, f"{verb(claim)} "
                             f"{length(op.ok['t'] - claim['t'])} before it got the lock")


def verb(claim):
    return "writes" if claim["event"] == "write" else "claims the lock"


# ---- No release removes the key of another client ----


def foreign_release(history, _):
    """The key of a hold is gone from a majority before its deadline.

    A majority keeps the key for longer than the deadline.  So before the deadline, a majority
    cannot lack the key, unless a client removed it (or a master lost its data, or its clock
    stepped).  The holder reports it after a renewal or its release; samples show it, too.
    """
    for op in history.held():
        end = op.lost or op.released
        if end and forgetful(history, op, end["t"]):
            continue  # The holder does not know which masters have lost its key.
        if gone_early(op):
            left = op.deadline_before(op.lost) - op.lost["t"]
            yield removed(history, op, op.lost, f"lost the lock {length(left)} before its "
                          "deadline: its key is gone")
        elif op.released and not op.lost and op.released["result"] == "LOST":
            left = op.deadline_before(op.released) - op.released["t"]
            if 0 < left < FOR_EVER // 2:
                yield removed(history, op, op.released, "found its key gone at its release, "
                              f"{length(left)} before its deadline")
    yield from sampled(history)


def gone_early(op):
    if not op.lost or op.release and op.release["t"] < op.lost["t"]:
        return False
    deadline = op.deadline_before(op.lost)
    return deadline != FOR_EVER and op.lost["t"] < deadline - op.ttl_ns // LOST_EARLY_PART


def sampled(history):
    """The first sample without the key on a majority gives one violation for each hold."""
    told = set()
    for sample, op in holds_sampled(history):
        without = without_key(history, sample, op)
        if op.id not in told and history.sets.are_blocked(without, *in_use(sample, op)):
            told.add(op.id)
            yield removed(history, op, sample,
                          f"holds it, but {', '.join(sorted(without))} do not have its key")


def removed(history, op, event, text):
    found = broken(history, op, "foreign-release", event, text)
    releases = [release for unit in op.units
                for release in released_between(history, unit, op.ok["t"], event["t"], (op,))]
    found.text += meanwhile(in_order(releases))
    found.events = in_order(found.events + releases)
    return found


# ---- A token names one hold ----


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


# ---- Fencing tokens grow ----


def fence_order(history, _):
    """Tokens grow from hold to hold, in the order in which holds begin.  They also grow from write
    to write at the store, because a store refuses older holds by their tokens."""
    for lock, ops in history.units.items():
        fenced = {op.id: op for op in ops if op.ok and op.invoke.get("fenced")}
        holds = sorted(fenced.values(), key=lambda op: op.ok["t"])
        yield from falling(lock, [(op, op.ok) for op in holds])
        yield from falling(lock, [(fenced[write["id"]], write)
                                  for write in history.writes.get(lock, [])
                                  if write["id"] in fenced])


def falling(lock, steps):
    """Each (operation, event) whose number is not above those of all other operations before."""
    greatest, since = None, None
    for op, event in steps:
        if greatest is None or op.ok["fence"] > greatest.ok["fence"]:
            greatest, since = op, event
        elif op is not greatest:
            yield Violation("fence-order", f"{lock}: {op.id} has the fencing token "
                            f"{op.ok['fence']}, and {greatest.id} before it has "
                            f"{greatest.ok['fence']}",
                            since["t"], event["t"],
                            in_order([greatest.ok, since, op.invoke, op.ok, event]),
                            [greatest, op], lock)


# ---- No more permits are taken than there are ----


def permits(history, _):
    for lock, ops in history.locks.items():
        if ops[0].mode != "permit":
            continue
        for op in ops:
            if op.ok and op.ok["permit"] > op.permits:
                yield broken(history, op, "permits", op.ok, f"has permit {op.ok['permit']} of "
                             f"{op.permits}")
        for there in crowds(ops):
            one = there[-1]
            if len(there) > one.op.permits:
                until = min(other.until for other in there)
                yield Violation("permits", f"{lock}: {len(there)} permits of {one.op.permits} are "
                                f"held at a time, for {length(until - one.since)}", one.since,
                                until, in_order([event for other in there
                                                 for event in other.events]),
                                [other.op for other in there], lock)


# ---- A waiter in the queue gets the lock before a client that asks later ----


def fair_order(history, _):
    """A client overtakes a waiter.  The waiter was in the queue of a majority of masters, with one
    number at all of them, before the client asked and until the client had the lock.

    The rule uses what masters store.  So it holds under all faults, except if masters lose data or
    take the waiter for dead.  While the waiter counts as alive, it cannot leave between two samples
    unseen.
    """
    for lock, samples in history.queues.items():
        times, begins = [sample["t"] for sample in samples], [one["since"] for one in samples]
        for op in history.units.get(lock, ()):
            first = bisect.bisect_left(times, op.invoke["t"]) - 1
            last = bisect.bisect_right(begins, op.ok["t"])
            if op.mode != "fair" or first < 0 or last >= len(samples):
                continue
            for waiter, number, where in in_queue(history, samples[first:last + 1]):
                yield Violation(
                    "fair-order", f"{lock}: {op.id} got it, but {waiter} was in the queue before "
                    f"{op.id} asked, and still is, with number {number} at {', '.join(where)}",
                    op.invoke["t"], op.ok["t"], [samples[first], op.invoke, op.ok, samples[last]],
                    [op], lock)


def in_queue(history, samples):
    """(waiter, number, masters) of the waiters that are in the queue in all of these samples."""
    since, until = samples[0]["since"], samples[-1]["t"]
    unsure = {name for fault in history.faults if fault.kind in FORGETTING + CLOCKS and
              fault.since <= until and fault.until + FORGET_LAG_NS >= since for name in fault.on}
    found = collections.defaultdict(list)
    for name in history.masters:
        for waiter, place in (samples[0]["places"][name] or {}).items():
            if name not in unsure and stays(samples, name, waiter, place[0]):
                found[waiter, place[0]].append(name)
    for (waiter, number), where in found.items():
        if history.sets.decide(where, since, until):
            yield waiter, number, where


def stays(samples, name, waiter, number):
    """True if the waiter was in the master's queue all the time: alive, with the same number."""
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
