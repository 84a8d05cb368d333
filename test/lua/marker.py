"""Rules of the scripts for the marker of a master."""

from case import LONG_MS, MARKER, NO_RIGHT, OURS, Case

RUN, OTHER_RUN = "1" * 40, "2" * 40
EPOCH, NONCE, RANDOM = "e" * 16, "0123456789abcdef", "a" * 16
STATE = EPOCH + ".0"
SET, OTHER_SET, LIST = "5" * 16, "7" * 16, "a:1 b:1#b c:1"
MEMBER = {"set": SET, "ver": "1", "config": LIST, "name": "b", "of": "set"}
OTHER_LIST = "a:1 b:1#b d:1"
BACK = {**MEMBER, "ver": "4", "config": OTHER_LIST}
LOW, HIGH = "0000000100000009", "000000020000000a"
VALUE = LOW + " a:1 b:1#b d:1 > a:1 b:1#b e:1"
MAX_MS, DAY_MS = 60000, 86400000
STEP = 16384
FLOOR = 1750000000123456  # 16 digits, like a real floor: Lua rounds it if it is printed wrongly.
COUNTER = 4711


class Look(Case):
    # pylint: disable=too-many-arguments
    def look(self, run=RUN, keeps="2", max_ms=MAX_MS, nonce="", floor=1, known=("", 0),
             member=("", ""), ballots=("", ""), client=None):
        reply = self.run_script("look", MARKER, run, keeps, max_ms, RANDOM, nonce, known[0], floor,
                                known[1], *member, *ballots, client=client)
        return reply.split(" ")

    def refuse_look(self, wanted, run=RUN, keeps=2, nonce="", client=None):
        self.refuse(wanted, "look", MARKER, run, keeps, MAX_MS, RANDOM, nonce, "", 1, 0, "", "",
                    "", "", client=client)

    def fields(self):
        flat = self.redis.ask("HGETALL", MARKER)
        return dict(zip(flat[::2], flat[1::2]))

    def plant(self, **fields):
        self.redis.ask("HSET", MARKER, *[word for pair in fields.items() for word in pair])

    def ready(self, **fields):
        self.plant(**{"id": RUN, "epoch": STATE, "max": MAX_MS, "floor": FLOOR,
                      "high": FLOOR + STEP, **fields})

    def warming(self, **fields):
        self.plant(**{"id": RUN, "nonce": NONCE, "max": MAX_MS, "fresh": 1,
                      "since": self.now_ms() - LONG_MS, **fields})


class LookWarming(Look):
    def test_a_new_master(self):
        before = self.now_ms()
        word, nonce, max_ms, fresh, age, high, time_us, of = self.look()
        self.assertEqual([word, nonce, max_ms, fresh, age, high, of],
                         ["warming", RANDOM, str(MAX_MS), "1", "0", "0", "-"])
        self.assertTrue(before * 1000 <= int(time_us) < (self.now_ms() + 1) * 1000)
        fields = self.fields()
        self.assertTrue(before <= int(fields.pop("since")) <= self.now_ms())
        self.assertEqual(fields, {"id": RUN, "nonce": RANDOM, "max": str(MAX_MS), "fresh": "1"})

    def test_not_known_to_be_new(self):
        for keeps in "1", "0":
            self.setUp()
            self.assertEqual(self.look(keeps=keeps)[3], "0")
            self.assertEqual(self.fields()["fresh"], "0")

    def test_a_marker_of_another_run_is_not_new(self):
        self.warming()
        word, nonce, _, fresh, *_ = self.look(run=OTHER_RUN, keeps="0")
        self.assertEqual([word, nonce, fresh], ["warming", RANDOM, "0"])

    def test_the_age_of_the_nonce(self):
        self.warming()
        word, nonce, max_ms, fresh, age, *_ = self.look()
        self.assertEqual([word, nonce, max_ms, fresh], ["warming", NONCE, str(MAX_MS), "1"])
        self.assertTrue(LONG_MS <= int(age) < LONG_MS + 60000, age)

    def test_a_clock_that_was_put_back(self):
        self.warming(since=self.now_ms() + LONG_MS)
        self.assertEqual(self.look()[4], "0")

    def test_another_nonce_is_no_epoch(self):
        self.warming()
        self.assertEqual(self.look(nonce=EPOCH)[:2], ["warming", NONCE])

    def test_a_server_that_keeps_nothing(self):
        self.warming()
        self.assertEqual(self.look(keeps="0")[1], NONCE)  # The server has not restarted.
        self.assertEqual(self.look(run=OTHER_RUN, keeps="0")[1], RANDOM)
        self.assertEqual(self.fields()["id"], OTHER_RUN)

    def test_a_server_that_keeps_all(self):
        self.warming()
        self.assertEqual(self.look(run=OTHER_RUN)[1], NONCE)
        self.assertEqual(self.fields()["id"], OTHER_RUN)


