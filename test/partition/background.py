"""Threads that do not fail unseen.

A thread of Python's that fails just ends, and the run would go on without what it does: without
samples of what masters store, say, or with clocks that are right.  Whoever relies on one of these
asks it every now and then, and fails instead.
"""

import threading

END_MAX_S = 30  # Far more than one step of any of them takes.


class BackgroundError(Exception):
    """A thread has failed; the text says which, and why."""


class Background(threading.Thread):
    """Does work(), to be defined, until it is told to end: see `over`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.error = None

    def run(self):
        try:
            self.work()
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.error = error

    def check(self):
        """Raises BackgroundError unless all is well, or has ended as it should."""
        what = type(self).__name__
        if self.error is not None:
            raise BackgroundError(f"{what}: {type(self.error).__name__}: {self.error}")
        if not self.is_alive() and not self.over.is_set():
            raise BackgroundError(f"{what} does not run")

    def stop(self):
        """At any time, also before it was started."""
        self.over.set()
        if self.ident is not None:
            self.join(END_MAX_S)
            if self.is_alive():
                self.error = TimeoutError(f"does not end within {END_MAX_S} s")
