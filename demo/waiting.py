"""Waiting for what threads and processes bring about: never without a limit, and never without saying for what."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from demo.errors import Overdue

Found = TypeVar("Found")

LOOK_INTERVAL_SECONDS: Final = 0.02


def wait_for(look: Callable[[], Found | None], what: str, seconds_max: float, stopping: threading.Event) -> Found:
    """Look now and again until there is something. Raises ``Overdue`` at the limit, and when ``stopping`` is set."""
    deadline = time.monotonic() + seconds_max
    while True:
        found = look()
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise Overdue(f"{what} was waited for, and did not come within {seconds_max:.0f} s")
        if stopping.wait(LOOK_INTERVAL_SECONDS):
            raise Overdue(f"{what} was waited for until the demo ended")
