"""Whether files were written anew: looked at rarely, and without reading them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

LOOK_MS: Final = 1_000
"""How often it is looked."""


class FileChanges:
    """Of some files together. ``now_s`` is a monotonic clock's. Made before they are read, it misses nothing.

    The invariant: each change is told of once, at the first look after it.
    """

    def __init__(self, paths: Sequence[str], now_s: float) -> None:
        self._paths = tuple(paths)
        self._stamps = self._found()
        self._looked_s = now_s
        self._failed = self._failed_before = ""

    def to_read(self, now_s: float) -> bool:
        """Whether the files are to be read: they have changed, or could not be read."""
        if (now_s - self._looked_s) * 1000 < LOOK_MS:
            return False
        self._looked_s = now_s
        stamps, before = self._found(), self._stamps
        self._stamps, self._failed_before, self._failed = stamps, self._failed, ""
        return bool(self._failed_before) or stamps != before

    def failed(self, why: str) -> bool:
        """They could not be read, and are read at the next look again, changed or not; whether that is to be told."""
        self._failed = why
        return why != self._failed_before

    def _found(self) -> list[tuple[int, ...] | None]:
        return [_stamp(path) for path in self._paths]


def _stamp(path: str) -> tuple[int, ...] | None:
    """What is another when the file is."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
