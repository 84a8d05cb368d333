"""Rules of the scripts for plain locks, for several in one lease, and for permits."""

from case import (FLAG, LOCK, LONG_MS, LONGER_MS, NO_RIGHT, OTHERS, OURS, POOL,
                  POOL_FLAG, QUEUE, Case)

SHORT_MS = 100000
OTHER = "jobs/8"
OTHER_FLAG = "redlock:wait:jobs/8"


class Release(Case):
    def test_no_key_is_not_ours(self):
        self.assertEqual(self.run_script("release", LOCK, OURS), 0)

    def test_a_key_of_another_stays(self):
        listener = self.listen()
        self.lock(token=OTHERS)
        self.flag()
        self.assertEqual(self.run_script("release", LOCK, OURS), 0)
        self.assertEqual(self.get(LOCK), OTHERS)
        self.assertTrue(self.exists(FLAG))
        self.assertEqual(self.heard(listener), [])

    def test_without_a_flag_nobody_is_notified(self):
        listener = self.listen()
        self.lock()
        self.assertEqual(self.run_script("release", LOCK, OURS), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertEqual(self.heard(listener), [])

    def test_with_a_flag_waiters_are_notified(self):
        listeners = [self.listen(), self.listen()]
        self.lock()
        self.flag()
        self.assertEqual(self.run_script("release", LOCK, OURS), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertFalse(self.exists(FLAG))
        self.assertEqual(self.heard(listeners[0]), ["free 2"])

    def test_a_key_of_another_type_stays(self):
        self.redis.ask("RPUSH", LOCK, OURS)
        self.refuse("WRONGTYPE", "release", LOCK, OURS)
        self.assertTrue(self.exists(LOCK))

    def test_no_right_to_the_flag(self):
        self.lock()
        self.flag()
        few = self.client_with("resetkeys", "~" + LOCK)
        self.assertEqual(self.run_script("release", LOCK, OURS, client=few), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertTrue(self.exists(FLAG))

    def test_no_right_to_delete(self):
        self.lock()
        self.refuse(NO_RIGHT, "release", LOCK, OURS, client=self.client_with("-del"))
        self.assertTrue(self.exists(LOCK))


class FewRights(Case):
    """A release needs no right to the wait flag, the channel or the queue."""

    def release(self, few, name, *args):
        if name == "release_shared":
            self.readers(**{OURS: LONG_MS})
        else:
            self.lock()
        self.flag()
        self.assertEqual(self.run_script(name, LOCK, OURS, *args, client=few), 1, name)
        self.assertFalse(self.exists(LOCK), name)

    def release_all(self, few):
        for name, *args in (("release",), ("release_many",), ("release_shared",),
                            ("release_fair", "me", "")):
            self.release(few, name, *args)

    def release_permit(self, few):
        self.lock(f"{POOL}:1")
        self.flag(key=POOL_FLAG)
        self.assertEqual(self.run_script("release_permit", f"{POOL}:1", OURS, client=few), 1)
        self.assertFalse(self.exists(f"{POOL}:1"))

    def test_none_to_notify(self):
        listeners = self.listen(), self.listen(POOL_FLAG)
        few = self.client_with("resetchannels")
        self.release_all(few)
        self.release_permit(few)
        self.assertEqual(self.heard(listeners[0]), [])
        self.assertEqual(self.heard(listeners[1], POOL_FLAG), [])

    def test_none_to_announce_the_next(self):
        self.redis.ask("ZADD", QUEUE, 3, "a", -self.now_ms() - LONG_MS, "-a")
        self.release(self.client_with("resetchannels"), "release_fair", "me", "")

    def test_none_to_count_the_listeners(self):
        listeners = self.listen(), self.listen(POOL_FLAG)
        few = self.client_with("-pubsub")
        self.release_all(few)
        self.release_permit(few)
        self.assertEqual(self.heard(listeners[0]), ["free 0"] * 4)
        self.assertEqual(self.heard(listeners[1], POOL_FLAG), ["free 0"])

    def test_none_to_the_flag(self):
        self.release_all(self.client_with("resetkeys", "~" + LOCK))
        self.assertTrue(self.exists(FLAG))
        self.release_permit(self.client_with("resetkeys", f"~{POOL}:1"))
        self.assertTrue(self.exists(POOL_FLAG))

    def test_none_to_the_queue(self):
        self.redis.ask("ZADD", QUEUE, 3, "a", -self.now_ms() + 1, "-a")
        self.release(self.client_with("-zrem"), "release_fair", "me", "")


class Errors(Case):
    """A script fails if the lock itself cannot work: a full memory, another type of key."""

    def test_a_full_memory(self):
        self.fill_memory()
        self.refuse("OOM", "acquire_many", [LOCK, OTHER], OURS, LONG_MS)
        self.refuse("OOM", "acquire_permit", f"{POOL}:0", OURS, LONG_MS, 0, 2)
        self.refuse("OOM", "acquire_fair", LOCK, OURS, LONG_MS, "me", 0, LONG_MS)
        self.assertEqual(self.redis.ask("DBSIZE"), 0)

    def test_a_full_memory_of_waiters(self):
        self.lock()
        self.lock(f"{POOL}:0")
        self.fill_memory()
        self.refuse("OOM", "wait", [LOCK, FLAG], LONG_MS, SHORT_MS, "held")
        self.refuse("OOM", "wait_permit", [POOL, POOL_FLAG], LONG_MS, 1, "held")

    def test_another_type(self):
        self.redis.ask("RPUSH", LOCK, OURS)
        self.redis.ask("RPUSH", f"{POOL}:0", OURS)
        self.refuse("WRONGTYPE", "extend", LOCK, OURS, LONG_MS)
        self.assertEqual(self.run_script("extend_many", [LOCK], OURS, LONG_MS), 0)
        self.refuse("WRONGTYPE", "release_permit", f"{POOL}:0", OURS)
        self.refuse("WRONGTYPE", "release_fair", LOCK, OURS, "me", "")
        self.refuse("WRONGTYPE", "extend_shared", LOCK, OURS, LONG_MS)
        self.refuse("WRONGTYPE", "release_shared", LOCK, OURS)
        self.lock(QUEUE)
        self.refuse("WRONGTYPE", "acquire_fair", LOCK, OURS, LONG_MS, "me", 0, LONG_MS)

    def test_no_right_to_delete(self):
        few = self.client_with("-del")
        self.lock()
        self.lock(f"{POOL}:0")
        self.refuse(NO_RIGHT, "release_fair", LOCK, OURS, "me", "", client=few)
        self.refuse(NO_RIGHT, "release_permit", f"{POOL}:0", OURS, client=few)

    def test_no_right_to_extend(self):
        few = self.client_with("-pexpire")
        self.lock()
        self.refuse(NO_RIGHT, "extend", LOCK, OURS, LONGER_MS, client=few)
        self.refuse(NO_RIGHT, "extend_many", [LOCK], OURS, LONGER_MS, client=few)


class Extend(Case):
    def test_no_key_is_not_ours(self):
        self.assertEqual(self.run_script("extend", LOCK, OURS, LONG_MS), 0)
        self.assertFalse(self.exists(LOCK))

    def test_a_key_of_another_is_not_extended(self):
        self.lock(token=OTHERS)
        self.assertEqual(self.run_script("extend", LOCK, OURS, LONGER_MS), 0)
        self.assert_lasts(LOCK, LONG_MS)

    def test_ours_lasts_longer(self):
        self.lock()
        self.assertEqual(self.run_script("extend", LOCK, OURS, LONGER_MS), 1)
        self.assert_lasts(LOCK, LONGER_MS)

    def test_ours_is_never_shortened(self):
        self.lock()
        self.assertEqual(self.run_script("extend", LOCK, OURS, SHORT_MS), 1)
        self.assert_lasts(LOCK, LONG_MS)


class Several(Case):
    def test_all_are_set(self):
        self.assertEqual(self.run_script("acquire_many", [LOCK, OTHER], OURS, LONG_MS), "OK")
        for key in LOCK, OTHER:
            self.assertEqual(self.get(key), OURS)
            self.assert_lasts(key, LONG_MS)

    def test_the_first_that_exists_is_told(self):
        self.lock(OTHER, OTHERS)
        self.lock("jobs/9", OTHERS)
        keys = [LOCK, OTHER, "jobs/9"]
        self.assertEqual(self.run_script("acquire_many", keys, OURS, LONG_MS), 2)
        self.assertFalse(self.exists(LOCK))
        self.assertEqual(self.get(OTHER), OTHERS)

    def test_a_key_without_an_end_exists(self):
        self.redis.ask("SET", LOCK, OTHERS)
        self.assertEqual(self.run_script("acquire_many", [LOCK, OTHER], OURS, LONG_MS), 1)

    def test_all_are_extended(self):
        self.lock()
        self.lock(OTHER, ttl_ms=LONGER_MS + LONG_MS)
        self.assertEqual(self.run_script("extend_many", [LOCK, OTHER], OURS, LONGER_MS), 1)
        self.assert_lasts(LOCK, LONGER_MS)
        self.assert_lasts(OTHER, LONGER_MS + LONG_MS)

    def test_none_is_extended_if_one_is_not_ours(self):
        self.lock()
        self.lock(OTHER, OTHERS)
        self.assertEqual(self.run_script("extend_many", [LOCK, OTHER], OURS, LONGER_MS), 0)
        self.assert_lasts(LOCK, LONG_MS)

    def test_all_are_released(self):
        listeners = self.listen(FLAG), self.listen(OTHER_FLAG)
        self.lock()
        self.lock(OTHER)
        self.flag()
        self.assertEqual(self.run_script("release_many", [LOCK, OTHER], OURS), 1)
        for key in LOCK, OTHER, FLAG:
            self.assertFalse(self.exists(key), key)
        self.assertEqual(self.heard(listeners[0]), ["free 1"])
        self.assertEqual(self.heard(listeners[1], OTHER_FLAG), [])

    def test_those_that_are_ours_are_released(self):
        self.lock(token=OTHERS)
        self.lock(OTHER)
        self.assertEqual(self.run_script("release_many", [LOCK, OTHER], OURS), 0)
        self.assertEqual(self.get(LOCK), OTHERS)
        self.assertFalse(self.exists(OTHER))

    def test_a_key_of_another_type_does_not_keep_the_others(self):
        self.redis.ask("RPUSH", LOCK, OURS)
        self.lock(OTHER)
        self.assertEqual(self.run_script("release_many", [LOCK, OTHER], OURS), 0)
        self.assertTrue(self.exists(LOCK))
        self.assertFalse(self.exists(OTHER))

    def test_no_right_to_delete(self):
        self.lock()
        self.lock(OTHER)
        few = self.client_with("-del")
        self.refuse(NO_RIGHT, "release_many", [LOCK, OTHER], OURS, client=few)
        self.assertTrue(self.exists(LOCK))
        self.assertTrue(self.exists(OTHER))

    def test_no_right_to_the_flags(self):
        self.lock()
        self.lock(OTHER)
        self.flag()
        few = self.client_with("resetkeys", "~jobs/*")
        self.assertEqual(self.run_script("release_many", [LOCK, OTHER], OURS, client=few), 1)
        self.assertFalse(self.exists(LOCK))
        self.assertTrue(self.exists(FLAG))


class Permits(Case):
    def acquire(self, permit, permits=3):
        return self.run_script("acquire_permit", f"{POOL}:{permit}", OURS, LONG_MS, permit, permits)

    def wait(self, word="held", permits=2):
        return self.run_script("wait_permit", [POOL, POOL_FLAG], LONG_MS, permits, word)

    def take(self, *permits):
        for permit in permits:
            self.lock(f"{POOL}:{permit}", OTHERS)

    def test_a_free_permit_is_set(self):
        self.assertEqual(self.acquire(1), "OK")
        self.assertEqual(self.get(f"{POOL}:1"), OURS)
        self.assert_lasts(f"{POOL}:1", LONG_MS)

    def test_the_next_free_one_is_told(self):
        self.take(1)
        self.assertEqual(self.acquire(1), 2 + 1)
        self.take(2)
        self.assertEqual(self.acquire(1), 0 + 1)
        self.assertEqual(self.get(f"{POOL}:1"), OTHERS)
        self.assertFalse(self.exists(f"{POOL}:0"))

    def test_a_number_of_two_digits(self):
        self.take(*range(10, 12))
        self.assertEqual(self.acquire(10, 12), 0 + 1)
        self.assertEqual(self.acquire(11, 12), 0 + 1)
        self.take(*range(0, 9))
        self.assertEqual(self.acquire(10, 12), 9 + 1)

    def test_none_is_free(self):
        self.take(0, 1, 2)
        self.assertEqual(self.acquire(1), 0)

    def test_release(self):
        listener = self.listen(POOL_FLAG)
        self.take(0)
        self.lock(f"{POOL}:1")
        self.flag(key=POOL_FLAG)
        self.assertEqual(self.run_script("release_permit", f"{POOL}:0", OURS), 0)
        self.assertEqual(self.heard(listener, POOL_FLAG), [])
        self.assertEqual(self.run_script("release_permit", f"{POOL}:1", OURS), 1)
        self.assertFalse(self.exists(f"{POOL}:1"))
        self.assertFalse(self.exists(POOL_FLAG))
        self.assertTrue(self.exists(f"{POOL}:0"))
        self.assertEqual(self.heard(listener, POOL_FLAG), ["free 1"])

    def test_release_of_a_name_with_colons(self):
        listener = self.listen("redlock:wait:redlock:permit:a:b")
        self.lock("redlock:permit:a:b:1")
        self.flag(key="redlock:wait:redlock:permit:a:b")
        self.assertEqual(self.run_script("release_permit", "redlock:permit:a:b:1", OURS), 1)
        self.assertEqual(self.heard(listener, "redlock:wait:redlock:permit:a:b"), ["free 1"])

    def test_release_without_a_flag(self):
        listener = self.listen(POOL_FLAG)
        self.lock(f"{POOL}:1")
        self.assertEqual(self.run_script("release_permit", f"{POOL}:1", OURS), 1)
        self.assertEqual(self.heard(listener, POOL_FLAG), [])

    def test_a_waiter_finds_a_free_permit(self):
        listener = self.listen(POOL_FLAG)
        self.take(0)
        self.assertEqual(self.wait(), -2)
        self.assertEqual(self.get(POOL_FLAG), "1")
        self.assert_lasts(POOL_FLAG, LONG_MS)
        self.assertEqual(self.heard(listener, POOL_FLAG), [])

    def test_a_free_permit_whatever_becomes_of_the_flag(self):
        self.fill_memory()
        self.assertEqual(self.wait(), -2)
        self.assertFalse(self.exists(POOL_FLAG))

    def test_a_waiter_is_told_the_first_end(self):
        listener = self.listen(POOL_FLAG)
        self.lock(f"{POOL}:0", ttl_ms=LONGER_MS)
        self.take(1)
        self.assert_about(self.wait(), LONG_MS)
        self.assert_about(self.wait(), LONG_MS)
        messages = self.heard(listener, POOL_FLAG)
        self.assertEqual(len(messages), 1, messages)
        self.assert_left(messages[0], "held", LONG_MS)

    def test_a_holder_always_notifies(self):
        listener = self.listen(POOL_FLAG)
        self.take(0, 1)
        self.flag(key=POOL_FLAG)
        self.assert_about(self.wait("taken"), LONG_MS)
        self.assert_left(self.heard(listener, POOL_FLAG)[0], "taken", LONG_MS)

    def test_permits_without_an_end(self):
        self.redis.ask("SET", f"{POOL}:0", OTHERS)
        self.redis.ask("SET", f"{POOL}:1", OTHERS)
        self.assertEqual(self.wait(), -1)
        self.take(1)
        self.assert_about(self.wait(), LONG_MS)
        self.take(0)
        self.redis.ask("SET", f"{POOL}:1", OTHERS)
        self.assert_about(self.wait(), LONG_MS)

    def test_a_flag_is_not_set_anew(self):
        self.redis.ask("SET", POOL_FLAG, "1", "PX", SHORT_MS)
        self.wait()
        self.assert_lasts(POOL_FLAG, SHORT_MS)
        self.take(0, 1)
        self.wait()
        self.assert_lasts(POOL_FLAG, SHORT_MS)


class Wait(Case):
    """The script wait for writers; shared.py has it for readers."""

    def wait(self, word="held", off_ms=SHORT_MS, client=None):
        return self.run_script("wait", [LOCK, FLAG], LONG_MS, off_ms, word, client=client)

    def test_no_key(self):
        listener = self.listen()
        self.assertEqual(self.wait(), -2)
        self.assertFalse(self.exists(FLAG))
        self.assertEqual(self.heard(listener), [])

    def test_a_new_flag_is_news(self):
        listener = self.listen()
        self.lock(ttl_ms=LONGER_MS)
        self.assert_about(self.wait(), LONGER_MS)
        self.assertEqual(self.get(FLAG), "1")
        self.assert_lasts(FLAG, LONG_MS)
        self.assert_about(self.wait(), LONGER_MS)
        messages = self.heard(listener)
        self.assertEqual(len(messages), 1, messages)
        self.assert_left(messages[0], "held", LONGER_MS)

    def test_a_flag_is_not_set_anew(self):
        self.lock()
        self.redis.ask("SET", FLAG, "1", "PX", SHORT_MS)
        self.wait()
        self.assert_lasts(FLAG, SHORT_MS)

    def test_a_holder_always_notifies(self):
        listener = self.listen()
        self.lock()
        self.assert_about(self.wait("taken"), LONG_MS)
        self.assertTrue(self.exists(FLAG))
        self.wait("taken")
        messages = self.heard(listener)
        self.assertEqual(len(messages), 2, messages)
        self.assert_left(messages[1], "taken", LONG_MS)

    def test_a_key_without_an_end(self):
        listener = self.listen()
        self.redis.ask("SET", LOCK, OTHERS)
        self.assertEqual(self.wait(), -1)
        self.assertTrue(self.exists(FLAG))
        self.assertEqual(self.heard(listener), [])

    def test_few_rights_are_enough(self):
        self.lock()
        few = self.client_with("-type", "resetchannels")
        self.assert_about(self.wait(client=few), LONG_MS)
        self.assertTrue(self.exists(FLAG))
        for permit in 0, 1:
            self.lock(f"{POOL}:{permit}")
        keys = [POOL, POOL_FLAG]
        left = self.run_script("wait_permit", keys, LONG_MS, 2, "held", client=few)
        self.assert_about(left, LONG_MS)
