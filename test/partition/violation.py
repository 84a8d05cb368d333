"""A violation: an error that the judge found in a history, with its evidence."""

import dataclasses

from history import span_ms


@dataclasses.dataclass
class Violation:
    rule: str
    text: str
    since: int  # The begin and the end of the violation; equal if it was at one instant.
    until: int
    events: list
    ops: list = dataclasses.field(default_factory=list)
    lock: str = ""


def length(ns):
    return f"{span_ms(ns)} ms"


def in_order(events):
    return sorted({id(event): event for event in events}.values(), key=lambda event: event["t"])
