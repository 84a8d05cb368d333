#!/usr/bin/env python3
"""wait-warming.py NAME [MAX_TTL_MS] - as wait-warming.c, in Python."""

import sys
import time

from redlock_quorum import Client, Error, NotReady

ATTEMPTS = 20


def warms_for(error):
    """The longest time that a master still warms up, as far as it is known, in seconds."""
    for why in error.reasons:
        print(f"master {why.master} ({why.address}): [{why.id}]", file=sys.stderr)
    return max((why.over for why in error.reasons if why.id == "warming" and why.over), default=0.5)


def lock(client, name, ttl):
    for _ in range(ATTEMPTS - 1):
        try:
            return client.lock(name, ttl=ttl)
        except NotReady as error:
            time.sleep(warms_for(error))
    return client.lock(name, ttl=ttl)


def main():
    name, max_ttl = sys.argv[1], int(sys.argv[2]) / 1000 if len(sys.argv) > 2 else 60
    try:
        with Client(max_ttl=max_ttl) as client, lock(client, name, min(max_ttl, 10)):
            print("work")
    except Error as error:
        sys.exit(str(error))


main()
