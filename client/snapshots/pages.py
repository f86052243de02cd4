"""Pages: the first rows of a range for as much work as is asked for, and where the next ones lie. Pure.

A page that ended at its rows alone would be as much work as it takes to find them, a scan of a whole table for one; so
it ends, too, where so many rows were looked at, whether anything was found in them or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from client.cells import row_bytes
from client.errors import InvalidRequest
from client.snapshots.changed_rows import ChangedRow
from store import KeyRange

ROWS_MAX: Final = 1_000
"""Rows in a page, unless told otherwise."""
BYTES_MAX: Final = 4 * 2**20
"""Keys, columns and values after which a page ends, unless told otherwise; a single row may be larger."""
LOOKED_AT_MAX: Final = 100_000
"""Rows that are looked at for a page, unless told otherwise: of narrow ones that takes about a second, as
``python -m benchmarks.few_rows`` measures.
"""

VisibleRow: TypeAlias = tuple[bytes, dict[bytes, bytes]]
"""A row's key, and column → value."""
AnyRow = TypeVar("AnyRow", VisibleRow, ChangedRow)


class RowsPage(NamedTuple):
    """Some of the rows that are visible, in the order of the scan; none, where nothing is of what was looked at.

    ``looked_at_to``: the last row that was looked at, visible or not: what there is more of lies behind it; ``None``:
    there is no more.
    """

    rows: list[VisibleRow]
    looked_at_to: bytes | None

    def looked_at(self, key_range: KeyRange, *, reverse: bool = False) -> KeyRange:
        """What it says all of, of a range of which it is the first page."""
        if self.looked_at_to is None:
            return key_range
        if reverse:
            return KeyRange(self.looked_at_to, key_range.stop)
        return KeyRange(key_range.start, self.looked_at_to + b"\x00")

    def with_rows(self, rows: Iterable[VisibleRow], limits: PageLimits) -> RowsPage:
        """Other rows of what was looked at, which may be more than fit."""
        taken, ended_at = page_of([LookedAt(rows, 0, b"")], limits)
        return RowsPage(taken, self.looked_at_to if ended_at is None else ended_at)


class ChangesPage(NamedTuple):
    """Some of the rows that are different now, in key order; none, where all that was looked at is as it was.

    ``looked_at_to``: as in ``RowsPage``.
    """

    rows: list[ChangedRow]
    looked_at_to: bytes | None


class PageLimits(NamedTuple):
    """After what a page ends: so many ``rows``, more than so many ``bytes``, or so many rows ``looked_at``."""

    rows: int
    bytes: int
    looked_at: int

    @classmethod
    def checked(cls, *, rows_max: int, bytes_max: int, looked_at_max: int) -> PageLimits:
        """By the names that callers give them. Raises ``InvalidRequest`` for what limits nothing."""
        for name, most in (("rows_max", rows_max), ("bytes_max", bytes_max), ("looked_at_max", looked_at_max)):
            if type(most) is not int or most < 1:
                raise InvalidRequest(f"{name} is a whole number, at least 1, not {most!r}")
        return cls(rows_max, bytes_max, looked_at_max)


class LookedAt(NamedTuple, Generic[AnyRow]):
    """What was ``found`` in a batch of so many ``rows``, of which the last is ``last_row``."""

    found: Iterable[AnyRow]
    rows: int
    last_row: bytes


def page_of(batches: Iterable[LookedAt[AnyRow]], limits: PageLimits) -> tuple[list[AnyRow], bytes | None]:
    """The rows of a page, and up to which row that is all; ``None``: there is no more.

    Where the page is full, it is looked for one more row, in one more batch at most: so the last page is known as such,
    unless there is much to look at behind it.
    """
    rows: list[AnyRow] = []
    rows_bytes = looked_at = 0
    looked_at_to = b""
    is_full = False
    for batch in batches:
        was_full = is_full
        for each in batch.found:
            if is_full:
                return rows, looked_at_to if was_full else rows[-1][0]
            rows.append(each)
            rows_bytes += row_bytes(each[0], each[1] or {})
            is_full = len(rows) >= limits.rows or rows_bytes > limits.bytes
        looked_at += batch.rows
        looked_at_to = batch.last_row
        if was_full or looked_at >= limits.looked_at:
            return rows, looked_at_to
    return rows, None
