"""One master, as the restart guard knows it: sections 3 and 7 of docs/protocol.md."""

import os
import secrets

import scripts
from link import Broken, Failure, Link, now_us


FAULT = os.environ.get("DRIVER_FAULT", "")  # To show that the suite finds it; see drivers/from-protocol.py.


def random_16():
    return secrets.token_hex(8)


def allowance(ttl_ms):
    return -(-ttl_ms // 100) + 2


class Master:
    """A link, what `look` said on it, and what is still to be released there."""

    def __init__(self, place, client):
        self.place, self.client = place, client
        self.link = Link(place, self.greet)
        self.run_id, self.is_durable, self.info = None, False, {}
        self.forget_link()
        self.nonces = {}     # nonce: when it was first seen
        self.witnessed = {}  # (name of a witness, nonce): since when the nonce exists, as it says
        self.debts = []      # (words, until): releases that are not answered
        self.tell_us = 0

    def forget_link(self):
        """What was heard on a connection is not believed on the next."""
        self.state = self.epoch = self.nonce = self.of = None
        self.is_fresh, self.asked_us, self.said_us, self.looks, self.marks = False, 0, 0, 0, set()

    @property
    def is_ready(self):
        return self.state is not None

    def close(self):
        self.link.close()

    # ---- the greeting ----

    def greet(self, _):
        self.forget_link()
        self.link.send(["INFO"], self.on_info)
        self.link.send(["CONFIG", "GET", "appendfsync"], lambda reply: self.on_setting(reply, b"always"))
        self.link.send(["CONFIG", "GET", "no-appendfsync-on-rewrite"], lambda reply: self.on_setting(reply, b"no"))
        self.link.send(["PING"], self.on_greeted)

    def on_info(self, reply):
        text = reply.decode(errors="replace") if isinstance(reply, bytes) else ""
        self.info = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        self.run_id = self.info.get("run_id")
        self.is_durable = (self.info.get("aof_enabled") == "1"
                           and not self.info.get("master_replid2", "0").strip("0"))

    def on_setting(self, reply, good):
        self.is_durable &= isinstance(reply, list) and len(reply) == 2 and reply[1] == good

    def on_greeted(self, reply):
        if isinstance(reply, Failure):
            return
        twins = [other for other in self.client.masters.values()
                 if other is not self and other.link.is_up and other.run_id == self.run_id]
        mode = self.info.get("redis_mode") or self.info.get("server_mode")  # Of Valkey.
        if (self.info.get("role") == "slave" or mode == "cluster"
                or self.info.get("loading") == "1" or not self.run_id or twins):
            self.close()
            return
        self.link.pause_us = 50000
        for debt in self.debts:
            self.pay(*debt)
        self.look()

    # ---- releases, which are repeated until they are answered ----

    def owe(self, words, until, then):
        self.debts = [debt for debt in self.debts if debt[1] > now_us()]
        self.debts.append((words, until, then))
        if self.link.is_up and self.run_id:
            self.pay(words, until, then)

    def pay(self, words, until, then):
        def answered(reply):
            if not isinstance(reply, Broken):
                self.debts = [debt for debt in self.debts if debt != (words, until, then)]
                then(reply)
        if now_us() < until:
            self.link.send(words, answered)

    # ---- the marker ----

    def look(self, nonce="", floor=0, promised=("", "")):
        client = self.client
        durable = 0 if not self.is_durable else 1 if client.has_seen_epoch else 2
        known = client.set_id is not None
        tell = known and (nonce or (self.of and (self.of[0] is None or self.of[1] < client.version)))
        name = self.place if self.place in client.members() else ""
        self.asked_us = now_us()
        sent = self.asked_us
        self.link.send(["EVAL", scripts.LOOK, 1, "redlock:master", self.run_id, durable, client.max_ms,
                        random_16(), nonce, client.set_id or "", floor, client.version,
                        client.config if tell else "", name if tell else "", *promised],
                       lambda reply: self.on_look(reply, sent))

    def on_look(self, reply, sent):
        if isinstance(reply, Failure) or not isinstance(reply, bytes):
            self.close()
            return
        first, _, promised = reply.decode().partition("\n")
        words = first.split(" ")
        self.looks, self.said_us = sent, now_us()
        if words[0] == "ready":
            state, top, floor, high, time_us, *of = words[1:]
            self.state, self.epoch, self.nonce = state.encode(), state.split(".")[0], None
            self.max_ms, self.floor, self.high = int(top), int(floor), int(high)
            self.client.has_seen_epoch = True
        elif words[0] == "warming":
            nonce, top, fresh, _, high, time_us, *of = words[1:]
            self.state = self.epoch = None
            self.nonce, self.is_fresh, self.max_ms, self.high = nonce, fresh == "1", int(top), int(high)
            self.nonces.setdefault(nonce, self.said_us)
        else:
            self.close()
            return
        self.time_us = int(time_us)
        self.promised = promised.split(" ", 1) if promised else []
        self.of = (None, 0, None) if of[0] == "-" else (of[0], int(of[1]), of[2])
        config = " ".join(of[3:]) if of[3:] and (of[3] or FAULT != "closed") else None
        self.client.on_marker(self, config)

    def clock(self):
        """What TIME would say about now."""
        return self.time_us + now_us() - self.said_us

    def proves(self, reply):
        """Is this the proof of a vote?  If it is of a newer version, the marker is read again."""
        if self.state is not None and reply == self.state:
            return True
        if not isinstance(reply, bytes) or self.state is None or reply.split(b".")[0] != self.state.split(b".")[0]:
            self.close()
        else:
            self.look()
        return False
