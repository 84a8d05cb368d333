#!/usr/bin/env python3
"""Draws the history of a partition run: one HTML file that needs nothing else, and no network.

    report.py HISTORY OUT.html

Exit status: 0 if drawn, with any verdict; 2 if there is no history in the file.  This program puts
the data into report.html, whose script draws them.  judge.py judges, as in scripts/check-history.
"""

import gc
import html
import json
import pathlib
import sys

import figures
import history
import judge
import loader
from words import MODES

HERE = pathlib.Path(__file__).resolve().parent
TEMPLATE = HERE / "report.html"
EVIDENCE_MAX = 12  # Events that are shown with a violation.
VIOLATIONS_MAX = 200  # Violations that are shown; the others are only counted.
TOKEN_SHOWN = 8  # Digits of a token that are shown.
NS_PER_US = 1000
EXIT_UNREADABLE = 2


class Words:
    """Numbers for words, so that repeated words are written once."""

    def __init__(self):
        self.list = []
        self.numbers = {}

    def number(self, word):
        if word not in self.numbers:
            self.numbers[word] = len(self.list)
            self.list.append(word)
        return self.numbers[word]


class Drawing:
    """The data of the page.  Times are microseconds since the begin."""

    def __init__(self, run, verdict, options):
        self.run = run
        self.verdict = verdict
        self.figures = figures.figures(run, options)
        self.lane_of = self.lanes_of_clients()

    def us(self, t):
        return (t - self.run.begin["t"]) // NS_PER_US

    def data(self):
        run, begin = self.run, self.run.begin
        return {
            "verdict": self.verdict.word,
            "about": self.about(),
            "end": self.us(run.last_t()),
            "figures": self.figures,
            "counts": dict(self.verdict.counts),
            "held": [[mode, self.figures[f"held_{mode}"]] for mode in MODES
                     if f"held_{mode}" in self.figures],
            "clients": self.clients,
            "masters": run.masters,
            "holds": self.holds(),
            "fails": self.fails(),
            "faults": [self.fault(fault) for fault in run.faults],
            "changes": [self.change(change) for change in run.changes],
            "terms": [self.terms(name) for name in run.masters] if run.changes else [],
            "quiets": [[self.us(quiet.since), self.us(quiet.until)] for quiet in run.quiets],
            "faulty": [[self.us(since), self.us(until)] for since, until in run.under_fault()],
            "violations": [self.violation(violation)
                           for violation in self.verdict.violations[:VIOLATIONS_MAX]],
            "invalid": [{"kind": problem.kind, "text": problem.text,
                         "evidence": self.evidence(problem.events)}
                        for problem in self.verdict.invalid[:VIOLATIONS_MAX]],
            "notices": run.notices,
            "expected": self.expected(),
            "mutant": begin.get("mutant") or "",
        }

    def about(self):
        begin = self.run.begin
        return {"seed": begin.get("seed"), "seconds": begin["seconds"],
                "clients": len(history.names(begin["clients"], "c")),
                "masters": len(self.run.masters), "ttl_ms": begin["ttl_ms"],
                "nemesis": [str(kind) for kind in begin.get("nemesis", [])]}

    def expected(self):
        """The faults of the run that are known to break exclusion."""
        kinds = {fault.kind for fault in self.run.faults}
        return [kind for kind in self.run.begin.get("expected", []) if kind in kinds]

    # ---- Clients: one that replaces a killed client has the same lane ----

    def lanes_of_clients(self):
        run = self.run
        self.clients = [{"name": name, "lives": [name]}
                        for name in history.names(run.begin["clients"], "c")]
        lane_of = {lane["name"]: number for number, lane in enumerate(self.clients)}
        later = sorted((client for client in run.clients.values()
                        if client.name not in lane_of and client.first),
                       key=lambda client: client.first["t"])
        vacant = sorted((kill["t"], name) for name, client in run.clients.items()
                        for kill in client.kills[:1])
        for client in later:
            free = [entry for entry in vacant
                    if entry[0] <= client.first["t"] and entry[1] in lane_of]
            if free:
                vacant.remove(free[0])
                lane_of[client.name] = lane_of[free[0][1]]
                self.clients[lane_of[client.name]]["lives"].append(client.name)
            else:
                lane_of[client.name] = len(self.clients)
                self.clients.append({"name": client.name, "lives": [client.name]})
        return lane_of

    # ---- Holds, in columns: there may be a hundred thousand ----

    def holds(self):
        locks, clients, kinds, whys = Words(), Words(), Words(), Words()
        for lock in sorted(self.run.locks, key=natural):
            locks.number(lock)
        columns = {name: [] for name in ("since", "length", "lock", "lane", "client", "number",
                                         "kind", "why", "waited", "left", "writes", "refused",
                                         "claims", "token")}
        last = 0
        segments = sorted((segment for op in self.run.held() for segment in op.segments()),
                          key=lambda segment: segment.since)
        for segment in segments:
            op, since = segment.op, self.us(segment.since)
            name, _, number = op.id.rpartition(".")
            deadline = op.deadline_before({"t": segment.until})
            row = (since - last, self.us(segment.until) - since, locks.number(op.lock),
                   self.lane_of[op.who], clients.number(name), number, kinds.number(kind_of(op)),
                   whys.number("killed" if op.killed and segment.why != "release"
                               else segment.why),
                   self.us(op.ok["t"]) - self.us(op.invoke["t"]),
                   None if deadline == history.FOR_EVER
                   else (deadline - segment.until) // NS_PER_US,
                   len(op.writes), len(op.refused), len(op.claims) - len(op.writes),
                   (op.ok.get("token") or "")[:TOKEN_SHOWN])
            for column, value in zip(columns.values(), row):
                column.append(value)
            last = since
        return {"columns": columns, "locks": locks.list, "clients": clients.list,
                "kinds": kinds.list, "whys": whys.list}

    def fails(self):
        whys, last = Words(), 0
        times, columns = [], []
        for op in sorted((op for op in self.run.ops.values() if op.fail),
                         key=lambda op: op.fail["t"]):
            t = self.us(op.fail["t"])
            times.append(t - last)
            columns.append(whys.number(op.fail["why"]))
            last = t
        return {"t": times, "why": columns, "whys": whys.list}

    # ---- What went wrong ----

    def fault(self, fault):
        return {"kind": fault.kind, "about": fault.about, "since": self.us(fault.since),
                "until": self.us(fault.until),
                "masters": [self.run.masters.index(name) for name in fault.on
                            if name in self.run.masters],
                "clients": sorted({self.lane_of[name] for name in fault.on
                                   if name in self.lane_of})}

    def change(self, change):
        """A command of an operator, with the fields of a fault."""
        changed = change.changed or {"status": None}
        end = "killed" if changed.get("killed") else f"status {changed['status']}"
        about = f"{end}: {changed.get('said', '')}" if change.changed else "never ended"
        return {"kind": change.about, "about": about, "by": change.by,
                "since": self.us(change.since), "until": self.us(change.until)}

    def terms(self, name):
        """When this master is a member: [since, until, whether of both lists]."""
        found = []
        shown = self.run.sets.configurations
        ends = [one.seen for one in shown[1:]] + [self.run.last_t()]
        for one, end in zip(shown, ends):
            count = sum(name in members for members in one.lists)
            since = max(0, self.us(one.seen))
            if count == 2 and found and found[-1][1:] == [since, True]:
                found[-1][1] = self.us(end)
            elif count:
                found.append([since, self.us(end), count == 2])
        return found

    def violation(self, violation):
        return {"rule": violation.rule, "text": violation.text, "lock": violation.lock,
                "since": self.us(violation.since), "until": self.us(violation.until),
                "ids": [op.id for op in violation.ops],
                "evidence": self.evidence(violation.events)}

    def evidence(self, events):
        told = []
        for event in events[:EVIDENCE_MAX]:
            fields = [f"{key} {self.say(key, value)}" for key, value in event.items()
                      if key not in ("t", "who", "event", "line", "lock") and value is not None]
            told.append([event["line"], self.run.ms(event["t"]), event["who"], event["event"],
                         ", ".join(fields)])
        return told


    def say(self, key, value):
        if key in ("deadline", "since") and isinstance(value, int):
            return self.run.ms(value)
        if key == "tokens":
            return "; ".join(f"{name} " + ("silent" if token is None else shorten(token) or "none")
                             for name, token in value.items())
        if key == "token":
            return shorten(value)
        return value if isinstance(value, (str, int)) else json.dumps(value)


