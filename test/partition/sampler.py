"""Samples of what the masters store: evidence that no client can give.

A hold is backed by its token on a majority of masters, for as long as it claims to last.  A thread
queries each lock in turn, and records what every master stored: a token, "" for none, or null if
the master did not answer in time; and how long it keeps the token.  It also records readers, each
with its time, and the waiters of fair locks, each with its number.  A sample began at "since" and
ended at "t".
"""

import time

import background
import masters
import resources

EVERY_S = 0.035  # Between two keys; about ten keys are queried in turn.
SETS_EVERY_S = 0.1
MARKER = "redlock:master"
QUEUES_EVERY_S = 0.025  # Short, because fair-order is judged by them, and must miss few waiters.
ANSWER_MAX_S = 0.05
NO_KEY = -2  # PTTL's answer without a key.

# The token of an exclusive holder and its time to live, and each reader with its own.
READERS = """
local k = KEYS[1]
if redis.call('type', k)['ok'] ~= 'zset' then
  return {redis.call('get', k) or '', redis.call('pttl', k), {}}
end
local all = redis.call('zrange', k, 0, -1, 'withscores')
local now = all[#all] - redis.call('pttl', k)
for i = 2, #all, 2 do
  all[i] = string.format('%.0f', all[i] - now)
end
return {'', -2, all}
"""


def pairs(flat):
    """{member: score} of a sorted set; all scores are whole numbers."""
    return {member: int(float(score)) for member, score in zip(flat[::2], flat[1::2])}


class Key:
    """A lock that is one key: a plain lock, or one permit of a semaphore."""

    def __init__(self, lock, key=None):
        self.lock = lock
        self.key = key or lock

    def ask(self, conversation):
        token, left_ms = conversation.ask_all(("GET", self.key), ("PTTL", self.key))
        return token or "", left_ms

    def tell(self, history, since, found):
        tell_keys(history, self.lock, since, found)


def tell_keys(history, lock, since, found):
    history.tell("keys", lock=lock, since=since,
                 tokens={name: answer and answer[0] for name, answer in found.items()},
                 left_ms={name: answer[1] if answer and answer[1] != NO_KEY else None
                          for name, answer in found.items()})


class Shared:
    """A lock that readers hold together, or a writer alone."""

    def __init__(self, lock):
        self.lock = lock

    def ask(self, conversation):
        token, left_ms, readers = conversation.ask("EVAL", READERS, 1, self.lock)
        return token, left_ms, {reader: left for reader, left in pairs(readers).items() if left > 0}

    def tell(self, history, since, found):
        tell_keys(history, self.lock, since, found)
        history.tell("readers", lock=self.lock, since=since,
                     left_ms={name: answer and answer[2] for name, answer in found.items()})


class Queue:
    """The waiters of a fair lock: their numbers, and how long they count as alive."""

    def __init__(self, lock):
        self.lock = lock

    def ask(self, conversation):
        flat, (seconds, micros) = conversation.ask_all(
            ("ZRANGE", f"redlock:queue:{self.lock}", 0, -1, "WITHSCORES"), ("TIME",))
        now_ms, scores = int(seconds) * 1000 + int(micros) // 1000, pairs(flat)
        return {waiter: [number, -scores[f"-{waiter}"] - now_ms]
                for waiter, number in scores.items()
                if not waiter.startswith("-") and f"-{waiter}" in scores}

    def tell(self, history, since, found):
        history.tell("queue", lock=self.lock, since=since, places=found)


class Sets:
    """The set that each master stores: its version, and the lists of each version.

    names: the masters by their places."""

    def __init__(self, names):
        self.names = names
        self.lists = {}
        self.stored = {}

    def ask(self, conversation):
        version, config = conversation.ask("HMGET", MARKER, "ver", "config")
        if version and version not in self.lists:
            self.lists[version] = [[self.names[place] for place in part.split()]
                                   for part in config.split(" > ")]
        return int(version or 0)

    def tell(self, history, since, found):
        """Told again only if a master stores another version; one that is silent may store any."""
        known = self.stored | {name: told for name, told in found.items() if told is not None}
        if known != self.stored:
            self.stored = known
            history.tell("set", since=since, stored=known,
                         lists={version: self.lists[version] for version in
                                sorted({str(number) for number in known.values() if number})})


def keys_of(locks):
    """The things to sample, each once."""
    found = {}
    for resource in map(resources.parse, locks):
        for name in resource.names:
            if resource.shared:
                found[name] = Shared(name)
            elif not resource.permits:
                found[name] = Key(name)
            for slot in range(resource.permits):
                unit = f"{name}:{slot + 1}"
                found[unit] = Key(unit, f"redlock:permit:{name}:{slot}")
    return list(found.values())


def queues_of(locks):
    return [Queue(resource.names[0]) for resource in map(resources.parse, locks) if resource.fair]


class Sampler(background.Background):
    """A context: samples are taken within it, or it ends with an error."""

    def __init__(self, all_masters, things, history, every_s=EVERY_S):
        super().__init__()
        self.masters = all_masters
        self.things = things
        self.history = history
        self.every_s = every_s
        self.conversations = {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        self.stop()
        if kind is None:
            self.check()

    def work(self):
        while not self.over.wait(0 if self.things else self.every_s):
            for thing in self.things:
                if self.over.wait(self.every_s):
                    return
                self.sample(thing)

    def sample(self, thing):
        since = time.monotonic_ns()
        found = {master.name: self.look(master, thing) for master in self.masters}
        thing.tell(self.history, since, found)

    def look(self, master, thing):
        """None if the master does not answer in time.

        Then the next query makes a new connection, because the answer may still come on this one.
        """
        try:
            if master.name not in self.conversations:
                self.conversations[master.name] = master.conversation(ANSWER_MAX_S)
            return thing.ask(self.conversations[master.name])
        except (OSError, masters.MasterError):
            self.forget(master)
            return None

    def forget(self, master):
        conversation = self.conversations.pop(master.name, None)
        if conversation is not None:
            conversation.close()
