"""Announcements to a crowd: to a few of its groups, and to its readers."""

from case import FLAG, LOCK, LONG_MS, POOL, POOL_FLAG, Case

FEW = 32  # As many listeners are no crowd yet.
TOKEN = "003 token"  # Its release notifies group 3 first.


class Crowd(Case):
    def listen_all(self, count, flag=FLAG):
        return [self.listen(flag) for _ in range(count)]

    def join(self, **counts):
        """So many listeners in each group: for group 3 its name here is at3."""
        return {group: [self.listen(f"{FLAG}\0{group[-1]}") for _ in range(count)]
                for group, count in counts.items()}

    def heard_by(self, groups, flag=FLAG):
        """What the listeners of each group have heard."""
        found = {}
        for group, listeners in groups.items():
            heard = [self.heard(listeners[0], f"{flag}\0{group[-1]}")]
            for listener in listeners[1:]:
                message = listener.read()[2]
                heard.append([])
                while message != "the end":
                    heard[-1].append(message)
                    message = listener.read()[2]
            self.assertTrue(all(one == heard[0] for one in heard), heard)
            found[group] = heard[0]
        return found

    def release(self, token=TOKEN, client=None):
        self.lock(token=token)
        self.flag()
        self.assertEqual(self.run_script("release", LOCK, token, client=client), 1)

    def test_few_are_no_crowd(self):
        listeners, groups = self.listen_all(FEW), self.join(at3=4, atr=1)
        self.release()
        self.assertEqual(self.heard(listeners[0]), [f"free {FEW}"])
        self.assertEqual(self.heard_by(groups), {"at3": [], "atr": []})
        self.assertFalse(self.exists(FLAG))

    def test_of_a_crowd_one_group_is_told(self):
        listeners, groups = self.listen_all(FEW + 1), self.join(at2=1, at3=4, at4=1)
        self.release()
        self.assertEqual(self.heard(listeners[0]), [])
        self.assertEqual(self.heard_by(groups), {"at2": [], "at3": ["free 4"], "at4": []})

    def test_the_next_release_tells_a_crowd_too(self):
        self.listen_all(FEW + 1)
        groups = self.join(at3=4, at4=4)
        self.release()
        self.assertEqual(self.redis.ask("GET", FLAG), "1")
        self.assertGreater(self.redis.ask("PTTL", FLAG), 0)
        self.lock(token="004 token")
        self.run_script("release", LOCK, "004 token")
        self.assertEqual(self.heard_by(groups), {"at3": ["free 4"], "at4": ["free 4"]})

    def test_small_groups_are_told_together(self):
        self.listen_all(FEW + 1)
        groups = self.join(at3=2, at5=1, at6=1, at7=1)
        self.release()
        self.assertEqual(self.heard_by(groups), {"at3": ["free 4"], "at5": ["free 4"], "at6": ["free 4"],
                                                 "at7": []})

    def test_the_first_group_comes_after_the_last(self):
        self.listen_all(FEW + 1)
        groups = self.join(at0=4, at1=1)
        self.release("00e token")
        self.assertEqual(self.heard_by(groups), {"at0": ["free 4"], "at1": []})

    def test_the_only_waiter_of_a_crowd_is_told(self):
        self.listen_all(FEW + 1)
        groups = self.join(at2=1)
        self.release()
        self.assertEqual(self.heard_by(groups), {"at2": ["free 4"]})

    def test_a_sixteenth_of_many_may_be_told(self):
        self.listen_all(64)
        groups = self.join(at3=4)
        self.release()
        self.listen_all(1)
        self.release()
        self.assertEqual(self.heard_by(groups), {"at3": ["free 4", "free 5"]})

    def test_a_crowd_without_groups_is_told(self):
        listeners = self.listen_all(FEW + 1)
        self.release()
        self.assertEqual(self.heard(listeners[0]), [f"free {FEW + 1}"])
        self.assertFalse(self.exists(FLAG))

    def test_readers_are_always_told(self):
        self.listen_all(FEW + 1)
        groups = self.join(at3=4, atr=1)
        self.release()
        self.assertEqual(self.heard_by(groups), {"at3": ["free 4"], "atr": ["free 4"]})

    def test_readers_alone_are_told(self):
        listeners, groups = self.listen_all(FEW + 1), self.join(atr=1)
        self.release()
        self.assertEqual(self.heard(listeners[0]), [])
        self.assertEqual(self.heard_by(groups), {"atr": ["free 4"]})

    def test_a_token_of_another_kind(self):
        self.listen_all(FEW + 1)
        groups = self.join(at0=4, at1=1)
        self.release("x")
        self.assertEqual(self.heard_by(groups), {"at0": ["free 4"], "at1": []})

    def test_no_right_to_the_groups(self):
        """A client whose rights are of before there were groups."""
        listeners, groups = self.listen_all(FEW + 1), self.join(at3=4)
        self.release(client=self.client_with("resetchannels", "&" + FLAG))
        self.assertEqual(self.heard(listeners[0]), [f"free {FEW + 1}"])
        self.assertEqual(self.heard_by(groups), {"at3": []})

    def test_the_third_digit_of_a_permit_counts(self):
        self.listen_all(FEW + 1, POOL_FLAG)
        groups = {"ata": [self.listen(POOL_FLAG + "\0a") for _ in range(4)],
                  "at0": [self.listen(POOL_FLAG + "\x000")]}
        self.lock(f"{POOL}:1", "01a token")
        self.flag(key=POOL_FLAG)
        self.assertEqual(self.run_script("release_permit", f"{POOL}:1", "01a token"), 1)
        self.assertEqual(self.heard_by(groups, POOL_FLAG), {"ata": ["free 4"], "at0": []})

    # ---- Holders and waiters ----

    def ask(self, word, *groups):
        self.lock()
        return self.run_script("wait", [LOCK, FLAG], LONG_MS, 1000, word, *groups)

    def assert_taken(self, found, *groups):
        for group, messages in found.items():
            self.assertEqual(len(messages), 1 if group[-1] in groups else 0, found)
            for message in messages:
                self.assert_left(message, "taken", LONG_MS)

    def test_few_hear_who_has_it(self):
        listeners, groups = self.listen_all(FEW), self.join(at3=1, at5=1)
        self.ask("taken", "35")
        self.assert_left(self.heard(listeners[0])[0], "taken", LONG_MS)
        self.assert_taken(self.heard_by(groups))

    def test_who_knows_of_no_crowd_tells_all(self):
        listeners, groups = self.listen_all(FEW + 1), self.join(at3=1, atr=1)
        self.ask("held")
        self.assert_left(self.heard(listeners[0])[0], "held", LONG_MS)
        self.ask("taken")
        self.assert_left(self.heard(listeners[0])[0], "taken", LONG_MS)
        self.assert_taken(self.heard_by(groups))

    def test_the_holders_group_and_the_next_hear_who_has_it(self):
        listeners, groups = self.listen_all(FEW + 1), self.join(at3=1, at4=1, at5=4, at6=1, atr=1)
        self.ask("taken", "35")
        self.assertEqual(self.heard(listeners[0]), [])
        self.assert_taken(self.heard_by(groups), "3", "5", "r")

    def test_a_crowd_without_groups_hears_who_has_it(self):
        listeners = self.listen_all(FEW + 1)
        self.ask("taken", "35")
        self.assert_left(self.heard(listeners[0])[0], "taken", LONG_MS)

    def test_a_crowd_hears_of_no_query(self):
        listeners, groups = self.listen_all(FEW + 1), self.join(at3=1, atr=1)
        self.ask("held", "35")
        self.assertTrue(self.exists(FLAG))
        self.assertEqual(self.heard(listeners[0]), [])
        self.assert_taken(self.heard_by(groups))
