"""Trials of planted bugs: every engine that can hold a bug is asked whether it catches it.

kills uses this.  A trial is one engine's program with one bug in it.

Two builds of the tree (builds.py), below the state folder, are made once.  In the one bugs are
planted.  The other counts (gcov) which functions each program, theme and scenario enters.  One that
never enters the function that a bug changes cannot catch it, and is not asked.

The log has the outcome of each trial under the hash of what was run: the program without the bug,
the text of the changed file, the bounds.  So a run goes on where it was ended, and asks again
only what has changed since.
"""

import dataclasses
import json
import math
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from builds import Build, Planted, ROOT, digest

# The bounds.  All are chosen.  Those of the simulator and the explorers are counts, which do not
# depend on the machine; the seconds of processor time behind them stop what hangs.
UNIT_CPU_S = 20
TEST_CPU_S = 5  # Of one test of a program that crashed or hung.
HANGS_MAX = 2  # Behind so many tests that hang, the others of a program are not asked.
SIM_SEEDS = {"any": 64}
THEME_SEEDS = 32
KNOWN_SEEDS = 3  # So many of those in mutants.txt.
SIM_CPU_S = 60
HANG_SEEDS = 16  # They take less than a second each, so SIM_CPU_S is over only if something hangs.
EXPLORE_MEGABYTES = 16
NAMED_MEGABYTES = 600  # Of the scenario that mutants.txt names.
EXPLORE_CPU_S = 60
LUA_CPU_S = 120
COVERAGE_CPU_S = 200  # What takes longer counts as if it entered all functions.
IDLE_S = 30  # A program that has used no processor time for so long hangs.
WALL_S = 3600
OUTPUT_MAX = 64 << 20
MEMORY_MAX = 6 << 30

# Where the simulator or an explorer finds a bug shifts with every change of the library.  So a
# comparison searches so much further before it says that they lost one.
FURTHER = 8

# An option "optimization=0" leaves out the programs with bugs of test/meson.build.
PLAIN = ("-Doptimization=0", "-Ddebug=false", "-Dc_args=-O2")
# Inlined calls would not be counted.
COUNTING = ("-Doptimization=1", "-Ddebug=true", "-Db_coverage=true", "-Dc_args=-fno-inline")

THEMES = ("any", "clocks", "restarts", "starts", "lines", "sets", "moves", "crowds", "tls", "losses",
          "partners", "revokes")
PROGRAMS = {"sim": "test/test-sim", "explore": "test/test-explore",
            "change": "test/test-change-orders", "founder": "test/test-founders"}
ENGINES = ("unit", "lua", *PROGRAMS)


@dataclasses.dataclass
class Done:
    how: str  # "ended", "crash", "hang"
    status: int
    said: str


@dataclasses.dataclass
class Catch:
    group: str  # The program of a test; the words of a violation.
    item: str  # The test; the theme or the scenario.
    speed: str = ""  # Seeds or worlds until then, rounded up to a power of two.


def power(number):
    return str(1 << max(0, math.ceil(math.log2(max(1, number)))))


# ---- Runs ----

def processor_ticks(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12])


def await_end(child):
    """True if it ended.  A busy machine may let it wait for long, so only idleness counts."""
    began = idle_since = time.monotonic()
    ticks = None
    ended = select.poll()  # Popen.wait() with a bound would look only now and then.
    handle = os.pidfd_open(child.pid)
    ended.register(handle, select.POLLIN)
    try:
        while time.monotonic() - began < WALL_S:
            if ended.poll(2000):
                return True
            now = processor_ticks(child.pid)
            if now != ticks:
                ticks, idle_since = now, time.monotonic()
            elif time.monotonic() - idle_since > IDLE_S:
                return False
        return False
    finally:
        os.close(handle)


