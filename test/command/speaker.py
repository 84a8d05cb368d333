"""Clients that are written by hand, and speak the wire format of some version of Redlock.

A client has its own text of each script (docs/protocol.md, *Versions*), and shares only keys, fields and
messages with others.  So these are as good as programs of that version:

    Early     an early build of 0.1, which knew no sets
    Now       the format `set`, by other scripts than ours
    Later     a format that shuts out clients of the format `set`, as section 17 of docs/protocol.md asks for
"""

import re
import secrets

import tools


class Refused(Exception):
    """The client does not ask this master for a lock."""


class Speaker:
    """One connection to each master, and one lock at a time on each."""

    release_text = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('del', KEYS[1])
if redis.call('del', 'redlock:wait:' .. KEYS[1]) == 1 then
    local count = redis.call('pubsub', 'numsub', 'redlock:wait:' .. KEYS[1])[2]
    redis.call('publish', 'redlock:wait:' .. KEYS[1], 'free ' .. count)
end
return 1"""

    def __init__(self, ports):
        self.masters = {port: tools.Master(port=port) for port in ports}
        self.known = {}  # What the proof must show.

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for master in self.masters.values():
            master.__exit__()

    def look(self, port):
        """Query the marker.  Raises Refused."""
        master = self.masters[port]
        run_id = re.search(r"\nrun_id:([0-9a-f]+)", master.ask("INFO", "server").decode()).group(1)
        words = master.ask("EVAL", self.look_text, 1, tools.MARKER, run_id, len(self.masters)).decode().split()
        if words[0] != "ready":
            raise Refused(" ".join(words))
        self.known[port] = words[1]

    def votes(self, port, *command):
        """Ask one master, with the proof behind it."""
        answer = self.masters[port].ask(*command)
        proof = self.masters[port].ask("HGET", tools.MARKER, "epoch")
        return answer in (b"OK", 1) and proof == self.known[port].encode()

    def may_vote(self):
        """The masters that this client may ask."""
        may = []
        for port in self.masters:
            try:
                if port not in self.known:
                    self.look(port)
                may.append(port)
            except Refused:
                pass
        return may

    def lock(self, name, ttl_ms=60000):
        """One round.  Returns the token, or None: then nothing of it is left."""
        token = secrets.token_hex(20)
        yes = [port for port in self.may_vote() if self.votes(port, "SET", name, token, "NX", "PX", ttl_ms)]
        if 2 * len(yes) > len(self.masters):
            return token
        self.release(name, token)
        return None

    def extend(self, name, token, ttl_ms=60000):
        text = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) or 0"
        yes = [port for port in self.known if self.votes(port, "EVAL", text, 1, name, token, ttl_ms)]
        return 2 * len(yes) > len(self.masters)

    def release(self, name, token):
        """Returns how many masters stored it."""
        return sum(master.ask("EVAL", self.release_text, 1, name, token) for master in self.masters.values())


class Early(Speaker):
    """It stores the number of masters in the field `of`, and the field `epoch` is 16 digits."""

    look_text = """
local marker = redis.call('hmget', KEYS[1], 'id', 'epoch', 'of', 'floor', 'high')
if marker[3] and marker[3] ~= ARGV[2] then return 'other ' .. marker[3] end
if not (marker[2] and marker[4] and marker[5]) then return 'warming' end
redis.call('hset', KEYS[1], 'id', ARGV[1], 'of', ARGV[2])
return 'ready ' .. marker[2]"""


class Now(Speaker):
    """The list must be the set.  No lease is longer than what is announced already."""

    look_text = """
local marker = redis.call('hmget', KEYS[1], 'id', 'epoch', 'of', 'floor', 'high', 'set', 'name', 'config')
if marker[3] ~= 'set' then return 'later' end
if not (marker[2] and marker[4] and marker[5]) or marker[1] ~= ARGV[1] then return 'warming' end
if not (marker[6] and marker[7]) then return 'none' end
return 'ready ' .. marker[2]"""


class Later(Speaker):
    """Its format is `set2`.  The first query of a master changes its marker."""

    look_text = """
local marker = redis.call('hmget', KEYS[1], 'id', 'epoch', 'of', 'ver')
if not marker[2] then return 'warming' end
if marker[3] ~= 'set2' then
    local time = redis.call('time')
    marker[2] = string.format('%016.0f.%s', time[1] * 1000000 + time[2], marker[4])
    redis.call('hset', KEYS[1], 'of', 'set2', 'epoch', marker[2], 'a later field', 'x')
end
return 'ready ' .. marker[2]"""
