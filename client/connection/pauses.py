"""How long nothing goes out to the oracle after it, or whoever was asked, did nothing of what was asked for. Pure."""

from __future__ import annotations

from typing import Final

RETRY_WAIT_MS_MAX: Final = 100
"""The longest pause between two looks for a primary: a failover is noticed within this time."""


class Pause:
    """Of all requests, or of those of one lane; a moment here is one of the monotonic clock, in seconds."""

    def __init__(self) -> None:
        self.until_s = 0.0
        """Nothing goes out before."""
        self.refusals = 0
        """Times in a row that it went on and nothing was answered; whoever sees an answer sets it to 0."""

    def refused(self, now_s: float, asked_ms: int = 0) -> None:
        """Pause: for no time after the first refusal in a row, then growing, never less than ``asked_ms``.

        What is refused during a pause was sent before it, so that it does not make the next one longer.
        """
        grown_ms = min(RETRY_WAIT_MS_MAX, (1 << min(self.refusals, 10)) - 1)
        if now_s >= self.until_s:
            self.refusals += 1
        self.until_s = max(self.until_s, now_s + max(asked_ms, grown_ms) / 1000)
