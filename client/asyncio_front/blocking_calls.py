"""Calls that block, in threads, for the tasks of one event loop.

A call that has begun cannot be stopped, and may have done what it was to do. So a task that is cancelled meanwhile is
let go only when its call has ended: by then nothing is under way any more in what it was about, which says how it
stands. (So do Trio's and AnyIO's threads by default; ``asyncio.to_thread`` lets go at once.)
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from typing import Final, TypeVar

from client.errors import InvalidRequest
from store import StoreUnavailable

Result = TypeVar("Result")

CALLS_PENDING_MAX: Final = 100_000
"""Of one manager, that are being made or wait for that."""
THREADS_MAX: Final = 10_000


class BlockingCalls:
    """``threads`` of them; a call waits for a free one for ``wait_ms_max``. For the event loop that uses it first.

    Raises ``InvalidRequest`` for a number of threads that cannot be.
    """

    def __init__(self, threads: int, wait_ms_max: int) -> None:
        if type(threads) is not int or not 1 <= threads <= THREADS_MAX:
            raise InvalidRequest(f"threads is a whole number from 1 to {THREADS_MAX:,}, not {threads!r}")
        self._threads = threads
        self._wait_ms_max = wait_ms_max
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="pythia-blocking")
        self._free = asyncio.Semaphore(threads)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending = 0
        self._closed = False

    async def run(self, call: Callable[[], Result], turn: asyncio.Lock | None = None) -> Result:
        """What ``call`` returns, or raises. Those of one ``turn`` are made one after the other, in their order.

        Cancelled before the call has begun, it is never made; later, the cancellation goes on when the call has ended.
        Raises ``StoreUnavailable`` where no thread came free in time and ``InvalidRequest`` where too many wait, where
        it is closed, or for another event loop: the call was not made.
        """
        self._require_usable()
        self._pending += 1
        try:
            async with nullcontext() if turn is None else turn, self._place():
                return await self._in_thread(call)
        finally:
            self._pending -= 1

    def close(self) -> None:
        """Make no more calls; those that have begun come to their end."""
        self._closed = True
        self._pool.shutdown(wait=False)

    def _require_usable(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise InvalidRequest("the manager serves the event loop that used it first: make one for each loop")
        self._require_open()
        if self._pending >= CALLS_PENDING_MAX:
            raise InvalidRequest(
                f"{CALLS_PENDING_MAX:,} calls are under way or wait for it, as many as may: wait for some of them"
            )

    def _require_open(self) -> None:
        if self._closed:
            raise InvalidRequest("the manager is closed")

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """One of the threads is free inside."""
        try:
            async with asyncio.timeout(self._wait_ms_max / 1000):
                await self._free.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"all {self._threads} threads for calls that block were busy for {self._wait_ms_max} ms: "
                "give the manager more threads, or ask for less at once"
            ) from None
        try:
            self._require_open()
            yield
        finally:
            self._free.release()

    async def _in_thread(self, call: Callable[[], Result]) -> Result:
        """Ends when the call has, and not before."""
        began: Future[Result] = self._pool.submit(contextvars.copy_context().run, _called, call)
        ended = asyncio.wrap_future(began)
        cancelled: asyncio.CancelledError | None = None
        while not ended.done():
            try:
                await asyncio.wait((ended,))
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            ended.exception()  # seen, though nobody is told: the cancellation is what goes on
            raise cancelled
        return ended.result()


def _called(call: Callable[[], Result]) -> Result:
    """What it returns. No future can hold a ``StopIteration``: who waited for it would wait for ever."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("a call raised StopIteration") from error
