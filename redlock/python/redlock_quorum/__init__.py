"""Distributed locks that a majority of independent Redis masters agree on.

A layer over the C library libredlock.  redlock(3) says what each call and each option does.  The file is longer than others,
because the layer is one module.

>>> from redlock_quorum import Client
>>> with Client() as client:                    # the masters of REDLOCK_MASTERS
...     with client.lock("jobs/7", ttl=10) as lease:
...         lease.check()                       # raises Lost if the lock is not held any more
...         print("work")
work

A lock is a lease: it ends by itself, and a thread of the library renews it in time, also while
Python computes.  It can be lost all the same, for instance if the process is stopped for longer
than the lease.  So call check() before each step that needs the lock, or let the storage check
the fencing token (fence=True, lease.fence).

redlock_quorum.aio has the same for asyncio.

Times are in seconds.  A client may be used by any number of threads, and does not survive a fork:
open it in the child.
"""

from __future__ import annotations

import _thread
import contextlib
import logging
import math
import os
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, Iterable, NamedTuple, Optional, Type, Union

from ._library import ffi, lib

__all__ = [
    "FOREVER", "Client", "Contended", "Error", "Forbidden", "Interrupted", "Invalid", "Lease", "Lost",
    "NotReady", "OutOfOrder", "Reason", "SystemFailed", "TooLate", "Unreachable", "WrongSet", "bucket_bounds",
]

FOREVER = float("inf")
_log = logging.getLogger(__name__)
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)  # As enum redlock_level.
_UINT32_MAX = 0xFFFFFFFF
# How often the main thread looks for a signal that came just before it slept, and interrupts again a
# call that had not begun.  Chosen.
_LOOK_S = 0.1
OUT_OF_ORDER, INVALID, NOT_READY = -3, -1, 6
_MASTERS_MAX = 15  # REDLOCK_MASTERS_MAX
_FIRST_BUCKET_S = 32e-6  # REDLOCK_BUCKET_US(0)


class Reason(NamedTuple):
    """Why a master gave no vote: the fields of struct redlock_reason."""

    master: int
    address: str
    id: str
    over: Optional[float]  # In seconds, from when the call failed; None: not known.
    words: str
    decides: bool


class Error(Exception):
    """A call that failed.  str() is the message of the library, with its context; reasons has the
    masters at fault, if any, those that decide first."""

    status = 0
    reasons: tuple[Reason, ...] = ()


class Contended(Error):
    """Another client has the lock."""


class Unreachable(Error):
    """Too few masters answered in time."""


class TooLate(Error):
    """A majority agreed, but no validity was left."""


class Lost(Error):
    """The lock was held, and is lost."""


class Interrupted(Error):
    """Client.interrupt() ended the call.  Nothing is held."""


class NotReady(Error):
    """Enough masters answer, and too few of them may vote yet."""


class Invalid(Error, ValueError):
    """An argument or an option is out of its range."""


class OutOfOrder(Error):
    """The call is not allowed now, for example after a fork."""


class SystemFailed(Error, OSError):
    """The system refused a clock, a timer, a thread or random numbers."""


class Forbidden(Error):
    """Too few masters allow it: the password, or the ACL, is wrong."""


class WrongSet(Error):
    """The list names masters that are not of one set."""


_ERRORS: dict[int, Type[Error]] = {
    1: Contended, 2: Unreachable, 3: TooLate, 4: Lost, 5: Interrupted, 6: NotReady,
    -1: Invalid, -3: OutOfOrder, -4: SystemFailed, -5: Forbidden, -6: WrongSet,
}


def _error(status: int, message: str, reasons: tuple[Reason, ...] = ()) -> Error:
    """Make an exception.  The caller raises it, and keeps it in no variable: its traceback has the frames of
    all callers, and would keep these, with their leases, until the garbage collector runs."""
    error = _ERRORS.get(status, Error)(message)
    error.status = status
    error.reasons = reasons
    return error


def _failure(status: int, rl: Any) -> Exception:
    if status == -2:
        return MemoryError("redlock: out of memory")
    text = ffi.string(lib.redlock_errmsg(rl)) or ffi.string(lib.redlock_strerror(status))
    return _error(status, text.decode(errors="replace"), _read_reasons(rl))


def _read_reasons(rl: Any) -> tuple[Reason, ...]:
    why = ffi.new("struct redlock_reason *")
    why.size = ffi.sizeof(why[0])
    reasons: list[Reason] = []
    while lib.redlock_reason(rl, len(reasons), why) == 0:
        over = None if why.over_ms == _UINT32_MAX else why.over_ms / 1000
        reasons.append(Reason(why.master, _string(why.address), _string(why.id), over, _string(why.words),
                              bool(why.decides)))
    return tuple(reasons)


