"""Judges a history: what is in it that must not be, and when nothing can be concluded from it.

The rules are in safety.py and liveness.py.  The checks are here: each is a function that says why a
history proves nothing, even if no rule is violated.  An empty history violates none.  Both are in
tables.  test-check-history switches off one at a time, and sees that a bad history then passes.

The judge does not know which faults there were to be, nor what is expected to break.
"""

import bisect
import collections
import dataclasses

import liveness
import safety
from history import NS_PER_MS, NS_PER_S, Problem, crowds

# What a lock needs, besides a lease that runs out, until somebody has it when all is well again:
# reconnecting (the library waits 2 s at most) and some attempts.
PROGRESS_SLACK_MS = 2000

SECONDS_OF_ALL = 60  # A run of so long has time for everything; no source.
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
    "token-reused": safety.token_reused,
    "fence-order": safety.fence_order,
    "permits": safety.permits,
    "fair-order": safety.fair_order,
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
    asked = sorted(sample["t"] for sample in history.keys if answered(sample) >= history.majority())
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
    return sum(len(there) > 1 for ops in history.locks.values()
               for there in crowds(op for op in ops if op.mode == mode))


def orders(history):
    """How often somebody asked for a fair lock, and got it, when others were in line."""
    count = 0
    for lock, samples in history.queues.items():
        times = [sample["t"] for sample in samples]
        for op in history.units.get(lock, ()):
            before = bisect.bisect_left(times, op.invoke["t"]) - 1
            count += before >= 0 and any(safety.in_line(history, [samples[before]]))
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