def bounded(command, cpu_s, env=None, cwd=None):
    """Run it, with bounds for all it uses.  Nothing of it outlives this call."""
    bounds = ["prlimit", f"--cpu={cpu_s}:{cpu_s + 1}", f"--fsize={OUTPUT_MAX}", f"--as={MEMORY_MAX}",
              "--core=0", "--"]
    with tempfile.TemporaryFile() as out, subprocess.Popen(
            bounds + [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, start_new_session=True, cwd=cwd,
            env={**os.environ, **(env or {})}) as child:
        running.add(child.pid)
        try:
            ended = await_end(child)
        finally:
            kill_group(child.pid)
            child.wait()
            running.discard(child.pid)
        out.seek(0)
        said = out.read().decode(errors="replace")
    if not ended or child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Done("hang", child.returncode, said)
    return Done("crash" if child.returncode < 0 else "ended", child.returncode, said)


running = set()  # Process groups.


def kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end_running():
    for pid in list(running):
        kill_group(pid)


# ---- Coverage ----

class Coverage:
    """Which functions each program, theme and scenario enters, and how often."""

    def __init__(self, state, plain, tell):
        self.state, self.plain, self.tell = state, plain, tell
        self.file = self.state / "coverage.json"
        self.known = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.build = None
        self.lock = threading.Lock()

    def functions(self, key, target, args):
        """By file: [first line, last line, how often it was entered].  None: not known."""
        made_of = digest(self.plain.digest(target), *contents(args))
        with self.lock:
            if self.known.get(key, {}).get("made_of") != made_of:
                self.tell(f"which functions does {key} enter?")
                self.known[key] = {"made_of": made_of, "files": self.measure(key, target, args)}
                new = self.file.with_suffix(".new")
                new.write_text(json.dumps(self.known))
                new.replace(self.file)
            return self.known[key]["files"]

    def measure(self, key, target, args):
        if self.build is None:
            self.build = Build(self.state, "coverage", COUNTING)
        self.build.make([target], 1)
        with tempfile.TemporaryDirectory(dir=self.state) as folder:
            done = bounded([self.build.dir / target, *args], COVERAGE_CPU_S,
                           {"GCOV_PREFIX": folder})
            if done.how == "hang":
                return None
            if done.how == "crash" or done.status not in (0, 2):  # 2: an explorer gave up.
                raise RuntimeError(f"{key} fails without a bug: {done.how}, {done.status}\n"
                                   f"{done.said[-2000:]}")
            return self.read(pathlib.Path(folder))

    def read(self, folder):
        files = {}
        counts = list(folder.rglob("*.gcda"))
        for path in counts:
            notes = pathlib.Path("/") / path.relative_to(folder).with_suffix(".gcno")
            shutil.copy(notes, path.with_suffix(".gcno"))
        said = subprocess.run(["gcov", "-t", "-j", *counts], capture_output=True, check=True,
                              cwd=self.build.dir).stdout
        for line in said.splitlines():
            self.add(json.loads(line), files)
        return files

    def add(self, report, files):
        for file in report["files"]:
            name = file["file"].removeprefix(os.path.relpath(ROOT, self.build.dir) + "/")
            for function in file["functions"] if name.endswith(".c") else []:
                files.setdefault(name, []).append(
                    [function["start_line"], function["end_line"], function["execution_count"]])


def changed_lines(text, edits):
    """First and last of the lines that change, for each edit.  Lines that both have stand around
    them."""
    spans = []
    for old, new in edits:
        before = text[:text.index(old)].count("\n") + 1
        old, new = old.splitlines(), new.splitlines()
        head = tail = 0
        while head < min(len(old), len(new)) and old[head] == new[head]:
            head += 1
        while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        first, last = before + head, before + len(old) - tail - 1
        spans.append((min(first, last), max(first, last)))
    return spans


def entered(functions, spans):
    """How often the functions of these lines were entered.  Lines that no function has may matter
    to any function of the file."""
    times = 0
    for first, last in spans:
        inside = [function for function in functions if function[0] <= last and first <= function[1]]
        times += sum(function[2] for function in inside or functions)
    return times


# ---- Engines ----

class Trials:
    def __init__(self, state, jobs, tell):
        self.state = pathlib.Path(state).resolve()
        self.state.mkdir(parents=True, exist_ok=True)
        for left in self.state.glob("tmp*"):
            shutil.rmtree(left)  # A run that was ended left it.
        self.tell = tell
        self.plain = Build(self.state, "plain", PLAIN)
        self.units = self.plain.unit_programs(PROGRAMS.values())
        tell("building")
        self.plain.make([*self.units, *PROGRAMS.values()], jobs)
        self.coverage = Coverage(self.state, self.plain, tell)
        self.log = self.state / "log"
        self.lock = threading.Lock()
        self.known = {}
        if self.log.exists():
            for line in self.log.read_text().splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # The last line of a run that was killed.
                self.known[entry["key"]] = entry["caught"]
        self.scenarios = {engine: self.list_scenarios(PROGRAMS[engine]) for engine in PROGRAMS
                          if engine != "sim"}

    def list_scenarios(self, target):
        said = subprocess.run([self.plain.dir / target, "--list"], capture_output=True, text=True,
                              check=True).stdout
        return scenarios(said)

    def once(self, key, ask):
        """The outcome of a trial: from the log, or of a run now."""
        if key not in self.known:
            self.known[key] = [dataclasses.astuple(catch) for catch in ask()]
            with self.lock, open(self.log, "a", encoding="utf-8") as log:
                log.write(json.dumps({"key": key, "caught": self.known[key]}) + "\n")
        return [Catch(*words) for words in self.known[key]]

    def try_bug(self, mutant, text_of, effort=1):
        """By engine: how many were asked, and what caught it."""
        with tempfile.TemporaryDirectory(dir=self.state) as folder:
            return self.try_engines(mutant, text_of, pathlib.Path(folder), effort)

    def try_engines(self, mutant, text_of, folder, effort):
        outcome, planted = {}, {}  # Engines share the file that was compiled.
        for engine in ENGINES:
            files = [file for file in mutant.edits if not file.startswith("test/")
                     or file.startswith(f"test/{engine}/")]
            if not files:
                continue
            file = files[0] if engine in ("unit", "lua") else mutant.file(engine)
            if file.endswith(".lua") != (engine == "lua"):
                continue
            if file not in planted:
                place = folder / str(len(planted))
                place.mkdir()
                planted[file] = Planted(self.plain, place, file, text_of(mutant, file), effort)
            ask = {"unit": self.try_units, "lua": self.try_lua, "sim": self.try_sim}.get(
                engine, self.try_explorer)
            spans = changed_lines((ROOT / file).read_text(), mutant.edits[file])
            asked, caught = ask(mutant, engine, planted[file], spans)
            if asked:
                outcome[engine] = (asked, caught)
        return outcome

    def enters(self, name, target, args, planted, spans):
        """Which part of all calls of functions is one of these."""
        files = self.coverage.functions(name, target, args)
        if files is None:
            return 1
        calls = sum(function[2] for functions in files.values() for function in functions)
        return entered(files.get(planted.file, []), spans) / max(1, calls)

    def key(self, *parts, target, planted):
        return digest(self.plain.digest(target), planted.source.read_bytes(), *parts)

    # -- Unit tests --

    def try_units(self, mutant, engine, planted, spans):
        asked, caught = 0, []
        named = mutant.expect.get("unit", ":").partition(":")[0]
        for target, args in self.units.items():
            name = pathlib.Path(target).name.removeprefix("test-")
            if name != named and not self.enters(target, target, args, planted, spans):
                continue
            key = self.key(UNIT_CPU_S, TEST_CPU_S, HANGS_MAX, *contents(args), target=target,
                           planted=planted)
            if key not in self.known and planted.make(target) is None:
                continue
            asked += 1
            caught += self.once(key, lambda t=target, a=args, n=name: self.ask_unit(planted, t, a, n))
        return asked, caught

    def ask_unit(self, planted, target, args, name):
        env = {"LD_LIBRARY_PATH": planted.folder}
        command = [planted.make(target), *args]
        first = bounded(command, UNIT_CPU_S, env)
        if (first.how, first.status) == ("ended", 0):
            return []
        # What fails by chance, on a busy machine, must not count: the program fails twice, and between
        # these runs it does not fail without the bug.
        good = bounded([self.plain.dir / target, *args], UNIT_CPU_S)
        if (good.how, good.status) != ("ended", 0):
            raise RuntimeError(f"{target} fails without a bug: {good.how}\n{good.said[-2000:]}")
        if first.how != "ended":
            return self.ask_each_test(planted, target, args, name, first.how)
        second = bounded(command, UNIT_CPU_S, env)
        both = [test for test in failed_tests(first) if test in failed_tests(second)]
        if not both and second.status == 0:
            return []
        return [Catch(name, test) for test in both or ["(all)"]]

    def ask_each_test(self, planted, target, args, name, how):
        """Behind a test that crashes or hangs the others were not run."""
        source = next(ROOT.glob(f"test/**/test-{name}.c"), None)
        tests = re.findall(r"\bRUN\((\w+)\)", source.read_text()) if source and not args else []
        caught = []
        for test in tests:
            if sum(catch.item.endswith("(hang)") for catch in caught) == HANGS_MAX:
                break
            done = bounded([planted.make(target), test], TEST_CPU_S,
                           {"LD_LIBRARY_PATH": planted.folder})
            if done.how != "ended":
                caught.append(Catch(name, f"{test}({done.how})"))
            elif done.status != 0:
                caught.append(Catch(name, test))
        return caught or [Catch(name, f"(all)({how})")]

    # -- The simulator --

    def try_sim(self, mutant, engine, planted, spans):
        target = PROGRAMS[engine]
        known = re.findall(r"\b(?:[a-z]+:)?\d+\b", mutant.expect.get("sim", ""))[:KNOWN_SEEDS]
        if planted.make(target) is None:
            return 0, []
        shares = {theme: self.enters(f"sim {theme}", target, seeds(theme), planted, spans)
                  for theme in THEMES}
        themes = ["any"] if shares["any"] or "sim" in mutant.expect else []
        themes += [seed.partition(":")[0] for seed in known if ":" in seed]
        others = sorted(THEMES[1:], key=lambda theme: -shares[theme])
        themes += [theme for theme in others if shares[theme] and theme not in themes][:1]
        asked, caught = 0, []
        for theme in dict.fromkeys(themes):
            asked += 1
            args = seeds(theme, planted.effort)
            key = self.key("sim", *args, target=target, planted=planted)
            caught += self.once(key, lambda t=theme, a=args: self.ask_sim(planted, t, *a))
        if "sim" in mutant.expect and not caught:
            key = self.key("sim", "known", *known, target=target, planted=planted)
            caught += self.once(key, lambda: self.ask_known(planted, known))
        return asked, caught

    def ask_sim(self, planted, theme, first, count):
        program = planted.make(PROGRAMS["sim"])
        done = bounded([program, first, count], SIM_CPU_S)
        if done.how == "hang":
            again = bounded([program, first, str(HANG_SEEDS)], SIM_CPU_S)
            return [Catch("hang", theme)] if again.how == "hang" else judge_sim(again, theme)
        return judge_sim(done, theme)

    def ask_known(self, planted, known):
        """Seeds that found it.  What finds others where these are too old is "mutants seeds"."""
        for seed in known:
            done = bounded([planted.make(PROGRAMS["sim"]), seed, "1"], SIM_CPU_S)
            caught = judge_sim(done, "known")
            if caught:
                return [Catch(caught[0].group, "known")]
        return []

    # -- The explorers --

    def try_explorer(self, mutant, engine, planted, spans):
        target = PROGRAMS[engine]
        asked, caught = 0, []
        if planted.make(target) is None:
            return 0, []
        named = mutant.expect.get(engine, ":").partition(":")[0]
        for scenario in dict.fromkeys([named] * bool(named) + self.scenarios[engine]):
            small = ["--megabytes", str(EXPLORE_MEGABYTES), scenario]
            if scenario != named and not self.enters(f"{engine} {scenario}", target, small, planted,
                                                     spans):
                continue
            asked += 1
            most = NAMED_MEGABYTES if scenario == named else EXPLORE_MEGABYTES * planted.effort
            key = self.key(engine, scenario, most, target=target, planted=planted)
            caught += self.once(key, lambda s=scenario, m=most: self.ask_explorer(planted, target, s, m))
        return asked, caught

    def ask_explorer(self, planted, target, scenario, megabytes):
        done = bounded([planted.make(target), "--megabytes", megabytes, scenario], EXPLORE_CPU_S)
        found = re.search(r"^\S+: (.*?),? after (\d+) moves:$", done.said, re.MULTILINE)
        worlds = re.search(r"^\S+ +(\d+) (?:worlds|states)", done.said, re.MULTILINE)
        if found and done.status == 1:
            return [Catch(found[1], scenario, power(int(worlds[1])) if worlds else "")]
        if done.how == "hang" or done.status in (0, 2):  # Clean, or given up.
            return []
        return [Catch("crash" if done.how == "crash" else f"status {done.status}", scenario)]

    # -- Scripts --

    def try_lua(self, mutant, engine, planted, spans):
        tests = sorted((ROOT / "test/lua").glob("*.py")) + [ROOT / "test/lua/test-lua"]
        scripts = sorted((ROOT / "redlock/lua").rglob("*"))
        parts = [path.read_bytes() for path in tests + scripts + [ROOT / "redlock/wire/keys.h"]
                 if path.is_file()]
        return 1, self.once(digest("lua", planted.source.read_bytes(), *parts),
                            lambda: self.ask_lua(planted))

    def ask_lua(self, planted):
        done = bounded([ROOT / "test/lua/test-lua", "--planted", planted.source], LUA_CPU_S)
        if not re.search(r"^\d+ rules were run$", done.said, re.MULTILINE):
            return [Catch("test-lua", f"(all)({done.how})")]
        return [Catch(*test.split(".")) for test in
                re.findall(r"^FAILED \w+\.(\w+\.\w+)", done.said, re.MULTILINE)]


def seeds(theme, effort=1):
    """The arguments of the simulator for the seeds of a theme."""
    return ["1" if theme == "any" else f"{theme}:1", str(SIM_SEEDS.get(theme, THEME_SEEDS) * effort)]


def scenarios(said):
    """The names in a list, without those that have a violation without a bug."""
    entries = re.findall(r"^\S.*\n(?: .*\n)*", said, re.MULTILINE)
    return [entry.split()[0].removesuffix(":") for entry in entries
            if "the known limit" not in entry and "\n    expected: " not in entry]


def contents(args):
    """What a trial depends on: the text of a file, not where it is."""
    return [pathlib.Path(arg).read_bytes() if os.path.isfile(arg) else arg for arg in args]


def failed_tests(done):
    """A timeline is called by its file."""
    return [pathlib.Path(name).name.removesuffix(".txt")
            for name in re.findall(r"^FAILED ([^\s:]+)", done.said, re.MULTILINE)]


def judge_sim(done, theme):
    found = re.search(r"^seed (?:\w+:)?(\d+): VIOLATED (\w+): (.*)$", done.said, re.MULTILINE)
    if found and found[3] == f"signal {int(signal.SIGALRM)}":
        raise RuntimeError("the machine is too busy for test-sim, which saw its alarm clock")
    if found:
        return [Catch(found[2], theme, power(int(found[1])))]
    return [Catch("crash", theme)] if done.how == "crash" or done.how == "ended" and \
        done.status != 0 else []
