"""Rules of the scripts for readers."""

from case import FLAG, LOCK, LONG_MS, LONGER_MS, NO_RIGHT, OTHERS, OURS, SCALE_MS, Case

SHORT_MS = 100000


class AcquireShared(Case):
    def acquire(self, ttl_ms=LONG_MS, client=None):
        return self.run_script("acquire_shared", LOCK, OURS, ttl_ms, client=client)

    def test_the_first_reader(self):
        self.assertEqual(self.acquire(), "OK")
        self.assertEqual(self.score(LOCK, OURS), LONG_MS)
        self.assert_lasts(LOCK, LONG_MS)

    def test_the_key_ends_with_the_last_reader(self):
        self.readers(a=LONG_MS)
        self.assertEqual(self.acquire(SHORT_MS), "OK")
        self.assert_lasts(LOCK, LONG_MS)
        self.assert_reader(OURS, SHORT_MS)
        self.assertEqual(self.acquire(LONGER_MS), "OK")
        self.assert_lasts(LOCK, LONGER_MS)
        self.assert_reader(OURS, LONGER_MS)
        self.assert_reader("a", LONG_MS)

    def test_a_token_that_is_given_again_is_not_shortened(self):
        self.readers(**{OURS: LONGER_MS, "a": LONG_MS})
        self.assertEqual(self.acquire(), "OK")
        self.assertEqual(self.score(LOCK, OURS), SCALE_MS + LONGER_MS)
        self.assert_reader("a", LONG_MS)

    def test_a_clock_that_goes_back(self):
        self.acquire()
        self.redis.ask("PEXPIRE", LOCK, LONGER_MS)
        self.assertEqual(self.run_script("acquire_shared", LOCK, "a", SHORT_MS), "OK")
        self.assert_reader("a", SHORT_MS)
        self.assertLess(self.score(LOCK, "a"), 0)

    def test_a_writer_is_left_alone(self):
        self.lock(token=OTHERS)
        self.assertIsNone(self.acquire())
        self.assertEqual(self.get(LOCK), OTHERS)

    def test_a_set_without_an_end_is_left_alone(self):
        self.redis.ask("ZADD", LOCK, 1, "a")
        self.assertIsNone(self.acquire())
        self.assertEqual(self.redis.ask("ZCARD", LOCK), 1)

    def test_held_off_by_a_writer_that_waits(self):
        self.readers(a=LONG_MS)
        self.flag(self.now_ms() + LONG_MS)
        self.assertIsNone(self.acquire())
        self.assertIsNone(self.score(LOCK, OURS))

    def test_held_off_before_the_writer_comes(self):
        self.flag(self.now_ms() + LONG_MS)
        self.assertIsNone(self.acquire())
        self.assertFalse(self.exists(LOCK))

    def test_held_off_no_more(self):
        self.flag(self.now_ms())
        self.assertEqual(self.acquire(), "OK")

    def test_a_flag_that_holds_nobody_off(self):
        self.flag()
        self.assertEqual(self.acquire(), "OK")

    def test_no_right_to_the_flag(self):
        self.flag(self.now_ms() + LONG_MS)
        few = self.client_with("resetkeys", "~" + LOCK)
        self.assertEqual(self.acquire(client=few), "OK")
        self.lock(token=OTHERS)
        self.assertIsNone(self.acquire(client=few))

    def test_readers_that_are_over_are_deleted(self):
        self.readers(over=-1, lasts=LONG_MS)
        self.assertEqual(self.acquire(), "OK")
        self.assertEqual(self.redis.ask("ZRANGE", LOCK, 0, -1), ["lasts", OURS])

    def test_no_key_without_an_end_is_left(self):
        few = self.client_with("-pexpire")
        self.refuse(NO_RIGHT, "acquire_shared", LOCK, OURS, LONG_MS, client=few)
        self.assertFalse(self.exists(LOCK))

    def test_a_full_memory(self):
        self.fill_memory()
        self.refuse("OOM", "acquire_shared", LOCK, OURS, LONG_MS)
        self.assertFalse(self.exists(LOCK))


