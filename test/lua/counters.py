"""Rules of the scripts that count fencing counters."""

from case import LOCK, MARKER, OTHERS, OURS, Case

EPOCH, RANDOM = "e" * 16, "a" * 16
STATE = EPOCH + ".0"
DAY_MS = 86400000
STEP, AHEAD_US = 16384, 1 << 40
FLOOR = 1750000000123456  # 16 digits, like a real floor: Lua rounds it if it is printed wrongly.
COUNTER, SECOND = 4711, 815
OTHER = "another lock"


class Raise(Case):
    def setUp(self):
        super().setUp()
        self.redis.ask("HSET", MARKER, "epoch", STATE, "floor", FLOOR, "high", FLOOR + STEP)
        self.lock()

    def raise_args(self, number, epoch=STATE):
        return ["raise", [LOCK, MARKER], OURS, number, COUNTER, epoch]

    def count(self, number, epoch=STATE):
        return self.run_script(*self.raise_args(number, epoch))

    def field(self, name):
        return self.redis.ask("HGET", MARKER, name)

    def test_to_a_number(self):
        self.assertEqual(self.count(FLOOR + 5), FLOOR + 5)
        self.assertEqual(self.field(COUNTER), "5")
        self.assertEqual(self.field("high"), str(FLOOR + STEP))

    def test_one_on_from_where_it_is(self):
        self.redis.ask("HSET", MARKER, COUNTER, 8)
        self.assertEqual(self.count(FLOOR + 5), FLOOR + 9)
        self.assertEqual(self.field(COUNTER), "9")

    def test_another_epoch(self):
        for state in RANDOM + ".0", EPOCH, EPOCH + ".1", f"{STATE}.{FLOOR}":
            self.assertEqual(self.count(FLOOR + 5, state), -1)
            self.assertIsNone(self.field(COUNTER))

    def test_the_whole_field_is_compared(self):
        for state in EPOCH + ".12", f"{EPOCH}.12.{FLOOR}":
            self.redis.ask("HSET", MARKER, "epoch", state)
            self.assertGreater(self.count(FLOOR + 5, state), FLOOR)
            self.assertEqual(self.count(FLOOR + 5), -1)

    def test_no_marker(self):
        for field in "epoch", "floor", "high":
            self.setUp()
            self.redis.ask("HDEL", MARKER, field)
            self.assertEqual(self.count(FLOOR + 5), -1, field)
            self.assertIsNone(self.field(COUNTER))

    def test_a_lock_that_is_not_ours(self):
        self.lock(token=OTHERS)
        self.assertEqual(self.count(FLOOR + 5), 0)
        self.redis.ask("DEL", LOCK)
        self.assertEqual(self.count(FLOOR + 5), 0)
        self.assertIsNone(self.field(COUNTER))

    def test_up_to_the_mark(self):
        self.assertEqual(self.count(FLOOR + STEP), FLOOR + STEP)
        self.assertEqual(self.field("high"), str(FLOOR + STEP))

    def test_beyond_the_mark(self):
        self.assertEqual(self.count(FLOOR + STEP + 1), FLOOR + STEP + 1)
        self.assertEqual(self.field("high"), str(FLOOR + 2 * STEP))
        self.assertEqual(self.count(FLOOR + 7 * STEP + 1), FLOOR + 7 * STEP + 1)
        self.assertEqual(self.field("high"), str(FLOOR + 8 * STEP))

    def test_days_ahead_of_the_clock(self):
        ahead = self.now_ms() * 1000 + AHEAD_US
        day_us = DAY_MS * 1000
        self.redis.ask("HSET", MARKER, "floor", ahead, "high", ahead)
        self.refuse("days ahead", *self.raise_args(ahead + day_us))
        self.assertIsNone(self.field(COUNTER))
        self.assertEqual(self.field("high"), str(ahead))
        self.redis.ask("HSET", MARKER, "floor", ahead - day_us, "high", ahead - day_us)
        self.assertEqual(self.count(ahead - day_us + 1), ahead - day_us + 1)

    def test_a_full_memory(self):
        self.fill_memory()
        self.refuse("OOM", *self.raise_args(FLOOR + 5))
        self.refuse("OOM", *self.raise_args(FLOOR + 2 * STEP))
        self.assertIsNone(self.field(COUNTER))

    def test_keys_of_another_type(self):
        self.redis.ask("DEL", LOCK)
        self.redis.ask("RPUSH", LOCK, OURS)
        self.refuse("WRONGTYPE", *self.raise_args(FLOOR + 5))
        self.lock()
        self.refuse("WRONGTYPE", "raise", [LOCK, LOCK], OURS, FLOOR + 5, COUNTER, STATE)

    def test_ahead_but_below_the_mark(self):
        ahead = self.now_ms() * 1000 + AHEAD_US + DAY_MS * 1000
        self.redis.ask("HSET", MARKER, "floor", ahead, "high", ahead + STEP)
        self.assertEqual(self.count(ahead + 5), ahead + 5)


