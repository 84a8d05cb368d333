"""A client of Redlock that was written from docs/protocol.md alone.

It shows that the document is enough: it founds sets, gives masters their epochs, and takes every kind
of lock beside the library of this tree.  It has no clock guard `per_vote`, and does not take part in
changes of a set, beyond obeying them.  It is one thread, which waits in `pump`.
"""

import random
import secrets
import select

from guard import Founding, install
from link import Broken, Failure, Link, now_us
from marker import FAULT, Master, allowance

REPLY_US = 2000000  # Chosen: for a machine that runs other tests, too.


class Round:
    """One request to many masters: what each said."""

    def __init__(self, client, deadline, yes="OK"):
        self.client, self.deadline, self.yes_is = client, deadline, yes
        self.said = {}      # master: asked, yes, no, void, none
        self.values = {}    # master: the number behind a no; of an error: 0
        self.numbers = {}   # master: the number of the fencing counter
        self.may_store = set()
        self.revoked = None

    def ask(self, master, words, count=None):
        self.said[master] = "asked"
        self.may_store.add(master)
        got = []
        master.link.send(words, got.append)
        if count:
            master.link.send(count, lambda reply: got.append((reply, master.state, master.floor)))
            if FAULT == "floors":
                master.look()
        master.link.send(["HGET", "redlock:master", "epoch"],
                         lambda proof: self.on_answers(master, got[0], got[1:], proof))

    def on_answers(self, master, vote, counts, proof):
        if isinstance(vote, Failure):
            self.said[master] = "none"
            if not isinstance(vote, Broken):
                self.may_store.discard(master)
                if str(vote).startswith("WRONGTYPE"):
                    self.said[master] = "no"
                elif str(vote).split(" ", 1)[0] in ("READONLY", "NOAUTH", "LOADING", "MASTERDOWN"):
                    master.close()
            return
        is_proved = isinstance(proof, (bytes, type(None))) and master.proves(proof)
        if vote != self.yes_is:
            self.said[master] = "no"
            self.may_store.discard(master)
            if isinstance(vote, bytes):
                self.revoked = vote.decode(errors="replace")
            elif isinstance(vote, int) and is_proved:
                self.values[master] = vote
            return
        good = is_proved and (not counts or self.takes_count(master, *counts[0], proof))
        self.said[master] = "yes" if good and now_us() < self.deadline else "void"

    def takes_count(self, master, count, state, floor, proof):
        """state, floor: what the latest query before the count showed.  No other text proves it."""
        if not isinstance(count, int) or count < 1 or floor + count > 2 ** 53 - 1:
            return False
        if proof != (master.state if FAULT == "floors" else state):
            return False
        number = floor + count
        if number > master.high and number > master.clock() + 2 ** 40:
            return False
        self.numbers[master] = (number, number <= master.high)
        return True

    def having(self, *words):
        return {master for master, word in self.said.items() if word in words}

    def is_won(self):
        return self.client.is_majority(self.having("yes"))

    def is_decided(self):
        return self.is_won() or not self.client.is_majority(self.having("yes", "asked"))


class Lease:
    """A lock that is held until `deadline`, by our clock."""

    def __init__(self, kind, token, ttl, deadline, may_store):
        self.kind, self.token, self.ttl, self.deadline, self.may_store = kind, token, ttl, deadline, may_store
        self.fence = None
        self.lost = None  # Why, if a revocation said so.

    def left_ms(self):
        return max(0, self.deadline - now_us()) // 1000


