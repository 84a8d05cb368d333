"""Rules of the script for the marks of warming masters."""

from case import LONG_MS, NO_RIGHT, Case

MARKS = "redlock:witness"
NAME, NEIGHBOUR = "10.0.0.1:6379", "10.0.0.2:6379"
MARK, OTHER = "0123456789abcdef" + "1" * 40, "0123456789abcdef" + "2" * 40
MONTH_MS = 30 * 86400000
MARKS_MAX = 64


class Witness(Case):
    def ask(self, mode="mark", mark=MARK, client=None, name=NAME):
        return self.run_script("witness", MARKS, name, mark, mode, client=client)

    def made(self, mark=MARK):
        made, marked = self.redis.ask("HGET", MARKS, NAME).split()
        self.assertEqual(marked, mark)
        return int(made)

    def plant(self, age_ms, name=NAME):
        self.redis.ask("HSET", MARKS, name, f"{self.now_ms() - age_ms} {MARK}")

    def test_the_first_mark(self):
        before = self.now_ms()
        self.assertEqual(self.ask(), 0)
        self.assertTrue(before <= self.made() <= self.now_ms() + 1)
        self.assert_lasts(MARKS, MONTH_MS)

    def test_a_mark_is_kept(self):
        self.plant(LONG_MS)
        made = self.made()
        before = self.now_ms()
        age_ms = self.ask()
        self.assertTrue(before - made <= age_ms <= self.now_ms() - made)
        self.assertEqual(self.made(), made)
        self.assertEqual(self.redis.ask("PTTL", MARKS), -1)

    def test_its_time_is_rounded_up_and_its_age_down(self):
        for _ in range(300):
            self.redis.ask("DEL", MARKS)
            seconds, micros = self.redis.ask("TIME")
            self.ask()
            self.assertGreaterEqual(self.made() * 1000, int(seconds) * 1000000 + int(micros))
            self.plant(LONG_MS)
            self.assertLessEqual(self.made() + self.ask(), self.now_ms())

    def test_another_nonce_begins_anew(self):
        for other in OTHER, MARK + "1", MARK[:-1]:
            self.plant(LONG_MS)
            self.assertEqual(self.ask("read", other), -1)
            self.assertEqual(self.ask(mark=other), 0)
            self.assertLess(self.ask(mark=other), LONG_MS)
            self.assertEqual(self.ask("read"), -1)

    def test_each_master_has_its_own(self):
        self.plant(LONG_MS)
        for i in range(MARKS_MAX + 1):
            self.assertEqual(self.ask(mark=f"{i:016x}" + "2" * 40, name=NEIGHBOUR), 0)
        self.assertGreaterEqual(self.ask(), LONG_MS)

    def test_anew(self):
        self.plant(LONG_MS)
        before = self.now_ms()
        self.assertEqual(self.ask("anew"), 0)
        self.assertGreaterEqual(self.made(), before)
        self.assert_lasts(MARKS, MONTH_MS)

    def test_a_mark_in_the_future_is_made_anew(self):
        self.plant(-LONG_MS)
        self.assertEqual(self.ask("read"), -1)
        self.assertEqual(self.ask(), 0)
        self.assertLessEqual(self.made(), self.now_ms() + 1)

    def test_a_mark_lasts_no_longer_than_the_key(self):
        self.plant(MONTH_MS - LONG_MS)
        self.assertGreaterEqual(self.ask(), MONTH_MS - LONG_MS)
        self.plant(MONTH_MS + LONG_MS)
        self.assertEqual(self.ask("read"), -1)
        self.assertEqual(self.ask(), 0)

    def test_reading_writes_nothing(self):
        self.assertEqual(self.ask("read"), -1)
        self.assertFalse(self.exists(MARKS))
        self.plant(LONG_MS)
        self.assertGreaterEqual(self.ask("read"), LONG_MS)
        self.assertEqual(self.redis.ask("PTTL", MARKS), -1)

    def test_many_marks(self):
        for i in range(MARKS_MAX - 1):
            self.plant(LONG_MS, f"master {i}")
        self.assertEqual(self.ask(), 0)
        self.assertEqual(self.ask(mark=OTHER), 0)
        self.assertEqual(self.redis.ask("HLEN", MARKS), MARKS_MAX)
        self.assertGreaterEqual(self.ask(name="master 0"), LONG_MS)
        self.assertEqual(self.ask(name=NEIGHBOUR), 0)
        self.assertEqual(self.redis.ask("HLEN", MARKS), 1)

    def test_what_is_no_number_is_no_mark(self):
        for text in "", "x", "nan", "inf", "-inf", "-1e300", "1e300", "-1", "0", "9" * 400:
            for value in text, f"{text} {MARK}":
                self.redis.ask("HSET", MARKS, NAME, value)
                before = self.now_ms()
                self.assertEqual(self.ask(), 0, value)
                self.assertGreaterEqual(self.made(), before, value)

    def test_refused(self):
        self.fill_memory()
        self.refuse("OOM", "witness", MARKS, NAME, MARK, "mark")
        self.assertEqual(self.ask("read"), -1)

    def test_a_key_of_another_type(self):
        self.redis.ask("SET", MARKS, "x")
        self.refuse("WRONGTYPE", "witness", MARKS, NAME, MARK, "mark")

    def test_rights(self):
        client = self.client_with("resetkeys", "~x")
        self.refuse(NO_RIGHT, "witness", MARKS, NAME, MARK, "mark", client=client)
        few = self.client_with("-@all", "+auth", "+eval", "+time", "+hget", "+hlen", "+hset",
                               "+pexpire", "+del")
        self.assertEqual(self.ask(client=few), 0)

    def test_without_the_right_to_end_the_key(self):
        few = self.client_with("-pexpire")
        self.refuse(NO_RIGHT, "witness", MARKS, NAME, MARK, "mark", client=few)
        self.assertFalse(self.exists(MARKS))
        self.assertEqual(self.ask(name=NEIGHBOUR), 0)
        self.refuse(NO_RIGHT, "witness", MARKS, NAME, MARK, "mark", client=few)
        self.assertEqual(self.redis.ask("HKEYS", MARKS), [NEIGHBOUR])
        self.assert_lasts(MARKS, MONTH_MS)
