"""Loads a history: reads the file of a partition run, and puts every event where it belongs.

Each line of the file is one event, a JSON object with "t" (CLOCK_MONOTONIC, in nanoseconds), "who"
and "event".  words.py lists the events.  They are sorted by "t".  Contradictions (an ok without an
invoke, an id used twice, a line that is not JSON) become problems of the history, and are left out.
"""

import bisect
import itertools
import json
import re

from history import (KILL_LAG_NS, NS_PER_MS, Change, Client, Fault, History, Op, Problem, Quiet,
                     names)
from sets import Sets
from words import CALM, FIELDS, MOMENTARY, WORDS

CHUNK = 1000  # Lines that are parsed at once.
GARBAGE_LISTED_MAX = 10


class Unreadable(Exception):
    """The file has no history."""


def is_number(value):
    return type(value) is int and value > 0


class Sorter:
    """Takes the events of a history one by one, and puts each where it belongs."""

    def __init__(self, history):
        self.history = history
        self.by_id = {}  # Faults by their ids.
        self.told_of = set()  # Clients that the run has announced.
        self.numbers = set()  # The numbers of all writes.
        self.by_change = {}  # Changes by their ids.
        self.sets = []  # Events of which set masters store.

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
            self.problem("unknown", f"unknown event \"{name}\" ({len(events)} of them)",
                         events[0])
        self.finish()

    def find_ends(self):
        history = self.history
        begins = [event for event in history.events
                  if event["event"] == "begin" and event["who"] == "run"]
        ends = [event for event in history.events
                if event["event"] == "end" and event["who"] == "run"]
        if not begins:
            raise Unreadable("there is no begin event")
        history.begin = begins[0]
        if len(begins) > 1:
            self.problem("ends", f"{len(begins)} begin events: more than one run", *begins[:2])
        if history.events[0] is not begins[0]:
            self.problem("ends", "there is an event before the begin", history.events[0])
        if not ends:
            self.problem("ends", "there is no end event: the run was cut off", history.events[-1])
            return
        history.end = ends[-1]
        if len(ends) > 1:
            self.problem("ends", f"{len(ends)} end events", *ends[:2])
        if history.events[-1] is not ends[-1]:
            self.problem("ends", "there is an event after the end", history.events[-1])

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
            if type(event.get(key)) is not kind:  # Not isinstance: True is an int.
                self.problem("fields", f"{event['event']} without a valid {key}", event)
                return False
        if type(event.get("deadline")) not in (int, type(None)):
            self.problem("fields", f"{event['event']} with a deadline that is not a number", event)
            return False
        for key, words in WORDS.get(event["event"], {}).items():
            if event.get(key, "") not in words:
                self.problem("unknown", f"{event['event']} with an unknown {key}: "
                             f"{event.get(key)!r}", event)
        return True

    # ---- Clients ----

    def client(self, event):
        name = event["who"]
        client = self.history.clients.setdefault(name, Client(name))
        client.first = client.first or event
        client.last = event
        if client.bye:
            self.problem("order", f"{name} has an event after its bye", client.bye, event)
        return client

    def op_of(self, event):
        """The operation of a client's event.  None if there is none, which is noted as a problem."""
        self.client(event)
        op = self.history.ops.get(event["id"])
        if op is None:
            self.problem("no-invoke", f"{event['event']} of {event['id']}, which has no invoke",
                         event)
        elif op.who != event["who"]:
            self.problem("identity", f"{event['who']} has an event of {event['id']}, which is an "
                         f"operation of {op.who}", op.invoke, event)
            op = None
        else:
            op.last = event
        return op

    def once(self, op, event, slot):
        """Notes an event that an operation may have only once."""
        if getattr(op, slot):
            self.problem("order", f"{op.id}: {slot} twice", getattr(op, slot), event)
            return False
        setattr(op, slot, event)
        return True

    def on_invoke(self, event):
        self.client(event)
        if event["id"] in self.history.ops:
            self.problem("reused-id", f"two operations have the id {event['id']}",
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
            self.problem("fields", "ok without a valid deadline", event)
        elif self.once(op, event, "ok"):
            op.claims.append(event)
            if type(event.get("token")) is not str or not event["token"]:
                self.problem("fields", "ok without a valid token", event)
                event["token"] = None  # The hold still counts.
            if (op.mode == "permit") is not is_number(event.get("permit")):
                self.problem("fields", "ok without the permit that was asked for, or with one that "
                             "was not", op.invoke, event)
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
        """The operation of this event, which must already have its lock."""
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
            self.problem("no-invoke", f"{event['event']} for {event['id']}, which has no invoke",
                         event)
            return None
        known = op.units or [event["lock"]]  # Without an ok, the permit is not known.
        if event["lock"] not in known or op.who != event.get("by", op.who):
            self.problem("identity", f"{op.id} of {op.who} is for {op.lock}, but the store "
                         f"has {event['lock']} and {event.get('by')}", op.invoke, event)
            return None
        return op

    # ---- The run ----

    def on_fault(self, event):
        fault = Fault(event.get("id"), event["kind"], names(event.get("on"), "n"),
                      names(event.get("from"), "c"), str(event.get("about", "")), event["t"],
                      event["t"], event)
        if fault.id is not None and fault.id in self.by_id:
            self.problem("reused-id", f"two faults have the id {fault.id}",
                         self.by_id[fault.id].event, event)
        self.by_id[fault.id] = fault
        self.history.faults.append(fault)
        if fault.kind == "kill-client":
            for name in fault.on:
                self.history.clients.setdefault(name, Client(name)).kills.append(event)

    def on_healed(self, event):
        fault = self.by_id.get(event["id"])
        if fault is None or fault.healed:
            self.problem("order", f"fault {event['id']} is healed, but has not begun, or was healed "
                         "before", event)
        else:
            fault.healed, fault.until = event, event["t"]

    def on_quiet(self, event):
        self.history.quiets.append(Quiet(event["t"], event["t"], event))

    def on_client(self, event):
        """A client that replaces another."""
        self.told_of.add(event["name"])
        self.history.clients.setdefault(event["name"], Client(event["name"]))

    def on_change(self, event):
        change = Change(event["id"], event["by"], event["about"], event["t"], event["t"], event)
        if change.id in self.by_change:
            self.problem("reused-id", f"two changes have the id {change.id}",
                         self.by_change[change.id].event, event)
        self.by_change[change.id] = change
        self.history.changes.append(change)

    def on_changed(self, event):
        change = self.by_change.get(event["id"])
        if change is None or change.changed:
            self.problem("order", f"change {event['id']} ended, but has not begun, or ended before",
                         event)
        else:
            change.changed, change.until = event, event["t"]

    def on_set(self, event):
        """For each master that told it, the version that it stores; and the lists of each version:
        one, or two while the set changes."""
        known = set(self.history.masters)
        lists, stored = event["lists"], event["stored"]
        if set(stored) <= known and all(type(version) is int for version in stored.values()) and \
                all(version.isdigit() and type(two) is list and len(two) in (1, 2) and
                    all(type(one) is list and one and set(map(str, one)) <= known for one in two)
                    for version, two in lists.items()):
            self.sets.append(event)
        else:
            self.problem("fields", "set without valid lists of known masters", event)

    def on_keys(self, event):
        """For each master, a token, "" for none, or null for no answer; and how long it keeps the
        key: null without a key, less than 0 for ever."""
        masters, tokens, left_ms = set(self.history.masters), event["tokens"], event["left_ms"]
        if masters != set(tokens) or masters != set(left_ms) or \
                not all(token is None or type(token) is str for token in tokens.values()) or \
                not all(left is None or type(left) is int for left in left_ms.values()):
            self.problem("fields", "keys without one valid entry for each master", event)
        else:
            self.history.keys.append(event)

    def on_readers(self, event):
        """For each master, how long it keeps each reader; null: it did not answer."""
        left_ms = event["left_ms"]
        if self.of_all_masters(event, left_ms, lambda left: type(left) is int):
            self.history.readers.append(event)

    def on_queue(self, event):
        """For each master, the waiters with their numbers, and how long they count as alive."""
        if self.of_all_masters(event, event["places"],
                               lambda place: type(place) is list and
                               [type(number) for number in place] == [int, int]):
            self.history.queues.setdefault(event["lock"], []).append(event)

    def of_all_masters(self, event, told, is_one):
        if set(told) == set(self.history.masters) and all(
                found is None or type(found) is dict and all(map(is_one, found.values()))
                for found in told.values()):
            return True
        self.problem("fields", f"{event['event']} without one valid entry for each master", event)
        return False

    # ---- Checks of the whole history ----

    def finish(self):
        history = self.history
        self.end_faults()
        self.check_places()
        self.check_numbers()
        history.sets = Sets(names(history.begin.get("set"), "n") or history.masters, self.sets)
        history.calms = list(self.calms())
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

    def calms(self):
        """The times of changes in good health, without the faults that there may be besides."""
        faulty = [fault for fault in self.history.faults if fault.kind not in CALM]
        for fault in self.history.faults:
            if fault.kind in CALM and not any(other.since <= fault.since <= other.until
                                              for other in faulty):
                until = min([fault.until] + [other.since for other in faulty
                                             if other.since > fault.since])
                yield Quiet(fault.since, until, fault.event, is_calm=True)

    def end_faults(self):
        """All faults must be healed before a quiet phase begins, or the run ends.

        A fault that is not is taken to last until then.  Without an end, the run was cut off.
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
                when = "the run ends" if well is history.end else "a quiet phase begins"
                self.problem("open-fault", f"{when} while fault {fault.id} ({fault.kind}) is not "
                             "healed", *events)
            if lasts:
                fault.until = well["t"] if well else history.last_t()

    def check_places(self):
        """Faults must be on known masters and clients, or on clients that the run announced."""
        known = self.told_of | set(self.history.masters)
        known |= {client.name for client in self.history.clients.values() if client.first}
        for fault in self.history.faults:
            strange = [name for name in fault.on + fault.source if name not in known]
            if strange:
                self.problem("unknown", f"fault {fault.id} ({fault.kind}) is on an "
                             f"unknown host: {', '.join(strange)}", fault.event)

    def check_numbers(self):
        """The store numbers the writes of all locks together, so a gap shows a missing line."""
        missing = set(range(1, len(self.numbers) + 1)) - self.numbers
        if missing:
            self.problem("store", f"there is no write with the number {min(missing)}")

    def check_store(self, writes):
        for before, after in zip(writes, writes[1:]):
            if before["seq"] == after["seq"]:
                self.problem("store", f"two writes of {after['lock']} have the number "
                             f"{after['seq']}", before, after)
            elif before["t"] > after["t"]:
                self.problem("store", f"the numbers of writes to {after['lock']} contradict their "
                             "times",
                             before, after)

    def close(self, op):
        """Notes the kill that left an operation open, if there was one."""
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
    """(number, line, its JSON value) of each line; the value is None if the line is not JSON."""
    number = 0
    while chunk := list(itertools.islice(lines, CHUNK)):
        for line, value in zip(chunk, parse(chunk)):
            number += 1
            yield number, line, value


def parse(chunk):
    """Parses many lines at once, which is much faster; if one is bad, parses each alone."""
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
                problems.append(Problem("garbage", f"line {number} is not an event: "
                                        f"{line.strip()[:60]!r}"))
    if garbage > GARBAGE_LISTED_MAX:
        problems.append(Problem("garbage", f"{garbage} lines in all are not events"))
    if not events:
        raise Unreadable("the file has no event")
    last_lines = {}
    for event in events:
        last_lines[event["who"]] = event["line"]
    events.sort(key=lambda event: event["t"])
    history = History(events, problems)
    Sorter(history).sort()
    forgive_torn(history, torn, last_lines)
    return history


def looks_torn(line):
    """True for the beginning of an event.  A writer that is killed leaves such a line."""
    line, start = line.strip(), '{"t":'
    return (line.startswith(start) or start.startswith(line)) and not line.endswith("}")


def forgive_torn(history, torn, last_lines):
    """Each kill of a client may tear one line: the last one that it wrote."""
    may_tear = {name: len(client.kills) for name, client in history.clients.items()
                if client.kills}
    for number, line in torn:
        said = re.search(r'"who": *"([^"]*)"', line)
        if said:
            # If a client was killed more than once, only its last torn line can be placed.
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
