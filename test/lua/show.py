"""Rules of the scripts that tell what is stored, also to users whose rights 0.3's `redlock acl` printed."""

import re

from case import LOCK, LONG_MS, LONGER_MS, OTHERS, OURS, QUEUE, SCALE_MS, Case

PERMIT = f"redlock:permit:{LOCK}:"
TOKEN = "f" * 40

# What `redlock acl --names jobs/7` of 0.3.0 printed, without the channels; and with --fair, --fence, --permits and --shared.
PLAIN = (f"-@all +select +info +config|get +time +script|load +eval +evalsha +set +get +pttl +pexpire +type +exists +mget +del "
         f"+hget +hmget +hset +hdel +hlen +publish +pubsub|numsub +unsubscribe +subscribe "
         f"resetkeys ~{LOCK} ~redlock:master ~redlock:witness ~redlock:wait:{LOCK}").split()
ALL_KINDS = PLAIN + (f"+hincrby +zadd +zrem +zscore +zcount +zcard +zrevrange +zrangebyscore +zrange +zremrangebyscore ~{QUEUE} "
                     f"~redlock:next:{LOCK} ~redlock:permit:{LOCK} ~{PERMIT}* ~redlock:wait:redlock:permit:{LOCK}").split()


def rows(said):
    """(WHAT, NUMBER, LEFT, COUNT, OF, TEXT) of each row."""
    found = []
    while said:
        head, said = said.split("\n", 1)
        what, number, left, count, of_len, text_len = head.split(" ")
        of_end, end = int(of_len), int(of_len) + int(text_len)
        found.append((what, int(number), int(left), int(count), said[:of_end], said[of_end:end]))
        assert said[end] == "\n", said
        said = said[end + 1:]
    return found


