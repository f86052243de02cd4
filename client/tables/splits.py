"""Where to split a table so that a file's rows spread evenly over its regions. Pure.

HBase's Thrift gateway can neither make a table with several regions nor split one, so the boundaries come out as
commands for HBase's shell, for an operator to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SAMPLE_KEYS_MAX: Final = 100_000


class KeySample:
    """Row keys at even distances of a stream of any length; at most ``SAMPLE_KEYS_MAX`` are kept."""

    def __init__(self, keys_max: int = SAMPLE_KEYS_MAX) -> None:
        self._keys_max = keys_max
        self._every = 1
        self._seen = 0
        self.keys: list[bytes] = []

    def add(self, keys: Sequence[bytes]) -> None:
        """The next keys of the stream."""
        for key in keys:
            if self._seen % self._every == 0:
                self.keys.append(key)
                self._thin_out()
            self._seen += 1

    def _thin_out(self) -> None:
        if len(self.keys) > self._keys_max:
            self.keys = self.keys[::2]
            self._every *= 2


def boundaries(keys: Sequence[bytes], regions: int) -> list[bytes]:
    """The first keys of all of ``regions`` regions but the first one, sorted; fewer where the keys are too few."""
    ordered = sorted(set(keys))
    cuts = {ordered[len(ordered) * region // regions] for region in range(1, regions)} if ordered else set()
    return sorted(cuts - set(ordered[:1]))


def shell_commands(table: str, cuts: Sequence[bytes]) -> list[str]:
    """What splits a table in HBase's shell, a region after the other."""
    return [f"split '{table}', \"{_escaped(cut)}\"" for cut in cuts]


def _escaped(key: bytes) -> str:
    """For a text in double quotes of HBase's shell, in which other bytes than these could mean something."""
    return "".join(f"\\x{byte:02X}" for byte in key)
