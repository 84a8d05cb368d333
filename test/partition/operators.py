"""The operators of a run: `redlock members` on hosts of their own, and what became of it.

Each command is an event `change` when it begins, and `changed` when it has ended.  They also keep
the list of masters that new clients get.  It has no master that may leave: that one may be emptied
later, and clients refuse a list that names a master of no set.
"""

import json
import pathlib
import signal
import subprocess
import threading
import time

import changes
import clients
import masters
import sampler

ENDS_MAX_S = 30  # A bound for a command in good health, which takes some 4 s.
MEND_MAX_S = 120  # A bound for all commands of one mending.
SHOW_MAX_S = 30
PAUSE_S = 0.2  # Between two looks at a set that is not as it should be.
HALT_S = 0.05  # Chosen: clients have some turns of their loops.
WATCH_EVERY_S = 0.0002
STEPS = ("HMGET", sampler.MARKER, "epoch", "ballot", "accepted")
WATCH_MAX_S = 0.1  # A master that is down or stopped is left out.
SAID_MAX = 200  # Letters of the last line that a command printed.


class Command:
    """One `redlock members`.  `tell` gets its end, from a thread."""

    def __init__(self, number, operator, argv, log, tell):
        self.number = number
        self.log = log
        self.tell = tell
        self.killed = False
        with open(log, "wb") as output:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, start_new_session=True)
        self.began = time.monotonic()
        self.operator = operator
        self.thread = threading.Thread(target=self.attend, daemon=True)
        self.thread.start()

    def attend(self):
        status = self.process.wait()
        self.tell("changed", id=self.number, by=self.operator, status=status, killed=self.killed,
                  said=self.last_line())

    def last_line(self):
        lines = pathlib.Path(self.log).read_text(errors="replace").splitlines()
        return lines[-1][:SAID_MAX] if lines else ""

    def kill(self):
        if self.process.poll() is None:
            self.killed = True
            self.process.kill()
        self.thread.join(ENDS_MAX_S)

    def halt(self, watch):
        """Stop it for a moment each time that `watch` returns something else."""
        threading.Thread(target=self.follow, args=(watch,), daemon=True).start()

    def follow(self, watch):
        before = watch()
        while self.process.poll() is None:
            now = watch()
            if now == before:
                time.sleep(WATCH_EVERY_S)
                continue
            self.process.send_signal(signal.SIGSTOP)
            time.sleep(HALT_S)
            self.process.send_signal(signal.SIGCONT)
            before = watch()

    def wait(self, give_up):
        """True if it has ended."""
        self.thread.join(max(0, give_up - time.monotonic()))
        return not self.thread.is_alive()


class Steps:
    """What operators write to masters: each step changes it."""

    def __init__(self, all_masters):
        self.masters = all_masters
        self.conversations = {}
        self.found = {}

    def read(self):
        """Of all masters at once, since an operator does not wait."""
        asked = [master for master in self.masters if self.talk(master, lambda one: one.send(*STEPS))]
        for master in asked:
            self.talk(master, lambda one, name=master.name: self.found.update({name: one.read()}))
        return dict(self.found)

    def talk(self, master, what):
        """False if the master is down, or stopped."""
        try:
            if master.name not in self.conversations:
                self.conversations[master.name] = master.conversation(WATCH_MAX_S)
            what(self.conversations[master.name])
            return True
        except (OSError, masters.MasterError):
            conversation = self.conversations.pop(master.name, None)
            if conversation is not None:
                conversation.close()
            return False


