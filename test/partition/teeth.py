"""That the partition run can fail: the same run on libraries with planted bugs.

Each bug of the table below is built by -Dmutant=NAME (see test/mutants.txt), and meets the faults
that should bring it to light.  It must be caught by one of the rules named here, and a library
without a bug must not be, with the same faults and the same seed.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 16  # One storm, of 7.5 s.
RUN_MAX_S = 240
EXIT_CLEAN, EXIT_VIOLATED = 0, 1
NO_BUG = ""


@dataclasses.dataclass
class Tooth:
    mutant: str
    nemesis: str
    rules: tuple  # Any of these may catch it first.


EXCLUSION = ("overlap", "store-order", "foreign-release")
TEETH = [
    Tooth("majority", "cut-minority,ring", EXCLUSION),
    Tooth("no-compare", "pause-client", EXCLUSION),
    Tooth("set-over", "kill-client", EXCLUSION),
    Tooth("silence-is-yes", "cut-majority", EXCLUSION),
    Tooth("half", "isolate-client", EXCLUSION),
    Tooth("no-allowance", "clock-rate", EXCLUSION),
    Tooth("clock-stops", "pause-client", EXCLUSION + ("past-deadline",)),
    Tooth("deadline-ignored", "pause-client", EXCLUSION + ("past-deadline",)),
    Tooth("no-cleanup", "bridge,slow-link", ("no-progress",)),
    Tooth("seconds", "kill-client", ("no-progress",)),
]


def listed():
    return [(tooth.mutant, f"{tooth.nemesis}: {', '.join(tooth.rules)}") for tooth in TEETH]


def run(mutant, nemesis, seed, folder):
    """The exit status of a run, and what was said."""
    argv = [sys.executable, ROOT / "scripts/partition", "--nemesis", nemesis, "--seed", str(seed),
            "--seconds", str(SECONDS), "--report", folder]
    if mutant != NO_BUG:
        argv += ["--mutant", mutant]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=RUN_MAX_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"still running after {RUN_MAX_S} s"
    return done.returncode, done.stdout


def first_violation(folder):
    """Its rule, and the seconds until then."""
    done = subprocess.run([ROOT / "scripts/check-history", "--json", folder / "history.jsonl"],
                          stdout=subprocess.PIPE, text=True, timeout=RUN_MAX_S, check=False)
    violations = json.loads(done.stdout)["violations"]
    return violations[0]["rule"], violations[0]["since_ms"] / 1000


def run_until_caught(tooth, seed, folder):
    """Chance has a part in it: whoever waits for a lock must come at the right time."""
    status, said = run(tooth.mutant, tooth.nemesis, seed, folder)
    if status == EXIT_CLEAN and tooth.mutant != NO_BUG:
        status, said = run(tooth.mutant, tooth.nemesis, seed + 1, folder)
    return status, said


def bite(tooth, seed, folder):
    """Prints a line of the table; True if all is as it should be."""
    status, said = run_until_caught(tooth, seed, folder)
    name = tooth.mutant or "(no bug)"
    if status == EXIT_VIOLATED:
        rule, after_s = first_violation(folder)
        print(f"{name:16} {tooth.nemesis:24} {rule:16} {after_s:6.1f}", flush=True)
        return tooth.mutant != NO_BUG and rule in tooth.rules
    if status == EXIT_CLEAN:
        print(f"{name:16} {tooth.nemesis:24} {'nobody':16} {'-':>6}", flush=True)
        return tooth.mutant == NO_BUG
    print(f"{name:16} {tooth.nemesis:24} {'NO VALID RUN':16} {'-':>6}\n{said[-2000:]}", flush=True)
    return False


def main(seed, folder):
    """The exit status: 0 if every bug is caught, and nothing else."""
    all_kinds = ",".join(dict.fromkeys(
        kind for tooth in TEETH for kind in tooth.nemesis.split(",")))
    teeth = [Tooth(NO_BUG, all_kinds, ())] + TEETH
    print(f"{'planted bug':16} {'nemesis':24} {'caught by':16} {'after s':>7}", flush=True)
    good = sum(bite(tooth, seed, folder / (tooth.mutant or "no-bug")) for tooth in teeth)
    print(f"{good} passed, {len(teeth) - good} failed; seed {seed}")
    return 0 if good == len(teeth) else 1