class LookReady(Look):
    def test_it_may_vote(self):
        self.ready()
        self.assertEqual(self.look()[:5],
                         ["ready", STATE, str(MAX_MS), str(FLOOR), str(FLOOR + STEP)])
        self.assertEqual(self.look()[6:], ["-"])

    def test_restarted_and_forgetful(self):
        self.ready()
        word, nonce, _, fresh, _, high, *_ = self.look(run=OTHER_RUN, keeps="0")
        self.assertEqual([word, nonce, fresh, high], ["warming", RANDOM, "0", str(FLOOR + STEP)])
        self.assertNotIn("epoch", self.fields())
        self.assertEqual(self.fields()["id"], OTHER_RUN)

    def test_restarted_and_nothing_forgotten(self):
        self.ready()
        self.assertEqual(self.look(run=OTHER_RUN, keeps="1")[:2], ["ready", STATE])
        self.assertEqual(self.fields()["id"], OTHER_RUN)

    def test_an_epoch_without_counters(self):
        for field in "floor", "high":
            self.setUp()
            self.ready()
            self.redis.ask("HDEL", MARKER, field)
            self.assertEqual(self.look()[:2], ["warming", RANDOM], field)

    def test_a_nonce_beside_an_epoch_goes(self):
        self.ready(nonce=NONCE, fresh=1, since=1)
        self.assertEqual(self.look()[:2], ["ready", STATE])
        self.assertFalse({"nonce", "fresh", "since"} & set(self.fields()))


class LookNewEpoch(Look):
    def test_the_nonce_becomes_an_epoch(self):
        self.warming(**{str(COUNTER): 5})
        self.assertEqual(self.look(nonce=NONCE, floor=FLOOR)[:5],
                         ["ready", RANDOM + ".0", str(MAX_MS), str(FLOOR), str(FLOOR + STEP)])
        fields = self.fields()
        self.assertGreater(len(fields.pop("about")), 64)
        self.assertEqual(fields, {"id": RUN, "epoch": RANDOM + ".0", "max": str(MAX_MS),
                                  "floor": str(FLOOR), "high": str(FLOOR + STEP)})
        self.assertEqual(self.redis.ask("OBJECT", "ENCODING", MARKER), "hashtable")

    def test_no_token_is_above_the_floor(self):
        self.warming(high=FLOOR + 5)
        self.assertEqual(self.look(nonce=NONCE, floor=FLOOR)[3:5],
                         [str(FLOOR + 5), str(FLOOR + 5 + STEP)])

    def test_there_is_an_epoch_already(self):
        self.ready()
        self.assertEqual(self.look(nonce=NONCE)[:2], ["ready", STATE])

    def test_a_full_memory_deletes_nothing(self):
        self.warming()
        before = self.fields()
        self.fill_memory()
        self.refuse_look("OOM", nonce=NONCE)
        self.assertEqual(self.fields(), before)


