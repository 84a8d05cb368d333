"""Samples of what the masters store: evidence that no client can give.

A hold is backed by its token on a majority of masters, for as long as it claims to last.  A thread
looks at each lock in turn, and tells the history what every master had for it: a token, "" for
none, or null if it did not answer at once, as one that is stopped or down does not; and for how
long it keeps that.  A sample began at "since" and ended at "t".
"""

import time

import background
import masters

EVERY_S = 0.05
ANSWER_MAX_S = 0.05
NO_KEY = -2  # What PTTL says then.


class Sampler(background.Background):
    """A context: samples are taken within it, or it ends with an error."""

    def __init__(self, all_masters, locks, history):
        super().__init__()
        self.masters = all_masters
        self.locks = locks
        self.history = history
        self.conversations = {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        self.stop()
        if kind is None:
            self.check()

    def work(self):
        while True:
            for lock in self.locks:
                if self.over.wait(EVERY_S):
                    return
                self.sample(lock)

    def sample(self, lock):
        since = time.monotonic_ns()
        found = {master.name: self.look(master, lock) for master in self.masters}
        self.history.tell("keys", lock=lock, since=since,
                          tokens={name: token for name, (token, _) in found.items()},
                          left_ms={name: left_ms for name, (_, left_ms) in found.items()})

    def look(self, master, lock):
        """The token, and how long it is kept.

        After an answer that did not come in time another connection is made: it may come yet.
        """
        try:
            if master.name not in self.conversations:
                self.conversations[master.name] = master.conversation(ANSWER_MAX_S)
            conversation = self.conversations[master.name]
            token, left_ms = conversation.ask_all(("GET", lock), ("PTTL", lock))
            return token or "", None if left_ms == NO_KEY else left_ms
        except (OSError, masters.MasterError):
            self.forget(master)
            return None, None

    def forget(self, master):
        conversation = self.conversations.pop(master.name, None)
        if conversation is not None:
            conversation.close()
