"""The liveness rules of the judge: what must happen in the end, and what must not fail.

Each rule is a function from a history to the violations that it finds, each with its evidence.
"""

import dataclasses

from history import FOR_EVER, KILL_LAG_NS, Timetable
from violation import Violation, in_order, length
from words import FAILURES


# ---- Every operation and every client comes to an end ----


def no_end(history, _):
    if history.end is None:
        return  # The run was cut off, so operations may be open; see loader.py.
    for op in history.ops.values():
        if op.lost and op.lost.get("told") is False:
            yield unended(op, "expired, and lost was never called", [op.invoke, op.ok, op.lost])
        if op.killed:
            continue
        if not op.ok and not op.fail:
            yield unended(op, "never ended", [op.invoke])
        elif op.ok and not op.release and not op.lost:
            yield unended(op, "was neither released nor lost", [op.invoke, op.ok])
        elif op.release and not op.released:
            yield unended(op, "has a release that never ended", [op.invoke, op.ok, op.release])
    for change in history.changes:
        if not change.changed:
            yield Violation("no-end", f"change {change.id} of {change.by} never ended",
                            change.since, change.since, [change.event])
    for client in history.clients.values():
        if client.last is None:
            if not client.kills:
                yield Violation("no-end", f"{client.name} has no event",
                                history.begin["t"], history.begin["t"], [history.begin])
        elif not client.bye and not any(client.last["t"] <= kill["t"] + KILL_LAG_NS
                                        for kill in client.kills):
            yield Violation("no-end", f"{client.name} stopped without a bye, and was not killed",
                            client.last["t"], client.last["t"], [client.last])


def unended(op, text, events, rule="no-end"):
    return Violation(rule, f"{op.lock}: {op.id} {text}", events[-1]["t"], events[-1]["t"],
                     events, [op], op.lock)


# ---- No operation fails for a reason that no fault explains ----


def failure(history, _):
    """A client that a fault kills may see its command die first."""
    for op in history.ops.values():
        for event in (op.fail, op.released):
            word = event and event.get("why", event.get("result"))
            if word in FAILURES and not killed_by_then(history, op.who, event["t"]):
                yield unended(op, f"failed with {word}, which no fault explains",
                              in_order([op.invoke, event]), "failure")


def killed_by_then(history, who, t):
    return any(kill["t"] <= t for kill in history.clients[who].kills)


# ---- In a quiet phase, a client gets a free lock that it wants ----


@dataclasses.dataclass
class Wait:
    """In a quiet phase: the lock is free, and a client wants it, from `since` to `until`."""
    lock: str
    quiet: object
    since: int
    until: int
    ended_by: object  # The operation that got the lock, or None.
    late: list  # Attempts without the lock when the bound had passed.

    @property
    def length(self):
        return self.until - self.since


def waits(history, options, quiets):
    """For each lock at least the waits in these phases that exceed their bound, and the longest."""
    for lock, ops in history.locks.items():
        longest = 0
        tries = Timetable((op.invoke["t"], FOR_EVER if op.ended() is None else op.ended(), op)
                          for op in ops)
        gaps = sorted(free_times(history, lock, quiets), key=lambda gap: gap[0] - gap[1])
        for since, until, quiet, ended_by in gaps:
            bound_ns = options.bound_in_ns(history, quiet)
            if until - since <= min(longest, bound_ns):
                break
            wait = one_wait(lock, quiet, tries, since, until, ended_by, bound_ns)
            if wait:
                longest = max(longest, wait.length)
                yield wait


def free_times(history, lock, quiets):
    """The parts of these phases in which the lock is free: (since, until, phase, operation that got
    it then)."""
    table = history.occupied(lock)
    for quiet in quiets:
        free = max(quiet.since, table.busy_until(quiet.since))
        for since, until, segment in table.during(quiet.since, quiet.until):
            if since > free:
                yield free, since, quiet, segment and segment.op
            free = max(free, until)
        if free < quiet.until:
            yield free, quiet.until, quiet, None


def one_wait(lock, quiet, tries, since, until, ended_by, bound_ns):
    """The wait in this time; None if no client wanted the lock."""
    there = tries.during(since, until)
    if not there:
        return None
    wanted = max(since, min(begun for begun, _, _ in there))
    bound = wanted + bound_ns
    late = [op for begun, over, op in there if over > bound and until > bound and
            (begun <= bound or op.fail and over <= until)]
    return Wait(lock, quiet, wanted, until, ended_by, late)


def no_progress(history, options):
    """The bound is one for quiet phases, and another while masters are replaced in good health."""
    for wait in [*waits(history, options, history.quiets), *waits(history, options, history.calms)]:
        if wait.late:
            op = wait.late[0]
            events = [wait.quiet.event, op.invoke] + [event for event in (op.fail, op.ok) if event]
            when = "while masters are replaced" if wait.quiet.is_calm else "in a quiet phase"
            yield Violation(
                "no-progress", f"{wait.lock}: {when} it is free for "
                f"{length(wait.length)}, although {op.id} wants it "
                f"(bound: {length(options.bound_in_ns(history, wait.quiet))})",
                wait.since, wait.until, in_order(events), [op], wait.lock)


# ---- Masters are replaced in good health: no lease is lost, and each change succeeds ----


def lost_in_calm(history, _):
    """A lease that is renewed is lost, or a change fails, although there is no fault."""
    for calm in history.calms:
        for op in history.held():
            if op.lost and keeps(op) and calm.since <= op.lost["t"] <= calm.until:
                yield unended(op, "lost its lease while masters are replaced, without a fault",
                              [calm.event, op.invoke, op.ok, op.lost], "lost-in-calm")
        for change in history.changes:
            if calm.since <= change.since <= calm.until and change.changed and not change.is_done:
                yield Violation("lost-in-calm", f"change {change.id} of {change.by} "
                                f"({change.about}) fails without a fault", change.since,
                                change.until, [calm.event, change.event, change.changed])


def keeps(op):
    """True if the lease is renewed until the client releases it.

    A command of `redlock run` that sees a pause of its own gives up the lock, which is still held.
    """
    return op.invoke.get("renew") is True and not op.invoke.get("max_hold_ms") and \
        op.lost.get("why") != "stopped"
