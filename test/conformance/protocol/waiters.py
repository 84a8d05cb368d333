"""The fair queue, with standing tokens: section 13 of docs/protocol.md."""

import random
import secrets

import scripts
from client import REPLY_US, Lease, Round
from kinds import Plain, run
from link import now_us
from marker import allowance

PATIENCE_MS = 4 * (800 + REPLY_US // 1000 + 1)


class Fair(Plain):
    """One waiter: its place, and the token that waits with it."""

    def __init__(self, name, client, stands=True):
        super().__init__(name)
        self.waiter = client.id + secrets.token_hex(8)
        self.ticket, self.sent, self.stands = 0, 0, stands

    def acquire(self, token, ttl):
        stands = [self.sent] if self.sent else []
        return run(scripts.ACQUIRE_FAIR, [self.key], token, ttl, self.waiter, self.ticket, PATIENCE_MS, *stands)

    def extend(self, token, ttl):
        return run(scripts.EXTEND_FAIR, [self.key], token, ttl, self.waiter)

    def release(self, token, how=None):
        return run(scripts.RELEASE_FAIR, [self.key], token, self.waiter, how or ("pass" if self.stands else ""))


class Wait:
    """The wait for a fair lock."""

    def __init__(self, client, kind, ttl, fence):
        self.client, self.kind, self.ttl, self.fence = client, kind, ttl, fence
        self.token = kind.token()
        self.tickets, self.first, self.granted, self.dropping = {}, set(), {}, set()
        client.subscribe("redlock:client:" + client.id, self.on_own)
        client.subscribe(kind.channel(), self.on_lock)

    # ---- messages ----

    def on_own(self, place, words):
        master = self.client.masters[place]
        if words is None or words == ["next", self.kind.waiter]:
            self.first.add(master)
        elif words[0] == "granted" and len(words) == 5 and words[1] == self.kind.waiter and words[4] == self.token:
            sent, state = int(words[2]), words[3].encode()
            if (self.client.may_vote(master) and state == master.state and master not in self.dropping
                    and now_us() < sent + (self.ttl - allowance(self.ttl)) * 1000):
                self.granted[master] = min(sent, self.granted.get(master, sent))

    def on_lock(self, place, words):
        if words is None or words[0] == "free":
            self.first.add(self.client.masters[place])

    # ---- heartbeats ----

    def heartbeat(self):
        """Asks all masters; a lease, or None."""
        client, kind = self.client, self.kind
        sent = now_us()
        kind.sent = sent if kind.stands and kind.ticket and not self.fence else 0
        if not kind.stands:
            self.token = kind.token()
        rnd = Round(client, sent + (self.ttl - allowance(self.ttl)) * 1000)
        self.first = set()
        for master in client.voters():
            if master not in self.dropping:
                rnd.ask(master, kind.acquire(self.token, self.ttl), kind.count() if self.fence else None)
        client.pump(lambda: self.is_won(rnd) or not rnd.having("asked"), REPLY_US)
        for master, number in rnd.values.items():
            self.tickets[master] = number
        self.tickets.update({master: kind.ticket or 1 for master in rnd.having("yes")})
        if not kind.ticket and client.is_majority(set(self.tickets)):
            kind.ticket = max(self.tickets.values())
        if self.is_won(rnd):
            return self.win(rnd, sent)
        if self.votes(rnd):
            self.drop("back", rnd.may_store | set(self.granted))
        elif not kind.stands:
            client.release_round(kind, self.token, self.ttl, rnd.may_store)
        return None

    def votes(self, rnd=None):
        """Heartbeats and grants add up."""
        return set(self.granted) | (rnd.having("yes") if rnd else set())

    def is_won(self, rnd=None):
        return self.client.is_majority(self.votes(rnd))

    def win(self, rnd, sent):
        client = self.client
        since = min([sent, *self.granted.values()] if rnd else self.granted.values())
        deadline = since + (self.ttl - allowance(self.ttl)) * 1000
        if now_us() >= deadline:
            return None
        lease = Lease(self.kind, self.token, self.ttl, deadline, set(client.members().values()))
        if self.fence and rnd and not client.agree(lease, rnd):
            return None
        if self.ttl * 1000 - (now_us() - since) < self.ttl * 875 and not client.extend(lease, self.ttl):
            return None
        return lease

    def drop(self, how, masters):
        """This token is dead: nothing is asked of a master before it has forgotten it."""
        kind, until = self.kind, now_us() + 2 * (self.ttl + allowance(self.ttl)) * 1000
        for master in masters:
            self.dropping.add(master)
            master.owe(kind.release(self.token, how), until, lambda _, master=master: self.dropping.discard(master))
        self.token, self.granted = kind.token(), {}

    def is_turn(self):
        return self.is_won() or self.client.is_majority(self.first)

    def run(self, end):
        lease = self.heartbeat()
        while lease is None and now_us() < end:
            is_in_line = self.kind.ticket and self.client.is_majority(
                {master for master, number in self.tickets.items() if number == self.kind.ticket})
            if is_in_line:
                self.client.pump(self.is_turn, min(random.uniform(500000, 600000), end - now_us()))
            lease = self.win(None, 0) if self.is_won() else self.heartbeat()
        self.close(lease)
        return lease

    def close(self, lease):
        kind, client = self.kind, self.client
        client.unsubscribe(kind.channel())
        client.unsubscribe("redlock:client:" + client.id)
        if lease is None:
            self.drop("leave", set(client.members().values()))
        elif not kind.stands or self.fence:
            for master in client.voters():
                master.link.send(["ZREM", "redlock:queue:" + kind.key, kind.waiter, "-" + kind.waiter], lambda _: None)


def lock_fair(client, name, ttl, wait_ms=0, fence=False):
    """A lease, or None."""
    if not client.make_ready():
        return None
    stands = not fence and ttl >= PATIENCE_MS
    return Wait(client, Fair(name, client, stands), ttl, fence).run(now_us() + wait_ms * 1000)