class Shown(Case):
    def show(self, permits=0, queue="0", client=None):
        return rows(self.run_script("show", LOCK, permits, queue, client=client))

    def without_left(self, *args, **more):
        return [row[:2] + row[3:] for row in self.show(*args, **more)]

    def queue(self, waiters=2):
        for number in range(1, waiters + 1):
            self.redis.ask("ZADD", QUEUE, number, f"w{number}", -self.now_ms() - LONG_MS, f"-w{number}")
        self.redis.ask("PEXPIRE", QUEUE, LONG_MS)

    # ---- The key ----

    def test_no_key(self):
        self.assertEqual(self.show(256, "1"), [("N", 0, -2, 0, "none", ""), ("Q", 0, 0, 0, "none", "")])

    def test_a_lock(self):
        self.lock(token=f"{TOKEN}:a b\nc")
        (what, number, left, count, kind, text), = self.show()
        self.assertEqual((what, number, count, kind, text), ("N", 0, 1, "string", f"{TOKEN}:a b\nc"))
        self.assert_about(left, LONG_MS)
        self.assert_lasts(LOCK, LONG_MS)

    def test_a_long_text(self):
        for length, shown in (128, "x" * 128), (129, "x" * 128 + "..."), (100000, "x" * 128 + "..."):
            self.redis.ask("SET", LOCK, "x" * length)
            self.assertEqual(self.show(), [("N", 0, -1, 1, "string", shown)])

    def test_readers(self):
        self.readers(over=-1, now=0, a=LONG_MS, b=LONGER_MS)
        *readers, name = self.show()
        self.assertEqual([(*row[:2], *row[3:]) for row in readers], [("R", 0, 1, "", "a"), ("R", 0, 1, "", "b")])
        self.assert_about(readers[0][2], LONG_MS)
        self.assert_about(readers[1][2], LONGER_MS)
        self.assertEqual(name[3:], (2, "zset", ""))
        self.assert_about(name[2], LONGER_MS)

    def test_a_reader_whose_time_is_just_over(self):
        """It neither counts nor is told.  One of so many ends at the very millisecond."""
        for _ in range(20):
            self.readers(**{f"r{i}": i for i in range(60)}, last=LONG_MS)
            *readers, name = self.show()
            self.assertEqual(name[3], len(readers))

    def test_readers_that_end_last(self):
        self.readers(**{f"r{i}": LONG_MS + i for i in range(70)})
        *readers, name = self.show()
        self.assertEqual([row[5] for row in readers], [f"r{i}" for i in range(6, 70)])
        self.assertEqual(name[3], 70)

    def test_scores_that_no_reader_has(self):
        for score in "inf", "-inf", "1e300":
            self.redis.ask("DEL", LOCK)
            self.redis.ask("ZADD", LOCK, score, "x", SCALE_MS, "y")
            self.redis.ask("PEXPIRE", LOCK, LONG_MS)
            self.assertEqual(self.show()[-1][4], "zset", score)

    def test_other_types(self):
        for words in (["HSET", LOCK, "a", "b"], ["RPUSH", LOCK, "a"], ["SADD", LOCK, "a"]):
            self.redis.ask("DEL", LOCK)
            self.redis.ask(*words)
            (_, _, left, _, kind, text), = self.show()
            self.assertEqual((left, kind), (-1, {"H": "hash", "R": "list", "S": "set"}[words[0][0]]))
            self.assertRegex(text, "^WRONGTYPE ")

    def test_a_time_that_nobody_gives(self):
        self.redis.ask("SET", LOCK, OURS, "PX", 9 * 10**18)
        self.assertEqual(self.show(), [("N", 0, 10**15, 1, "string", OURS)])

    # ---- Queues and permits ----

    def test_a_queue(self):
        self.queue()
        self.assertEqual(self.show()[1:], [])
        self.assertEqual(self.show(0, "1")[1:], [("Q", 0, 0, 2, "zset", "")])
        self.redis.ask("ZREM", QUEUE, "-w1")
        self.assertEqual(self.show(0, "1")[1:], [("Q", 0, 0, 2, "zset", "odd")])
        self.redis.ask("DEL", QUEUE)
        self.redis.ask("ZADD", QUEUE, -1, "x")
        self.assertEqual(self.show(0, "1")[1:], [("Q", 0, 0, 0, "zset", "odd")])

    def test_a_queue_of_another_type(self):
        self.redis.ask("SET", QUEUE, "x")
        for right in "+zcount", "-zcount":
            said = self.show(0, "1", client=self.client_with(right))
            self.assertEqual([row[:5] for row in said[1:]], [("Q", 0, 0, 0, "string")])

    def test_permits(self):
        self.lock(key=PERMIT + "0")
        self.lock(key=PERMIT + "7", token=OTHERS)
        self.redis.ask("RPUSH", PERMIT + "8", "x")
        self.assertEqual([row[:2] + row[3:] for row in self.show(8)[1:]], [("P", 1, 1, "string", OURS), ("P", 8, 1, "string", OTHERS)])
        self.assertEqual(self.show(256)[3][:5], ("P", 9, -1, 0, "list"))
        self.assert_about(self.show(256)[2][2], LONG_MS)

    # ---- Rights ----

    def test_it_only_reads(self):
        self.lock()
        self.queue()
        self.lock(key=PERMIT + "0")
        self.redis.ask("CONFIG", "RESETSTAT")
        self.show(256, "1")
        found = set(re.findall(r"cmdstat_(\S+):", self.redis.ask("INFO", "commandstats")))
        self.assertEqual(found, {"config|resetstat", "eval", "get", "pttl", "zcount"})

    def test_a_user_of_plain_locks(self):
        """What is forbidden is told, and the lock is found all the same."""
        few = self.client_with(*PLAIN)
        self.queue()
        self.lock(key=PERMIT + "0")
        for kind, count, text in ("none", 0, ""), ("string", 1, OURS):
            name, queue, permit = self.without_left(256, "1", client=few)
            self.assertEqual(name, ("N", 0, count, kind, text))
            for row, what in (queue, "Q"), (permit, "P"):
                self.assertEqual(row[:4], (what, 0, 0, "error"))
                self.assertRegex(row[4], "NOPERM|can't")
            self.lock()
        self.redis.ask("DEL", LOCK)
        self.readers(a=LONG_MS)
        name, = self.without_left(client=few)
        self.assertEqual(name[:4], ("N", 0, -1, "zset"))
        self.assertRegex(name[4], "NOPERM|can't")
        self.redis.ask("DEL", LOCK)
        self.redis.ask("HSET", LOCK, "a", "b")
        self.assertEqual(self.show(client=few)[0][4], "hash")

    def test_a_user_of_all_kinds(self):
        few = self.client_with(*ALL_KINDS)
        self.queue()
        self.lock(key=PERMIT + "3")
        for _ in range(2):
            self.assertEqual(self.without_left(256, "1", client=few), self.without_left(256, "1"))
            self.assertNotIn("error", [row[3] for row in self.without_left(256, "1", client=few)])
            self.readers(a=LONG_MS, b=LONGER_MS)

    def test_without_one_right(self):
        self.lock()
        self.assertEqual(self.show(client=self.client_with("-pttl"))[0][2:], (0, 1, "string", OURS))
        self.assertEqual(self.show(client=self.client_with("-get"))[0][3:5], (0, "error"))
        self.assertEqual(self.show(client=self.client_with("-type"))[0][3:], (1, "string", OURS))
        self.lock(key=PERMIT + "0")
        self.assertEqual(self.show(1, client=self.client_with("-get"))[1][:5:4], ("P", "error"))
        self.redis.ask("DEL", LOCK)
        self.readers(a=LONG_MS)
        for right in "-pttl", "-zrange", "-zcount":
            self.assertEqual(self.show(client=self.client_with(right))[-1][3:5], (-1, "zset"), right)
        self.assertEqual(self.show(client=self.client_with("-get"))[-1][3:5], (1, "zset"))
        self.assertEqual(self.show(client=self.client_with("-type"))[-1][3:5], (0, "error"))

    def test_a_name_that_is_forbidden(self):
        few = self.client_with("resetkeys", "~other")
        self.refuse("NOPERM|can't", "show", LOCK, 0, "0", client=few)