def _check(status: int, rl: Any = ffi.NULL) -> None:
    if status != 0:
        raise _failure(status, rl)


def _invalid(message: str) -> Error:
    return _error(-1, message)


def bucket_bounds() -> list[float]:
    """The limits of the buckets of Client.stats(), in seconds.  The last bucket has none."""
    counts = ffi.typeof("struct redlock_histogram").fields[1][1].type
    return [_FIRST_BUCKET_S * 2 ** i for i in range(counts.length - 1)]


def _read_stats(stats: Any) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, field in ffi.typeof(stats).item.fields:
        value = getattr(stats, name)
        if field.type.kind == "struct":
            read[name] = {"sum": value.sum_ns / 1e9, "counts": list(value.counts)}
        elif field.type.kind == "array":
            read[name] = _string(value)
        elif name != "size":
            read[name] = value
    return read


def _ms(name: str, seconds: float) -> int:
    """Seconds as the library takes them.  A part of a millisecond is not rounded away."""
    ms = seconds * 1000
    if not 0 <= ms < _UINT32_MAX:
        raise _invalid(f"{name}: {seconds} is not 0 to {_UINT32_MAX // 1000} seconds")
    return math.ceil(round(ms, 6))  # 2.007 * 1000 is a little more than 2007.


def _text(name: str, text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, not {type(text).__name__}")
    data = text.encode(errors="surrogateescape")
    if b"\0" in data:
        raise _invalid(f"{name} must not contain a NUL")
    return data


def _string(text: Any) -> str:
    return bytes(ffi.string(text)).decode(errors="surrogateescape")


class Lease:
    """A lock that was acquired.  Leaving its `with` block releases it.

    If the lock was lost before, the end of the block raises Lost, unless another exception
    passes.  If too few masters confirm the release, the work is done all the same: the end of the
    block logs a warning, and raises nothing.  After unlock() or detach() the lease is not held.
    """

    def __init__(self, client: Client, callback: Any) -> None:
        """It is made before the lock is asked for.  So a lock that is granted has an owner at once,
        whatever exception comes then, such as ^C."""
        self._client = client
        self._made = ffi.new("struct redlock_lease **")  # NULL: there is no lease yet, or no more.
        self._callback = callback
        self._use = threading.RLock()  # Held while the library reads the lease, so that no thread frees it.
        client._callbacks.add(callback)

    def __del__(self) -> None:
        if hasattr(self, "_callback"):
            self._give_up()

    def __reduce__(self) -> Any:
        raise TypeError("a lease cannot be copied or pickled: hand on its token, and adopt it")

    def __enter__(self) -> Lease:
        """Raises Invalid after unlock() or detach(): the block would run without the lock."""
        self._open_handle()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            self.unlock()
        except Unreachable as error:
            _log.warning("%s", error)
        except Error:
            if kind is None:
                raise

    def _using(self) -> Any:
        """No lock in the child of a fork: a thread that is not there may hold it for ever, and the library does nothing."""
        return self._use if os.getpid() == self._client._pid else contextlib.nullcontext()

    def remaining(self) -> float:
        """How long the lock can still be relied on, in seconds.  0: it is not held, or this is the child of a fork."""
        with self._using():
            return lib.redlock_remaining_ms(self._made[0]) / 1000 if self._is_open() else 0.0

    def held(self) -> bool:
        return self.remaining() > 0

    def check(self) -> None:
        """Raise Lost if the lock is not held.  In the child of a fork raise OutOfOrder: there nobody knows it."""
        if os.getpid() != self._client._pid:
            raise _error(OUT_OF_ORDER, "the client was opened before a fork: only the parent knows whether the lock is held")
        if not self.held():
            raise _error(4, "the lock is not held any more")

    def extend(self, ttl: float = 0) -> None:
        """Make the lease last ttl from now; 0: as long as it lasted before."""
        _check(lib.redlock_extend(self._open_handle(), _ms("ttl", ttl)), self._client._handle)

    def unlock(self) -> None:
        """Release the lock.  Raises Lost if it was not held any more, and Unreachable if too few masters
        confirmed the release: the lock then ends by itself after its ttl, if not before."""
        if self._is_open():
            self._end(lib.redlock_unlock)

    def detach(self) -> None:
        """Free the lease without a release, for a process that has its token."""
        if self._is_open():
            self._end(lib.redlock_detach)

    @property
    def resource(self) -> str:
        return _string(self._info().resource)

    @property
    def token(self) -> str:
        """What the masters store: random digits, and perhaps a colon and the note."""
        return _string(self._info().token)

    @property
    def fence(self) -> int:
        """The fencing token; 0: the lock was taken without fence."""
        return int(self._info().fence)

    @property
    def permit(self) -> int:
        """The number of the permit, from 1; 0: it is a lock."""
        return int(self._info().permit)

    def _is_open(self) -> bool:
        return bool(self._made[0] != ffi.NULL and self._client._handle != ffi.NULL)

    def _open_handle(self) -> Any:
        if not self._is_open():
            raise _invalid("the lease is over")
        return self._made[0]

    def _take_handle(self) -> Any:
        """NULL: another thread ends the lease."""
        with self._using():
            handle, self._made[0] = self._made[0], ffi.NULL
            return handle

    def _forget(self) -> None:
        """The library has freed the lease, or will not call its callback any more."""
        self._made[0] = ffi.NULL
        self._client._callbacks.discard(self._callback)

    def _end(self, call: Callable[[Any], int]) -> None:
        handle = self._take_handle()
        if handle == ffi.NULL:
            return
        status = call(handle)
        if status == OUT_OF_ORDER:
            self._made[0] = handle
        else:
            self._forget()
        _check(status, self._client._handle)

    def _give_up(self) -> None:
        if self._is_open():
            self._client._cancel(self._take_handle(), self._callback)
        else:
            self._forget()

    def _info(self) -> Any:
        info = ffi.new("struct redlock_lease_info *")
        info.size = ffi.sizeof(info[0])
        with self._using():
            _check(lib.redlock_lease_info(self._open_handle(), info))
        return info


class _Log:
    """Passes on what the library logs.  The library writes to a pipe, because it holds its lock then: if it
    called Python, the garbage collector might free a lease there, and call the library."""

    def __init__(self, call: Callable[[int, str], None]) -> None:
        self._call = call
        self._pid = os.getpid()
        self._rest = b""
        self._is_over = False
        self._thread: Optional[threading.Thread] = None
        self.read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)  # No call of the library waits for a reader.
        self.write_end = ffi.new("int *", write_end)

    def start(self) -> None:
        """Read in a thread, which does not own the client."""
        self._thread = threading.Thread(target=self._run, name="redlock log", daemon=True)
        self._thread.start()

    def read(self) -> bool:
        """False: there is nothing more."""
        try:
            data = os.read(self.read_end, 1 << 16)
        except OSError:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in filter(None, lines):
            level, _, message = line.partition(b" ")
            try:
                self._call(_LEVELS[int(level)], message.decode(errors="replace"))
            except Exception:
                _log.exception("the function that is given as log failed")
        return data != b""

    def _run(self) -> None:
        while self.read() and not self._is_over:
            pass
        self._finish()

    def _finish(self) -> None:
        os.set_blocking(self.read_end, False)
        while self.read():
            pass
        os.close(self.read_end)

    def close(self) -> None:
        """The client is closed.  In the child of a fork, the numbers may be of other files."""
        if self._is_over or os.getpid() != self._pid:
            return
        self._is_over = True
        try:
            os.write(self.write_end[0], b"\n")  # It wakes the reader.
        except BlockingIOError:
            pass
        os.close(self.write_end[0])
        if self._thread is None:
            self._finish()

    def join(self) -> None:
        if self._is_over and self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()


