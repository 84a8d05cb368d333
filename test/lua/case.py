"""What the tests of the scripts share: they run a script on a real server, and read the messages
that it publishes."""

import unittest

from server import Client, Refused

MARKER = "redlock:master"
LOCK, FLAG, QUEUE = "jobs/7", "redlock:wait:jobs/7", "redlock:queue:jobs/7"
POOL, POOL_FLAG = "redlock:permit:pool", "redlock:wait:redlock:permit:pool"
OURS, OTHERS = "our token", "the token of another"
LONG_MS, LONGER_MS = 200000, 400000
SCALE_MS = 1000000  # The time on the scale of readers (acquire_shared.lua), where it matters.
SLACK_MS = 60000  # Chosen: longer than a busy machine suspends a test.
NO_RIGHT = "can't run|permissions"  # Errors of an ACL: Redis 7.0, and other versions.


class Case(unittest.TestCase):
    """One test, on an empty server."""

    server = None
    texts = None  # By name.

    def setUp(self):
        self.redis = self.server.client
        self.redis.ask("FLUSHALL")
        self.listeners = []

    def tearDown(self):
        for listener in self.listeners:
            listener.close()

    # ---- Running ----

    def run_script(self, name, keys, *args, client=None):
        keys = [keys] if isinstance(keys, str) else keys
        return (client or self.redis).ask("EVAL", self.texts[name], len(keys), *keys, *args)

    def refuse(self, wanted, name, keys, *args, client=None):
        """The script ends with an error like this (a regular expression)."""
        with self.assertRaises(Refused) as caught:
            self.run_script(name, keys, *args, client=client)
        self.assertRegex(str(caught.exception), wanted)

    def client_with(self, *rules):
        """A client with all rights, changed by these rules (ACL SETUSER)."""
        all_rights = "on", "nopass", "+@all", "~*", "&*"
        self.redis.ask("ACL", "SETUSER", "few", "reset", *all_rights, *rules)
        client = Client(self.server.path)
        self.listeners.append(client)
        client.ask("AUTH", "few", "")
        return client

    def now_ms(self):
        seconds, micros = self.redis.ask("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def fill_memory(self):
        """Fill the memory of the server until the test ends."""
        self.redis.ask("CONFIG", "SET", "maxmemory", 1)
        self.addCleanup(self.redis.ask, "CONFIG", "SET", "maxmemory", 0)

    # ---- Listening ----

    def listen(self, channel=FLAG):
        listener = Client(self.server.path)
        self.listeners.append(listener)
        listener.ask("SUBSCRIBE", channel)
        return listener

    def heard(self, listener, channel=FLAG):
        """All messages that were published until now."""
        self.redis.ask("PUBLISH", channel, "the end")
        messages = []
        while (message := listener.read()[2]) != "the end":
            messages.append(message)
        return messages

    def assert_left(self, message, word, limit_ms):
        """The message is this word, and at most limit_ms, less the slack."""
        said, left_ms = message.split(" ")
        self.assertEqual(said, word)
        self.assert_about(int(left_ms), limit_ms)

    # ---- Keys ----

    def lock(self, key=LOCK, token=OURS, ttl_ms=LONG_MS):
        self.redis.ask("SET", key, token, "PX", ttl_ms)

    def flag(self, value="1", key=FLAG):
        self.redis.ask("SET", key, value, "PX", LONG_MS)

    def readers(self, **ends_ms):
        """Readers with these ends, from now; the key ends with the last.  now is SCALE_MS."""
        for token, end_ms in ends_ms.items():
            self.redis.ask("ZADD", LOCK, SCALE_MS + end_ms, token)
        self.redis.ask("PEXPIRE", LOCK, max(ends_ms.values()))

    def get(self, key):
        return self.redis.ask("GET", key)

    def exists(self, key):
        return self.redis.ask("EXISTS", key) == 1

    def score(self, key, member):
        score = self.redis.ask("ZSCORE", key, member)
        return None if score is None else int(score)

    def assert_about(self, ms, wanted_ms):
        self.assertLessEqual(ms, wanted_ms)
        self.assertGreater(ms, wanted_ms - SLACK_MS)

    def assert_reader(self, token, ms):
        """The reader ends in about this time."""
        last = self.redis.ask("ZRANGE", LOCK, -1, -1)[0]
        left = self.redis.ask("PTTL", LOCK)
        self.assert_about(self.score(LOCK, token) - self.score(LOCK, last) + left, ms)

    def assert_lasts(self, key, ms):
        """The key ends in about this time."""
        self.assert_about(self.redis.ask("PTTL", key), ms)
