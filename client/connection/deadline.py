"""How long a call may still take: one limit for all that it does, failovers and second questions included."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from client.errors import InvalidRequest
from client.settings import DEADLINE_MS_MAX


def seconds_of(deadline_ms: float) -> float:
    """So many milliseconds that a call may take, in seconds. Raises ``InvalidRequest`` for what is no such number."""
    if not isinstance(deadline_ms, int | float) or not 0 <= deadline_ms <= DEADLINE_MS_MAX:  # nor is NaN
        raise InvalidRequest(f"deadline_ms is a number from 0 to {DEADLINE_MS_MAX:,}, not {deadline_ms!r}")
    return deadline_ms / 1000


class Deadline:
    """``limit_ms`` from now on. Raises ``InvalidRequest`` as ``seconds_of`` does."""

    def __init__(self, limit_ms: int) -> None:
        self._started = time.monotonic()
        self._limit_seconds = seconds_of(limit_ms)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is done inside does not count: it has limits of its own."""
        paused = time.monotonic()
        try:
            yield
        finally:
            self._started += time.monotonic() - paused

    def remaining_seconds(self) -> float:
        """What is left, 0 at least."""
        return max(0.0, self._limit_seconds - self.waited_seconds())

    def waited_seconds(self) -> float:
        """How long it has taken so far."""
        return time.monotonic() - self._started

    @property
    def waited_ms(self) -> int:
        """The same in whole milliseconds, for error texts."""
        return int(self.waited_seconds() * 1000)
