"""Judges a history: finds violations, or says that nothing can be concluded from it.

The rules are in safety.py and liveness.py.  The checks are here: each is a function that says why a
history proves nothing, even if it violates no rule, as an empty history.  Both are in tables.
test-check-history switches off one at a time, and checks that a bad history then passes.

The judge does not know which violations are expected.
"""

import bisect
import collections
import dataclasses
import itertools

import liveness
import safety
from history import CLOCK_WATCH_MS, NS_PER_MS, NS_PER_S, Problem, crowds

# After faults, a client needs this time to get a lock, besides the expiry of a lease: for
# reconnecting (the library waits 2 s at most) and some attempts.
PROGRESS_SLACK_MS = 2000

# In good health, a change of the set of masters may keep a lock that is free for this long from all.
CALM_MS = 2000

SECONDS_OF_ALL = 60  # Chosen: a run of this length has time for all modes.
LISTED_MAX = 100  # Violations of one rule that are listed; all are counted.


@dataclasses.dataclass
class Options:
    bound_ms: int = None  # In this time a client must get a free lock; None: ttl, slack, and clocks.
    holds_min: int = None  # The least number of holds; None: one for every second of the run.
    off: frozenset = frozenset()  # Rules and checks to leave out, for tests of the judge.

    def bound_ns(self, history):
        bound_ms = self.bound_ms
        if bound_ms is None:
            bound_ms = history.begin["ttl_ms"] + PROGRESS_SLACK_MS
            if history.begin.get("clock_guard") == "per_vote":
                bound_ms += CLOCK_WATCH_MS
        return bound_ms * NS_PER_MS

    def bound_in_ns(self, history, quiet):
        """In this quiet phase.  With per_vote, clients first watch the clock of a new master."""
        if not quiet.is_calm:
            return self.bound_ns(history)
        watch_ms = CLOCK_WATCH_MS if history.begin.get("clock_guard") == "per_vote" else 0
        return (CALM_MS + watch_ms) * NS_PER_MS

    def least_holds(self, history):
        if self.holds_min is None:
            return max(2, int(history.begin["seconds"]))
        return self.holds_min


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


RULES = {
    "overlap": safety.overlap,
    "store-order": safety.store_order,
    "past-deadline": safety.past_deadline,
    "unbacked": safety.unbacked,
    "back-from-dead": safety.back_from_dead,
    "foreign-release": safety.foreign_release,
    "no-end": liveness.no_end,
    "failure": liveness.failure,
    "no-progress": liveness.no_progress,
    "lost-in-calm": liveness.lost_in_calm,
    "token-reused": safety.token_reused,
    "fence-order": safety.fence_order,
    "permits": safety.permits,
    "fair-order": safety.fair_order,
}


# ---- When a history proves nothing ----


def few_holds(history, options):
    least, holds = options.least_holds(history), len(history.held())
    if holds < least:
        yield f"{holds} holds, at least {least} are needed"


