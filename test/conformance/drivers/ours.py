#!/usr/bin/python3
"""The driver of this project: its library, by the Python package.  REDLOCK_LIBRARY names the library."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../redlock/python"))
# pylint: disable=wrong-import-position,import-error
from redlock_quorum import Client, Error

client = Client(",".join(sys.argv[1:]), reply_timeout=2)
leases = {}


def show(lease):
    leases[str(len(leases))] = lease
    return f"{len(leases) - 1} {lease.remaining() * 1000:.0f} {lease.token}"


def answer(what, *words):
    if what == "lock":
        lease = client.lock(words[0], ttl=int(words[1]) / 1000, wait=int(words[2]) / 1000, no_renew=True)
        return show(lease)
    if what == "fence":
        lease = client.lock(words[0], ttl=int(words[1]) / 1000, fence=True, no_renew=True)
        return f"{show(lease)} {lease.fence}"
    lease = leases[words[0]]
    if what == "extend":
        lease.extend(int(words[1]) / 1000)
        return f"{lease.remaining() * 1000:.0f}"
    lease.unlock()
    return ""


for line in sys.stdin:
    try:
        print("ok", answer(*line.split()), flush=True)
    except Error:
        print("no", flush=True)
