"""Rules of the script that revokes a lock, and what the others make of a lock that was revoked."""

from case import LOCK, LONG_MS, LONGER_MS, MARKER, NO_RIGHT, OTHERS, OURS, POOL, Case

EPOCH = "e" * 16
STATE = EPOCH + ".1"
STEP = 16384
FLOOR = 1750000000123456
COUNTER = 4711
TEXT = "revoked by me: it hangs"
OTHER = "jobs/8"


class Revoked(Case):
    def setUp(self):
        super().setUp()
        self.redis.ask("HSET", MARKER, "epoch", STATE, "floor", FLOOR, "high", FLOOR + STEP)

    def revoke(self, token=OURS, state=STATE, text=TEXT, key=LOCK, client=None):
        keys = [key, MARKER] if state != "" else [key]
        said = self.run_script("revoke", keys, token, state, COUNTER, text, client=client)
        return said if said is None or text == "" else said.split(" ")

    def read(self, state="?"):
        return self.revoke(token="", state=state, text="").split(" ", 3)

    def count(self):
        return self.redis.ask("HGET", MARKER, COUNTER)

    # ---- The key ----

    def test_the_text_replaces_the_token_and_the_end_stays(self):
        self.lock()
        said, left_ms, _ = self.revoke()
        self.assertEqual(said, "revoked")
        self.assert_about(int(left_ms), LONG_MS)
        self.assertEqual(self.get(LOCK), TEXT)
        self.assert_lasts(LOCK, LONG_MS)

    def test_another_holder_stays(self):
        self.lock(token=OTHERS)
        self.assertEqual(self.revoke()[0], "gone")
        self.assertEqual(self.get(LOCK), OTHERS)
        self.assertEqual(self.revoke(token="")[0], "gone")
        self.assertEqual(self.get(LOCK), OTHERS)

    def test_no_key_is_made(self):
        self.assertEqual(self.revoke(), ["gone", "-2", "0"])
        self.assertFalse(self.exists(LOCK))
        self.assertIsNone(self.count())

    def test_a_key_without_an_end_stays(self):
        self.redis.ask("SET", LOCK, OURS)
        self.assertEqual(self.revoke()[:2], ["gone", "-1"])
        self.assertEqual(self.get(LOCK), OURS)

    def test_readers(self):
        self.readers(a=LONG_MS, b=LONGER_MS)
        self.assertEqual(self.revoke()[0], "gone")
        self.assertEqual(self.revoke(token="")[0], "revoked")
        self.assertEqual(self.get(LOCK), TEXT)
        self.assert_lasts(LOCK, LONGER_MS)

    def test_another_type_stays(self):
        self.redis.ask("RPUSH", LOCK, OURS)
        self.redis.ask("PEXPIRE", LOCK, LONG_MS)
        self.assertEqual(self.revoke()[0], "gone")
        self.assertEqual(self.revoke(token="")[0], "gone")
        self.assertTrue(self.exists(LOCK))

    # ---- The marker ----

    def test_the_counter_goes_beyond_the_mark(self):
        """The text may come between SET and HINCRBY.  No client uses a number above the mark."""
        for counted, mark, reached, next_mark in (0, 1, 1, 2), (5, 1, 1, 2), (STEP, 3, 3, 4), (4 * STEP + 9, 4, 4, 5):
            self.redis.ask("HSET", MARKER, COUNTER, counted, "high", FLOOR + mark * STEP)
            self.lock()
            number = int(self.revoke()[2])
            self.assertEqual(number, FLOOR + max(reached * STEP, counted) + 1)
            self.assertEqual(self.count(), str(number - FLOOR))
            self.assertEqual(self.redis.ask("HGET", MARKER, "high"), str(FLOOR + next_mark * STEP))
            self.assertEqual(self.redis.ask("HINCRBY", MARKER, COUNTER, 1), number - FLOOR + 1)
            self.redis.ask("DEL", LOCK)

    def test_the_operator_counts_on_with_the_text(self):
        self.lock()
        number = int(self.revoke()[2])
        arguments = [LOCK, MARKER], TEXT, number + 7, COUNTER, STATE
        self.assertEqual(self.run_script("raise", *arguments), number + 7)
        self.redis.ask("DEL", LOCK)
        self.assertEqual(self.run_script("raise", *arguments), 0)

    def test_another_epoch(self):
        self.lock()
        for state in EPOCH, EPOCH + ".2", f"{STATE}.{FLOOR}":
            self.assertIsNone(self.revoke(state=state))
        self.redis.ask("DEL", MARKER)
        self.assertIsNone(self.revoke())
        self.assertEqual(self.get(LOCK), OURS)

    def test_without_the_guard(self):
        self.lock()
        few = self.client_with("resetkeys", "~" + LOCK)
        self.assertEqual(self.revoke(state="", client=few)[::2], ["revoked", "0"])
        self.assertEqual(self.get(LOCK), TEXT)
        self.assertIsNone(self.count())

    def test_without_the_right_to_the_marker(self):
        self.lock()
        few = self.client_with("resetkeys", "~" + LOCK)
        self.refuse(NO_RIGHT, "revoke", [LOCK, MARKER], OURS, STATE, COUNTER, TEXT, client=few)
        self.assertEqual(self.get(LOCK), OURS)

    def test_days_ahead_of_the_clock(self):
        self.lock()
        ahead = self.now_ms() * 2000
        self.redis.ask("HSET", MARKER, "floor", ahead, "high", ahead)
        self.assertEqual(self.revoke()[::2], ["revoked", "0"])
        self.assertEqual(self.get(LOCK), TEXT)
        self.assertIsNone(self.count())

    # ---- Reading ----

    def test_reading(self):
        self.assertEqual(self.read(), [STATE, "-2", "none", ""])
        self.lock(token="a b")
        state, left_ms, kind, value = self.read()
        self.assertEqual((state, kind, value), (STATE, "string", "a b"))
        self.assert_about(int(left_ms), LONG_MS)
        self.assertEqual(self.get(LOCK), "a b")

    def test_reading_readers_and_long_texts(self):
        self.readers(a=LONG_MS)
        self.assertEqual(self.read()[2:], ["zset", ""])
        self.lock(token="x" * 1000)
        self.assertEqual(self.read()[2:], ["string", "x" * 129])

    def test_reading_without_a_marker(self):
        self.lock()
        self.assertEqual(self.read(state="")[0], "-")
        self.redis.ask("DEL", MARKER)
        self.assertEqual(self.read()[0], "-")

    # ---- Other scripts ----

    def test_the_holder_is_told(self):
        self.lock(token=TEXT)
        self.assertEqual(self.run_script("extend", LOCK, OURS, LONGER_MS), TEXT)
        self.assertEqual(self.run_script("extend_many", [OTHER, LOCK], OURS, LONGER_MS), 0)
        self.lock(key=OTHER)
        self.assertEqual(self.run_script("extend_many", [OTHER, LOCK], OURS, LONGER_MS), TEXT)
        self.assertEqual(self.run_script("extend_shared", LOCK, OURS, LONGER_MS), TEXT)
        self.assert_lasts(LOCK, LONG_MS)

    def test_the_holder_of_another_text_is_not(self):
        self.lock(token=f"not {TEXT}")
        self.assertEqual(self.run_script("extend", LOCK, OURS, LONGER_MS), 0)
        self.refuse("WRONGTYPE", "extend_shared", LOCK, OURS, LONGER_MS)

    def test_nobody_gets_it_or_frees_it(self):
        self.lock(token=TEXT)
        self.assertEqual(self.run_script("release", LOCK, OURS), 0)
        self.assertEqual(self.run_script("release_many", LOCK, OURS), 0)
        self.assertEqual(self.run_script("release_fair", LOCK, OURS, "me", "pass"), 0)
        self.refuse("WRONGTYPE", "release_shared", LOCK, OURS)
        self.assertIsNone(self.run_script("acquire_shared", LOCK, OTHERS, LONG_MS))
        self.assertEqual(self.run_script("acquire_many", LOCK, OTHERS, LONG_MS), 1)
        self.assertEqual(self.run_script("acquire_fair", LOCK, OTHERS, LONG_MS, "me", 0, LONG_MS),
                         1)
        self.assertEqual(self.run_script("wait", [LOCK, "redlock:wait:" + LOCK], 60000, 0, "held")
                         > 0, True)
        self.assertEqual(self.get(LOCK), TEXT)
        self.assert_lasts(LOCK, LONG_MS)

    def test_nobody_raises_its_counter(self):
        self.lock(token=TEXT)
        self.assertEqual(self.run_script("raise", [LOCK, MARKER], OURS, 0, COUNTER, STATE), 0)

    def test_a_permit(self):
        key = f"{POOL}:1"
        self.lock(key=key)
        self.assertEqual(self.revoke(key=key)[0], "revoked")
        self.assertEqual(self.run_script("extend", key, OURS, LONGER_MS), TEXT)
        self.assertEqual(self.run_script("release_permit", key, OURS), 0)
        self.assertEqual(self.run_script("acquire_permit", key, OTHERS, LONG_MS, 1, 2), 1)
        self.assertEqual(self.run_script("release_permit", key, TEXT), 1)
