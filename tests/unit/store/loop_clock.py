"""The event loop's time, moved by hand: a time-out comes when a test says so, and at no other time."""

from __future__ import annotations

import asyncio
from typing import Any


class LoopClock:
    """Of the running event loop."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        loop: Any = asyncio.get_running_loop()
        real = loop.time
        loop.time = lambda: real() + self._ahead_s

    async def pass_ms(self, ms: float) -> None:
        """Let time pass, and everything happen that was due within it."""
        self._ahead_s += ms / 1_000
        for _ in range(5):
            await asyncio.sleep(0)
