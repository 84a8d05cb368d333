"""Rules of the scripts that found a set of masters."""

from case import LONG_MS, MARKER, NO_RIGHT, Case

NUMBER, OTHER_NUMBER, SET = "0123456789abcdef", "1" * 16, "5" * 16
LIST, OTHER_LIST = "10.0.0.1:1 10.0.0.2:1#b [::1]:7001/2", "10.0.0.3:1"
EPOCH = "e" * 16


class Founding(Case):
    def fields(self):
        flat = self.redis.ask("HGETALL", MARKER)
        return dict(zip(flat[::2], flat[1::2]))

    def plant(self, **fields):
        self.redis.ask("HSET", MARKER, *[word for pair in fields.items() for word in pair])

    def member(self, **fields):
        self.plant(**{"set": SET, "ver": 1, "config": LIST, **fields})

    def claim(self, number=NUMBER, masters=LIST, client=None):
        return self.run_script("claim", MARKER, number, masters, client=client)

    def found(self, number=NUMBER, masters=LIST, of=NUMBER, client=None):
        return self.run_script("found", MARKER, number, masters, of, "b", client=client)

    def withdraw(self, number=NUMBER, masters=LIST):
        return self.run_script("withdraw", MARKER, number, masters)


class Claim(Founding):
    def test_a_new_master(self):
        self.assertEqual(self.claim(), "new")
        self.assertEqual(self.fields(), {"claim": f"{NUMBER} {LIST}"})

    def test_the_rest_of_the_marker_stays(self):
        self.plant(epoch=EPOCH, id="1" * 40, max=LONG_MS)
        self.assertEqual(self.claim(), "new")
        self.assertEqual(self.fields(), {"epoch": EPOCH, "id": "1" * 40, "max": str(LONG_MS),
                                         "claim": f"{NUMBER} {LIST}"})

    def test_a_claim_of_the_same_list(self):
        self.plant(claim=f"{OTHER_NUMBER} {LIST}")
        self.assertEqual(self.claim(), "took")
        self.assertEqual(self.fields(), {"claim": f"{NUMBER} {LIST}"})

    def test_a_claim_of_another_list(self):
        for other in OTHER_LIST, LIST + " x", LIST[:-1], LIST.upper():
            self.plant(claim=f"{OTHER_NUMBER} {other}")
            self.assertEqual(self.claim(), f"claim {OTHER_NUMBER} {other}")
            self.assertEqual(self.fields(), {"claim": f"{OTHER_NUMBER} {other}"})

    def test_a_member(self):
        for masters in LIST, OTHER_LIST:
            self.member(ver=12)
            before = self.fields()
            self.assertEqual(self.claim(masters=masters), f"member {SET} 12 {LIST}")
            self.assertEqual(self.fields(), before)

    def test_a_set_without_members(self):
        self.member(config="")
        self.assertEqual(self.claim(), f"member {SET} 1 ")

    def test_a_set_that_is_damaged(self):
        self.plant(set=SET)
        self.assertEqual(self.claim(), f"member {SET}  ")
        self.assertEqual(self.fields(), {"set": SET})

    def test_a_full_memory(self):
        self.fill_memory()
        self.refuse("OOM", "claim", MARKER, NUMBER, LIST)
        self.assertFalse(self.exists(MARKER))

    def test_a_key_of_another_type(self):
        self.lock(MARKER)
        self.refuse("WRONGTYPE", "claim", MARKER, NUMBER, LIST)


class ClaimReads(Founding):
    def test_nothing_is_written(self):
        few = self.client_with("-hset", "-hdel", "-del")
        self.assertEqual(self.claim("", client=few), "nothing")
        self.assertFalse(self.exists(MARKER))
        for masters in LIST, OTHER_LIST:
            self.plant(claim=f"{NUMBER} {masters}")
            self.assertEqual(self.claim("", client=few), f"claim {NUMBER} {masters}")
        self.member()
        self.assertEqual(self.claim("", client=few), f"member {SET} 1 {LIST}")


class Found(Founding):
    def test_a_claimed_master(self):
        self.claim()
        self.assertEqual(self.found(of=SET), 1)
        self.assertEqual(self.fields(), {"set": SET, "ver": "1", "config": LIST, "name": "b",
                                         "of": "set"})

    def test_the_version_stands_behind_the_epoch(self):
        for epoch in EPOCH, EPOCH + ".0":
            self.setUp()
            self.plant(epoch=epoch, of=5)
            self.claim()
            self.assertEqual(self.found(), 1)
            self.assertEqual(self.fields()["epoch"], EPOCH + ".1")
            self.assertEqual(self.fields()["of"], "set")
            self.assertNotIn("claim", self.fields())

    def test_another_claim(self):
        for number, masters in (OTHER_NUMBER, LIST), (NUMBER, OTHER_LIST):
            self.plant(claim=f"{number} {masters}", epoch=EPOCH)
            before = self.fields()
            self.assertEqual(self.found(), 0)
            self.assertEqual(self.fields(), before)

    def test_no_claim(self):
        self.assertEqual(self.found(), 0)
        self.assertFalse(self.exists(MARKER))

    def test_a_member(self):
        for ver in 1, 7:
            self.member(ver=ver, epoch=f"{EPOCH}.{ver}", claim=f"{NUMBER} {LIST}")
            before = self.fields()
            self.assertEqual(self.found(of=SET), 1)
            self.assertEqual(self.found(of=OTHER_NUMBER), 0)
            self.assertEqual(self.fields(), before)

    def test_a_full_memory(self):
        self.claim()
        before = self.fields()
        self.fill_memory()
        self.refuse("OOM", "found", MARKER, NUMBER, LIST, SET, "b")
        self.assertEqual(self.fields(), before)

    def test_no_right_to_delete(self):
        few = self.client_with("-hdel")
        self.claim()
        self.refuse(NO_RIGHT, "found", MARKER, NUMBER, LIST, SET, "b", client=few)
        self.assertEqual(self.found(of=SET), 1)
        self.assertEqual(self.claim(""), f"member {SET} 1 {LIST}")


class Withdraw(Founding):
    def test_the_own_claim(self):
        self.plant(epoch=EPOCH)
        self.claim()
        self.assertEqual(self.withdraw(), 1)
        self.assertEqual(self.fields(), {"epoch": EPOCH})
        self.assertEqual(self.withdraw(), 0)

    def test_another_claim(self):
        for number, masters in (OTHER_NUMBER, LIST), (NUMBER, OTHER_LIST):
            self.plant(claim=f"{number} {masters}")
            self.assertEqual(self.withdraw(), 0)
            self.assertEqual(self.fields(), {"claim": f"{number} {masters}"})

    def test_a_member(self):
        self.claim()
        self.found()
        before = self.fields()
        self.assertEqual(self.withdraw(), 0)
        self.assertEqual(self.fields(), before)

    def test_a_set_is_left_alone(self):
        self.member(claim=f"{NUMBER} {LIST}")
        self.withdraw()
        self.assertEqual(self.claim(""), f"member {SET} 1 {LIST}")