class ExtendShared(Case):
    def extend(self, ttl_ms=LONGER_MS):
        return self.run_script("extend_shared", LOCK, OURS, ttl_ms)

    def test_no_reader(self):
        self.assertEqual(self.extend(), 0)
        self.readers(a=LONG_MS)
        self.assertEqual(self.extend(), 0)
        self.assertIsNone(self.score(LOCK, OURS))

    def test_a_reader_that_is_over(self):
        self.readers(**{OURS: -1, "a": LONG_MS})
        self.assertEqual(self.extend(), 0)
        self.assertEqual(self.score(LOCK, OURS), SCALE_MS - 1)

    def test_a_set_without_an_end(self):
        self.redis.ask("ZADD", LOCK, LONG_MS, OURS)
        self.assertEqual(self.extend(), 0)
        self.assertEqual(self.redis.ask("PTTL", LOCK), -1)

    def test_it_lasts_longer(self):
        self.readers(**{OURS: LONG_MS, "a": SHORT_MS})
        self.assertEqual(self.extend(), 1)
        self.assert_lasts(LOCK, LONGER_MS)
        self.assert_reader(OURS, LONGER_MS)
        self.assert_reader("a", SHORT_MS)

    def test_it_is_never_shortened(self):
        self.readers(**{OURS: LONG_MS})
        self.assertEqual(self.extend(SHORT_MS), 1)
        self.assertEqual(self.score(LOCK, OURS), SCALE_MS + LONG_MS)
        self.assert_lasts(LOCK, LONG_MS)

    def test_the_key_ends_with_the_last_reader(self):
        self.readers(**{OURS: SHORT_MS, "a": LONGER_MS})
        self.assertEqual(self.extend(LONG_MS), 1)
        self.assert_lasts(LOCK, LONGER_MS)
        self.assert_reader(OURS, LONG_MS)

    def test_a_full_memory(self):
        self.readers(**{OURS: LONG_MS, "a": LONGER_MS})
        self.fill_memory()
        self.assertEqual(self.extend(LONGER_MS - SHORT_MS), 1)
        self.assert_reader(OURS, LONGER_MS - SHORT_MS)
        self.assertEqual(self.extend(2 * LONGER_MS), 1)
        self.assert_lasts(LOCK, 2 * LONGER_MS)


