"""The commands that each script calls: a count that no noise can change.

A call costs the master about as much as a small command of its own (docs/performance.md), so the
number of calls decides what a kind of lock costs.  A test fails if a script calls more or fewer
commands than its table says.  Each test prints its rows.
"""

import re

from case import FLAG, LOCK, LONG_MS, LONGER_MS, OTHERS, OURS, POOL, Case

FOUR = ["a", "b", "c", "d"]


class Calls(Case):
    def calls(self, name, keys, *args):
        """The script's calls, sorted, as "N: COMMAND, 2 COMMAND, ..."."""
        self.redis.ask("CONFIG", "RESETSTAT")
        self.run_script(name, keys, *args)
        stats = self.redis.ask("INFO", "commandstats")
        found = dict(re.findall(r"cmdstat_(\S+):calls=(\d+)", stats))
        counts = {word.replace("|", " "): int(count) for word, count in sorted(found.items())
                  if word not in ("eval", "config|resetstat")}
        texts = (word if count == 1 else f"{count} {word}" for word, count in counts.items())
        return f"{sum(counts.values())}: {', '.join(texts)}"

    def check(self, what, wanted, name, keys, *args):
        said = self.calls(name, keys, *args)
        print(f"calls: {name}, {what}: {said}", flush=True)
        self.assertEqual(said, wanted, f"{name}, {what}")

    def test_plain(self):
        self.lock()
        self.check("longer", "3: get, pexpire, pttl", "extend", LOCK, OURS, LONGER_MS)
        self.check("no longer", "2: get, pttl", "extend", LOCK, OURS, LONG_MS)
        self.check("another's", "1: get", "extend", LOCK, OTHERS, LONG_MS)
        self.check("another's", "1: get", "release", LOCK, OTHERS)
        self.check("ours", "2: del, get", "release", LOCK, OURS)
        self.lock()
        self.flag()
        self.check("waiters", "4: del, get, publish, pubsub numsub", "release", LOCK, OURS)

    def test_permits(self):
        keys = f"{POOL}:0"
        self.check("free", "1: set", "acquire_permit", keys, OURS, LONG_MS, 0, 4)
        self.check("the next is free", "2: pttl, set", "acquire_permit", keys, OURS, LONG_MS, 0, 4)
        self.check("longer", "3: get, pexpire, pttl", "extend", keys, OURS, LONGER_MS)
        self.check("ours", "2: del, get", "release_permit", keys, OURS)

    def test_fair(self):
        self.check("first", "10: pexpire, pttl, set, time, zadd, zcard, 2 zrangebyscore, "
                   "zrevrange, zscore", "acquire_fair", LOCK, OURS, LONG_MS, "me", 0, LONG_MS)
        self.check("taken", "10: get, pexpire, pttl, 2 set, time, zadd, 2 zrangebyscore, zscore",
                   "acquire_fair", LOCK, OTHERS, LONG_MS, "me", 1, LONGER_MS)
        self.check("its token waits", "12: get, hset, pexpire, 2 pttl, 2 set, time, zadd, "
                   "2 zrangebyscore, zscore", "acquire_fair", LOCK, OTHERS, LONG_MS, "me", 1,
                   LONG_MS, 1)
        self.check("it passes the lock on", "10: get, hdel, 2 hget, publish, set, time, "
                   "2 zrangebyscore, zrem", "release_fair", LOCK, OURS, "you", "pass")
        self.check("a queue", "5: del, get, time, 2 zrangebyscore", "release_fair", LOCK, OTHERS,
                   "me", "")
        self.check("no queue", "9: del, get, hdel, publish, pubsub numsub, time, "
                   "2 zrangebyscore, zrem", "release_fair",
                   LOCK, OTHERS, "me", "pass")

    def test_several(self):
        self.check("free", "5: exists, 4 set", "acquire_many", FOUR, OURS, LONG_MS)
        self.check("the first is taken", "2: exists, pttl", "acquire_many", FOUR, OTHERS, LONG_MS)
        self.check("the last is taken", "5: exists, 4 pttl", "acquire_many", ["e", "f", "g", "d"],
                   OTHERS, LONG_MS)
        self.check("longer", "9: mget, 4 pexpire, 4 pttl", "extend_many", FOUR, OURS, LONGER_MS)
        self.check("no longer", "5: mget, 4 pttl", "extend_many", FOUR, OURS, LONG_MS)
        self.check("another's", "1: mget", "extend_many", FOUR, OTHERS, LONG_MS)
        self.check("another's", "1: mget", "release_many", FOUR, OTHERS)
        self.check("ours", "3: del, exists, mget", "release_many", FOUR, OURS)
        self.run_script("acquire_many", FOUR, OURS, LONG_MS)
        self.flag(key="redlock:wait:b")
        self.check("waiters", "9: 5 del, exists, mget, publish, pubsub numsub", "release_many",
                   FOUR, OURS)

    def test_readers(self):
        self.check("the first", "3: exists, pexpire, zadd", "acquire_shared", LOCK, OURS, LONGER_MS)
        self.check("another, shorter", "6: exists, pttl, type, zadd, zrange, zremrangebyscore",
                   "acquire_shared", LOCK, OTHERS, LONG_MS)
        self.check("another, longer", "7: exists, pexpire, pttl, type, zadd, zrange, "
                   "zremrangebyscore", "acquire_shared", LOCK, "third", 2 * LONGER_MS)
        self.check("longer", "5: pexpire, pttl, zadd, zrange, zscore", "extend_shared", LOCK,
                   OTHERS, LONGER_MS)
        self.check("no longer", "3: pttl, zrange, zscore", "extend_shared", LOCK, OURS, LONG_MS)
        self.check("no reader", "1: zscore", "release_shared", LOCK, "nobody")
        self.check("a longer one stays", "5: exists, pttl, zrange, zrem, zscore", "release_shared",
                   LOCK, OURS)
        self.check("a shorter one stays", "6: exists, pexpire, pttl, zrange, zrem, zscore",
                   "release_shared", LOCK, "third")
        self.check("alone, longer", "4: pexpire, pttl, zadd, zrange", "extend_shared", LOCK, OTHERS,
                   2 * LONGER_MS)
        self.check("the last one", "3: exists, zrem, zscore", "release_shared", LOCK, OTHERS)

    def test_readers_and_a_writer(self):
        self.lock()
        self.check("a writer", "3: exists, pttl, type", "acquire_shared", LOCK, OURS, LONG_MS)
        self.redis.ask("DEL", LOCK)
        self.run_script("acquire_shared", LOCK, OURS, LONG_MS)
        self.flag(self.now_ms() + LONG_MS)
        self.check("held off", "5: exists, get, pttl, time, type", "acquire_shared", LOCK, OTHERS,
                   LONG_MS)
        self.check("the last one, a writer waits", "8: exists, get, pttl, publish, pubsub numsub, "
                   "time, zrem, zscore", "release_shared", LOCK, OURS)
        self.redis.ask("DEL", FLAG)
        self.run_script("acquire_shared", LOCK, OURS, LONG_MS)
        self.flag()
        self.check("the last one, waiters", "8: del, exists, get, pttl, publish, pubsub numsub, "
                   "zrem, zscore", "release_shared", LOCK, OURS)

    def test_waiting(self):
        args = LONG_MS, 1000, "held"
        self.check("no key", "1: pttl", "wait", [LOCK, FLAG], *args)
        self.lock()
        self.check("a new flag", "4: pttl, publish, set, type", "wait", [LOCK, FLAG], *args)
        self.check("a flag", "3: pttl, set, type", "wait", [LOCK, FLAG], *args)
        self.redis.ask("DEL", FLAG)
        self.check("perhaps a crowd", "5: pttl, publish, pubsub numsub, set, type", "wait",
                   [LOCK, FLAG], *args, "35")
