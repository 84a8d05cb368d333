"""Rules of the scripts for fair locks."""

from case import FLAG, LOCK, LONG_MS, LONGER_MS, NO_RIGHT, OTHERS, OURS, QUEUE, Case

PATIENCE_MS = 100000
CLIENT = "redlock:client:"
DIGITS = "cafe0123456789abcdef0123"  # Those of a client, at the start of its waiters' names.
QUEUE_MAX = 1024


class Fair(Case):
    def beat(self, waiter, ticket=0, patience_ms=PATIENCE_MS, client=None):
        return self.run_script("acquire_fair", LOCK, OURS, LONG_MS, waiter, ticket, patience_ms,
                               client=client)

    def release(self, waiter="me"):
        return self.run_script("release_fair", LOCK, OURS, waiter, "")

    def queue(self, lives_ms=LONG_MS, **tickets):
        for waiter, ticket in tickets.items():
            self.redis.ask("ZADD", QUEUE, ticket, waiter, -self.now_ms() - lives_ms, "-" + waiter)
        self.redis.ask("PEXPIRE", QUEUE, LONG_MS)

    def hear_next(self, client):
        """Listen on the channel of a client; short names of waiters are those of clients, too."""
        return self.listen(CLIENT + client)

    def heard_next(self, listener, client):
        return self.heard(listener, CLIENT + client)

    def order(self):
        return self.redis.ask("ZRANGE", QUEUE, "(0", "inf", "BYSCORE")


class Join(Fair):
    def test_the_first_is_granted_the_lock(self):
        self.assertEqual(self.beat("a"), "OK")
        self.assertEqual(self.get(LOCK), OURS)
        self.assert_lasts(LOCK, LONG_MS)
        self.assertEqual(self.score(QUEUE, "a"), 1)
        self.assert_about(-self.score(QUEUE, "-a") - self.now_ms(), PATIENCE_MS)
        self.assert_lasts(QUEUE, PATIENCE_MS)

    def test_others_come_behind(self):
        self.lock(token=OTHERS)
        self.assertEqual(self.beat("a"), 1)
        self.assertEqual(self.get(FLAG), "1")
        self.assert_lasts(FLAG, 60000)
        self.assertEqual(self.beat("b"), 2)
        self.assertEqual(self.beat("c"), 3)
        self.assertEqual(self.order(), ["a", "b", "c"])

    def test_without_the_right_to_read_the_queue(self):
        self.refuse(NO_RIGHT, "acquire_fair", LOCK, OURS, LONG_MS, "a", 0, PATIENCE_MS,
                    client=self.client_with("-zrangebyscore"))
        self.assertFalse(self.exists(LOCK))

    def test_behind_the_greatest_number(self):
        self.queue(a=7)
        self.assertEqual(self.beat("b"), 8)

    def test_a_number_is_kept(self):
        self.lock(token=OTHERS)
        self.queue(a=3, b=5)
        self.assertEqual(self.beat("a"), 3)

    def test_a_queue_from_before_the_clock_was_set_back(self):
        hour, minute = 3600000, 60000
        self.lock(token=OTHERS)
        self.queue(lives_ms=hour, a=1, b=2)
        self.redis.ask("ZADD", QUEUE, -self.now_ms() - 30000, "-b")
        self.redis.ask("PEXPIRE", QUEUE, hour)
        self.beat("c", patience_ms=3000)
        self.assert_about(-self.score(QUEUE, "-a") - self.now_ms(), minute)
        self.assert_about(-self.score(QUEUE, "-b") - self.now_ms(), 30000)
        self.assert_about(-self.score(QUEUE, "-c") - self.now_ms(), 3000)
        self.assert_lasts(QUEUE, minute)

    def test_a_patient_waiter_is_no_sign_of_a_clock(self):
        for patience_ms, lives_ms in [(3000, 60000), (PATIENCE_MS, 4 * PATIENCE_MS)]:
            self.redis.ask("DEL", QUEUE)
            self.lock(token=OTHERS)
            self.queue(lives_ms=lives_ms, a=1)
            self.redis.ask("PEXPIRE", QUEUE, lives_ms)
            self.beat("c", patience_ms=patience_ms)
            self.assert_about(-self.score(QUEUE, "-a") - self.now_ms(), lives_ms)
            self.assert_lasts(QUEUE, lives_ms)

    def test_the_second_is_not_granted_a_free_lock(self):
        listener = self.hear_next("a")
        self.queue(a=1)
        self.assertEqual(self.beat("b"), 2)
        self.assertFalse(self.exists(LOCK))
        self.assertEqual(self.heard_next(listener, "a"), [])

    def test_granted_as_number_one_only(self):
        self.queue(a=5)
        self.assertEqual(self.beat("a"), 5)
        self.assertFalse(self.exists(LOCK))

    def test_a_full_queue(self):
        now = self.now_ms()
        entries = [word for i in range(QUEUE_MAX)
                   for word in (i + 1, f"w{i}", -now - LONG_MS, f"-w{i}")]
        self.redis.ask("ZADD", QUEUE, *entries)
        self.assertEqual(self.beat("a"), 0)
        self.assertIsNone(self.score(QUEUE, "a"))
        self.assertEqual(self.beat("w3"), 4)
        self.redis.ask("ZREM", QUEUE, "w0", "-w0")
        self.assertEqual(self.beat("a"), QUEUE_MAX + 1)

    def test_the_queue_lasts_as_long_as_its_waiters(self):
        self.lock(token=OTHERS)
        self.beat("a", patience_ms=LONGER_MS)
        self.assert_lasts(QUEUE, LONGER_MS)
        self.beat("b", patience_ms=PATIENCE_MS)
        self.assert_lasts(QUEUE, LONGER_MS)