class ReleaseShared(Case):
    def release(self, client=None):
        return self.run_script("release_shared", LOCK, OURS, client=client)

    def test_no_reader(self):
        listener = self.listen()
        self.readers(a=LONG_MS)
        self.flag()
        self.assertEqual(self.release(), 0)
        self.assertEqual(self.heard(listener), [])
        self.assertTrue(self.exists(LOCK))

    def test_a_reader_that_is_over(self):
        self.readers(**{OURS: -1, "a": LONG_MS})
        self.assertEqual(self.release(), 0)
        self.assert_lasts(LOCK, LONG_MS)

    def test_a_set_without_an_end(self):
        self.redis.ask("ZADD", LOCK, 1, "a", 2, OURS)
        self.assertEqual(self.release(), 0)
        self.assertEqual(self.redis.ask("PTTL", LOCK), -1)

    def test_the_others_stay(self):
        listener = self.listen()
        self.readers(**{OURS: LONGER_MS, "a": LONG_MS, "over": -1})
        self.flag()
        self.assertEqual(self.release(), 1)
        self.assertEqual(self.redis.ask("ZRANGE", LOCK, 0, -1), ["over", "a"])
        self.assertEqual(self.score(LOCK, "a"), SCALE_MS + LONG_MS)
        self.assert_lasts(LOCK, LONG_MS)
        self.assertTrue(self.exists(FLAG))
        self.assertEqual(self.heard(listener), [])

    def test_longer_ones_stay(self):
        self.readers(**{OURS: SHORT_MS, "a": LONG_MS, "b": LONG_MS, "c": LONGER_MS})
        self.assertEqual(self.release(), 1)
        self.assertIsNone(self.score(LOCK, OURS))
        self.assertEqual(self.score(LOCK, "c"), SCALE_MS + LONGER_MS)
        self.assert_lasts(LOCK, LONGER_MS)

    def test_one_that_ends_at_the_same_time_stays(self):
        for other in "a", "z":
            self.readers(**{OURS: LONG_MS, other: LONG_MS})
            self.assertEqual(self.release(), 1)
            self.assertIsNone(self.score(LOCK, OURS))
            self.assertIsNotNone(self.score(LOCK, other))
            self.assert_lasts(LOCK, LONG_MS)
            self.redis.ask("DEL", LOCK)

    def test_the_last_one_without_a_flag(self):
        listener = self.listen()
        self.readers(**{OURS: LONG_MS, "over": -1})
        self.assertEqual(self.release(), 1)
        self.assertFalse(self.exists(LOCK))
        self.readers(**{OURS: LONG_MS})
        self.assertEqual(self.release(), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertEqual(self.heard(listener), [])

    def test_the_last_one_with_a_flag(self):
        listener = self.listen()
        for over in {}, {"over": -1}:
            self.readers(**{OURS: LONG_MS}, **over)
            self.flag()
            self.assertEqual(self.release(), 1)
            self.assertFalse(self.exists(FLAG))
            self.assertFalse(self.exists(LOCK))
            self.assertEqual(self.heard(listener), ["free 1"])

    def test_the_last_one_while_readers_are_held_off(self):
        listener = self.listen()
        off = str(self.now_ms() + LONG_MS)
        for over in {}, {"over": -1}:
            self.readers(**{OURS: LONG_MS}, **over)
            self.flag(off)
            self.assertEqual(self.release(), 1)
            self.assertFalse(self.exists(LOCK))
            self.assertEqual(self.get(FLAG), off)
            self.assertEqual(self.heard(listener), ["free 1"])

    def test_no_right_to_the_flag(self):
        few = self.client_with("resetkeys", "~" + LOCK)
        listener = self.listen()
        self.flag()
        self.readers(**{OURS: SHORT_MS, "a": LONG_MS})
        self.assertEqual(self.release(few), 1)
        self.assert_lasts(LOCK, LONG_MS)
        self.redis.ask("DEL", LOCK)
        self.readers(**{OURS: LONG_MS})
        self.assertEqual(self.release(few), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertEqual(self.heard(listener), [])


class WaitShared(Case):
    """The script wait where readers ask or hold the lock."""

    def wait(self, off_ms="", word="held", client=None):
        return self.run_script("wait", [LOCK, FLAG], LONG_MS, off_ms, word, client=client)

    def test_a_reader_finds_no_key(self):
        self.assertEqual(self.wait(), -2)
        self.flag()
        self.assertEqual(self.wait(), -2)

    def test_a_reader_finds_readers(self):
        listener = self.listen()
        self.readers(a=LONG_MS)
        self.assertEqual(self.wait(), -2)
        self.assertFalse(self.exists(FLAG))
        self.assertEqual(self.heard(listener), [])

    def test_a_reader_is_held_off(self):
        self.flag(self.now_ms() + SHORT_MS)
        self.assert_about(self.wait(), SHORT_MS)
        self.readers(a=LONG_MS)
        self.assert_about(self.wait(), SHORT_MS)

    def test_a_reader_finds_a_writer(self):
        listener = self.listen()
        self.lock()
        self.assert_about(self.wait(), LONG_MS)
        self.assertEqual(self.get(FLAG), "1")
        self.assert_left(self.heard(listener)[0], "held", LONG_MS)

    def test_no_right_to_read_the_flag(self):
        self.flag(self.now_ms() + LONG_MS)
        few = self.client_with("-get")
        self.assertEqual(self.wait(client=few), -2)
        self.readers(a=LONG_MS)
        self.assert_about(self.wait(SHORT_MS, client=few), LONG_MS)

    def test_a_writer_holds_readers_off(self):
        listener = self.listen()
        self.readers(a=LONG_MS)
        self.assert_about(self.wait(SHORT_MS), LONG_MS)
        self.assert_about(int(self.get(FLAG)) - self.now_ms(), SHORT_MS)
        self.assert_left(self.heard(listener)[0], "held", LONG_MS)

    def test_a_later_instant_replaces_an_earlier_one(self):
        self.readers(a=LONG_MS)
        self.flag()
        self.wait(SHORT_MS)
        self.assert_about(int(self.get(FLAG)) - self.now_ms(), SHORT_MS)
        self.wait(LONG_MS)
        later = self.get(FLAG)
        self.assert_about(int(later) - self.now_ms(), LONG_MS)
        self.wait(SHORT_MS)
        self.assertEqual(self.get(FLAG), later)

    def test_a_holder_that_comes_too_late(self):
        listener = self.listen()
        self.readers(a=LONG_MS)
        self.assert_about(self.wait(SHORT_MS, "taken"), LONG_MS)
        self.assertFalse(self.exists(FLAG))
        self.assertEqual(self.heard(listener), [])
