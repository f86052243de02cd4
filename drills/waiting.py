"""Waiting with a limit: nothing in a drill waits for ever, and whoever gives up says what for."""

from __future__ import annotations

import time
from collections.abc import Callable

from drills.errors import DrillStalled

POLL_SECONDS = 0.02


def wait_until(condition: Callable[[], bool], what: str, seconds_max: float, explain: Callable[[], str] = str) -> None:
    """Return once ``condition`` holds; it is asked often, so it has to be cheap.

    Raises ``DrillStalled`` after ``seconds_max``: ``what`` completes "waited for", ``explain`` tells how things are.
    """
    deadline = time.monotonic() + seconds_max
    while not condition():
        if time.monotonic() > deadline:
            state = explain()
            raise DrillStalled(f"waited {seconds_max:.0f} s for {what}, in vain" + f"\n{state}" * bool(state))
        time.sleep(POLL_SECONDS)
