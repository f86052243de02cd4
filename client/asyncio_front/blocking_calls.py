"""Calls that block, in threads, for the tasks of one event loop.

A call that has begun cannot be stopped, and may have done what it was to do. So a task that is cancelled meanwhile is
let go only when its call has ended: by then nothing is under way any more in what it was about, which says how it
stands. (So do Trio's and AnyIO's threads by default; ``asyncio.to_thread`` lets go at once.) Tasks may be cancelled by
asyncio, once, or by AnyIO, at whose scopes a task that waits is cancelled until it waits no more.

Invariant: whoever is told that a call was not made is told so for good.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import logging
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Final, TypeVar

from anyio import CancelScope

from client.asyncio_front.fair_line import FairLine
from client.errors import InvalidRequest, NoThreadFree

_log = logging.getLogger(__name__)

Result = TypeVar("Result")

CALLS_PENDING_MAX: Final = 100_000
"""Of one manager, that are being made or wait for that."""
THREADS_MAX: Final = 10_000
THREAD_NAME: Final = "pythia-blocking"
_NOT_GIVEN_BACK: Final = "something could not be given back: %s"


class BlockingCalls:
    """``threads`` of them; a call waits for a free one for ``wait_ms_max``. For the event loop that uses it first.

    Raises ``InvalidRequest`` for a number of threads that cannot be.
    """

    def __init__(self, threads: int, wait_ms_max: int) -> None:
        if type(threads) is not int or not 1 <= threads <= THREADS_MAX:
            raise InvalidRequest(f"threads is a whole number from 1 to {THREADS_MAX:,}, not {threads!r}")
        self._threads = threads
        self._wait_ms_max = wait_ms_max
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=THREAD_NAME)
        self._cleaner = ThreadPoolExecutor(1, thread_name_prefix=f"{THREAD_NAME}-cleaner")
        """Never shut: a scan may be left after all else was closed. Its thread ends with this object."""
        self._cleaning = set[asyncio.Task[None]]()
        self._line: FairLine[asyncio.Future[None]] = FairLine(threads)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending = 0
        self._closed = False

    async def run(self, call: Callable[[], Result], turn: asyncio.Lock | None = None, party: str = "") -> Result:
        """What ``call`` returns, or raises. Those of one ``turn`` are made one after the other, in their order.

        Of those who wait for a thread the next is one of the ``party`` that has the fewest (see ``FairLine``).

        Cancelled before the call has begun, it is never made; later, the cancellation goes on when the call has ended.
        Raises ``NoThreadFree`` where no thread came free in time and ``InvalidRequest`` where too many wait, where
        it is closed, or for another event loop: the call was not made.
        """
        self._require_usable()
        self._pending += 1
        try:
            async with nullcontext() if turn is None else turn, self._place(party):
                self._require_open()
                return await _made(self._pool, call)
        finally:
            self._pending -= 1

    def clean_up(self, call: Callable[[], object]) -> None:
        """Have something given back that nobody waits for: without a place, and after the close, too."""

        def clean() -> None:
            try:
                call()
            except Exception as error:
                _log.warning(_NOT_GIVEN_BACK, str(error))

        try:
            self._cleaner.submit(clean)
        except RuntimeError as error:  # no thread can be started, or the interpreter ends
            _log.warning(_NOT_GIVEN_BACK, str(error))

    def clean_up_in_turn(self, call: Callable[[], object], turn: asyncio.Lock) -> None:
        """As ``clean_up``, after the calls of this turn that have begun, or wait for it."""

        async def clean() -> None:
            try:
                async with turn:
                    await _made(self._cleaner, call)
            except Exception as error:
                _log.warning(_NOT_GIVEN_BACK, str(error))

        cleaning = asyncio.get_running_loop().create_task(clean())
        self._cleaning.add(cleaning)  # which the event loop does not hold
        cleaning.add_done_callback(self._cleaning.discard)

    async def close(self, last: Callable[[], None] | None = None) -> None:
        """Make no more calls but ``last``; those that have begun come to their end. ``last`` is made in any case.

        Without a ``last`` their end is waited for.
        """
        self._closed = True
        try:
            await _made(self._cleaner, last or self._pool.shutdown)
        finally:
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
    async def _place(self, party: str) -> AsyncIterator[None]:
        """One of the threads is free inside."""
        await self._take_place(party)
        try:
            yield
        finally:
            self._give_place(party)

    async def _take_place(self, party: str) -> None:
        """Not by ``asyncio.timeout``: before Python 3.11.4 who was cancelled once is told of that again by it."""
        if self._line.take(party):
            return
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._line.wait(party, waiter)
        timer = loop.call_later(self._wait_ms_max / 1000, self._wait_no_more, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._give_place(party)  # it was given in the same moment
            raise
        finally:
            timer.cancel()
            self._line.leave(party, waiter)

    def _wait_no_more(self, waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_exception(
                NoThreadFree(
                    f"all {self._threads} threads for calls that block were busy for {self._wait_ms_max} ms: "
                    "give the manager more threads, or ask for less at once"
                )
            )

    def _give_place(self, party: str) -> None:
        following = self._line.give_back(party)
        while following is not None:
            party, waiter = following
            if not waiter.done():
                waiter.set_result(None)
                return
            following = self._line.give_back(party)  # he waits no more, and has not come to leave the line yet


async def _made(pool: ThreadPoolExecutor, call: Callable[[], Result]) -> Result:
    """What a call in a thread returns or raises. Ends when the call has, and not before.

    Not by ``asyncio.wrap_future``: its futures hold each other, and with them an error and all that it came from.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Result] = loop.create_future()
    decided = threading.Lock()
    """Held, once it is certain that the call is made, or that it is not."""
    cancelled: asyncio.CancelledError | None = None
    try:
        pool.submit(contextvars.copy_context().run, _make, [(call, ended)], decided, loop)
    except RuntimeError as error:
        if decided.acquire(blocking=False):  # else a thread that was there took it after all
            raise NoThreadFree(f"no thread could be had for a call that blocks: {error}") from error
    try:
        cancelled = await _until(ended)
        if cancelled is not None:
            ended.exception()  # seen, though nobody is told: the cancellation is what goes on
            raise cancelled
        return ended.result()
    finally:
        del ended, cancelled, call  # an error's traceback holds this frame, which is not to hold the error


