#!/usr/bin/env python3
"""The driver of redlock-py (PyPI)."""

import sys

from redlock import MultipleRedlockException, Redlock

PAUSE_MS = 200  # The default of redlock-py.

servers = [{"host": place.rsplit(":", 1)[0], "port": int(place.rsplit(":", 1)[1]), "db": 0}
           for place in sys.argv[1:]]
locks = {}


def answer(what, *words):
    if what == "lock":
        client = Redlock(servers, retry_count=1 + int(words[2]) // PAUSE_MS, retry_delay=PAUSE_MS / 1000)
        lock = client.lock(words[0], int(words[1]))
        if not lock:
            return "no"
        locks[str(len(locks))] = (client, lock)
        return f"ok {len(locks) - 1} {lock.validity:.0f} {lock.key.decode()}"
    if what == "unlock":
        client, lock = locks[words[0]]
        client.unlock(lock)
        return "ok"
    return "unsupported"


for line in sys.stdin:
    try:
        print(answer(*line.split()), flush=True)
    except MultipleRedlockException:
        print("no", flush=True)
