"""The story of a run: one line for each thing that happened, for people to read.

Nothing in it depends on anything but the seed: addresses of objects are left out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_WHO_COLUMNS = 26
_TIMESTAMP = re.compile(r"@-?[0-9]+\.[0-9]+")
_ALWAYS_TOLD = (" FAULT ", " simulation ", " EPOCH ", " is dead", " is paused", " goes on", " starts", "DEFECT")


class Story:
    """Lines with virtual time and a name. One that is not told costs nothing: nobody calls ``add``."""

    def __init__(self, *, is_told: bool) -> None:
        self.is_told = is_told
        self.lines: list[str] = []

    def add(self, now_us: int, who: str, text: str) -> None:
        """Add a line."""
        self.lines.append(f"{now_us / 1_000_000:11.6f} s  {who:<{_WHO_COLUMNS}} {_ADDRESS.sub('', text)}")


class StoryHandler(logging.Handler):
    """Puts what the project logs into the story."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler``."""
        self._tell(f"log: {record.getMessage()}")
        if record.exc_info and record.exc_info[1] is not None:
            self._tell(f"log:   {record.exc_info[1]!r}")


def about(lines: Sequence[str], anomalies: Sequence[str]) -> list[str]:
    """The lines that name what the anomalies name, and what befell the room as a whole."""
    named = set(_TIMESTAMP.findall(" ".join(anomalies)))
    return [line for line in lines if any(who in line for who in _ALWAYS_TOLD) or named & set(_TIMESTAMP.findall(line))]
