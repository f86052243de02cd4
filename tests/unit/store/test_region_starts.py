"""A scan in parts that each lie in one region."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from store.cells import KeyRange
from store.hbase.regions import STARTS_SECONDS, STARTS_TIMES_ASKED, TABLES_KNOWN_MAX, RegionStarts

STARTS = [b"", b"f", b"p"]
TABLE = b"t"


class Table:
    """One table, a clock, and how often it was asked for."""

    def __init__(self, starts: Sequence[bytes]) -> None:
        self.starts = starts
        self.asked = 0
        self.now = 0.0
        self.asking_seconds = 0.0
        self.known = RegionStarts(self._ask, monotonic=lambda: self.now)

    def _ask(self, table: bytes) -> Sequence[bytes]:
        self.asked += 1
        self.now += self.asking_seconds
        return self.starts

    def parts(self, start: bytes, stop: bytes, *, reverse: bool = False) -> list[tuple[bytes, bytes]]:
        return list(self.known.parts(TABLE, KeyRange(start, stop), reverse=reverse))


@pytest.mark.parametrize(
    ("start", "stop", "parts"),
    [
        (b"", b"", [(b"", b"f"), (b"f", b"p"), (b"p", b"")]),
        (b"a", b"z", [(b"a", b"f"), (b"f", b"p"), (b"p", b"z")]),
        (b"f", b"p", [(b"f", b"p")]),
        (b"g", b"h", [(b"g", b"h")]),
        (b"e", b"f", [(b"e", b"f")]),
        (b"e", b"f\x00", [(b"e", b"f"), (b"f", b"f\x00")]),
        (b"p", b"", [(b"p", b"")]),
        (b"o", b"", [(b"o", b"p"), (b"p", b"")]),
    ],
)
def test_the_parts_are_the_range_and_each_lies_in_one_region(
    start: bytes, stop: bytes, parts: list[tuple[bytes, bytes]]
) -> None:
    assert Table(STARTS).parts(start, stop) == parts
    assert Table(STARTS[::-1]).parts(start, stop, reverse=True) == parts[::-1]


@pytest.mark.parametrize("starts", [[], [b""], [b"", b""]])
def test_one_region_or_none_is_one_part(starts: list[bytes]) -> None:
    for reverse in (False, True):
        assert Table(starts).parts(b"", b"", reverse=reverse) == [(b"", b"")]


def test_regions_are_asked_for_again_after_a_while() -> None:
    table = Table(STARTS)
    table.parts(b"", b"")
    table.now += STARTS_SECONDS
    table.parts(b"", b"")
    assert table.asked == 1
    table.now += 0.1
    table.parts(b"", b"")
    assert table.asked == 2


def test_what_takes_long_to_ask_is_believed_for_longer() -> None:
    table = Table(STARTS)
    table.asking_seconds = 2.0
    table.parts(b"", b"")
    table.now = 2.0 * STARTS_TIMES_ASKED
    table.parts(b"", b"")
    assert table.asked == 1
    table.now += 0.1
    table.parts(b"", b"")
    assert table.asked == 2


def test_what_is_known_of_tables_is_bounded() -> None:
    table = Table(STARTS)
    for number in range(2 * TABLES_KNOWN_MAX + 1):
        list(table.known.parts(b"t%d" % number, KeyRange(b"", b""), reverse=False))
    assert len(table.known._known) <= TABLES_KNOWN_MAX


def test_a_long_scan_learns_of_regions_that_come_about_meanwhile() -> None:
    table = Table([b""])
    parts = table.known.parts(TABLE, KeyRange(b"", b"z"), reverse=False)
    table.starts = STARTS
    assert next(parts) == (b"", b"f"), "nothing is asked before the first part is"
    table.starts = [b"", b"f", b"k", b"p"]
    table.now += 2 * STARTS_SECONDS
    assert list(parts) == [(b"f", b"k"), (b"k", b"p"), (b"p", b"z")]