class LookRest(Look):
    def test_the_longest_lease_grows(self):
        self.ready()
        self.assertEqual(self.look(max_ms=MAX_MS - 1)[2], str(MAX_MS))
        self.assertEqual(self.look(max_ms=MAX_MS + 1)[2], str(MAX_MS + 1))
        self.assertEqual(self.fields()["max"], str(MAX_MS + 1))
        self.assertEqual(self.look(max_ms=DAY_MS + 1)[2], str(DAY_MS))

    def test_nothing_is_written_if_nothing_has_changed(self):
        few = self.client_with("-hset", "-hdel", "-del")
        self.ready()
        self.assertEqual(self.look(client=few)[0], "ready")
        self.redis.ask("DEL", MARKER)
        self.warming()
        self.assertEqual(self.look(client=few)[0], "warming")

    def test_no_right_to_write(self):
        few = self.client_with("-hset")
        self.refuse_look(NO_RIGHT, client=few)
        self.assertFalse(self.exists(MARKER))

    def test_a_key_of_another_type(self):
        self.lock(MARKER)
        self.refuse_look("WRONGTYPE")
        self.assertEqual(self.get(MARKER), OURS)

    def test_a_later_version(self):
        for of in "set2", "sets", "2nd", "-1", "":
            for plant in self.ready, self.warming:
                self.setUp()
                plant(of=of)
                before = self.fields()
                self.refuse_look("a later version of Redlock uses this master", run=OTHER_RUN, keeps="0",
                                 nonce=NONCE)
                self.assertEqual(self.fields(), before)

    def test_no_later_version(self):
        for of in "set", "5":  # Version 0.1 wrote how many masters there are.
            self.setUp()
            self.ready(of=of)
            self.assertEqual(self.look()[:2], ["ready", STATE])

    def test_the_id_is_written_last(self):
        few = self.client_with("-hdel")
        self.ready()
        before = self.fields()
        self.refuse_look(NO_RIGHT, run=OTHER_RUN, keeps=0, client=few)
        self.assertEqual(self.fields(), before)


class LookSet(Look):
    """Which set the master belongs to."""

    def test_a_member_tells_its_set(self):
        self.ready(epoch=EPOCH + ".1", **MEMBER)
        told = ["5" * 16, "1", "b"]
        self.assertEqual(self.look()[:2], ["ready", EPOCH + ".1"])
        for known in ("", 0), (OTHER_SET, 1), (OTHER_SET, 9), (SET, 0):
            self.assertEqual(self.look(known=known)[6:], told + LIST.split(" "), known)
        for known in (SET, 1), (SET, 2):
            self.assertEqual(self.look(known=known)[6:], told, known)

    def test_versions_are_numbers(self):
        self.ready(epoch=EPOCH + ".10", **{**MEMBER, "ver": "10"})
        self.assertEqual(self.look(known=(SET, 9))[6:], [SET, "10", "b"] + LIST.split(" "))
        self.assertEqual(self.look(known=(SET, 10))[6:], [SET, "10", "b"])

    def test_a_master_without_a_name(self):
        self.ready(epoch=EPOCH + ".3", set=SET, ver=3, config="")
        self.assertEqual(self.look(known=(SET, 3))[6:], [SET, "3", "-"])
        self.assertEqual(self.look(known=(SET, 2))[6:], [SET, "3", "-", ""])

    def test_a_warming_member_tells_it_as_well(self):
        self.warming(**MEMBER)
        self.assertEqual(self.look()[7:], [SET, "1", "b"] + LIST.split(" "))

    def test_a_restart_voids_what_may_be_forgotten(self):
        for keeps, kept in ("0", set()), ("1", {"claim", "ballot", "accepted"}):
            self.setUp()
            self.ready(epoch=EPOCH + ".1", claim="x", ballot="y", accepted="z", **MEMBER)
            reply = " ".join(self.look(run=OTHER_RUN, keeps=keeps, known=(SET, 1)))
            self.assertRegex(reply, f" {SET} 1 b{'' if keeps == '0' else chr(10) + 'y z'}$")
            fields = self.fields()
            self.assertEqual({"claim", "ballot", "accepted"} & set(fields), kept)
            self.assertEqual({name: fields[name] for name in MEMBER}, MEMBER)

    def test_a_claim_that_nobody_vouches_for(self):
        self.plant(claim="x")
        self.look(keeps="0")
        self.assertNotIn("claim", self.fields())


    def test_a_new_epoch_keeps_the_set(self):
        self.warming(**MEMBER, **{str(COUNTER): 5})
        self.assertEqual(self.look(nonce=NONCE, floor=FLOOR)[:2], ["ready", RANDOM + ".1"])
        fields = self.fields()
        self.assertEqual({name: fields[name] for name in MEMBER}, MEMBER)
        self.assertNotIn(str(COUNTER), fields)

    def test_who_knows_no_set_gives_no_epoch_in_one_that_was_changed(self):
        self.warming(**{**MEMBER, "ver": "12"})
        self.assertEqual(self.look(nonce=NONCE, floor=FLOOR)[:2], ["warming", NONCE])

    def test_a_new_epoch_keeps_a_claim(self):
        self.warming(claim="x")
        self.assertEqual(self.look(nonce=NONCE)[6:], ["-"])
        self.assertEqual(self.fields()["claim"], "x")

    def test_a_member_is_not_new(self):
        self.warming(**MEMBER)
        before = self.fields()
        for member in ("", ""), (LIST, ""):
            self.assertEqual(self.look(nonce=NONCE, known=("new", 0), member=member)[:2],
                             ["warming", NONCE])
        self.assertEqual(self.fields(), before)

    def test_a_master_that_another_list_claims_is_not_new(self):
        self.warming(claim=f"{EPOCH} {LIST}")
        before = self.fields()
        for claimed in "", OTHER_LIST, LIST + " c", LIST[:-1]:
            self.assertEqual(self.look(nonce=NONCE, known=("new", 0), member=(claimed, ""))[:2],
                             ["warming", NONCE])
        self.assertEqual(self.fields(), before)
        self.assertEqual(self.look(nonce=NONCE, known=("new", 0), member=(LIST, ""))[:2],
                         ["ready", RANDOM + ".0"])
        self.assertEqual(self.fields()["claim"], f"{EPOCH} {LIST}")

    def test_a_new_master_may_vote(self):
        self.warming()
        self.assertEqual(self.look(nonce=EPOCH, known=("new", 0), member=(LIST, ""))[:2],
                         ["warming", NONCE])
        self.assertEqual(self.look(nonce=NONCE, known=("new", 0), member=(LIST, ""))[:2],
                         ["ready", RANDOM + ".0"])
        self.assertFalse(set(MEMBER) & set(self.fields()))

    def test_an_epoch_gets_its_version(self):
        for state in EPOCH, EPOCH + ".0":
            self.setUp()
            self.ready(epoch=state, **MEMBER)
            self.assertEqual(self.look()[1], EPOCH + ".1")
            self.assertEqual(self.fields()["epoch"], EPOCH + ".1")
        self.redis.ask("DEL", MARKER)
        self.ready(epoch=EPOCH)
        self.assertEqual(self.look()[1], STATE)

    def test_a_floor_behind_the_version_stays(self):
        self.ready(epoch=f"{EPOCH}.1.{FLOOR}", **MEMBER)
        self.assertEqual(self.look()[1], f"{EPOCH}.1.{FLOOR}")


