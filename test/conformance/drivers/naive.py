#!/usr/bin/env python3
"""A small client of Redlock that can be told to be wrong: DRIVER_FAULT names one of its faults.

The conformance suite is checked with it: each fault must make its question come out as no.
"""

import contextlib
import os
import secrets
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "command"))
from tools import Master  # pylint: disable=wrong-import-position

FAULT = os.environ.get("DRIVER_FAULT", "")
PORTS = [int(place.rsplit(":", 1)[1]) for place in sys.argv[1:]]
NEEDED = {"minority_down": len(PORTS), "majority_down": 1}.get(FAULT, len(PORTS) // 2 + 1)
TIMEOUT_S = 20 if FAULT == "hung" else 0.3
COMPARE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call(%s) end return 0"
DELETE, EXPIRE = COMPARE % "'del', KEYS[1]", COMPARE % "'pexpire', KEYS[1], ARGV[2]"

locks = []


def ask_all(*words):
    """The answers, without those of masters that do not answer."""
    answers = []
    for port in PORTS:
        with contextlib.suppress(OSError, RuntimeError), Master(port=port, bound_s=TIMEOUT_S) as master:
            answers.append(master.ask(*words))
    return answers


def attempt(name, ttl):
    text = "short" if FAULT == "unique" else secrets.token_hex(20)
    start = time.monotonic()
    words = ["SET", name, text]
    words += [] if FAULT == "excludes" else ["NX"]
    words += [] if FAULT == "token" else ["PX", ttl * 100 if FAULT == "expires" else ttl]
    votes = ask_all(*words).count(b"OK")
    left = ttl - (time.monotonic() - start) * 1000 - 2 - ttl / 100
    if votes >= NEEDED:
        locks.append((name, text))
        return f"ok {len(locks) - 1} {ttl if FAULT == 'validity' else left:.0f} {text}"
    if FAULT != "refused_leaves_nothing" and FAULT != "majority_down":
        ask_all("EVAL", DELETE, 1, name, text)
    return "no"


def lock(name, ttl, wait):
    end = time.monotonic() + wait / 1000
    while True:
        said = attempt(name, ttl)
        if said != "no" or FAULT == "waits" or time.monotonic() > end:
            return said
        time.sleep(0.05)


def fence(name, ttl):
    said = lock(name, ttl, 1000)
    if said == "no":
        return said
    return f"{said} {1 if FAULT == 'fences' else max(ask_all('INCR', name + ':fence'))}"


def answer(what, *words):
    if what == "lock":
        return lock(words[0], int(words[1]), int(words[2]))
    if what == "fence":
        return fence(words[0], int(words[1]))
    name, text = locks[int(words[0])]
    if what == "extend" and FAULT == "extends":
        return f"ok {words[1]}"
    if what == "extend":
        script = "return redis.call('pexpire', KEYS[1], ARGV[2])" if FAULT == "extends_only_own" else EXPIRE
        return f"ok {words[1]}" if ask_all("EVAL", script, 1, name, text, words[1]).count(1) >= NEEDED else "no"
    if FAULT == "release":
        return "ok"
    script = "return redis.call('del', KEYS[1])" if FAULT == "only_own" else DELETE
    return "ok" if ask_all("EVAL", script, 1, name, text).count(1) >= NEEDED else "no"


for line in sys.stdin:
    print(answer(*line.split()), flush=True)