class Operators:
    """run(host, argv) gives the command line that runs argv on a host; endpoints are those of all
    masters, by name; tell records an event."""

    def __init__(self, programs, endpoints, members, folder, run):
        self.programs = programs
        self.endpoints = endpoints
        self.names = {endpoint: name for name, endpoint in endpoints.items()}
        self.folder = folder
        self.run = run
        self.tell = lambda event, **fields: None
        self.list_file = folder / "masters"
        self.members = list(members)
        self.commands = {}
        self.mendings = 0
        self.list_members(members)

    def list_members(self, members):
        """Set the list that new clients get."""
        self.listed = list(members)
        written = self.folder / "masters.new"
        written.write_text("\n".join(self.listed_endpoints()) + "\n")
        written.replace(self.list_file)

    def listed_without(self, leavers):
        """Changes that overlap may take all masters off the list.  Then the members are listed."""
        stay = [name for name in self.listed if name not in leavers]
        if not stay:
            stay = [name for name in self.show(changes.OPERATORS[0])[0] if name not in leavers]
        return stay or self.listed

    def listed_endpoints(self):
        return [self.endpoints[name] for name in self.listed]

    # ---- Verbs ----

    def operate(self, number, operator, words):
        self.list_members(self.listed_without(changes.pairs_of(words)[0]))
        self.tell("change", id=number, by=operator, about=" ".join(words))
        argv = self.argv(operator, "--even", words[0],
                         *(self.endpoints[name] for name in words[1:]))
        self.commands[number] = Command(number, operator, argv, self.folder / f"change-{number}.log",
                                        self.tell)

    def interrupt(self, number):
        self.commands[number].kill()

    def halt(self, number, all_masters):
        self.commands[number].halt(Steps(all_masters).read)

    def conclude(self, number):
        """The set is as wished: new clients may know it."""
        command = self.commands[number]
        if not command.wait(time.monotonic() + ENDS_MAX_S):
            raise clients.ClientError(f"{command.operator} does not end, see {command.log}")
        members, _, _ = self.show(command.operator)
        self.list_members(members)

    def mend(self, goal):
        """All commands end by themselves, and then the set is made to be the goal."""
        give_up = time.monotonic() + MEND_MAX_S
        for command in self.commands.values():
            if not command.wait(give_up):
                raise clients.ClientError(f"{command.operator} does not end, see {command.log}")
        while not self.is_mended(goal):
            if time.monotonic() > give_up:
                raise masters.MasterError(f"the set does not become {' '.join(goal)}, see "
                                          f"{self.folder}/change-*.log")
        self.members = list(goal)
        self.list_members(goal)

    # ---- Mending ----

    def is_mended(self, goal):
        """One step to the goal.  True if there is none left."""
        operator = changes.OPERATORS[self.mendings % len(changes.OPERATORS)]
        now, is_unfinished, all_vote = self.show(operator)
        leavers = sorted(set(now) - set(goal))
        joiners = sorted(set(goal) - set(now))
        if not (leavers or joiners or is_unfinished) and all_vote:
            return True
        if leavers and joiners:
            self.mend_by(operator, ("replace", leavers[0], joiners[0]))
        elif leavers:
            self.mend_by(operator, ("remove", *leavers))
        elif joiners:
            self.mend_by(operator, ("add", *joiners))
        elif is_unfinished:  # Any command finishes what it finds first.
            self.mend_by(operator, ("add", goal[0]))
        else:
            time.sleep(PAUSE_S)
        return False

    def mend_by(self, operator, words):
        self.mendings += 1
        number = -self.mendings  # Its own numbers, since the schedule does not have them.
        self.operate(number, operator, words)
        if not self.commands[number].wait(time.monotonic() + ENDS_MAX_S):
            raise clients.ClientError(f"{operator} does not end, see "
                                      f"{self.commands[number].log}")

    def show(self, operator):
        """What `redlock members` shows: the members, those of the new list if there are two;
        whether there are two lists, or a member has an older version; whether all members vote."""
        give_up = time.monotonic() + SHOW_MAX_S
        while True:
            done = subprocess.run(self.argv(operator, "--json"), capture_output=True, text=True,
                                  timeout=SHOW_MAX_S, check=False)
            try:
                told = json.loads(done.stdout)
                break
            except ValueError:
                if time.monotonic() > give_up:
                    raise masters.MasterError(f"redlock members: {done.stderr.strip()}") from None
                time.sleep(PAUSE_S)
        voting = [one for one in told["members"] if one["votes"]]
        is_unfinished = told["phase"] != "simple" or any(
            one["version"] != told["version"] for one in voting)
        return ([self.names[endpoint] for endpoint in told["to"]], is_unfinished,
                len(voting) == len(told["members"]))

    def argv(self, operator, *words):
        argv = [self.programs.redlock, "--masters", ",".join(self.endpoints.values()),
                "--max-ttl", f"{self.programs.ttl_ms}ms",
                "--reply-timeout", f"{self.programs.reply_timeout_ms}ms", "members", *words]
        return [str(word) for word in self.run(operator, argv)]

    def kill(self):
        for command in self.commands.values():
            command.kill()