class LookBallots(Look):
    """A master tells what it promised for the next version."""

    def test_promised_and_accepted(self):
        for fields, told in (({}, ""), ({"ballot": LOW}, "\n" + LOW),
                             ({"ballot": HIGH, "accepted": VALUE}, f"\n{HIGH} {VALUE}")):
            self.setUp()
            self.ready(epoch=EPOCH + ".1", **MEMBER, **fields)
            for known, config in ((SET, 1), ""), (("", 0), " " + LIST):
                self.assertEqual(" ".join(self.look(known=known)[6:]),
                                 f"{SET} 1 b{config}{told}")

    def test_a_warming_master_tells_none(self):
        self.warming(ballot=HIGH, accepted=VALUE, **MEMBER)
        self.assertEqual(self.look(known=(SET, 1))[7:], [SET, "1", "b"])


class LookRecall(Look):
    """With its epoch, a master that lost its data gets back what others know."""

    def recall(self, known=(SET, 4), member=(OTHER_LIST, "b"), ballots=(HIGH, VALUE), **more):
        return self.look(nonce=NONCE, known=known, member=member, ballots=ballots, floor=FLOOR,
                         **more)

    def check(self, **wanted):
        fields = self.fields()
        names = set(MEMBER) | {"claim", "ballot", "accepted"}
        self.assertEqual({name: fields[name] for name in names & set(fields)}, wanted)

    def test_the_set_and_what_was_promised(self):
        for fields in {}, MEMBER, {"claim": "x"}:
            self.setUp()
            self.warming(**fields, **{str(COUNTER): 5})
            reply = " ".join(self.recall())
            self.assertRegex(reply, f"^ready {RANDOM}.4 ")
            self.assertTrue(reply.endswith(f" {SET} 4 b\n{HIGH} {VALUE}"), reply)
            self.check(**BACK, ballot=HIGH, accepted=VALUE)
            self.assertNotIn(str(COUNTER), self.fields())

    def test_nothing_was_promised(self):
        self.warming(ballot=LOW, accepted=VALUE)
        self.recall(ballots=("", ""))
        self.check(**BACK)
        self.setUp()
        self.warming()
        self.recall(ballots=(HIGH, ""))
        self.check(**BACK, ballot=HIGH)

    def test_a_hint_of_a_greater_version_goes(self):
        self.warming(**{**MEMBER, "ver": 9})
        self.assertEqual(self.recall()[1], RANDOM + ".4")
        self.check(**BACK, ballot=HIGH, accepted=VALUE)

    def test_one_that_is_no_member(self):
        self.warming(**MEMBER)
        self.assertEqual(self.recall(member=(OTHER_LIST, ""), ballots=("", ""))[1], RANDOM + ".4")
        self.check(**{name: BACK[name] for name in BACK if name != "name"})
        self.setUp()
        self.warming(claim="x")
        self.assertEqual(self.recall(member=(OTHER_LIST, ""), ballots=("", ""))[1], RANDOM + ".0")
        self.check(claim="x")

    def test_not_on_another_nonce(self):
        self.warming(nonce=EPOCH)
        self.assertEqual(self.recall()[:2], ["warming", EPOCH])
        self.assertFalse({"epoch", "ballot", "accepted"} & set(self.fields()))

    def test_not_if_the_nonce_is_void(self):
        self.warming(**MEMBER)
        self.assertEqual(self.recall(run=OTHER_RUN, keeps="0")[:2], ["warming", RANDOM])
        self.check(**MEMBER)

    def test_not_in_another_set(self):
        self.warming(**{**MEMBER, "set": OTHER_SET})
        self.assertEqual(self.recall()[:2], ["warming", NONCE])
        self.check(**{**MEMBER, "set": OTHER_SET})

    def test_not_beside_an_epoch(self):
        self.ready(epoch=EPOCH + ".4", **BACK, ballot=LOW)
        self.assertEqual(self.recall()[:2], ["ready", EPOCH + ".4"])
        self.check(**BACK, ballot=LOW)

    def test_a_full_memory_deletes_nothing(self):
        self.warming(**MEMBER)
        before = self.fields()
        self.fill_memory()
        self.refuse("OOM", "look", MARKER, RUN, 2, MAX_MS, RANDOM, NONCE, SET, FLOOR, 4, OTHER_LIST,
                    "b", HIGH, VALUE)
        self.assertEqual(self.fields(), before)


