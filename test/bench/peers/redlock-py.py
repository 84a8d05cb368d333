#!/usr/bin/env python3
"""redlock-py.py IN_FLIGHT SECONDS - lock + unlock cycles of redlock-py (PyPI), one line of figures.

The masters are those of REDLOCK_MASTERS ("host:port,...").  Each slot is a thread.
test/bench/alternatives starts this.
"""

import math
import os
import sys
import threading
import time

from redlock import MultipleRedlockException, Redlock

TTL_MS = 10000
FAILED_PAUSE_S = 0.001  # What fails is tried again after this pause.


def slot(client, name, end, found):
    """Adds (the microseconds of the lock or None, whether the cycle succeeded) for each cycle."""
    while time.monotonic() < end:
        began = time.monotonic()
        acquire_us, good = None, False
        try:
            lock = client.lock(name, TTL_MS)
            if lock:
                acquire_us = (time.monotonic() - began) * 1e6
                client.unlock(lock)
                good = True
        except MultipleRedlockException:
            pass
        if not good:
            time.sleep(FAILED_PAUSE_S)
        found.append((acquire_us, good))


def run(client, in_flight, seconds):
    end, found = time.monotonic() + seconds, []
    threads = [threading.Thread(target=slot, args=(client, f"bench/{i}", end, found))
               for i in range(in_flight)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def percentile(ordered, percent):
    return ordered[math.ceil(len(ordered) * percent / 100) - 1] if ordered else 0


def main():
    in_flight, seconds = int(sys.argv[1]), float(sys.argv[2])
    places = [place.rsplit(":", 1) for place in os.environ["REDLOCK_MASTERS"].split(",")]
    client = Redlock([{"host": host, "port": int(port), "db": 0} for host, port in places])
    run(client, in_flight, seconds / 4)  # Connects, and warms up.
    began, cpu_began = time.monotonic(), time.process_time()
    found = run(client, in_flight, seconds)
    elapsed_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_began
    cycles = sum(good for _, good in found)
    ordered = sorted(acquire_us for acquire_us, _ in found if acquire_us is not None)
    print(f"cycles_per_s={cycles / elapsed_s:.1f} acquire_p50_us={percentile(ordered, 50):.1f} "
          f"acquire_p99_us={percentile(ordered, 99):.1f} "
          f"cpu_us_per_cycle={cpu_s * 1e6 / max(cycles, 1):.2f} errors={len(found) - cycles}")


main()