class RaiseMany(Raise):
    """Two names, whose counters are COUNTER and SECOND.  The tests of Raise hold for both."""

    def setUp(self):
        super().setUp()
        self.lock(OTHER)

    def raise_args(self, number, epoch=STATE):
        return ["raise_many", [LOCK, OTHER, MARKER], OURS, number, epoch, COUNTER, SECOND]

    def count(self, number, epoch=STATE):
        got = self.run_script(*self.raise_args(number, epoch))
        self.assertEqual(self.field(SECOND), self.field(COUNTER))
        return got

    def test_one_on_from_the_greatest(self):
        for first, second in (3, 8), (8, 3):
            self.redis.ask("HSET", MARKER, COUNTER, first, SECOND, second)
            self.assertEqual(self.count(FLOOR + 5), FLOOR + 9)
            self.assertEqual(self.field(COUNTER), "9")

    def test_one_on_from_where_it_is(self):
        pass  # As above, for two.

    def test_one_of_the_locks_is_not_ours(self):
        for value in [OTHERS, None]:
            self.redis.ask("DEL", OTHER)
            if value:
                self.lock(OTHER, token=value)
            self.assertEqual(self.count(FLOOR + 5), 0)
            self.assertIsNone(self.field(COUNTER))


class CountMany(Case):
    def count(self, *counters):
        return self.run_script("count_many", [MARKER], *counters)

    def field(self, name):
        return self.redis.ask("HGET", MARKER, name)

    def test_all_to_one_number(self):
        self.redis.ask("HSET", MARKER, COUNTER, 4, SECOND, 9)
        self.assertEqual(self.count(COUNTER, SECOND), 10)
        self.assertEqual([self.field(COUNTER), self.field(SECOND)], ["10", "10"])
        self.assertEqual(self.count(SECOND, 7, COUNTER), 11)
        self.assertEqual([self.field(COUNTER), self.field(7), self.field(SECOND)], ["11"] * 3)

    def test_from_nothing(self):
        self.assertEqual(self.count(COUNTER, COUNTER), 1)
        self.assertEqual(self.field(COUNTER), "1")

    def test_large_numbers(self):
        self.redis.ask("HSET", MARKER, SECOND, 1 << 52)
        self.assertEqual(self.count(COUNTER, SECOND), (1 << 52) + 1)
        self.assertEqual(self.field(COUNTER), str((1 << 52) + 1))

    def test_a_full_memory(self):
        self.redis.ask("HSET", MARKER, COUNTER, 4)
        self.fill_memory()
        self.refuse("OOM", "count_many", [MARKER], COUNTER, SECOND)
        self.assertEqual(self.field(COUNTER), "4")

    def test_no_counters(self):
        self.redis.ask("SET", MARKER, "x")
        self.refuse("WRONGTYPE", "count_many", [MARKER], COUNTER, SECOND)
        self.redis.ask("DEL", MARKER)
        self.redis.ask("HSET", MARKER, COUNTER, "x")
        self.refuse("number", "count_many", [MARKER], COUNTER, SECOND)
        self.assertEqual(self.field(COUNTER), "x")
