"""Scans that show all columns of rows, whichever they are, as columns. Pure.

A store decodes fast what it was told to expect (``CellStore.scan_columns``), and a scan of everything does not know
what to expect. So it takes the first rows one by one, notes the columns that they have, and goes on expecting those.
Rows that have others then are taken one by one again; where they are many, their columns are expected, too, from there
on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from client.cells import is_reserved, without_reserved
from store import KeyRange, RowPut
from store.columns import ABSENT, PLACES_MAX, BlockBuilder, CellColumns, ScannedColumns, in_pieces

EXPECTED_COLUMNS_MAX: Final = 256
"""Each is a place in every row, whether it has a cell there or not. Rows with yet others are taken one by one."""
FIRST_ROWS_MAX: Final = 16
"""Taken one by one before anything is expected: enough to meet the columns that nearly every row has, and few enough
that who wants the first rows only, as for a page of them, does not wait for hundreds."""
_UNEXPECTED_SHARE_MAX: Final = 1 / 8
"""Of a batch's rows: those that have other columns than were expected. Where they are more, the scan begins anew."""


class ExpectedColumns:
    """The columns that a scan of ``key_range`` has met so far, and expects to meet again."""

    def __init__(self, key_range: KeyRange) -> None:
        self._stop = key_range.stop
        self._rest: KeyRange | None = key_range
        self._met: set[bytes] = set()

    @property
    def columns(self) -> tuple[bytes, ...]:
        """In their order, at most ``EXPECTED_COLUMNS_MAX``."""
        return tuple(sorted(self._met))

    def ranges(self) -> Iterator[KeyRange]:
        """What is to be scanned: all of it, and anew what lies behind a batch from which something was learnt."""
        while self._rest is not None:
            rest, self._rest = self._rest, None
            yield rest

    def batch_rows(self, rows_max: int) -> int:
        """How many rows go into a batch, ``rows_max`` at most, and few before anything is expected."""
        return max(1, min(rows_max, PLACES_MAX // len(self._met) if self._met else FIRST_ROWS_MAX))

    def learn(self, batch: ScannedColumns) -> bool:
        """Whether it is worth it to begin anew behind a batch, expecting more; then they are among ``columns``."""
        if len(batch.others) <= _UNEXPECTED_SHARE_MAX * batch.cells.rows:
            return False
        before = len(self._met)
        for cells in batch.others.values():
            new = [column for column in cells if not is_reserved(column) and column not in self._met]
            self._met.update(new[: EXPECTED_COLUMNS_MAX - len(self._met)])
        if len(self._met) == before:
            return False
        self._rest = KeyRange(batch.cells.row_key(-1) + b"\x00", self._stop)
        return True


def in_all_columns(
    values: CellColumns, singly: Mapping[int, Mapping[bytes, bytes]], keep: npt.NDArray[np.bool_]
) -> Iterator[CellColumns]:
    """The rows to ``keep``, those ``singly`` looked at with all that was found of them, in their order.

    In one piece, or in halves of halves where further columns would make that larger than a piece may be.
    """
    if not singly:
        return iter((values.only(keep),))
    found = [(row, without_reserved(singly[row])) for row in sorted(singly)]
    rows = np.repeat(np.array([row for row, _ in found], np.int64), [len(each) for _, each in found])
    names = [column for _, each in found for column in each]
    data = BlockBuilder()
    data.add_block(values.data)
    starts, lengths = data.add([value for _, each in found for value in each.values()])
    known = values.value_lengths.copy()
    known[:, [row for row, _ in found]] = ABSENT
    whole = replace(values, data=data.block(), value_lengths=known)

    def pieces(first: int, last: int) -> Iterator[CellColumns]:
        few = slice(*np.searchsorted(rows, [first, last]))
        columns = {column: index for index, column in enumerate(dict.fromkeys((*values.columns, *names[few])))}
        if last - first > 1 and len(columns) * (last - first) > PLACES_MAX:
            middle = (first + last) // 2
            yield from pieces(first, middle)
            yield from pieces(middle, last)
            return
        piece = whole.slice(first, last).with_columns(list(columns)[len(values.columns) :])
        places = np.array([columns[name] for name in names[few]], np.int64), rows[few] - first
        piece.value_starts[places], piece.value_lengths[places] = starts[few], lengths[few]
        yield piece.only(keep[first:last])

    return pieces(0, values.rows)


def rows_in_all_columns(rows: Iterable[tuple[bytes, Mapping[bytes, bytes]]]) -> Iterator[CellColumns]:
    """Visible rows that come one by one, with whatever they have but the reserved columns."""
    return in_pieces(RowPut(row, without_reserved(values)) for row, values in rows)