def uncontended(history, options):
    """Exclusion is tested only if locks go from one client to another."""
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
    """Exclusion is tested at the resource only if enough holds write to it."""
    count = sum(bool(op.writes) for op in history.ops.values())
    least = max(1, options.least_holds(history) // 10)
    if count < least:
        yield f"{count} holds wrote to the store, at least {least} are needed"


def wrong_clock(history, _):
    """Times in a unit other than nanoseconds make the run too short, or too long."""
    span_s = (history.last_t() - history.begin["t"]) / 1e9
    seconds = history.begin["seconds"]
    if history.end and not 0.9 * seconds <= span_s <= 20 * seconds + 600:
        yield f"the run should last {seconds} s, and lasts {span_s:g} s by its own clock"


def no_quiet(history, options):
    """A history must show progress after faults, too."""
    oks = sorted(op.ok["t"] for op in history.held())
    first_fault = min((fault.since for fault in history.faults), default=0)
    shown = [quiet for quiet in history.quiets if quiet.since > first_fault and
             bisect.bisect_left(oks, quiet.until) > bisect.bisect_left(oks, quiet.since)]
    if not history.quiets:
        yield "there was no quiet phase, so no client had to make progress"
    elif not shown:
        yield "no client got a lock in a quiet phase after a fault"
    for quiet in history.quiets:
        if quiet.until - quiet.since > options.bound_ns(history) and \
                not any(history.timetable(unit).during(quiet.since, quiet.until)
                        for unit in history.units):
            yield (f"in the quiet phase at {history.ms(quiet.since)} ms no client had a lock, "
                   "though it lasted longer than the bound")


def no_faults(history, _):
    if history.begin.get("nemesis") and not history.faults:
        yield "the run should have faults, and has none"
    faulty = history.under_fault()
    tries = sorted(op.invoke["t"] for op in history.ops.values())
    tried = any(bisect.bisect_left(tries, until) > bisect.bisect_left(tries, since)
                for since, until in faulty)
    if not tried and sum(until - since for since, until in faulty) > NS_PER_S:
        yield "during faults no client tried to lock"


def no_keys(history, options):
    """Only samples of masters show that a key was removed, or expires too early."""
    asked = sorted(sample["t"] for sample in history.keys
                   if history.sets.decide(answered(sample), sample["t"], sample["t"]))
    if not asked:
        yield "no sample of what masters store has answers from a majority"
        return
    for quiet in history.quiets:
        if quiet.until - quiet.since > options.bound_ns(history) and \
                bisect.bisect_left(asked, quiet.since) == bisect.bisect_left(asked, quiet.until):
            yield (f"in the quiet phase at {history.ms(quiet.since)} ms there is no sample of "
                   "what masters store, though it lasted longer than the bound")


def answered(sample):
    return [name for name, token in sample["tokens"].items() if token is not None]


def few_modes(history, _):
    """A long run must show each mode that it has, and clients that met in it.  Otherwise it proves
    nothing about that mode."""
    if history.begin["seconds"] < SECONDS_OF_ALL:
        return
    found = {op.mode for op in history.held()}
    for mode in history.begin.get("modes", []):
        if mode not in found:
            yield f"no client held a lock as {mode}"
        elif mode in MEETINGS and not MEETINGS[mode](history):
            yield f"of the clients that held a lock as {mode}, no two met"


def few_waiters(history, _):
    """A run with crowds must show one.  Half of a crowd is enough: the others hold or rest."""
    wanted, found = history.begin.get("crowd", 0) / 2, waiting_at_once(history)
    if found < wanted:
        yield f"{found} at most waited for one lock at a time, at least {wanted:g} are needed"


def waiting_at_once(history):
    """How many operations wait for one lock at a time, at most."""
    most = 0
    for ops in history.locks.values():
        steps = sorted(step for op in ops for step in
                       ((op.invoke["t"], 1), (op.ended() or history.last_t(), -1)))
        most = max([most, *itertools.accumulate(by for _, by in steps)])
    return most


def together(history, mode):
    """How often a hold of this mode began during another."""
    return sum(len(there) > 1 for ops in history.locks.values()
               for there in crowds(op for op in ops if op.mode == mode))


def orders(history):
    """How often a client asked for a fair lock with a queue, and got it."""
    count = 0
    for lock, samples in history.queues.items():
        times = [sample["t"] for sample in samples]
        for op in history.units.get(lock, ()):
            before = bisect.bisect_left(times, op.invoke["t"]) - 1
            count += before >= 0 and any(safety.in_queue(history, [samples[before]]))
    return count


MEETINGS = {
    "fair": orders,
    "permit": lambda history: together(history, "permit"),
    "reader": lambda history: together(history, "reader"),
}


CHECKS = {
    "few-holds": few_holds,
    "few-modes": few_modes,
    "few-waiters": few_waiters,
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
