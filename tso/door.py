"""Whether a tenure's pipeline takes requests, and when it owes no answer any more.

Invariant: nothing is called finished while an answer is owed; and what has ended never opens again.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum


class _State(enum.Enum):
    OPEN = enum.auto()
    SHUT = enum.auto()
    """Nothing new is taken; what is owed is still answered."""
    ENDED = enum.auto()


class Door:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self._state = _State.OPEN
        self._idle = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether new requests are taken."""
        return self._state is _State.OPEN

    @property
    def has_ended(self) -> bool:
        """Whether nothing is answered any more."""
        return self._state is _State.ENDED

    def shut(self) -> bool:
        """Take nothing new; whether this call did it."""
        was_open = self.is_open
        if was_open:
            self._state = _State.SHUT
        return was_open

    def open_again(self) -> None:
        """Take requests once more, unless it has ended."""
        if self._state is _State.SHUT:
            self._state = _State.OPEN
            self._idle.clear()

    def note(self, owed: int) -> None:
        """So many answers are owed now."""
        if self._state is _State.SHUT and not owed:
            self._idle.set()

    def end(self) -> None:
        """For good; whoever waits is let go."""
        self._state = _State.ENDED
        self._idle.set()

    async def nothing_owed(self, limit_ms: float) -> bool:
        """Wait until nothing is owed; false where that took longer than ``limit_ms``, or it has ended before."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), limit_ms / 1000)
        return self._idle.is_set() and not self.has_ended