class Client:
    """Masters, and what is known of their set."""

    def __init__(self, places, max_ms=60000):
        self.max_ms, self.set_id, self.version, self.config = max_ms, None, 0, ""
        self.lists, self.masters = [list(places)], {}
        self.has_seen_epoch = self.has_majority = False
        self.founding, self.found_us = None, 0
        self.id = secrets.token_hex(12)
        self.listeners, self.channels, self.watches = {}, {}, []
        self.connect()

    # ---- the set ----

    def connect(self):
        for place in {place for one in self.lists for place in one} - self.masters.keys():
            self.masters[place] = Master(place, self)

    def members(self):
        return {place: self.masters[place] for one in self.lists for place in one}

    def is_majority(self, masters):
        return all(sum(self.masters[place] in masters for place in one) > len(one) // 2 for one in self.lists)

    def may_vote(self, master):
        epochs = [other.epoch for other in self.masters.values() if other.epoch]
        return (self.has_majority and master.is_ready and master.of[0] == self.set_id
                and epochs.count(master.epoch) == 1)

    def voters(self):
        return [master for master in self.members().values() if self.may_vote(master)]

    def on_marker(self, master, config):
        set_id, version, _ = master.of
        if set_id and config is not None and (self.set_id is None or (set_id == self.set_id and version > self.version)):
            is_new = self.set_id is None
            self.set_id, self.version, self.config = set_id, version, config
            self.lists = [text.split() for text in config.split(" > ")]  # No members: it is closed.
            self.connect()
            for other in self.masters.values():
                if is_new and other is not master and other.of:
                    other.look()
        elif self.set_id and (set_id is None or (set_id == self.set_id and version < self.version)):
            if master.is_ready and not getattr(master, "was_told", None) == self.version:
                master.was_told = self.version
                master.look()
        obeyed = {other for other in self.members().values() if other.is_ready and other.of[0] == self.set_id}
        self.has_majority |= self.set_id is not None and self.is_majority(obeyed)

    def found(self):
        alone = [master for master in self.masters.values()
                 if master.link.is_up and master.of and master.of[0] is None]
        if self.founding is None and now_us() >= self.found_us and len(alone) == len(self.masters):
            self.founding = Founding(self)

    # ---- the loop ----

    def tick(self):
        for link in self.links():
            link.tick()
        if self.set_id is None:
            self.found()
        for master in self.masters.values():
            if master.link.is_up and master.of:
                if not master.is_ready:
                    install(self, master)
                elif now_us() - master.tell_us > 1000000:
                    master.tell_us = now_us()
                    master.link.send(["HGET", "redlock:master", "epoch"], lambda reply, master=master: (
                        isinstance(reply, Failure) or master.proves(reply)))

    def links(self):
        return [master.link for master in self.masters.values()] + list(self.listeners.values())

    def pump(self, until, wait_us, other=None):
        """Waits for `until`, or for something to read from the file `other`."""
        end = now_us() + wait_us
        while True:
            self.tick()
            if until() or now_us() >= end:
                return until()
            links = {link.socket: link for link in self.links() if link.socket}
            writes = [link.socket for link in links.values() if link.wants_to_write()]
            wait_s = min(0.05, max(0, end - now_us()) / 1e6)
            reads, writes, _ = select.select([*links, *([other] if other else [])], writes, [], wait_s)
            for socket in writes:
                if links[socket].socket is socket:
                    links[socket].writable()
            for socket in reads:
                if socket is other:
                    return until()
                if links[socket].socket is socket:
                    links[socket].readable()

    # ---- rounds ----

    def make_ready(self, wait_us=3000000):
        """Waits until a majority may vote; then for the others, a little."""
        if self.pump(lambda: self.is_majority(self.voters()), wait_us):
            self.pump(lambda: len(self.voters()) == len(self.members()), 50000)
            return True
        return False

    def release_round(self, kind, token, ttl, masters):
        until = now_us() + (ttl + allowance(ttl)) * 1000
        for master in masters:
            master.owe(kind.release(token), until, lambda reply: None)

    def attempt(self, kind, ttl, fence=False):
        """(a lease or None, the round)."""
        token, version = kind.token(), self.version
        sent = now_us()
        rnd = Round(self, sent + (ttl - allowance(ttl)) * 1000)
        for master in self.voters():
            rnd.ask(master, kind.acquire(token, ttl), kind.count() if fence else None)
        self.pump(rnd.is_decided, REPLY_US)
        lease = Lease(kind, token, ttl, rnd.deadline, rnd.may_store)
        if rnd.is_won() and now_us() < rnd.deadline:
            if not fence or self.agree(lease, rnd, version):
                return lease, rnd
        self.release_round(kind, token, ttl, rnd.may_store)
        return None, rnd

    def agree(self, lease, rnd, version):
        """Finds the fencing token: section 14.  version: of the configuration before the round."""
        def agreed(numbers):
            for number in set(numbers.values()):
                if self.is_majority({master for master, other in numbers.items() if other == number}):
                    return number
            return None
        yes = rnd.having("yes")
        lease.fence = agreed({master: rnd.numbers[master][0] for master in yes
                              if rnd.numbers[master][1] and version == self.version})
        greatest, more = max(number for number, _ in rnd.numbers.values()), 1
        while lease.fence is None and now_us() < lease.deadline:
            said, asked = {}, set(lease.may_store)
            for master in asked:
                master.link.send(lease.kind.raise_to(lease.token, greatest + more, master),
                                 lambda reply, master=master: said.__setitem__(master, reply))
            self.pump(lambda: len(said) == len(asked), REPLY_US)
            numbers = {master: reply for master, reply in said.items() if isinstance(reply, int) and reply > 0}
            if not self.is_majority(set(numbers)):
                return False
            for master, number in numbers.items():
                if number > master.high:
                    master.high = master.floor - (master.floor - number) // 16384 * 16384
            lease.fence, greatest = agreed(numbers), max(greatest, *numbers.values())
            more = min(4 * more, 1024)
        return lease.fence is not None and now_us() < lease.deadline

    def extend(self, lease, ttl):
        sent = now_us()
        rnd = Round(self, lease.deadline, 1)
        for master in lease.may_store:
            rnd.ask(master, lease.kind.extend(lease.token, ttl))
        self.pump(rnd.is_decided, REPLY_US)
        if rnd.having("no"):
            lease.lost = rnd.revoked
            if not lease.kind.keeps_after_no:
                lease.may_store -= rnd.having("no")
        if not rnd.is_won() or now_us() >= lease.deadline:
            return False
        lease.deadline = max(lease.deadline, sent + (ttl - allowance(ttl)) * 1000)
        lease.ttl = max(lease.ttl, ttl)
        return True

    def release(self, lease):
        """True: a majority deleted its key."""
        rnd = Round(self, 2 ** 63, 1)
        until = now_us() + (lease.ttl + allowance(lease.ttl)) * 1000
        for master in lease.may_store:
            rnd.said[master] = "asked"
            master.owe(lease.kind.release(lease.token), until,
                       lambda reply, master=master: rnd.said.__setitem__(master, "yes" if reply == 1 else "no"))
        self.pump(rnd.is_decided, REPLY_US)
        return rnd.is_won()

    # ---- waiting: section 9 ----

    def subscribe(self, channel, heard):
        """heard(place, text); with None when the subscription is confirmed."""
        self.channels[channel] = heard
        for place, master in self.members().items():
            if place not in self.listeners:
                self.listeners[place] = Link(master.place, self.on_listener,
                                             lambda channel, text, place=place: self.on_message(place, channel, text))
                self.listeners[place].place = place
            elif self.listeners[place].is_up:
                self.subscribe_on(self.listeners[place], channel)

    def subscribe_on(self, link, channel):
        def confirmed(reply):
            if not isinstance(reply, Failure) and channel in self.channels:
                self.channels[channel](link.place, None)
        link.send(["SUBSCRIBE", channel], confirmed)

    def on_listener(self, link):
        link.pause_us = 50000
        for channel in self.channels:
            self.subscribe_on(link, channel)

    def on_message(self, place, channel, text):
        if heard := self.channels.get(channel.decode()):
            heard(place, text.decode(errors="replace").split(" "))

    def unsubscribe(self, channel):
        del self.channels[channel]
        for link in self.listeners.values():
            if link.is_up:
                link.send(["UNSUBSCRIBE", channel], lambda _: None)

    def lock(self, kind, ttl, wait_ms=0, fence=False):
        """A lease, or None."""
        end = now_us() + wait_ms * 1000
        if not self.make_ready():
            return None
        for _ in range(3):
            lease, rnd = self.attempt(kind, ttl, fence)
            if lease or not kind.learn(rnd):
                break
        if lease or wait_ms == 0:
            return lease
        watch = Watch(self, kind)
        while lease is None and now_us() < end:
            watch.wait(end)
            lease, rnd = self.attempt(kind, ttl, fence)
            if lease is None:
                kind.learn(rnd)
        watch.close(lease is not None)
        return lease


class Watch:
    """When the masters are free, as heard and as queried."""

    def __init__(self, client, kind):
        self.client, self.kind, self.free_at, self.speaker, self.crowd = client, kind, {}, None, 1
        client.subscribe(kind.channel(), self.on_message)

    def on_message(self, place, words):
        if not words or len(words) != 2 or not words[1].isdigit():
            return
        if words[0] == "free":
            self.crowd = int(words[1])
            for one in self.client.masters if place == self.speaker else [place]:
                self.free_at[one] = 0
        elif words[0] in ("held", "taken"):
            self.free_at[place] = now_us() + int(words[1]) * 1000
            if words[0] == "taken":
                self.speaker = place

    def query(self):
        for master in self.client.voters():
            def answered(left, place=master.place):
                if isinstance(left, int):
                    self.free_at[place] = 0 if left == -2 else 2 ** 63 if left < 0 else now_us() + left * 1000
            master.link.send(self.kind.wait("held"), answered)

    def is_free(self):
        return self.client.is_majority({master for place, master in self.client.masters.items()
                                        if self.free_at.get(place, 2 ** 63) <= now_us()})

    def wait(self, end):
        self.client.pump(lambda: False, random.uniform(1000, 20000))
        while now_us() < end:
            self.query()
            if self.client.pump(self.is_free, min(random.uniform(200000, 800000), max(0, end - now_us()))):
                break
        if random.uniform(0, self.crowd) > 2:
            self.client.pump(lambda: False, random.uniform(0, self.crowd / 2 * 5000))

    def close(self, has_won):
        self.client.unsubscribe(self.kind.channel())
        if has_won and self.client.voters():
            self.client.voters()[0].link.send(self.kind.wait("taken"), lambda _: None)
