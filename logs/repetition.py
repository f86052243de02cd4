"""A bound on what one line of the program logs, so that nobody fills a disk by what he sends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final


class Repetition:
    """Lets ``ALIKE_MAX`` records of one kind pass in ``PERIOD_MS``, and tells how many it held back with the next one.

    Records are alike that come from the same line of the program, whatever is filled in. Safe to use by many threads.
    """

    ALIKE_MAX: Final = 20
    PERIOD_MS: Final = 10_000

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._seen: dict[tuple[str, int], tuple[float, int]] = {}
        """By line of the program, of which there are not many: since when (seconds), and how many."""
        self._counting = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record passes: a filter of ``logging``."""
        with self._counting:
            number, held_back = self._count(record)
        if held_back:
            _add(record, f"{held_back} more like the last ones were not shown")
        if number == self.ALIKE_MAX:
            _add(record, f"more like it are not shown for {self.PERIOD_MS // 1000} s")
        return number <= self.ALIKE_MAX

    def _count(self, record: logging.LogRecord) -> tuple[int, int]:
        """The number of a record in its period, and how many were held back in the one before."""
        kind, now_s, held_back = (record.pathname, record.lineno), self._now_s(), 0
        since_s, count = self._seen.get(kind, (now_s, 0))
        if (now_s - since_s) * 1000 >= self.PERIOD_MS:
            held_back, since_s, count = max(0, count - self.ALIKE_MAX), now_s, 0
        self._seen[kind] = since_s, count + 1
        return count + 1, held_back


def _add(record: logging.LogRecord, text: str) -> None:
    record.msg, record.args = f"{record.getMessage()} ({text})", ()
