"""One answer for all who ask the same at about the same time, so that a crowd costs no more than one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Shared(Generic[Answer]):
    """What ``ask`` answers, asked once at a time, and not again within ``fresh_ms`` of an answer.

    An error is told to those who wait for it, and not kept. Belongs to one event loop.
    """

    def __init__(self, ask: Callable[[], Awaitable[Answer]], fresh_ms: int) -> None:
        self._ask = ask
        self._fresh_ms = fresh_ms
        self._asking: asyncio.Future[Answer] | None = None
        self._last: tuple[float, Answer] | None = None
        """When it came, on the monotonic clock, and what."""

    async def get(self) -> Answer:
        """The answer now, or ``fresh_ms`` ago. Raises what ``ask`` raises."""
        if self._last is not None and (time.monotonic() - self._last[0]) * 1000 < self._fresh_ms:
            return self._last[1]
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    def _asked(self, asking: asyncio.Future[Answer]) -> None:
        self._asking = None
        if not asking.cancelled() and asking.exception() is None:
            self._last = time.monotonic(), asking.result()
