#!/usr/bin/env python3
"""The driver of test/conformance/protocol, a client that was written from docs/protocol.md alone.

Beyond the requests of every driver it knows the kinds of locks:

    many NAME,NAME... TTL_MS WAIT_MS, permit NAME/K ..., shared NAME ..., fair NAME ...

DRIVER_FAULT=floors: it reads the marker between a count and its proof, which then shows what it knows.
DRIVER_FAULT=closed: it goes on with its list when the set has no members any more.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../protocol"))
# pylint: disable=wrong-import-position
from client import Client
from waiters import lock_fair
from kinds import Many, Permit, Plain, Shared

client = Client(sys.argv[1:], int(os.environ.get("MAX_LEASE_MS", "60000")))
leases = []


def take(what, name, ttl, wait="0"):
    fence, what = what.startswith("fence"), what.replace("fence-", "").replace("fence", "lock")
    if what == "fair":
        lease = lock_fair(client, name, int(ttl), int(wait), fence)
    else:
        kind = {"lock": Plain, "shared": Shared}.get(what)
        if what == "many":
            kind = Many(name.split(","))
        elif what == "permit":
            kind = Permit(name.split("/")[0], int(name.split("/")[1]))
        else:
            kind = kind(name)
        lease = client.lock(kind, int(ttl), int(wait), fence)
    if lease is None:
        return "no"
    leases.append(lease)
    behind = f" {lease.fence}" if lease.fence else ""
    return f"ok {len(leases) - 1} {lease.left_ms()} {lease.token}{behind}"


def answer(what, *words):
    if what == "extend":
        lease = leases[int(words[0])]
        return f"ok {lease.left_ms()}" if client.extend(lease, int(words[1])) else "no"
    if what == "unlock":
        return "ok" if client.release(leases[int(words[0])]) else "no"
    return take(what, *words)


for_ever = 2 ** 62
while True:
    client.pump(lambda: False, for_ever, sys.stdin)
    line = sys.stdin.readline()
    if not line:
        break
    print(answer(*line.split()), flush=True)
