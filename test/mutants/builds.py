"""Builds of the tree in which bugs are planted for trials.py.

A bug is planted by compiling its file once more, and by repeating the links of the programs with that
object in the place of the good one.  So a bug costs seconds, and adds nothing to the ordinary build.
"""

import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def digest(*parts):
    made = hashlib.sha256()
    for part in parts:
        made.update(part if isinstance(part, bytes) else str(part).encode())
        made.update(b"\0")
    return made.hexdigest()[:24]


class Build:
    """One build of the tree, configured when it is first needed."""

    def __init__(self, state, name, options):
        self.dir = pathlib.Path(state) / name
        self.commands = {}
        self.digests = {}
        self.compiled = []
        self.configure(options)

    def configure(self, options):
        # Hashes of programs must not depend on where the tree is.
        away = f"-ffile-prefix-map={os.path.relpath(ROOT, self.dir)}/="
        options = [option + " " + away if option.startswith("-Dc_args=") else option
                   for option in options]
        made_with = f"{self.dir} {ROOT} {options}"  # Tests are listed by their full names.
        mark = self.dir.with_suffix(".made-with")
        if not (self.dir / "build.ninja").exists() or not mark.exists() or \
                mark.read_text() != made_with:
            shutil.rmtree(self.dir, ignore_errors=True)
            done = subprocess.run(["meson", "setup", self.dir, ROOT, *options], check=False,
                                  capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"cannot be configured: {done.stdout}{done.stderr}")
            mark.write_text(made_with)

    def make(self, targets, jobs):
        done = subprocess.run(["ninja", "-C", self.dir, "-j", str(jobs), *targets], check=False,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"cannot be built: {done.stdout[-3000:]}{done.stderr}")

    def unit_programs(self, others):
        """Arguments by program: those of the suite unit that are C, and not one of these others."""
        found = {}
        for test in json.loads((self.dir / "meson-info/intro-tests.json").read_text()):
            path, *args = test["cmd"]
            try:
                target = str(pathlib.Path(path).relative_to(self.dir))
            except ValueError:
                continue
            is_unit = any(suite.endswith(":unit") for suite in test["suite"])
            loads = any(".so" in arg for arg in args)  # The library without the bug.
            if is_unit and not loads and target not in others and \
                    not target.startswith("test/live/"):
                found[target] = args
        return found

    def command(self, target):
        """The words of the command that makes this file."""
        if target not in self.commands:
            said = subprocess.run(["ninja", "-C", self.dir, "-t", "commands", "-s", target],
                                  capture_output=True, text=True, check=True).stdout
            line = [line for line in said.splitlines() if not line.startswith("ninja: ")][-1]
            self.commands[target] = shlex.split(line.rpartition("&& ")[2])
        return self.commands[target]

    def digest(self, target):
        """Of a program that was built, and does not change while this runs."""
        if target not in self.digests:
            self.digests[target] = digest((self.dir / target).read_bytes())
        return self.digests[target]

    def objects_of(self, file):
        """The commands that compile this file, by the object."""
        if not self.compiled:
            self.compiled = json.loads((self.dir / "compile_commands.json").read_text())
        name = os.path.relpath(ROOT / file, self.dir)
        return {entry["output"]: shlex.split(entry["command"]) for entry in self.compiled
                if entry["file"] == name}


class Planted:
    """One file with a bug, and the programs with it."""

    def __init__(self, build, folder, file, text, effort):
        self.build, self.folder, self.file, self.effort = build, folder, file, effort
        self.source = self.folder / pathlib.Path(file).name
        self.source.write_text(text)
        self.objects = build.objects_of(file)
        self.made = {}  # The new path by the old one; None: without the bug.

    def compile(self, output):
        path = self.folder / output.replace("/", "_")
        words = list(self.objects[output])
        for at, word in enumerate(words):
            if word in ("-o", "-MF", "-MQ"):
                words[at + 1] = str(path) + (".d" if word == "-MF" else "")
        words[-1] = str(self.source)
        # A bug may leave something unused.
        words += ["-w", "-Wno-error", "-iquote", str((ROOT / self.file).parent)]
        return self.do(words, path)

    def do(self, words, path):
        done = subprocess.run(words, cwd=self.build.dir, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"cannot be built: {' '.join(words)}\n{done.stdout}{done.stderr}")
        return path

    def make(self, target):
        """The path of this program or library with the bug; None if the file is not in it."""
        if target not in self.made:
            self.made[target] = (self.compile(target) if target in self.objects
                                 else self.link(target))
        return self.made[target]

    def link(self, target):
        path = self.folder / pathlib.Path(target).name
        words, is_changed = [], False
        for word in self.build.command(target):
            is_library = not word.startswith(("/", "-")) and (word.endswith(".a") or ".so." in word)
            is_part = word != target and (word in self.objects or is_library)
            new = self.make(word) if is_part else None
            is_changed = is_changed or new is not None
            words.append(str(path) if word == target else str(new or word))
        if target.endswith(".a"):
            words = [word.replace("csrDT", "csrD") for word in words]  # Not thin: it lies elsewhere.
        return self.do(words, path) if is_changed else None
