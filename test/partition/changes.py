"""Changes of the set of masters in a storm: which commands operators run, and when.  Pure.

A run has more masters than the set: the spares.  A command replaces members by spares, adds spares,
or removes members, which are spares then.  The steps are verbs of cluster.py with their arguments:

    operate NUMBER OPERATOR WORDS   begin `redlock members WORDS` on the host of an operator
    interrupt NUMBER                SIGKILL to that command, if it still runs
    halt NUMBER                     SIGSTOP for a moment behind each step that it takes from now on
    conclude NUMBER                 wait until it has ended by itself
    mend GOAL FORGETTING            wait for all commands, run more until the set is GOAL, and
                                    empty the spares of FORGETTING

A command may fail under faults, and may be interrupted.  So the set after a storm is certain only
once it is mended, in good health.
"""

import dataclasses

MEMBERS_MIN, MEMBERS_MAX = 3, 7
MEMBERS_SPARES = 3  # So that a set of five can grow to seven, and replace one then.
OPERATORS = ["o1", "o2"]
# After all other steps of a storm.  A reset is the latest: 0.3 s after its storm.
MEND_AFTER_S = 0.45
# From the first moment of a change to the last, without faults: two leases of 1.5 s, and a little.
CHANGE_S = 4.5
HALT_DELAY_MS = 15  # Each way: the reply timeout of an operator is longer.


def spares_needed(kinds, masters):
    """The number of spares that a run with these kinds of faults has."""
    needed = [0]
    if "members" in kinds or "halt-operator" in kinds:
        needed.append(MEMBERS_SPARES)
    if "move" in kinds:
        needed.append(masters)
    return max(needed)


def pairs_of(words):
    """The members that leave, and the masters that join, by `redlock members WORDS`."""
    verb, *names = words
    if verb == "replace":
        return names[:1], names[1:]
    return ([], names) if verb == "add" else (names, [])


class Crew:
    """The members of the set, and the spares, as they are planned."""

    def __init__(self, members, spares):
        self.members = list(members)
        self.spares = list(spares)

    def on_stage(self, dice):
        """The masters that have the faults of a storm: members, and the spare that joins first."""
        dice.shuffle(self.spares)
        return self.members + self.spares[:1]

    def take(self, words):
        leavers, joiners = pairs_of(words)
        self.members = [name for name in self.members if name not in leavers] + joiners
        self.spares = [name for name in self.spares if name not in joiners] + leavers

    def wishes(self, spare):
        """What may be wished with so many spares: {verb: (leavers, joiners)}, the numbers of both.
        """
        size = len(self.members)
        found = {}
        if spare >= 1:
            found["replace"] = (1, 1)
        if spare >= 2 and size + 2 <= MEMBERS_MAX:
            found["add"] = (0, 2)
        if size - 2 >= MEMBERS_MIN:
            found["remove"] = (2, 0)
        return found

    def draw(self, dice, changing=()):
        """A wish, as words of the command.  It leaves alone those that change just then; None if
        there is no such wish."""
        members = [name for name in self.members if name not in changing]
        spares = [name for name in self.spares if name not in changing]
        wishes = {verb: numbers for verb, numbers in self.wishes(len(spares)).items()
                  if numbers[0] <= len(members)}
        if not wishes:
            return None
        verb = dice.choice(sorted(wishes))
        leavers, joiners = wishes[verb]
        return (verb, *dice.sample(members, leavers), *spares[:joiners])


@dataclasses.dataclass
class Command:
    number: int
    at_s: float
    operator: str
    words: tuple
    killed_s: float = None  # When it is interrupted.
    halts: bool = False

    def steps(self):
        found = [(self.at_s, "operate", (self.number, self.operator, self.words))]
        if self.halts:
            found.append((self.at_s, "halt", (self.number,)))
        if self.killed_s is not None:
            found.append((self.killed_s, "interrupt", (self.number,)))
        return found

    def about(self):
        text = f"{self.operator}: {' '.join(self.words)}"
        if self.killed_s is not None:
            text += f", killed after {self.killed_s - self.at_s:.1f} s"
        return text


def commands(weather):
    """One to three rounds of commands; in a round, one operator or two at once.

    A command that is killed is sometimes begun again by the other operator.  Two at once may wish
    two things, or to replace one member by two others.
    """
    dice, crew, found = weather.dice, weather.crew, []

    def later(since_s, most_s):
        return round(min(since_s + weather.uniform(0, most_s), weather.length_s), 3)

    def add(at_s, operator, words, killed_s=None):
        found.append(Command(weather.next_command + len(found), at_s, operator, words, killed_s))

    at_s = weather.uniform(0, 0.4 * weather.length_s)
    for _ in range(dice.randint(1, 3)):
        first, second = dice.sample(OPERATORS, 2)
        words = crew.draw(dice)
        killed_s = later(at_s, CHANGE_S) if dice.random() < 0.5 else None
        add(at_s, first, words, killed_s)
        crew.take(words)
        if dice.random() < 0.5:
            near_s = later(at_s, 0.3)
            rivals = [name for name in crew.spares if name not in words]
            other = crew.draw(dice, words)
            if words[0] == "replace" and rivals and dice.random() < 0.3:
                add(near_s, second, ("replace", words[1], rivals[0]))
            elif other is not None:
                add(near_s, second, other)
                crew.take(other)
        elif killed_s is not None and dice.random() < 0.5:
            add(killed_s, second, words)
        at_s = round(max(at_s, killed_s or 0) + weather.uniform(1, CHANGE_S), 3)
        if at_s >= weather.length_s:
            break
    return found


