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
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Awaitable, Callable, Generator, Iterable, Optional, Type, Union

import redlock_quorum as base
from redlock_quorum import Error
from redlock_quorum._library import ffi, lib

__all__ = ["Client", "Lease"]


class Lease(base.Lease):
    """As redlock_quorum.Lease; extend() and unlock() are awaited."""

    _client: Client

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        try:
            await self.unlock()
        except Error:
            if kind is None:
                raise

    async def extend(self, ttl: float = 0) -> None:  # type: ignore[override]
        ms = base._ms("ttl", ttl)
        handle = self._open_handle()
        await self._client._call(lambda done, arg: lib.redlock_extend_async(handle, ms, done, arg))

    async def unlock(self) -> None:  # type: ignore[override]
        if not self._is_open():
            return
        handle, self._handle = self._handle, None
        try:
            await self._client._call(lambda done, arg: lib.redlock_unlock_async(handle, done, arg))
        finally:
            self._client._kept.pop(handle, None)


class _Locking:
    """What lock() gives: to be awaited, or entered by `async with`."""

    def __init__(self, take: Callable[[], Awaitable[Lease]]) -> None:
        self._take = take
        self._lease: Optional[Lease] = None

    def __await__(self) -> Generator[Any, None, Lease]:
        return self._take().__await__()

    async def __aenter__(self) -> Lease:
        self._lease = await self._take()
        return self._lease

    async def __aexit__(self, *args: Any) -> None:
        assert self._lease is not None
        await self._lease.__aexit__(*args)


class Client(base.Client):
    """As redlock_quorum.Client.  It must be opened, used and closed on one running event loop."""

    _pollable = True

    def __init__(self, masters: Optional[str] = None, **options: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = -1
        self._futures: dict[int, asyncio.Future[None]] = {}
        self._last = 0
        self._done = ffi.callback("void(struct redlock_lease *, int, void *)", self._on_done)
        super().__init__(masters, **options)
        self._fd = lib.redlock_fd(self._handle)
        self._loop.add_reader(self._fd, lib.redlock_dispatch, self._handle)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Writes the releases that the sockets take, and waits for no answer."""
        if getattr(self, "_fd", -1) >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._fd = -1
        super().close()
        for future in getattr(self, "_futures", {}).values():
            future.cancel()

    def lock(  # type: ignore[override]
            self, resource: Union[str, Iterable[str]], *, wait: float = 0,
            lost: Optional[Callable[[], None]] = None, **options: Any) -> _Locking:
        """As redlock_quorum.Client.lock(): `async with client.lock(...) as lease`, or await it.
        A task that is cancelled gives up the wait, and what it may have got.  lost is called on the
        event loop."""
        return _Locking(lambda: self._lock(resource, wait, lost, options))

    async def _lock(self, resource: Union[str, Iterable[str]], wait: float,
                    lost: Optional[Callable[[], None]], options: dict[str, Any]) -> Lease:
        made = ffi.new("struct redlock_lease **")
        several, names, _kept = base._names(resource)
        opts, keep = base._lock_options(wait, lost, options)
        call = lib.redlock_lock_many_async if several else lib.redlock_lock_async
        try:
            await self._call(lambda done, arg: call(self._handle, *names, opts, done, arg, made))
        except asyncio.CancelledError:
            if self._handle != ffi.NULL:
                lib.redlock_cancel(made[0])
            raise
        return Lease(self, made[0], keep)

    def _adopted(self, handle: Any, keep: list[Any]) -> base.Lease:
        return Lease(self, handle, keep)

    async def _call(self, begin: Callable[[Any, Any], int]) -> None:
        self._last += 1
        number, future = self._last, self._loop.create_future()
        base._check(begin(self._done, ffi.cast("void *", number)), self._handle)
        self._futures[number] = future
        try:
            await future
        finally:
            del self._futures[number]

    def _on_done(self, _lease: Any, status: int, arg: Any) -> None:
        future = self._futures.get(int(ffi.cast("uintptr_t", arg)))
        if future is None or future.done():
            return
        try:
            base._check(status, self._handle)
            future.set_result(None)
        except (Error, MemoryError) as error:
            future.set_exception(error)