async def _until(ended: asyncio.Future[Result]) -> asyncio.CancelledError | None:
    """Wait for it; what the task was cancelled with meanwhile, the last time."""
    cancelled: asyncio.CancelledError | None = None
    try:
        try:
            await asyncio.wait((ended,))
        except asyncio.CancelledError as error:
            cancelled = error
        # AnyIO would cancel it anew in every turn of the event loop. What has a shield from the start is never told.
        with nullcontext() if ended.done() else CancelScope(shield=True):
            while not ended.done():
                try:
                    await asyncio.wait((ended,))
                except asyncio.CancelledError as error:  # asyncio's: for somebody outside of all scopes
                    cancelled = error
        return cancelled
    finally:
        del ended, cancelled  # as in ``_made``


def _make(
    wanted: list[tuple[Callable[[], Result], asyncio.Future[Result]]],
    decided: threading.Lock,
    loop: asyncio.AbstractEventLoop,
) -> None:
    """In the thread: make the call, unless its caller was told that it is not made.

    ``wanted`` is emptied: an error's traceback holds who called this, with the arguments, and is not to hold the error.
    """
    call, ended = wanted.pop()
    if not decided.acquire(blocking=False):
        return
    try:
        tell = partial(ended.set_result, _called(call))
    except BaseException as error:
        tell = partial(ended.set_exception, error)
    with suppress(RuntimeError):  # the event loop is closed: nobody waits
        loop.call_soon_threadsafe(tell)
    del tell, ended, call  # as in ``_made``


def _called(call: Callable[[], Result]) -> Result:
    """What it returns. Of these errors no future can tell: it would say nothing for ever, or that it was cancelled."""
    try:
        return call()
    except (StopIteration, concurrent.futures.CancelledError, asyncio.CancelledError) as error:
        raise RuntimeError(f"a call raised {error!r}") from error
