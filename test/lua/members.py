"""Rules of the scripts that change the set of masters."""

from case import MARKER, Case

EPOCH, SET, OTHER = "e" * 16, "5" * 16, "7" * 16
STATE, JOINED = EPOCH + ".3", EPOCH + ".4"
LOW, MIDDLE, HIGH = "0000000100000009", "0000000200000001", "000000020000000a"
LIST, JOINT = "a:1 b:1 c:1", "a:1 b:1 c:1 > a:1 b:1 d:1"
FLOOR, STEP = 1750000000123456, 16384
AHEAD_US, DAY_US = 1 << 40, 86400000000


class Members(Case):
    def setUp(self):
        super().setUp()
        self.plant(epoch=STATE, set=SET, ver=3, config=LIST, name="a:1", of="set", floor=FLOOR,
                   high=FLOOR + STEP)

    def plant(self, **fields):
        self.redis.ask("HSET", MARKER, *[word for pair in fields.items() for word in pair])

    def drop(self, *fields):
        self.redis.ask("HDEL", MARKER, *fields)

    def fields(self):
        flat = self.redis.ask("HGETALL", MARKER)
        return dict(zip(flat[::2], flat[1::2]))

    def ask(self, script, *args, state=STATE, of=SET):
        return self.run_script(script, MARKER, state, of, *args)

    def check_state(self, script, *args):
        """Another epoch, version or set, or none, changes nothing."""
        before = self.fields()
        self.assertEqual(self.ask(script, *args, state=OTHER + ".3"), "ver")
        self.assertEqual(self.ask(script, *args, state=EPOCH + ".2"), "ver")
        self.assertEqual(self.ask(script, *args, state=EPOCH + ".30"), "ver")
        self.assertEqual(self.ask(script, *args, state=EPOCH), "ver")
        self.assertEqual(self.ask(script, *args, of=OTHER), "ver")
        self.assertEqual(self.fields(), before)
        self.drop("epoch")
        self.assertEqual(self.ask(script, *args), "ver")
        self.plant(epoch=EPOCH)
        self.assertEqual(self.ask(script, *args), "ver")
        self.redis.ask("DEL", MARKER)
        self.assertEqual(self.ask(script, *args), "ver")
        self.assertFalse(self.exists(MARKER))


class Prepare(Members):
    def test_promise(self):
        self.assertEqual(self.ask("prepare", MIDDLE), "promise")
        self.assertEqual(self.fields()["ballot"], MIDDLE)

    def test_smaller_and_equal_ballots(self):
        self.plant(ballot=MIDDLE)
        self.assertEqual(self.ask("prepare", LOW), "ballot " + MIDDLE)
        self.assertEqual(self.ask("prepare", MIDDLE), "ballot " + MIDDLE)
        self.assertEqual(self.fields()["ballot"], MIDDLE)
        self.assertEqual(self.ask("prepare", HIGH), "promise")
        self.assertEqual(self.fields()["ballot"], HIGH)

    def test_what_was_accepted(self):
        self.plant(ballot=MIDDLE, accepted=LOW + " " + JOINT)
        self.assertEqual(self.ask("prepare", HIGH), f"promise {LOW} {JOINT}")
        self.assertEqual(self.fields()["accepted"], LOW + " " + JOINT)

    def test_another_state(self):
        self.check_state("prepare", MIDDLE)

    def test_a_floor_behind_the_version(self):
        self.plant(epoch=STATE + "." + str(FLOOR))
        self.assertEqual(self.ask("prepare", MIDDLE), "promise")


class Accept(Members):
    def test_accepted(self):
        self.plant(ballot=MIDDLE)
        self.assertEqual(self.ask("accept", MIDDLE, JOINT), "accepted")
        self.assertEqual(self.fields()["accepted"], MIDDLE + " " + JOINT)
        self.assertEqual(self.ask("accept", MIDDLE, JOINT), "accepted")

    def test_a_ballot_that_was_not_promised(self):
        self.plant(ballot=LOW)
        self.assertEqual(self.ask("accept", MIDDLE, JOINT), "accepted")
        self.assertEqual(self.fields()["ballot"], MIDDLE)
        self.drop("ballot", "accepted")
        self.assertEqual(self.ask("accept", MIDDLE, JOINT), "accepted")
        self.assertEqual(self.fields()["ballot"], MIDDLE)

    def test_a_greater_ballot(self):
        self.plant(ballot=HIGH)
        self.assertEqual(self.ask("accept", MIDDLE, JOINT), "ballot " + HIGH)
        self.assertNotIn("accepted", self.fields())

    def test_another_state(self):
        self.check_state("accept", MIDDLE, JOINT)