class Scanned(Case):
    def scan(self, everything="0", client=None):
        head, said = self.run_script("scan", [], 0, 1000, everything, client=client).split("\n", 1)
        self.assertEqual(head.split(" ")[0], "0")
        self.others = int(head.split(" ")[1])
        return sorted((row[:2] + row[3:] for row in rows(said)))

    def test_every_kind(self):
        self.lock(token=TOKEN)
        self.lock(key="b", token=TOKEN + ":note")
        self.lock(key="c", token="revoked by me")
        self.lock(key="redlock:permit:pool:255", token=TOKEN)
        self.redis.ask("ZADD", "d", SCALE_MS - LONG_MS - 1, "over", SCALE_MS, TOKEN)
        self.redis.ask("PEXPIRE", "d", LONG_MS)
        self.redis.ask("ZADD", "redlock:queue:e", 1, "w", -self.now_ms(), "-w")
        self.redis.ask("PEXPIRE", "redlock:queue:e", LONG_MS)
        self.flag(key="redlock:wait:f")
        self.assertEqual(self.scan(), [
            ("L", 0, 1, "b", TOKEN + ":note"), ("L", 0, 1, "c", "revoked by me"), ("L", 0, 1, LOCK, TOKEN),
            ("P", 256, 1, "pool", TOKEN), ("Q", 0, 1, "e", ""), ("R", 0, 1, "d", ""), ("W", 0, 1, "f", "")])
        self.assertEqual(self.others, 0)

    def test_what_redlock_did_not_write(self):
        self.lock(key="a", token="x")
        self.lock(key="redlock:permit:pool:256", token=TOKEN)
        self.lock(key="long", token="x" * 129)
        self.lock(key="n" * 513, token=TOKEN)
        self.redis.ask("SET", "no end", TOKEN)
        self.redis.ask("HSET", "hash", "a", "b")
        self.redis.ask("PEXPIRE", "hash", LONG_MS)
        self.assertEqual((self.scan(), self.others), ([], 2))
        self.assertEqual(self.scan("1"), [("G", 0, 1, "a", "x"), ("G", 0, 1, "redlock:permit:pool:256", TOKEN)])
        self.assertEqual(self.others, 0)

    def test_what_clients_wait_for_in_vain(self):
        for key in "no end", "hash", LOCK:
            self.flag(key=f"redlock:wait:{key}")
        self.redis.ask("SET", "no end", TOKEN)
        self.redis.ask("HSET", "hash", "a", "b")
        self.redis.ask("PEXPIRE", "hash", LONG_MS)
        self.lock(token=TOKEN)
        self.assertEqual([row for row in self.scan() if row[0] == "F"], [("F", 0, 1, "hash", ""), ("F", 0, 1, "no end", "")])

    def test_rights(self):
        self.lock(token=TOKEN)
        self.lock(key="b", token=TOKEN)
        self.assertEqual(self.scan(client=self.client_with("resetkeys", "~b")), [("L", 0, 1, "b", TOKEN)])
        self.refuse("run th", "scan", [], 0, 100, "0", client=self.client_with("-strlen"))
        self.refuse("scan|run th", "scan", [], 0, 100, "0", client=self.client_with("-scan"))