class LookAway(Look):
    """A member that was away while its set changed gets the newest configuration."""

    def tell(self, known=(SET, 4), name="b", **more):
        return self.look(known=known, member=(OTHER_LIST, name), **more)

    def stay(self, **more):
        before = self.fields()
        self.tell(**more)
        self.assertEqual(self.fields(), before)

    def test_the_newest_version(self):
        for ver, floor in ("1", ""), ("3", ""), ("3", f".{FLOOR}"):
            self.setUp()
            self.ready(epoch=f"{EPOCH}.{ver}{floor}", **{**MEMBER, "ver": ver},
                       **{str(COUNTER): 5})
            before = self.fields()
            self.plant(ballot=HIGH, accepted=VALUE)
            reply = " ".join(self.tell())
            self.assertRegex(reply, f"^ready {EPOCH}.4 .* {SET} 4 b$")
            self.assertEqual(self.fields(), {**before, **BACK, "epoch": EPOCH + ".4"})

    def test_versions_are_numbers(self):
        self.ready(epoch=EPOCH + ".9", **{**MEMBER, "ver": "9"})
        self.assertEqual(self.tell(known=(SET, 10))[1], EPOCH + ".10")
        self.stay(known=(SET, 9))

    def test_the_same_version_keeps_its_ballots(self):
        for ver in 4, 5:
            self.setUp()
            self.ready(epoch=f"{EPOCH}.{ver}", **{**MEMBER, "ver": ver}, ballot=HIGH,
                       accepted=VALUE)
            self.stay()

    def test_nobody_joins_or_leaves(self):
        for name in "a", "":
            self.setUp()
            self.ready(epoch=EPOCH + ".1", **MEMBER)
            self.stay(name=name)
        self.redis.ask("HDEL", MARKER, "name")
        self.stay()

    def test_another_set(self):
        self.ready(epoch=EPOCH + ".1", **MEMBER)
        self.stay(known=(OTHER_SET, 4))

    def test_a_warming_master_keeps_its_hint(self):
        self.warming(**MEMBER)
        self.stay()

    def test_one_that_forgot(self):
        self.ready(epoch=EPOCH + ".1", **MEMBER)
        self.assertEqual(self.tell(run=OTHER_RUN, keeps="0")[:2], ["warming", RANDOM])
        self.assertEqual(self.fields()["ver"], "1")

    def test_where_a_write_is_refused(self):
        for client in "-hset", "-hdel":
            self.setUp()
            few = self.client_with(client)
            self.ready(epoch=EPOCH + ".1", **MEMBER, ballot=HIGH, accepted=VALUE)
            before = self.fields()
            self.refuse(NO_RIGHT, "look", MARKER, RUN, 2, MAX_MS, RANDOM, "", SET, 1, 4, OTHER_LIST,
                        "b", "", "", client=few)
            self.assertEqual(self.fields(), before)
        self.fill_memory()
        self.refuse("OOM", "look", MARKER, RUN, 2, MAX_MS, RANDOM, "", SET, 1, 4, OTHER_LIST, "b",
                    "", "")
        self.assertEqual(self.fields(), before)


