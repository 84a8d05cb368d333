"""Shows that the partition run can fail: runs it on libraries with planted bugs.

Each bug of the table below is built by -Dmutant=NAME (see test/mutants/mutants.txt), and meets the
faults that should show it.  One of the rules named here must catch it.  A library without a bug
must pass with the same faults and the same seed.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 16  # One storm, of 7.5 s.
SECONDS_LONG = 30  # Two storms, of 8.75 s, for bugs that show by chance.
SECONDS_FENCERS = 60  # Four storms, with two changes each.
RUN_MAX_S = 240
END_MAX_S = 120
ATTEMPTS_MAX = 3
EXIT_CLEAN, EXIT_VIOLATED = 0, 1
NO_BUG = ""


@dataclasses.dataclass
class Tooth:
    mutant: str
    nemesis: str
    rules: tuple  # One of these must catch it first.
    seconds: int = SECONDS
    more: tuple = ()  # Further options.


# Lost data, or a clock that steps forward, may violate these rules, too.
# A wrong number shows if a majority of both lists gives the same.
FENCERS = ("--fencers", "--clients", 3, "--masters", 3)
EXCLUSION = ("overlap", "store-order", "foreign-release", "unbacked", "fence-order", "permits")
TEETH = [
    Tooth("majority", "cut-minority,ring", EXCLUSION),
    Tooth("no-compare", "pause-client", EXCLUSION),
    Tooth("set-over", "kill-client", EXCLUSION),
    Tooth("silence-is-yes", "cut-majority", EXCLUSION + ("fair-order",)),
    Tooth("half", "isolate-client", EXCLUSION, SECONDS_LONG),
    Tooth("no-allowance", "clock-rate,kill-client,pause-client", EXCLUSION),
    Tooth("clock-stops", "pause-client", EXCLUSION + ("past-deadline",)),
    Tooth("deadline-ignored", "pause-client", EXCLUSION + ("past-deadline",)),
    Tooth("t0-at-reply", "slow-link", EXCLUSION, SECONDS_LONG),
    Tooth("no-cleanup", "bridge,slow-link", ("no-progress",)),
    Tooth("seconds", "kill-client", ("no-progress",)),
    Tooth("guard-at-once", "restart-empty", EXCLUSION, SECONDS_LONG),
    Tooth("guard-half", "flushall", EXCLUSION, SECONDS_LONG),
    Tooth("fence-max", "cut-minority,ring,kill-client", ("fence-order",)),
    Tooth("fence-few", "bridge,slow-link,kill-client", ("fence-order",)),
    Tooth("many-first", "cut-minority,kill-client", EXCLUSION),
    Tooth("permit-any", "ring,slow-link", EXCLUSION),
    Tooth("permit-more", "pause-client", ("permits",)),
    Tooth("fair-any", "pause-client,slow-link", ("fair-order",)),
    Tooth("fair-few", "bridge,slow-link,kill-client", ("fair-order",)),
    Tooth("shared-writer", "kill-client", EXCLUSION),
    Tooth("shared-release", "cut-minority,pause-client", EXCLUSION),
    # The set of masters changes: M1, M2 and M5 of docs/members.md.
    Tooth("version-any", "members,kill-client", EXCLUSION, SECONDS_LONG),
    Tooth("joint-new", "members,kill-client", EXCLUSION, SECONDS_LONG),
    Tooth("change-no-wait", "members,kill-client", EXCLUSION, SECONDS_LONG),
    Tooth("count-other-floor", "halt-operator", ("fence-order",), SECONDS_FENCERS, FENCERS),
]


def listed():
    return [(tooth.mutant, f"{tooth.nemesis}: {', '.join(tooth.rules)}") for tooth in TEETH]


def run(tooth, seed, folder):
    """The exit status of a run, and its output."""
    argv = [sys.executable, ROOT / "scripts/partition", "--nemesis", tooth.nemesis, "--seed",
            str(seed), "--seconds", str(tooth.seconds), "--report", folder]
    argv += tooth.more
    if tooth.mutant != NO_BUG:
        argv += ["--mutant", tooth.mutant]
    process = subprocess.Popen([str(word) for word in argv], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = process.communicate(timeout=RUN_MAX_S)
    except subprocess.TimeoutExpired:
        end(process)
        return None, f"still running after {RUN_MAX_S} s"
    except BaseException:
        end(process)
        raise
    return process.returncode, said


def end(process):
    """Ask the run to end, and give it time to clean up."""
    process.terminate()
    try:
        process.communicate(timeout=END_MAX_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()  # Not communicate(): its children may hold the pipe open.


def first_violation(folder):
    """The rule of the first violation, and the seconds until then; (None, None) without one."""
    done = subprocess.run([ROOT / "scripts/check-history", "--json", folder / "history.jsonl"],
                          stdout=subprocess.PIPE, text=True, timeout=RUN_MAX_S, check=False)
    try:
        first = json.loads(done.stdout)["violations"][0]
    except (ValueError, IndexError):
        return None, None
    return first["rule"], first["since_ms"] / 1000


def run_until_caught(tooth, seed, folder):
    """Repeats a run, because a bug shows only if a waiter comes at the right time."""
    for attempt in range(ATTEMPTS_MAX):
        status, said = run(tooth, seed + attempt, folder)
        if status != EXIT_CLEAN or tooth.mutant == NO_BUG:
            break
    return status, said


def bite(tooth, seed, folder):
    """Prints a line of the table; True if the result is as expected."""
    status, said = run_until_caught(tooth, seed, folder)
    caught_by, after, good = "nobody", "-", tooth.mutant == NO_BUG
    rule, after_s = first_violation(folder) if status == EXIT_VIOLATED else (None, None)
    if rule is not None:
        caught_by, after, good = rule, f"{after_s:.1f}", rule in tooth.rules
    elif status != EXIT_CLEAN:
        # Or clients failed, which the history does not show.
        caught_by, good = "NO VALID RUN", False
    print(f"{tooth.mutant or '(none)':17} {caught_by:16} {after:>7}  {tooth.nemesis}", flush=True)
    if not good:
        print(said[-2000:])
    return good


def main(seed, folder):
    """The exit status: 0 if every bug is caught, and the good library passes."""
    all_kinds = ",".join(dict.fromkeys(
        kind for tooth in TEETH for kind in tooth.nemesis.split(",")))
    teeth = [Tooth(NO_BUG, all_kinds, (), SECONDS_LONG),
             Tooth(NO_BUG, "halt-operator", (), SECONDS_LONG, FENCERS)] + TEETH
    print(f"{'planted bug':17} {'caught by':16} {'after s':>7}  nemesis", flush=True)
    good = sum(bite(tooth, seed, folder / (tooth.mutant or "no-bug")) for tooth in teeth)
    print(f"{good} passed, {len(teeth) - good} failed; seed {seed}")
    return 0 if good == len(teeth) else 1