def cuts(weather, members, first):
    """Half of the time clients are split, and half of the other times an operator is cut off."""
    if weather.dice.random() < 0.5:
        return split(weather, members, first)
    return cut_operator(weather, members) if weather.dice.random() < 0.5 else []


def sides(dice, members, words):
    """Two sets of masters that share none: a bare majority of the old list, and one of the new."""
    leavers, joiners = pairs_of(words)
    stay = [name for name in members if name not in leavers]
    new_len = len(members) - len(leavers) + len(joiners)
    dice.shuffle(stay)
    old_side = leavers + stay[:len(members) // 2 + 1 - len(leavers)]
    new_side = joiners + stay[-(new_len // 2 + 1 - len(joiners)):]
    return old_side, new_side


def split(weather, members, first):
    """While the set changes, half of the clients see one side, and the others the other side."""
    begin = round(max(0, first.at_s - weather.uniform(0.3, 1.5)), 3)
    end = round(min(weather.length_s, first.at_s + weather.uniform(2, 2 * CHANGE_S)), 3)
    if not weather.reshape(begin, end):
        return []
    clients = weather.some(weather.clients, len(weather.clients), len(weather.clients))
    masters = sorted({*members, *first.words[1:]})
    half, pairs = len(clients) // 2, []
    for some, seen in zip((clients[:half], clients[half:]), sides(weather.dice, members, first.words)):
        pairs += both_ways(some, [name for name in masters if name not in seen])
    return dropped(weather, begin, end, pairs)


def both_ways(some, others):
    return [pair for one in some for other in others for pair in ((one, other), (other, one))]


def dropped(weather, begin, end, pairs):
    return [(begin, "drop", (weather.next_id, pairs)), (end, "drop", (weather.next_id, []))]


def cut_operator(weather, masters):
    """An operator is cut from some masters for a part of the storm."""
    begin, end = weather.part()
    operator = weather.dice.choice(OPERATORS)
    return dropped(weather, begin, end,
                   both_ways([operator], weather.some(masters, 1, len(masters))))


def mend(weather):
    """The last step.  Some spares lose their data, as new hosts have none."""
    forgetting = [name for name in weather.crew.spares if weather.dice.random() < 0.5]
    return [(round(weather.length_s + MEND_AFTER_S, 3), "mend",
             (tuple(weather.crew.members), tuple(forgetting)))]


def touched(found):
    """The masters that join or leave by these commands."""
    names = {name for command in found for part in pairs_of(command.words) for name in part}
    return sorted(names)


def add(weather, kind, found, about, steps):
    weather.next_command += len(found)
    weather.add_steps(kind, touched(found), [], about, steps)


def members(weather):
    """Operators change the set, in any way: once in a storm.

    The worst cut for a change leaves a majority of each list on a side of its own.  Under the first
    command half of the clients see one side, and half the other; see split()."""
    if not weather.claim(["the set"], 1, 1, 0, weather.length_s):
        return
    before = list(weather.crew.members)
    found = commands(weather)
    steps = [step for command in found for step in command.steps()]
    steps += cuts(weather, before, found[0]) + mend(weather)
    add(weather, "members", found, "; ".join(command.about() for command in found), steps)


def slowed(weather):
    """Masters without other faults answer operators a little later, so that there is time to stop
    these."""
    masters = weather.claim(weather.masters, 1, len(weather.masters), 0, weather.length_s)
    masters += [spare for spare in weather.crew.spares if spare not in weather.masters]
    if not masters:
        return []
    return [(0, "slow", (weather.next_id, both_ways(OPERATORS, masters), HALT_DELAY_MS)),
            (weather.length_s, "slow", (weather.next_id, [], 0))]


def halt(weather):
    """One operator after another, which is stopped for a moment behind each step, and one of them
    may be killed there: once in a storm."""
    if not weather.claim(["the set"], 1, 1, 0, weather.length_s):
        return
    crew, found, at_s = weather.crew, [], 0
    slows = slowed(weather)
    while at_s < weather.length_s:
        words = crew.draw(weather.dice)
        killed_s = round(at_s + weather.uniform(0, CHANGE_S), 3)
        is_killed = killed_s < weather.length_s and weather.dice.random() < 0.3
        found.append(Command(weather.next_command + len(found), at_s, weather.dice.choice(OPERATORS),
                             words, killed_s if is_killed else None, halts=True))
        crew.take(words)
        at_s = round(at_s + CHANGE_S, 3)
    steps = slows + [step for command in found for step in command.steps()] + mend(weather)
    add(weather, "halt-operator", found, "stopped behind each step: " +
        "; ".join(command.about() for command in found), steps)


def move(weather):
    """All members are replaced, one after another: once in a storm."""
    if not weather.claim(["the set"], 1, 1, 0, weather.length_s):
        return
    crew, found, steps = weather.crew, [], []
    for member, spare in zip(list(crew.members), list(crew.spares)):
        words = ("replace", member, spare)
        found.append(Command(weather.next_command + len(found), 0, OPERATORS[0], words))
        steps += found[-1].steps() + [(0, "conclude", (found[-1].number,))]
        crew.take(words)
    steps += mend(weather)
    about = f"{len(found)} masters replaced one after another"
    add(weather, "move", found, about, steps)