def kind_of(op):
    """Of a worker, and how it is held."""
    if op.mode == "permit":
        return f"{op.kind}, permit {op.ok['permit']}"
    return op.kind if op.mode == "alone" else f"{op.kind}, {op.mode}"


def shorten(token):
    return f"{token[:TOKEN_SHOWN]}…" if len(token) > TOKEN_SHOWN else token


def natural(text):
    """Sorts hot-2 before hot-10."""
    parts, digits = [], ""
    for letter in text + "\0":
        if letter.isdigit():
            digits += letter
            continue
        if digits:
            parts.append((0, int(digits), ""))
            digits = ""
        parts.append((1, 0, letter))
    return parts


def page(data):
    """The template with the data, escaped so that they cannot end an element or begin a comment."""
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    title = html.escape(f"Partition run, seed {data['about']['seed']}: {data['verdict']}")
    before, after = TEMPLATE.read_text(encoding="utf-8").split("@DATA@")
    return before.replace("@TITLE@", title) + text + after


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    gc.disable()  # See scripts/check-history.
    try:
        run = loader.read(sys.argv[1])
    except loader.Unreadable as error:
        print(f"report: {sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(EXIT_UNREADABLE)
    options = judge.Options()
    drawing = Drawing(run, judge.judge(run, options), options)
    pathlib.Path(sys.argv[2]).write_text(page(drawing.data()), encoding="utf-8")


if __name__ == "__main__":
    main()
