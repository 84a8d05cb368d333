"""Run the tests of the `redlock` command, and print the result of each."""

import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
import tools  # noqa: E402 pylint: disable=wrong-import-position

TOKEN = r"[0-9a-f]{40}:[^ \n]+/\d+"  # With the note HOST/PID.


def result_of(test, five):
    """A word, and what there is to say."""
    try:
        if five:
            tools.heal()
        test()
        return "ok", ""
    except tools.Lack as lack:
        return "SKIPPED", f": there is no {lack}"
    except Exception:  # pylint: disable=broad-except # The other tests must run.
        return "FAILED", "\n" + traceback.format_exc()


def choose_tests(names, args):
    """The tests of a program that the arguments name, or every Nth, or all."""
    tests = {name[5:]: test for name, test in names.items() if name.startswith("test_")}
    wanted = list(tests)
    if args[:1] == ["--part"]:
        part = re.fullmatch(r"([1-9])/([1-9])", args[1] if len(args) == 2 else "")
        if not part or int(part[1]) > int(part[2]):
            sys.exit("--part wants K/N, the Kth of N parts")
        wanted = wanted[int(part[1]) - 1::int(part[2])]
    elif args:
        wanted = args
    unknown = [name for name in wanted if name not in tests]
    if unknown:
        sys.exit(f"no such test: {' '.join(unknown)}")
    return {name: tests[name] for name in wanted}


def run_tests(tests, five):
    failed = 0
    for name, test in tests.items():
        started = time.monotonic()
        result, words = result_of(test, five)
        failed += result == "FAILED"
        print(f"{result}  {name}  {time.monotonic() - started:.1f} s{words}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed or not tests else 0


def in_memory():
    """A folder in memory if there is one with room, or None.  Masters that sync each write are not
    late there when the disk is busy."""
    folder = "/dev/shm"
    if not os.access(folder, os.W_OK):
        return None
    about = os.statvfs(folder)
    has_room = about.f_bavail * about.f_frsize > 1 << 30
    return folder if has_room and not about.f_flag & os.ST_NOEXEC else None


def with_masters(run, five=True):
    """Call run() with the command that the first argument names.  Returns its result, or 77 if skipped."""
    if shutil.which("redis-server") is None or shutil.which("redis-cli") is None:
        print("SKIPPED: there is no redis-server")
        return 77
    tools.redlock = os.path.abspath(sys.argv[1])
    tools.work = tempfile.mkdtemp(prefix="redlock-test-", dir=in_memory())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return run()
    finally:
        if five:
            tools.masters("stop")
        shutil.rmtree(tools.work)


def main(usage, names, five=False):
    """Run the tests among these names that the command line chooses, or all.  five: five masters
    are up and empty before each test.  Returns 77 if skipped."""
    if len(sys.argv) < 2:
        sys.exit(usage)
    tests = choose_tests(names, sys.argv[2:])
    return with_masters(lambda: run_tests(tests, five), five)
