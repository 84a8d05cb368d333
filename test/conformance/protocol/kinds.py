"""The kinds of locks: what is sent for each.  Sections 5 and 10 to 12, and 14, of docs/protocol.md."""

import secrets
from collections import Counter

import scripts


def fnv1a(name):
    number = 2166136261
    for byte in name.encode():
        number = (number ^ byte) * 16777619 % 2 ** 32
    return (number ^ number >> 16) & 0xffff


def run(script, keys, *arguments):
    return ["EVAL", script, len(keys), *keys, *arguments]


class Plain:
    """One name."""
    keeps_after_no = False
    off_ms = 1701

    def __init__(self, name):
        self.name = self.key = name

    def token(self):
        return secrets.token_hex(20)

    def acquire(self, token, ttl):
        return ["SET", self.key, token, "NX", "PX", ttl]

    def extend(self, token, ttl):
        return run(scripts.EXTEND, [self.key], token, ttl)

    def release(self, token):
        return run(scripts.RELEASE, [self.key], token)

    def count(self):
        return ["HINCRBY", "redlock:master", fnv1a(self.key), 1]

    def raise_to(self, token, number, master):
        return run(scripts.RAISE_ONE, [self.key, "redlock:master"], token, number, fnv1a(self.key), master.state)

    def channel(self):
        return "redlock:wait:" + self.name

    def wait(self, word):
        return run(scripts.WAIT, [self.key, self.channel()], 60000, self.off_ms, word)

    def learn(self, rnd):
        """What a lost round says of the next one; True: that one need not wait."""
        return False


class Shared(Plain):
    """A reader."""
    off_ms = ""

    def acquire(self, token, ttl):
        return run(scripts.ACQUIRE_SHARED, [self.key], token, ttl)

    def extend(self, token, ttl):
        return run(scripts.EXTEND_SHARED, [self.key], token, ttl)

    def release(self, token):
        return run(scripts.RELEASE_SHARED, [self.key], token)


class Many(Plain):
    """Several names; waits for the one that was reported last."""
    keeps_after_no = True

    def __init__(self, names):
        super().__init__(names[0])
        self.names = names

    def acquire(self, token, ttl):
        return run(scripts.ACQUIRE_MANY, self.names, token, ttl)

    def extend(self, token, ttl):
        return run(scripts.EXTEND_MANY, self.names, token, ttl)

    def release(self, token):
        return run(scripts.RELEASE_MANY, self.names, token)

    def count(self):
        return run(scripts.COUNT_MANY, ["redlock:master"], *map(fnv1a, self.names))

    def raise_to(self, token, number, master):
        return run(scripts.RAISE_MANY, [*self.names, "redlock:master"], token, number, master.state,
                   *map(fnv1a, self.names))


class Permit(Plain):
    """One of `count` slots."""

    def __init__(self, name, count):
        super().__init__(name)
        self.slots = count
        self.choose(secrets.randbelow(count))

    def choose(self, slot):
        self.slot, self.key = slot, f"redlock:permit:{self.name}:{slot}"

    def token(self):
        return f"{self.slot:02x}" + secrets.token_hex(19)

    def acquire(self, token, ttl):
        return run(scripts.ACQUIRE_PERMIT, [self.key], token, ttl, self.slot, self.slots)

    def release(self, token):
        return run(scripts.RELEASE_PERMIT, [f"redlock:permit:{self.name}:{int(token[:2], 16)}"], token)

    def channel(self):
        return "redlock:wait:redlock:permit:" + self.name

    def wait(self, word):
        return run(scripts.WAIT_PERMIT, ["redlock:permit:" + self.name, self.channel()], 60000, self.slots, word)

    def learn(self, rnd):
        free = Counter(value - 1 for value in rnd.values.values() if value > 0)
        if free:
            self.choose(free.most_common(1)[0][0])
        return bool(free)
