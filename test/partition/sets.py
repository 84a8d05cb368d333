"""The set of masters of a run, as it changes: which majorities could decide at a time.

A configuration is two lists of masters: equal, or an old and a new one while the set changes.  Then
a majority of each decides.  A client may use a configuration from the moment when it is chosen.  It
may use the one before until a majority of the members store the new one.  The judge knows neither
moment exactly, so several configurations may be in use at a time.
"""

import dataclasses

# A configuration may be in use this long before a sample shows it.  A silent master may be the only
# one that stores it.  Chosen; samples come every 0.1 s.
UNSEEN_NS = 1_000_000_000
FOR_EVER = 1 << 62  # Later than any time.


def is_majority(names, members):
    return 2 * len(set(members) & set(names)) > len(members)


@dataclasses.dataclass
class Configuration:
    version: int
    lists: list  # Two lists of names; equal: the set does not change.
    since: int
    until: int
    seen: int = 0  # When a sample showed it first.

    def decides(self, names):
        return all(is_majority(names, members) for members in self.lists)

    def is_blocked_by(self, names):
        """True if the others cannot decide without these."""
        return any(is_majority(names, members) for members in self.lists)


class Sets:
    """The configurations of a run.  Members: those at first.  told: events `set`, by time."""

    def __init__(self, members, told):
        self.configurations = [Configuration(1, [members, members], 0, FOR_EVER)]
        stored = {}
        for event in told:
            for version, lists in event["lists"].items():
                self.note(int(version), lists, event)
            for name, version in event["stored"].items():
                stored[name] = max(stored.get(name, 0), version)
            self.end(stored, event["t"])
        self.configurations.sort(key=lambda one: one.version)

    def note(self, version, lists, event):
        if all(one.version != version for one in self.configurations):
            self.configurations.append(
                Configuration(version, [lists[0], lists[-1]], event["since"] - UNSEEN_NS, FOR_EVER,
                              event["t"]))

    def end(self, stored, t):
        """End the configurations that can decide nothing any more."""
        for one in self.configurations:
            newer = [name for name, version in stored.items() if version > one.version]
            if one.until == FOR_EVER and one.decides(newer):
                one.until = t

    def during(self, since, until):
        """The configurations that may be in use at some time from since to until; at least one."""
        return [one for one in self.configurations if one.since <= until and since <= one.until] \
            or self.configurations[-1:]

    def decide(self, names, since, until):
        """True if these masters can decide, whichever configuration is in use."""
        return all(one.decides(names) for one in self.during(since, until))

    def are_blocked(self, names, since, until):
        """True if the other masters cannot decide, whichever configuration is in use."""
        return all(one.is_blocked_by(names) for one in self.during(since, until))
