"""Rules of the scripts that pass a fair lock on to the next waiter."""

from case import LOCK, LONG_MS, LONGER_MS, MARKER, OTHERS, OURS, QUEUE
from fair import CLIENT, DIGITS, PATIENCE_MS, Fair

TOKENS = "redlock:next:jobs/7"
NEXT = "the next token:host/1 x"
SENT = 1234567890123456789
STATE = "00000000000000ab.3"
REVOKED = "revoked by me: it hangs"


class Handover(Fair):
    def stand(self, waiter, token=NEXT, ticket=3, patience_ms=PATIENCE_MS, ttl_ms=LONG_MS,
              client=None):
        return self.run_script("acquire_fair", LOCK, token, ttl_ms, waiter, ticket, patience_ms,
                               SENT, client=client)

    def release_as(self, how, token=OURS, waiter="me", client=None):
        return self.run_script("release_fair", LOCK, token, waiter, how, client=client)

    def waits(self, waiter):
        return self.redis.ask("HGET", TOKENS, waiter)


class Standing(Handover):
    def test_the_token_waits_with_its_waiter(self):
        self.lock(token=OTHERS)
        self.assertEqual(self.stand("a"), 3)
        self.assertEqual(self.waits("a"), f"{LONG_MS} {SENT} {NEXT}")
        self.assert_lasts(TOKENS, PATIENCE_MS)

    def test_a_token_that_could_not_be_deleted_goes_though_others_wait(self):
        """Heartbeats do not prolong the key, so it ends while waiters are in line."""
        self.lock(token=OTHERS)
        self.stand("a", patience_ms=1000)
        self.assert_lasts(TOKENS, 60000)
        self.stand("b", ticket=4)
        self.stand("b", ticket=4)
        self.assert_lasts(TOKENS, 60000)
        self.redis.ask("DEL", TOKENS)
        self.stand("b", ticket=4)
        self.assert_lasts(TOKENS, PATIENCE_MS)
        self.assertIsNone(self.waits("a"))
        self.assertIsNotNone(self.waits("b"))

    def test_without_a_time_none_waits(self):
        self.lock(token=OTHERS)
        self.beat("a")
        self.assertFalse(self.exists(TOKENS))

    def test_no_right_to_the_tokens(self):
        few = self.client_with("resetkeys", "~" + LOCK, "~" + QUEUE, "resetchannels")
        self.lock(token=OTHERS)
        self.assertEqual(self.stand("a", client=few), 3)
        self.assertFalse(self.exists(TOKENS))

    def test_a_key_that_was_passed_on_is_ours_and_lasts_longer(self):
        self.lock(token=NEXT, ttl_ms=LONG_MS)
        self.assertEqual(self.stand("a", ttl_ms=LONGER_MS), "OK")
        self.assert_lasts(LOCK, LONGER_MS)
        self.assertEqual(self.get(LOCK), NEXT)

    def test_a_key_that_was_passed_on_is_not_shortened(self):
        self.lock(token=NEXT, ttl_ms=LONGER_MS)
        self.assertEqual(self.stand("a"), "OK")
        self.assert_lasts(LOCK, LONGER_MS)

    def test_a_key_that_was_passed_on_and_revoked_is_not_ours(self):
        self.stand("a")
        self.lock(token=REVOKED)
        self.assertEqual(self.stand("a", ttl_ms=LONGER_MS), 3)
        self.assertEqual(self.get(LOCK), REVOKED)
        self.assert_lasts(LOCK, LONG_MS)

    def test_the_tokens_of_the_dead_go(self):
        self.lock(token=OTHERS)
        self.stand("a")
        self.stand("b", ticket=4)
        self.redis.ask("ZADD", QUEUE, -self.now_ms() + 1, "-a")
        self.stand("b", ticket=4)
        self.assertIsNone(self.waits("a"))
        self.assertIsNotNone(self.waits("b"))