class Client:
    """A client of the masters in masters, or in the environment variable REDLOCK_MASTERS.

    options are those of struct redlock_options; those in ..._ms are given in seconds, without
    the ending: Client("10.0.0.1,10.0.0.2,10.0.0.3", reply_timeout=0.2, note="billing").  Without
    tls_ca, tls_cert and tls_key, REDLOCK_TLS_CA, REDLOCK_TLS_CERT and REDLOCK_TLS_KEY are read.

    log: called with a level of logging and each message of the library, in a thread of its own; it may
    use the client.  To pass them to logging: log=logging.getLogger("redlock").log.
    """

    _pollable = False
    _pid = 0
    _log: Optional[_Log] = None

    def __init__(self, masters: Optional[str] = None, *, log: Optional[Callable[[int, str], None]] = None,
                 **options: Any) -> None:
        made = ffi.new("struct redlock **")
        opts = ffi.new("struct redlock_options *")

        self._handle = ffi.NULL
        self._pid = os.getpid()
        self._callbacks: set[Any] = set()  # The library may call these.
        self._thread = 0  # The thread of the library that has called one.
        lib.redlock_options_init_sized(opts, ffi.sizeof(opts[0]))
        keep = _set_options(opts, dict(options, masters=masters), ("size", "loop", "pollable", "log", "log_arg"))
        opts.pollable = self._pollable
        if log is not None:
            self._log = _Log(log)
            opts.log, opts.log_arg = lib.redlock_log_to, self._log.write_end
        try:
            _check(lib.redlock_open(opts, made))
        except BaseException:
            self._shut()
            raise
        self._handle = made[0]
        if self._log is not None:
            self._start_log(self._log)
        del keep

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self._shut()

    def close(self) -> None:
        """Release all leases, and close the connections.  No thread may use the client then.  It waits until
        log has had all messages."""
        self._shut()
        if self._log is not None:
            self._log.join()

    def _shut(self) -> None:
        handle, self._handle = getattr(self, "_handle", ffi.NULL), ffi.NULL
        log = self._log

        def close(handle: Any) -> None:
            lib.redlock_close(handle)
            if log is not None:
                log.close()

        if handle != ffi.NULL and lib.redlock_close(handle) != ffi.NULL:
            self._elsewhere(close, handle, self._callbacks)
        elif log is not None:
            log.close()

    def _start_log(self, log: _Log) -> None:
        log.start()

    def __reduce__(self) -> Any:
        raise TypeError("a client cannot be copied or pickled: open another one")

    def lock(self, resource: Union[str, Iterable[str]], *, wait: float = 0,
             lost: Optional[Callable[[], None]] = None, **options: Any) -> Lease:
        """Lock a resource, or several: all of them or none.

        wait: how long to keep trying; FOREVER: without a limit.  ^C ends a wait, and with it all
        waits of this client.  lost: called in a thread of the library when the hold ends soon or
        has ended.  options are those of struct redlock_lock_options, as with Client:
        ttl, retry_delay_min, retry_delay_max, no_renew, fence, fair, shared, max_hold,
        lost_margin, permits, note.

        Raises Contended, Unreachable, NotReady, TooLate, Interrupted, Forbidden, WrongSet, Invalid.
        """
        return self._take(resource, None, wait, lost, options)

    def adopt(self, resource: Union[str, Iterable[str]], token: str, *,
              lost: Optional[Callable[[], None]] = None, **options: Any) -> Lease:
        """Make a lease from a token that another process handed on.  Extend it first."""
        return self._take(resource, token, 0, lost, options)

    def interrupt(self) -> None:
        """End all waits of this client, or the next one, with Interrupted.  Any thread."""
        lib.redlock_interrupt(self._handle)

    def ready(self) -> float:
        """0: a majority of the masters may vote.  Else the seconds until then, as far as known.

        Raises Unreachable, Forbidden, WrongSet if a lock would.
        """
        ms = ffi.new("uint32_t *")
        status = lib.redlock_ready(self._handle, ms)
        if status != NOT_READY:
            _check(status, self._handle)
        return float(max(ms[0], status == NOT_READY) / 1000)

    def stats(self) -> dict[str, Any]:
        """What this client has done: the fields of struct redlock_stats.

        wait, acquire, hold and extend are histograms: {"sum": seconds, "counts": [...]}, where
        counts[i] is of times up to bucket_bounds()[i] seconds, and the last of all longer ones.
        """
        stats = ffi.new("struct redlock_stats *")
        stats.size = ffi.sizeof(stats[0])
        _check(lib.redlock_stats(self._handle, stats), self._handle)
        return _read_stats(stats)

    def master_stats(self) -> dict[int, dict[str, Any]]:
        """What this client has seen of each master, by its number in messages, from 1."""
        found = {}
        for number in range(1, _MASTERS_MAX + 1):
            stats = ffi.new("struct redlock_master_stats *")
            stats.size = ffi.sizeof(stats[0])
            status = lib.redlock_master_stats(self._handle, number, stats)
            if status == INVALID:
                continue  # No master has this number.
            _check(status, self._handle)
            found[number] = _read_stats(stats)
        return found

    def _take(self, resource: Union[str, Iterable[str]], token: Optional[str], wait: float,
              lost: Optional[Callable[[], None]], options: dict[str, Any]) -> Lease:
        several, names, _kept = _names(resource)
        callback = self._make_callback(lost)
        opts, _kept_too = _lock_options(wait, callback, options)
        lease = self._new_lease(callback)
        try:
            if token is not None:
                call = lib.redlock_adopt_many if several else lib.redlock_adopt
                _check(call(self._handle, *names, _text("the token", token), opts, lease._made), self._handle)
            else:
                call = lib.redlock_lock_many if several else lib.redlock_lock
                self._wait(lambda: call(self._handle, *names, opts, lease._made), wait)
        except BaseException:
            lease._give_up()
            raise
        return lease

    def _new_lease(self, callback: Any) -> Lease:
        return Lease(self, callback)

    def _make_callback(self, lost: Optional[Callable[[], None]]) -> Any:
        """What the library calls.  It does not own the client, which owns it."""
        ref = weakref.ref(self)

        def call_lost(*_: Any) -> None:
            client = ref()
            if client is not None:
                client._thread = threading.get_ident()
            del client
            assert lost is not None
            lost()

        return None if lost is None else ffi.callback("void(struct redlock_lease *, void *)", call_lost)

    def _cancel(self, handle: Any, callback: Any) -> None:
        """Give up a lease.  The garbage collector may run in a callback, where the library refuses."""
        if threading.get_ident() == self._thread:
            self._elsewhere(lib.redlock_cancel, handle, callback)
        else:
            lib.redlock_cancel(handle)
        self._callbacks.discard(callback)

    @staticmethod
    def _elsewhere(call: Callable[[Any], Any], handle: Any, kept: Any) -> None:
        """Call the library in another thread.  What it may call is kept until then."""
        try:
            threading.Thread(target=lambda _kept: call(handle), args=(kept,)).start()
        except RuntimeError:
            pass  # Python ends, and no thread can start.

    def _wait(self, call: Callable[[], int], wait: float) -> None:
        """Python runs signal handlers in its main thread only, and not while a call of C lasts.
        So another thread makes a call that may wait.  Thread and Event of the threading module fail if
        an exception such as ^C comes at a bad moment."""
        outcome: list[Optional[BaseException]] = []
        begun: list[bool] = []
        given_up: list[bool] = []
        over = _thread.allocate_lock()

        def attempt() -> None:
            begun.append(True)
            try:
                if not given_up:
                    _check(call(), self._handle)
                outcome.append(None)
            except BaseException as error:
                outcome.append(error)
            over.release()

        if wait == 0 or threading.current_thread() is not threading.main_thread():
            return _check(call(), self._handle)
        over.acquire()
        try:
            _thread.start_new_thread(attempt, ())
            while not outcome:
                over.acquire(timeout=_LOOK_S)
        except BaseException:
            given_up.append(True)
            if begun and not outcome:
                self._interrupt_until(over, outcome)
            raise
        if outcome[0] is not None:
            raise outcome.pop()  # type: ignore[misc]

    def _interrupt_until(self, over: _thread.LockType, outcome: list[Optional[BaseException]]) -> None:
        """An interrupt that came when the call was over would end the next one.  A call without a name
        takes it, and asks no master."""
        while not outcome:
            self.interrupt()
            over.acquire(timeout=_LOOK_S)
        lib.redlock_lock(self._handle, b"", ffi.NULL, ffi.new("struct redlock_lease **"))


