"""Whether a tenure's pipeline takes requests, and when it owes no answer any more.

Invariant: nothing is called finished while an answer is owed; and what has ended never opens again.
"""

from __future__ import annotations

import asyncio
import contextlib


class Door:
    """Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self.is_open = True
        """Whether new requests are taken; else what is owed is still answered, until it has ended."""
        self.has_ended = False
        """Whether nothing is answered any more."""
        self._idle = asyncio.Event()

    def shut(self) -> bool:
        """Take nothing new; whether this call did it."""
        was_open = self.is_open
        self.is_open = False
        return was_open

    def open_again(self) -> None:
        """Take requests once more, unless it has ended."""
        if not self.is_open and not self.has_ended:
            self.is_open = True
            self._idle.clear()

    def note(self, owed: int) -> None:
        """So many answers are owed now."""
        if not self.is_open and not owed:
            self._idle.set()

    def end(self) -> None:
        """For good; whoever waits is let go."""
        self.is_open, self.has_ended = False, True
        self._idle.set()

    async def nothing_owed(self, limit_ms: float) -> bool:
        """Wait until nothing is owed; false where that took longer than ``limit_ms``, or it has ended before."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), limit_ms / 1000)
        return self._idle.is_set() and not self.has_ended
