"""Figures of a history: how much happened, how fast, and how soon after faults.

None of them is judged here; see judge.py.
"""

import bisect
import collections
import math

import judge
import liveness
from history import NS_PER_MS, NS_PER_S
from words import MODES

MS_DIGITS = 3


def figures(history, options):
    """{name: number}, in the order in which they are shown."""
    ops = list(history.ops.values())
    held = history.held()
    found = {
        "lasted_s": round((history.last_t() - history.begin["t"]) / NS_PER_S, 1),
        "clients": sum(client.last is not None for client in history.clients.values()),
        "masters": len(history.masters),
        "locks": len(history.locks),
        "attempts": len(ops),
        "holds": len(held),
        "hand_overs": judge.hand_overs(history),
        "waiting_at_once": judge.waiting_at_once(history),
        "fenced": sum(op.invoke.get("fenced", False) for op in held),
        **modes(history, held),
        "lost": sum(op.lost is not None for op in held),
        "killed_holding": sum(op.killed is not None and op.release is None for op in held),
        "longest_hold_ms": ms(max((op.end() - op.ok["t"] for op in held if op.segments()),
                                  default=None)),
        "writes": sum(len(op.writes) for op in ops),
        "late_writes_refused": sum(len(op.refused) for op in ops),
    }
    found |= failures(ops)
    found |= faults(history)
    found |= rates(history, held)
    found |= latencies(history, held)
    found |= progress(history, options)
    found |= changes(history, options)
    return found


def modes(history, held):
    """How often a lock was held in each mode, and the figures of that mode."""
    if not history.begin.get("modes"):
        return {}
    counts = collections.Counter(op.mode for op in held)
    return {f"held_{mode}": counts[mode] for mode in MODES} | {
        "readers_together": judge.together(history, "reader"),
        "permits_together": judge.together(history, "permit"),
        "asked_behind_others": judge.orders(history),
    }


def failures(ops):
    whys = collections.Counter(op.fail["why"] for op in ops if op.fail)
    return {f"failed_{word(why)}": count for why, count in sorted(whys.items())}


def word(text):
    return "".join(letter if letter.isalnum() else "_" for letter in text.lower())


def faults(history):
    kinds = collections.Counter(fault.kind for fault in history.faults)
    found = {"faults": kinds.total()}
    return found | {f"faults_{word(kind)}": count for kind, count in sorted(kinds.items())}


def rates(history, held):
    """Acquisitions a second, while clients were there."""
    times = [client.last["t"] for client in history.clients.values() if client.last]
    begins = [client.first["t"] for client in history.clients.values() if client.first]
    if not times:
        return {}
    since, until = min(begins), max(times)
    bad = [(max(begin, since), min(end, until)) for begin, end in history.under_fault()
           if begin < until and end > since]
    bad_ns = sum(end - begin for begin, end in bad)
    begins = [begin for begin, _ in bad]
    in_bad = 0
    for op in held:
        i = bisect.bisect_right(begins, op.ok["t"]) - 1
        in_bad += i >= 0 and op.ok["t"] < bad[i][1]
    return {
        "healthy_s": round((until - since - bad_ns) / NS_PER_S, 1),
        "under_fault_s": round(bad_ns / NS_PER_S, 1),
        "acquired_per_s_healthy": rate(len(held) - in_bad, until - since - bad_ns),
        "acquired_per_s_under_fault": rate(in_bad, bad_ns),
    }


def rate(count, ns):
    return round(count * NS_PER_S / ns, 1) if ns > 0 else None


def latencies(history, held):
    """From invoke to ok.  Alone and healthy: meanwhile no fault, and no rival for the lock."""
    everything = sorted(op.ok["t"] - op.invoke["t"] for op in held)
    best = sorted(op.ok["t"] - op.invoke["t"] for op in alone_and_healthy(history))
    return {
        "acquire_p50_ms": ms(quantile(everything, 0.5)),
        "acquire_p99_ms": ms(quantile(everything, 0.99)),
        "acquire_alone_healthy": len(best),
        "acquire_alone_healthy_p50_ms": ms(quantile(best, 0.5)),
        "acquire_alone_healthy_p99_ms": ms(quantile(best, 0.99)),
    }


def alone_and_healthy(history):
    bad = history.under_fault()
    begins = [begin for begin, _ in bad]
    by_name = collections.defaultdict(list)
    for op in history.ops.values():
        for name in op.names:
            by_name[name].append(op)
    for ops in by_name.values():
        busy_until = 0
        for op, following in zip(ops, ops[1:] + [None]):
            until = op.ended() or history.last_t()
            if op.ok and len(op.names) == 1 and op.invoke["t"] > busy_until and \
                    (following is None or following.invoke["t"] > until):
                i = bisect.bisect_right(begins, until) - 1
                if i < 0 or bad[i][1] < op.invoke["t"]:
                    yield op
            busy_until = max(busy_until, until, op.end() or 0)


def quantile(values, part):
    """The least value that this part of all values does not exceed; values are sorted."""
    return values[max(0, math.ceil(part * len(values)) - 1)] if values else None


def ms(ns):
    return None if ns is None else round(ns / NS_PER_MS, MS_DIGITS)


def progress(history, options):
    return {
        "quiets": len(history.quiets),
        "longest_without_progress_ms": longest_wait_ms(history, options, history.quiets),
        "progress_bound_ms": options.bound_ns(history) // NS_PER_MS,
    }


def longest_wait_ms(history, options, quiets):
    return ms(max((wait.length for wait in liveness.waits(history, options, quiets)
                   if wait.ended_by or wait.late), default=None))


def changes(history, options):
    """What operators did to the set of masters, if it could change."""
    if not history.begin.get("set"):
        return {}
    done = [change for change in history.changes if change.is_done]
    found = {
        "changes": len(history.changes),
        "changes_done": len(done),
        "changes_killed": sum(bool(change.changed and change.changed.get("killed"))
                              for change in history.changes),
        "longest_change_ms": ms(max((change.until - change.since for change in done),
                                    default=None)),
        "set_version": history.sets.configurations[-1].version,
    }
    if history.calms:
        found["longest_pause_in_calm_ms"] = longest_wait_ms(history, options, history.calms)
    return found
