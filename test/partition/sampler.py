"""Samples of what the masters store: evidence that no client can give.

A hold is backed by its token on a majority of masters.  A thread looks at each lock in turn, and
tells the history what every master had for it: a token, "" for none, or null if it did not answer
at once, as one that is stopped or down does not.  A sample began at "since" and ended at "t".
"""

import threading
import time

import masters

EVERY_S = 0.05
ANSWER_MAX_S = 0.05


class Sampler(threading.Thread):
    """A context: samples are taken within it."""

    def __init__(self, all_masters, locks, history):
        super().__init__(daemon=True)
        self.masters = all_masters
        self.locks = locks
        self.history = history
        self.over = threading.Event()
        self.conversations = {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()

    def run(self):
        while True:
            for lock in self.locks:
                if self.over.wait(EVERY_S):
                    return
                since = time.monotonic_ns()
                tokens = {master.name: self.look(master, lock) for master in self.masters}
                self.history.tell("keys", lock=lock, since=since, tokens=tokens)

    def look(self, master, lock):
        """After an answer that did not come in time another connection is made: it may come yet."""
        try:
            if master.name not in self.conversations:
                self.conversations[master.name] = master.conversation(ANSWER_MAX_S)
            return self.conversations[master.name].ask("GET", lock) or ""
        except (OSError, masters.MasterError):
            self.forget(master)
            return None

    def forget(self, master):
        conversation = self.conversations.pop(master.name, None)
        if conversation is not None:
            conversation.close()
