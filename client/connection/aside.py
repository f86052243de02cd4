"""Calls that block, beside an event loop, each in a thread of its own that holds up no end of the process.

Not in a pool of ``concurrent.futures``: those take no more work once the main thread has ended, though other threads of
the program go on, and a client has to find the next primary for them all the same.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

Result = TypeVar("Result")


def call_aside(loop: asyncio.AbstractEventLoop, call: Callable[[], Result], name: str) -> asyncio.Future[Result]:
    """What ``call`` returns or raises; cancelled, it goes on by itself. Raises ``RuntimeError`` where no thread can be
    started. ``name``: the thread's.
    """
    ended: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        try:
            tell = partial(ended.set_result, call())
        except BaseException as error:
            tell = partial(ended.set_exception, error)
        with suppress(RuntimeError):  # the event loop is closed: nobody waits
            loop.call_soon_threadsafe(lambda: None if ended.done() else tell())

    threading.Thread(target=run, name=name, daemon=True).start()
    return ended
