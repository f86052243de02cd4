"""Stacks that can be switched by hand: the one place that knows greenlet, which has no types of its own.

A *stack* runs a function until it gives control back, and goes on where it left when it is entered again. Whatever the
simulated code calls its thread is one of these; all of them live in one real thread, so nothing ever runs at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import greenlet  # type: ignore[import-untyped]


class Discarded(BaseException):
    """Thrown into a stack that will never be entered again, so that it unwinds. No ``except Exception`` stops it."""


class Stack:
    """One function's run, which can be left and entered again. Entered always from one and the same other stack."""

    def __init__(self, body: Callable[[], None]) -> None:
        self._stack: Any = greenlet.greenlet(body)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: Any = None

    def enter(self) -> None:
        """Run until the stack leaves or ends. The event loop that counts as running is each stack's own."""
        self._stack.parent = greenlet.getcurrent()
        asyncio._set_running_loop(self._loop)
        _swap_task(self._loop, self._task)
        try:
            self._stack.switch()
        finally:
            self._loop = asyncio._get_running_loop()
            self._task = _swap_task(self._loop, None)
            asyncio._set_running_loop(None)

    @property
    def ended(self) -> bool:
        """Whether the function has returned."""
        return bool(self._stack.dead)

    def discard(self, times_max: int = 100) -> None:
        """Unwind the stack by throwing ``Discarded`` wherever it waits, as often as it catches it and waits again."""
        for _ in range(times_max):
            if self.ended or not self._stack:
                return
            asyncio._set_running_loop(self._loop)
            try:
                self._stack.throw(Discarded())
            except Discarded:
                pass
            finally:
                asyncio._set_running_loop(None)


def leave() -> None:
    """Give control back to the stack that entered this one; returns when it is entered again."""
    greenlet.getcurrent().parent.switch()


def _swap_task(loop: asyncio.AbstractEventLoop | None, task: Any) -> Any:
    """Exchange the task that counts as running. Until Python 3.12 that is kept by loop, and needs no exchange."""
    swap = getattr(asyncio.tasks, "_swap_current_task", None)
    return None if swap is None or loop is None else swap(loop, task)
