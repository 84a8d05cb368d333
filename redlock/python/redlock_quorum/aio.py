"""redlock_quorum for asyncio: a client that belongs to one event loop, and has no thread.

>>> import asyncio
>>> from redlock_quorum import aio
>>> async def main():
...     async with aio.Client() as client:
...         async with client.lock("jobs/7", ttl=10, wait=5) as lease:
...             lease.check()
...             print("work")
>>> asyncio.run(main())
work

A lease is renewed by the event loop: so a task that computes for longer than the ttl loses it.

The child of a fork may run the loop that it inherited, if it is one of asyncio's own: the client does nothing in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import threading
import weakref
from types import TracebackType
from typing import Any, Awaitable, Callable, Generator, Iterable, Optional, Type, Union

import redlock_quorum as base
from redlock_quorum import Error, Unreachable
from redlock_quorum._library import ffi, lib

__all__ = ["Client", "Lease"]


class Lease(base.Lease):
    """As redlock_quorum.Lease; extend() and unlock() are awaited."""

    _client: Client
    _extension = 0  # The number of the latest call of extend().

    def __enter__(self) -> Lease:
        raise TypeError("use `async with`: the end of a `with` block could not await the release")

    async def __aenter__(self) -> Lease:
        self._open_handle()
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        try:
            await self.unlock()
        except Unreachable as error:
            base._log.warning("%s", error)
        except Error:
            if kind is None:
                raise

    async def extend(self, ttl: float = 0) -> None:  # type: ignore[override]
        """Raises Lost if another task unlocks or detaches the lease meanwhile."""
        ms = base._ms("ttl", ttl)
        handle = self._open_handle()

        def begin(done: Any, arg: Any) -> int:
            status = int(lib.redlock_extend_async(handle, ms, done, arg))
            if status == 0:
                self._extension = self._client._last
            return status

        await self._client._call(begin)

    async def unlock(self) -> None:  # type: ignore[override]
        if self._is_open():
            await self._client._call(self._begin_unlock)

    def _begin_unlock(self, done: Any, arg: Any) -> int:
        status = int(lib.redlock_unlock_async(self._made[0], done, arg))
        if status != base.OUT_OF_ORDER:
            self._forget()
        return status

    def _forget(self) -> None:
        """The library does not report an extension of a lease that it has freed."""
        super()._forget()
        self._client._lose(self._extension)


class _Locking:
    """What lock() gives: to be awaited, or entered by `async with`.  Each block that runs needs one of its own:
    the end of another block would release the lease of this one."""

    def __init__(self, take: Callable[[], Awaitable[Lease]]) -> None:
        self._take = take
        self._is_entered = False
        self._lease: Optional[Lease] = None

    def __await__(self) -> Generator[Any, None, Lease]:
        return self._take().__await__()

    async def __aenter__(self) -> Lease:
        if self._is_entered:
            raise base._error(base.OUT_OF_ORDER, "a block of this lock() has not ended: call lock() for each block")
        self._is_entered = True
        try:
            self._lease = await self._take()
        except BaseException:
            self._is_entered = False
            raise
        return self._lease

    async def __aexit__(self, *args: Any) -> None:
        lease, self._lease, self._is_entered = self._lease, None, False
        assert lease is not None
        await lease.__aexit__(*args)


class Client(base.Client):
    """As redlock_quorum.Client.  It must be opened, used and closed on one running event loop."""

    _pollable = True

    def __init__(self, masters: Optional[str] = None, **options: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = -1
        self._owner = os.getpid(), threading.get_ident()
        self._futures: dict[int, asyncio.Future[None]] = {}
        self._failed: dict[int, Callable[[], None]] = {}  # What to do if the call fails.
        self._last = 0
        self._raised: Optional[BaseException] = None
        ref = weakref.ref(self)  # Neither the callback nor the loop owns the client.
        self._done = ffi.callback("void(struct redlock_lease *, int, void *)", lambda *args: _on_done(ref, *args),
                                  onerror=lambda _, error, __: _on_error(ref, error))
        super().__init__(masters, **options)
        self._fd = lib.redlock_fd(self._handle)
        self._loop.add_reader(self._fd, _dispatch, ref, self._loop, self._fd, self._owner[0])

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Writes the releases that the sockets take, and waits for no answer."""
        if getattr(self, "_fd", -1) >= 0:
            self._on_loop(self._close)

    def _close(self) -> None:
        """In the child of a fork, _dispatch() parts the loops."""
        if self._fd >= 0 and not self._loop.is_closed() and os.getpid() == self._owner[0]:
            self._loop.remove_reader(self._fd)
            if self._log is not None:
                self._loop.remove_reader(self._log.read_end)
        self._fd = -1
        super().close()
        for future in self._futures.values():
            future.cancel()

    def _on_loop(self, call: Callable[..., None], *args: Any) -> None:
        """Call in the thread of the loop.  The garbage collector may run in any thread."""
        if threading.get_ident() != self._owner[1]:
            try:
                self._loop.call_soon_threadsafe(call, *args)
                return
            except RuntimeError:
                pass  # The loop is closed, so no thread runs the client.
        call(*args)

    def _start_log(self, log: base._Log) -> None:
        """log is called on the event loop."""
        self._loop.add_reader(log.read_end, log.read)

    def _cancel(self, handle: Any, callback: Any) -> None:
        self._on_loop(self._cancel_here, handle, callback)

    def _cancel_here(self, handle: Any, callback: Any) -> None:
        if self._handle != ffi.NULL:
            lib.redlock_cancel(handle)
        self._callbacks.discard(callback)

    def lock(  # type: ignore[override]
            self, resource: Union[str, Iterable[str]], *, wait: float = 0,
            lost: Optional[Callable[[], None]] = None, **options: Any) -> _Locking:
        """As redlock_quorum.Client.lock(): `async with client.lock(...) as lease`, or await it.
        A task that is cancelled gives up the wait, and what it may have got.  lost is called on the
        event loop."""
        return _Locking(lambda: self._lock(resource, wait, lost, options))

    async def _lock(self, resource: Union[str, Iterable[str]], wait: float,
                    lost: Optional[Callable[[], None]], options: dict[str, Any]) -> Lease:
        several, names, _kept = base._names(resource)
        callback = self._make_callback(lost)
        opts, _kept_too = base._lock_options(wait, callback, options)
        call = lib.redlock_lock_many_async if several else lib.redlock_lock_async
        lease = Lease(self, callback)
        try:
            await self._call(lambda done, arg: call(self._handle, *names, opts, done, arg, lease._made), lease._forget)
        except BaseException:
            lease._give_up()
            raise
        return lease

    def _new_lease(self, callback: Any) -> base.Lease:
        return Lease(self, callback)

    def _make_callback(self, lost: Optional[Callable[[], None]]) -> Any:
        if lost is None:
            return None
        called, ref = lost, weakref.ref(self)
        return ffi.callback("void(struct redlock_lease *, void *)", lambda *_: called(),
                            onerror=lambda _, error, __: _on_error(ref, error))

    async def _call(self, begin: Callable[[Any, Any], int], failed: Callable[[], None] = lambda: None) -> None:
        """failed is called before the library frees the lease of a call that has failed."""
        self._last += 1
        number, future = self._last, self._loop.create_future()
        base._check(begin(self._done, ffi.cast("void *", number)), self._handle)
        self._futures[number], self._failed[number] = future, failed
        try:
            await future
        finally:
            # The traceback of its exception has this frame, which would keep leases of the callers.
            del self._futures[number], self._failed[number], future

    def _lose(self, number: int) -> None:
        future = self._futures.get(number)
        if future is not None and not future.done():
            future.set_exception(base._error(4, "the lease was unlocked or detached meanwhile"))

    def _on_done(self, status: int, number: int) -> None:
        if number not in self._futures:
            return
        future = self._futures[number]
        if status != 0:
            self._failed[number]()
        if future.done():
            return
        if status == 0:
            future.set_result(None)
        else:
            future.set_exception(base._failure(status, self._handle))

    def _on_error(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self._loop.call_exception_handler({"message": "redlock: a callback failed", "exception": error})
        else:
            self._raised = error

    def _dispatch(self) -> None:
        lib.redlock_dispatch(self._handle)
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised


# What the library and the loop call.  They do not own the client.

def _on_done(ref: weakref.ref[Client], _lease: Any, status: int, arg: Any) -> None:
    client = ref()
    if client is not None:
        client._on_done(status, int(ffi.cast("uintptr_t", arg)))


def _on_error(ref: weakref.ref[Client], error: BaseException) -> None:
    """An exception cannot pass through the library.  ^C, for instance, goes on after it."""
    client = ref()
    if client is not None:
        client._on_error(error)


def _dispatch(ref: weakref.ref[Client], loop: asyncio.AbstractEventLoop, fd: int, owner: int) -> None:
    if os.getpid() != owner:
        _part(loop, fd)
        return
    client = ref()
    if client is not None:
        client._dispatch()


def _part(loop: asyncio.AbstractEventLoop, fd: int) -> None:
    """The child of a fork shares the loop's epoll instance with its parent, so to take the client out of it would
    harm the parent.  To leave it there would let the child spin while the parent is busy, or dead.  So the loop of
    the child gets a selector of its own, without the client.  There is no public way; another loop is left as it
    is."""
    shared = getattr(loop, "_selector", None)
    if not isinstance(shared, selectors.BaseSelector):
        return
    own = selectors.DefaultSelector()
    for key in shared.get_map().values():
        if key.fd != fd:
            with contextlib.suppress(OSError, ValueError):  # The child has closed it.
                own.register(key.fileobj, key.events, key.data)
    setattr(loop, "_selector", own)
    shared.close()
