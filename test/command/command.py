"""What the tests of the `redlock` command share: the tools of test-cli, and a main."""

import importlib.machinery
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True


def load_tools():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "test-cli")
    loader = importlib.machinery.SourceFileLoader("test_cli", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("test_cli", loader))
    loader.exec_module(module)
    return module


tools = load_tools()


def failure_of(test):
    try:
        test()
        return None
    except Exception:  # pylint: disable=broad-except # Whatever it is, the others go on.
        return traceback.format_exc()


def run_tests(tests):
    failed = 0
    for name, test in tests.items():
        started = time.monotonic()
        failure = failure_of(test)
        failed += failure is not None
        print(f"{'ok' if failure is None else 'FAILED'}  {name}  {time.monotonic() - started:.1f} s", flush=True)
        if failure is not None:
            print(failure, flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed or not tests else 0


def main(usage, names):
    """Run the tests among these names, or those that the command line names.  77: skipped."""
    if len(sys.argv) < 2:
        sys.exit(usage)
    if shutil.which("redis-server") is None or shutil.which("redis-cli") is None:
        print("SKIPPED: there is no redis-server")
        return 77
    tests = {name[5:]: test for name, test in names.items() if name.startswith("test_")}
    wanted = sys.argv[2:] or list(tests)
    unknown = [name for name in wanted if name not in tests]
    if unknown:
        sys.exit(f"no such test: {' '.join(unknown)}")
    tools.redlock = os.path.abspath(sys.argv[1])
    tools.work = tempfile.mkdtemp(prefix="redlock-test-")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return run_tests({name: tests[name] for name in wanted})
    finally:
        shutil.rmtree(tools.work)