class LookMember(Look):
    """A member that lost its data is told its set."""

    def tell(self, **more):
        return self.look(known=(SET, 1), member=(LIST, "b"), **more)

    def test_at_once(self):
        self.assertEqual(self.tell()[7:], [SET, "1", "b"])
        fields = self.fields()
        self.assertEqual(fields["nonce"], RANDOM)
        self.assertEqual({name: fields[name] for name in MEMBER}, MEMBER)
        self.warming()
        self.assertEqual(self.tell(nonce=NONCE)[:2], ["ready", RANDOM + ".1"])

    def test_together_with_an_epoch(self):
        self.warming()
        self.assertEqual(self.tell(nonce=NONCE)[:2], ["ready", RANDOM + ".1"])
        self.assertEqual({name: self.fields()[name] for name in MEMBER}, MEMBER)

    def test_where_there_is_an_epoch(self):
        self.ready()
        self.assertEqual(self.tell()[:2], ["ready", EPOCH + ".1"])
        self.assertEqual(self.fields()["epoch"], EPOCH + ".1")

    def test_the_ballots_of_a_guest_are_dropped(self):
        self.ready(ballot=HIGH, accepted=VALUE)
        self.assertEqual(self.tell()[6:], [SET, "1", "b"])
        self.assertFalse({"ballot", "accepted"} & set(self.fields()))
        self.assertEqual({name: self.fields()[name] for name in MEMBER}, MEMBER)

    def test_the_ballots_of_a_guest_stay_where_a_write_is_refused(self):
        few = self.client_with("-hset")
        self.ready(ballot=HIGH, accepted=VALUE)
        before = self.fields()
        self.refuse(NO_RIGHT, "look", MARKER, RUN, 2, MAX_MS, RANDOM, "", SET, 1, 1, LIST, "b", "",
                    "", client=few)
        self.assertEqual(self.fields(), before)

    def test_not_if_it_is_claimed(self):
        self.plant(id=RUN, claim="x")
        self.assertEqual(self.tell()[7:], ["-"])
        self.assertFalse(set(MEMBER) & set(self.fields()))

    def test_not_if_it_belongs_to_a_set(self):
        for of in OTHER_SET, SET:
            self.setUp()
            self.ready(epoch=EPOCH + ".3", set=of, ver=3, config="x:1", name="x", of="set")
            before = self.fields()
            self.tell()
            self.assertEqual(self.fields(), before)

    def test_a_full_memory_changes_nothing(self):
        self.ready()
        before = self.fields()
        self.fill_memory()
        self.refuse("OOM", "look", MARKER, RUN, 2, MAX_MS, RANDOM, "", SET, 1, 1, LIST, "b", "", "")
        self.assertEqual(self.fields(), before)