class Write(Members):
    def write(self, version="4", name="a:1", **more):
        return self.ask("write", version, JOINT, name, **more)

    def test_written(self):
        self.plant(ballot=HIGH, accepted=LOW + " " + JOINT, claim="x")
        self.assertEqual(self.write(), "written")
        self.assertEqual(self.fields(), {
            "epoch": JOINED, "set": SET, "ver": "4", "config": JOINT, "name": "a:1", "of": "set",
            "floor": str(FLOOR), "high": str(FLOOR + STEP)})

    def test_no_member_any_more(self):
        self.assertEqual(self.write(name=""), "written")
        self.assertNotIn("name", self.fields())

    def test_a_master_without_a_set_joins(self):
        self.drop("set", "ver", "config", "name", "of")
        self.plant(epoch=EPOCH + ".0")
        self.assertEqual(self.write(state=EPOCH + ".0"), "written")
        self.assertEqual(self.fields()["epoch"], JOINED)
        self.assertEqual(self.fields()["set"], SET)

    def test_a_claimed_master_does_not_join(self):
        self.drop("set", "ver", "config", "name", "of")
        self.plant(epoch=EPOCH + ".0", claim=LOW + " a:1 b:1")
        before = self.fields()
        self.assertEqual(self.write(state=EPOCH + ".0"), "ver")
        self.assertEqual(self.fields(), before)

    def test_smaller_and_equal_versions(self):
        before = self.fields()
        self.assertEqual(self.write("3"), "ver")
        self.assertEqual(self.write("2"), "ver")
        self.assertEqual(self.fields(), before)
        self.assertEqual(self.write("10"), "written")

    def test_another_state(self):
        self.check_state("write", "4", JOINT, "a:1")

    def test_a_floor_behind_the_version_goes(self):
        self.plant(epoch=STATE + "." + str(FLOOR))
        self.assertEqual(self.write(), "written")
        self.assertEqual(self.fields()["epoch"], JOINED)

    def test_a_full_memory_changes_nothing(self):
        self.plant(ballot=HIGH)
        before = self.fields()
        self.fill_memory()
        self.refuse("OOM", "write", MARKER, STATE, SET, "4", JOINT, "a:1")
        self.assertEqual(self.fields(), before)

    def test_no_right_to_delete_changes_nothing(self):
        self.plant(ballot=HIGH)
        before = self.fields()
        few = self.client_with("-hdel")
        self.refuse("run|permissions", "write", MARKER, STATE, SET, "4", JOINT, "a:1", client=few)
        self.assertEqual(self.fields(), before)


class CountOn(Members):
    def test_the_counters_are_above_the_number(self):
        self.plant(**{"7": 5})
        before = self.fields()
        number = FLOOR + STEP + 1000
        self.assertEqual(self.ask("count_on", number), "counted")
        before.update(floor=str(number), high=str(number + STEP), epoch=f"{STATE}.{number}")
        del before["7"]
        self.assertEqual(self.fields(), before)

    def test_they_are_above_the_high_water_mark(self):
        self.assertEqual(self.ask("count_on", FLOOR + 1000), "counted")
        fields = self.fields()
        self.assertEqual(fields["floor"], str(FLOOR + STEP))
        self.assertEqual(fields["high"], str(FLOOR + 2 * STEP))

    def test_many_changes(self):
        """What was counted since the first floor is not added again at each change."""
        self.plant(high=FLOOR + 1000 * STEP, **{"7": 1000 * STEP})
        for _ in range(30):
            self.assertEqual(self.ask("count_on", int(self.fields()["high"])), "counted")
            self.redis.ask("HINCRBY", MARKER, "7", 1)
        self.assertEqual(self.fields()["high"], str(FLOOR + 1030 * STEP))

    def test_a_full_memory_keeps_the_counters(self):
        self.plant(**{"7": 5})
        before = self.fields()
        self.fill_memory()
        self.refuse("OOM", "count_on", MARKER, STATE, SET, FLOOR + 1000)
        self.assertEqual(self.fields(), before)

    def test_again(self):
        self.ask("count_on", FLOOR + 1000)
        before = self.fields()
        self.assertEqual(self.ask("count_on", FLOOR + STEP), "counted")
        self.assertEqual(self.ask("count_on", FLOOR + 1000), "counted")
        self.assertEqual(self.fields(), before)
        self.assertEqual(self.ask("count_on", FLOOR + STEP + 1), "counted")
        self.assertEqual(self.fields()["epoch"], f"{STATE}.{FLOOR + 2 * STEP}")

    def test_another_state(self):
        self.check_state("count_on", FLOOR + 1000)

    def test_no_counters(self):
        self.drop("high")
        self.assertEqual(self.ask("count_on", FLOOR + 1000), "ver")
        self.assertEqual(self.fields()["floor"], str(FLOOR))

    def test_days_ahead_of_the_clock(self):
        before = self.fields()
        now_us = self.now_ms() * 1000
        self.refuse("days ahead", "count_on", MARKER, STATE, SET, now_us + AHEAD_US + DAY_US)
        self.assertEqual(self.fields(), before)
        self.assertEqual(self.ask("count_on", now_us + AHEAD_US - DAY_US), "counted")