class Heartbeat(Fair):
    def test_the_first_is_granted_the_lock(self):
        self.queue(a=3, b=4)
        self.assertEqual(self.beat("b", 4), 4)
        self.assertEqual(self.beat("a", 3), "OK")
        self.assertEqual(self.get(LOCK), OURS)

    def test_it_is_put_where_its_ticket_says(self):
        self.lock(token=OTHERS)
        self.queue(a=3, b=4)
        self.assertEqual(self.beat("a", 9), 9)
        self.assertEqual(self.order(), ["b", "a"])
        self.assertEqual(self.beat("c", 6), 6)
        self.assertEqual(self.order(), ["b", "c", "a"])

    def test_it_counts_as_alive(self):
        self.lock(token=OTHERS)
        self.queue(lives_ms=1000, a=3)
        self.beat("a", 3)
        self.assert_about(-self.score(QUEUE, "-a") - self.now_ms(), PATIENCE_MS)

    def test_the_dead_are_deleted(self):
        self.lock(token=OTHERS)
        self.queue(lives_ms=-1, a=1)
        self.queue(b=2)
        self.assertEqual(self.beat("c"), 3)
        self.assertEqual(self.redis.ask("ZCARD", QUEUE), 4)
        self.assertEqual(self.order(), ["b", "c"])

    def test_after_a_death_the_next_is_announced(self):
        listener = self.hear_next("b")
        self.queue(lives_ms=-1, a=1)
        self.queue(b=2, c=3)
        self.assertEqual(self.beat("c", 3), 3)
        self.assertEqual(self.heard_next(listener, "b"), ["next b"])

    def test_after_a_move_the_next_is_announced(self):
        listener = self.hear_next("b")
        self.queue(a=3, b=4)
        self.assertEqual(self.beat("a", 9), 9)
        self.assertEqual(self.heard_next(listener, "b"), ["next b"])

    def test_nobody_is_announced_while_the_lock_is_held(self):
        listener = self.hear_next("b")
        self.lock(token=OTHERS)
        self.queue(lives_ms=-1, c=1)
        self.queue(a=3, b=4)
        self.assertEqual(self.beat("a", 9), 9)
        self.assertEqual(self.heard_next(listener, "b"), [])

    def test_nobody_is_announced_if_nothing_moves(self):
        listener = self.hear_next("a")
        self.queue(a=3, b=4)
        self.assertEqual(self.beat("b", 4), 4)
        self.assertEqual(self.heard_next(listener, "a"), [])

    def test_readers_are_held_off(self):
        self.readers(a=LONG_MS)
        self.beat("w", 1)
        self.assert_about(int(self.get(FLAG)) - self.now_ms(), PATIENCE_MS // 2)
        self.beat("w", 1, patience_ms=LONGER_MS)
        later = self.get(FLAG)
        self.assert_about(int(later) - self.now_ms(), LONGER_MS // 2)
        self.assert_lasts(FLAG, 60000)
        self.beat("w", 1)
        self.assertEqual(self.get(FLAG), later)

    def test_a_flag_of_others_stays(self):
        self.lock(token=OTHERS)
        self.flag("5")
        self.beat("w", 1)
        self.assertEqual(self.get(FLAG), "5")


    def test_a_dead_waiter_that_stays_is_an_error(self):
        few = self.client_with("-zrem")
        self.queue(b=1)
        self.queue(lives_ms=-1, a=2)
        self.assertEqual(self.beat("c", 3, client=few), 3)
        self.queue(lives_ms=-1, b=1)
        self.refuse(NO_RIGHT, "acquire_fair", LOCK, OURS, LONG_MS, "c", 3, PATIENCE_MS, client=few)
        self.assertEqual(self.beat("c", 3), "OK")

    def test_few_rights_are_enough(self):
        few = self.client_with("resetkeys", "~" + LOCK, "~" + QUEUE, "resetchannels", "-zrem")
        self.queue(a=1, b=2)
        self.assertEqual(self.beat("c", 3, client=few), 3)
        self.lock(token=OTHERS)
        self.assertEqual(self.beat("c", 4, client=few), 4)
        self.redis.ask("DEL", LOCK)
        self.readers(a=LONG_MS)
        self.assertEqual(self.beat("c", 4, client=few), 4)
        self.assertFalse(self.exists(FLAG))


class ReleaseFair(Fair):
    def test_the_next_is_announced(self):
        listener = self.hear_next("a")
        self.lock()
        self.flag()
        self.queue(a=3, b=4)
        self.assertEqual(self.release(), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertTrue(self.exists(FLAG))
        self.assertEqual(self.heard_next(listener, "a"), ["next a"])

    def test_no_other_client_is_told(self):
        listeners = {name: self.hear_next(name) for name in (DIGITS, "b", DIGITS[:-1])}
        all_clients = self.listen()
        self.lock()
        self.queue(**{DIGITS + "a" * 16: 3, "b": 4, DIGITS + "b" * 16: 5})
        self.assertEqual(self.release(), 1)
        heard = [self.heard_next(listener, name) for name, listener in listeners.items()]
        self.assertEqual(heard, [["next " + DIGITS + "a" * 16], [], []])
        self.assertEqual(self.heard(all_clients), [])

    def test_it_is_the_first_itself(self):
        listener = self.hear_next("me")
        self.lock()
        self.flag()
        self.queue(me=3, b=4)
        self.assertEqual(self.release(), 1)
        self.assertTrue(self.exists(FLAG))
        self.assertEqual(self.heard_next(listener, "me"), [])

    def test_waiters_without_a_place(self):
        listener = self.listen()
        self.lock()
        self.flag()
        self.assertEqual(self.release(), 1)
        self.assertFalse(self.exists(FLAG))
        self.assertEqual(self.heard(listener), ["free 1"])

    def test_nobody_waits(self):
        listener = self.listen()
        self.lock()
        self.assertEqual(self.release(), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertEqual(self.heard(listener), [])

    def test_a_key_of_another(self):
        listener = self.hear_next("a")
        self.lock(token=OTHERS)
        self.flag()
        self.queue(a=3)
        self.assertEqual(self.release(), 0)
        self.assertEqual(self.get(LOCK), OTHERS)
        self.assertEqual(self.heard_next(listener, "a"), [])

    def test_no_key(self):
        listener = self.hear_next("a")
        self.queue(a=3)
        self.assertEqual(self.release(), 0)
        self.assertEqual(self.heard_next(listener, "a"), ["next a"])

    def test_the_dead_are_not_announced(self):
        listener = self.hear_next("b")
        self.lock()
        self.queue(lives_ms=-1, a=3)
        self.queue(b=4)
        self.assertEqual(self.release(), 1)
        self.assertEqual(self.order(), ["b"])
        self.assertEqual(self.heard_next(listener, "b"), ["next b"])