def _names(resource: Union[str, Iterable[str]]) -> tuple[bool, tuple[Any, ...], list[Any]]:
    """If there are several, the arguments of a call that takes them, and what these point to."""
    several = not isinstance(resource, str)
    names = [ffi.new("char[]", _text("the name", name))
             for name in ([resource] if isinstance(resource, str) else resource)]
    return several, (ffi.new("char *[]", names), len(names)) if several else (names[0],), names


def _lock_options(wait: float, callback: Any, options: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The struct, and what it points to."""
    opts = ffi.new("struct redlock_lock_options *")

    lib.redlock_lock_options_init_sized(opts, ffi.sizeof(opts[0]))
    keep = _set_options(opts, options, ("size", "wait_ms", "lost", "lost_arg", "reentrant", "owner"))
    opts.wait_ms = _UINT32_MAX if wait == FOREVER else _ms("wait", wait)
    if callback is not None:
        opts.lost = callback
    return opts, keep


def _set_options(opts: Any, values: dict[str, Any], hidden: tuple[str, ...]) -> list[Any]:
    """Set fields of a struct by their names.  Returns what the fields point to."""
    fields = {name: field.type for name, field in ffi.typeof(opts[0]).fields if name not in hidden}
    keep: list[Any] = []

    for name, value in values.items():
        if name + "_ms" in fields:
            setattr(opts, name + "_ms", _ms(name, value))
        elif name not in fields or name.endswith("_ms"):
            raise TypeError(f"there is no option {name!r}")
        elif value is None:
            continue
        elif fields[name].kind == "pointer":
            keep.append(ffi.new("char[]", _text(name, value)))
            setattr(opts, name, keep[-1])
        else:
            setattr(opts, name, value)
    return keep
