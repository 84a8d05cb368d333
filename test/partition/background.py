"""Threads whose failure is noticed.

A Python thread that fails just ends.  The run would go on without its work: without samples of what
masters store, for example.  So the user of such a thread calls check() now and then, which raises.
"""

import threading

END_MAX_S = 30  # Chosen: far more than one step of any thread takes.


class BackgroundError(Exception):
    """A thread has failed; the text says which, and why."""


class Background(threading.Thread):
    """Runs work(), which subclasses define, until the event `over` is set."""

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
        """Raises BackgroundError if the thread has failed, or ended too early."""
        what = type(self).__name__
        if self.error is not None:
            raise BackgroundError(f"{what}: {type(self.error).__name__}: {self.error}")
        if not self.is_alive() and not self.over.is_set():
            raise BackgroundError(f"{what} does not run")

    def stop(self):
        """May be called at any time, even before the start."""
        self.over.set()
        if self.ident is not None:
            self.join(END_MAX_S)
            if self.is_alive():
                self.error = TimeoutError(f"does not end within {END_MAX_S} s")
