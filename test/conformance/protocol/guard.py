"""When a warming master gets an epoch, and how a set is founded: section 7 of docs/protocol.md."""

import hashlib

import scripts
from link import Failure, now_us
from marker import allowance, random_16


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


def needed_to_remember(client):
    """N - Q + 1 masters."""
    count = len(client.members())
    return count - (count // 2 + 1) + 1


def ask_witnesses(client, master):
    """Once for each nonce on each connection to a witness."""
    for witness in client.members().values():
        mark = (master.place, master.nonce)
        if witness is master or not witness.link.is_up or witness.of is None or mark in witness.marks:
            continue
        witness.marks.add(mark)

        def answered(age, nonce=master.nonce, name=witness.place):
            if isinstance(age, int) and age >= 0:
                master.witnessed[name, nonce] = now_us() - age * 1000
        witness.link.send(["EVAL", scripts.WITNESS, 1, "redlock:witness", master.place,
                           master.nonce + master.run_id, "mark"], answered)


def may_install(client, master):
    """Rules 1 to 4 of "How a master gets an epoch"."""
    others = [other for other in client.members().values() if other is not master and other.of]
    longest = max([client.max_ms, master.max_ms] + [other.max_ms for other in others])
    wait_us = (longest + 2 * allowance(longest)) * 1000
    seen = master.nonces[master.nonce]
    since = sorted(at for (_, nonce), at in master.witnessed.items() if nonce == master.nonce)
    quorum = len(client.members()) // 2 + 1
    if len(since) >= quorum:
        seen = min(seen, since[quorum - 1])
    if now_us() - seen < wait_us:
        return None
    later = [other for other in others if other.looks > seen + wait_us and other.looks > master.nonces[master.nonce]]
    for other in others:
        if other not in later and now_us() - other.asked_us > 500000:
            other.look()
    remember = [other for other in later if other.is_ready and other.of[0] == client.set_id]
    if len(remember) < needed_to_remember(client) and (len(later) < len(client.members()) - 1 or client.version > 1):
        return None
    return remember


def install(client, master):
    """Sends `look` with the nonce if the time has come."""
    all_masters = list(client.members().values())
    if not all_masters or client.set_id is None or now_us() - master.asked_us < 500000:
        return
    seen = [other.nonces.get(other.nonce) for other in all_masters]
    is_new = (client.version == 1 and not client.has_seen_epoch and None not in seen
              and all(other.is_fresh and other.looks > max(seen) for other in all_masters))
    remember = [] if is_new else may_install(client, master)
    if remember is None:
        ask_witnesses(client, master)
        master.look()
        return
    known = [other for other in all_masters if other.of]
    floor = max(other.high for other in known)
    middle = median([other.clock() for other in known])
    if len(remember) < needed_to_remember(client):
        floor = max(floor, middle)
    if floor > middle + 2 ** 40:
        return
    ballots = [other.promised for other in remember if other.promised and other.of[1] == client.version]
    ballot = max((words[0] for words in ballots), default="")
    accepted = max((words for words in ballots if len(words) > 1), default=["", ""])[1]
    master.look(master.nonce, floor, (ballot, accepted))


class Founding:
    """`claim`, read again, `found`; or `withdraw`."""

    def __init__(self, client):
        self.client, self.number = client, random_16()
        self.list = " ".join(sorted(client.masters))
        self.said, self.step = {}, "claim"
        self.ask(scripts.CLAIM, self.number, self.list)

    def ask(self, script, *words):
        self.said = {}
        for master in self.client.masters.values():
            more = [master.place] if script is scripts.FOUND else []
            master.link.send(["EVAL", script, 1, "redlock:master", *words, *more],
                             lambda reply, place=master.place: self.on_answer(place, reply))

    def on_answer(self, place, reply):
        self.said[place] = reply if isinstance(reply, Failure) else reply.decode() if isinstance(reply, bytes) else reply
        if len(self.said) == len(self.client.masters):
            getattr(self, "after_" + self.step)()

    def after_claim(self):
        self.first = self.said
        if not all(said in ("new", "took") or str(said).startswith("member ") for said in self.said.values()):
            self.give_up()
            return
        self.step = "read"
        self.ask(scripts.CLAIM, "", self.list)

    def after_read(self):
        for place, said in self.said.items():
            if said != f"claim {self.number} {self.list}" and said != self.first[place]:
                self.give_up()
                return
        founded = [said.split(" ", 3) for said in self.said.values() if said.startswith("member ")]
        if any(ver != "1" or config != self.list for _, _, ver, config in founded):
            self.give_up()
            return
        number = hashlib.blake2b(self.list.encode(), digest_size=32).hexdigest()[:16]
        self.step = "found"
        self.ask(scripts.FOUND, self.number, self.list, founded[0][1] if founded else number)

    def after_found(self):
        self.end()

    def give_up(self):
        self.step = "end"
        for place, said in getattr(self, "first", self.said).items():
            if said == "new":
                self.client.masters[place].link.send(
                    ["EVAL", scripts.WITHDRAW, 1, "redlock:master", self.number, self.list], lambda _: None)
        self.end()

    def end(self):
        self.client.founding = None
        self.client.found_us = now_us() + 300000
        for master in self.client.masters.values():
            if master.link.is_up:
                master.look()