class PassOn(Handover):
    def setUp(self):
        super().setUp()
        self.first = DIGITS + "a" * 16
        self.lock()
        self.redis.ask("HSET", MARKER, "epoch", STATE)

    def test_the_first_gets_the_lock(self):
        listener = self.hear_next(DIGITS)
        self.stand(self.first, ttl_ms=LONGER_MS)
        self.stand("b", token=OTHERS, ticket=4)
        self.assertEqual(self.release_as("pass"), 1)
        self.assertEqual(self.get(LOCK), NEXT)
        self.assert_lasts(LOCK, LONGER_MS)
        self.assertEqual(self.heard_next(listener, DIGITS),
                         [f"granted {self.first} {SENT} {STATE} {NEXT}"])

    def test_without_a_marker(self):
        listener = self.hear_next(DIGITS)
        self.redis.ask("DEL", MARKER)
        self.stand(self.first)
        self.release_as("pass")
        self.assertEqual(self.heard_next(listener, DIGITS),
                         [f"granted {self.first} {SENT} - {NEXT}"])

    def test_the_first_has_no_token(self):
        listener = self.hear_next("a")
        self.queue(a=2)
        self.stand("b", ticket=4)
        self.assertEqual(self.release_as("pass"), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertEqual(self.heard_next(listener, "a"), ["next a"])

    def test_the_holder_is_dropped_first(self):
        self.stand("me", token=OTHERS, ticket=1)
        self.stand(self.first)
        self.assertEqual(self.release_as("pass"), 1)
        self.assertEqual(self.get(LOCK), NEXT)
        self.assertEqual(self.order(), [self.first])
        self.assertIsNone(self.waits("me"))

    def test_the_dead_get_nothing(self):
        self.stand(self.first)
        self.redis.ask("ZADD", QUEUE, -self.now_ms() + 1, "-" + self.first)
        self.assertEqual(self.release_as("pass"), 1)
        self.assertFalse(self.exists(LOCK))

    def test_a_key_of_another_is_not_passed_on(self):
        self.lock(token=OTHERS)
        self.stand(self.first)
        self.assertEqual(self.release_as("pass"), 0)
        self.assertEqual(self.get(LOCK), OTHERS)

    def test_a_revoked_lock_is_not_passed_on(self):
        self.stand("me", token=OURS, ticket=1)
        self.stand(self.first)
        self.lock(token=REVOKED)
        self.assertEqual(self.release_as("pass"), 0)
        self.assertEqual(self.get(LOCK), REVOKED)
        self.assertEqual(self.order(), [self.first])

    def test_no_key_is_not_passed_on(self):
        self.stand(self.first)
        self.redis.ask("DEL", LOCK)
        self.assertEqual(self.release_as("pass"), 0)
        self.assertFalse(self.exists(LOCK))

    def test_a_full_memory(self):
        self.stand(self.first)
        self.fill_memory()
        self.assertEqual(self.release_as("pass"), 1)
        self.assertEqual(self.get(LOCK), NEXT)

    def test_no_right_to_set(self):
        self.stand(self.first)
        self.assertEqual(self.release_as("pass", client=self.client_with("-set")), 1)
        self.assertFalse(self.exists(LOCK))

    def test_no_right_to_the_tokens(self):
        self.stand(self.first)
        few = self.client_with("resetkeys", "~" + LOCK)
        self.assertEqual(self.release_as("pass", client=few), 1)
        self.assertFalse(self.exists(LOCK))

    def test_what_is_given_back_is_not_passed_on(self):
        for how in "back", "leave", "":
            self.lock()
            self.stand(self.first)
            self.assertEqual(self.release_as(how), 1)
            self.assertFalse(self.exists(LOCK))


class GiveBack(Handover):
    def test_the_token_waits_no_more(self):
        self.lock(token=OTHERS)
        self.stand("a")
        self.assertEqual(self.release_as("back", token=NEXT, waiter="a"), 0)
        self.assertIsNone(self.waits("a"))
        self.assertEqual(self.order(), ["a"])

    def test_a_newer_token_stays(self):
        self.lock(token=OTHERS)
        self.stand("a")
        self.assertEqual(self.release_as("back", token=OURS, waiter="a"), 0)
        self.assertIsNotNone(self.waits("a"))

    def test_a_waiter_leaves(self):
        self.lock(token=OTHERS)
        self.stand("a")
        self.assertEqual(self.release_as("leave", token=NEXT, waiter="a"), 0)
        self.assertIsNone(self.waits("a"))
        self.assertEqual(self.order(), [])
        self.assertEqual(self.get(LOCK), OTHERS)

    def test_who_leaves_a_key_of_another_type(self):
        """Else its token would be granted when the key is gone, though nobody wants it any more."""
        for how in "leave", "pass":
            self.lock(token=OTHERS)
            self.stand("a")
            self.redis.ask("DEL", LOCK)
            self.redis.ask("RPUSH", LOCK, OURS)
            self.refuse("WRONGTYPE", "release_fair", LOCK, NEXT, "a", how)
            self.assertIsNone(self.waits("a"))
            self.assertEqual(self.order(), [])
            self.redis.ask("DEL", LOCK)

    def test_the_next_is_told(self):
        listener = self.hear_next("b")
        self.lock(token=NEXT)
        self.stand("a", token=OURS)
        self.stand("b", token=OTHERS, ticket=4)
        self.assertEqual(self.release_as("leave", token=NEXT, waiter="a"), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertEqual(self.heard_next(listener, "b"), ["next b"])


class ExtendFair(Handover):
    def extend(self, ttl_ms=LONG_MS, client=None):
        return self.run_script("extend_fair", LOCK, OURS, ttl_ms, "me", client=client)

    def test_ours_lasts_longer(self):
        self.lock()
        self.assertEqual(self.extend(LONGER_MS), 1)
        self.assert_lasts(LOCK, LONGER_MS)

    def test_ours_is_never_shortened(self):
        self.lock(ttl_ms=LONGER_MS)
        self.assertEqual(self.extend(), 1)
        self.assert_lasts(LOCK, LONGER_MS)

    def test_a_token_that_waits_does_so_no_more(self):
        self.lock(token=OTHERS)
        self.stand("me", token=OURS)
        self.assertEqual(self.extend(LONGER_MS), 0)
        self.assert_lasts(LOCK, LONG_MS)
        self.assertIsNone(self.waits("me"))
        self.assertEqual(self.order(), [])

    def test_the_holder_is_told_who_revoked_it(self):
        self.lock(token=REVOKED)
        self.assertEqual(self.extend(), REVOKED)

    def test_no_right_to_the_queue(self):
        self.assertEqual(self.extend(client=self.client_with("resetkeys", "~" + LOCK)), 0)
