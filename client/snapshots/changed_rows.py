"""Rows that changed between two snapshots, one by one or as columns, and since when they may be asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from client.errors import InvalidRequest
from client.snapshots.moments import SINCE_THE_BEGINNING, require_timestamp
from store.columns import CellColumns, Places

PAGE_ROWS_MAX: Final = 1_000
"""Rows in a page of changes, unless told otherwise."""
PAGE_BYTES_MAX: Final = 4 * 2**20
"""Keys, columns and values after which a page ends, unless told otherwise; a single row may be larger."""
LOOKED_AT_MAX: Final = 100_000
"""Rows that are looked at for a page, unless told otherwise: narrow ones take a fraction of a second, as
``python -m benchmarks.whole_tables`` measures.
"""


def check_since(since: int, until: int) -> None:
    """Raise ``InvalidRequest`` for what cannot be an earlier snapshot's timestamp, or that of a later one."""
    if type(since) is int and since == SINCE_THE_BEGINNING:
        return
    require_timestamp(since)
    if since > until:
        raise InvalidRequest(
            f"what has changed since {since} is seen at a later snapshot than the one at {until}: take the moments in "
            "their order"
        )


class ChangedRow(NamedTuple):
    """A row that is different now. ``values``: column → value as it is now; ``None`` where it has been deleted.

    ``commit_timestamp``: of the last commit that changed it.
    """

    row: bytes
    values: dict[bytes, bytes] | None
    commit_timestamp: int


class ChangesPage(NamedTuple):
    """Some of the rows that are different now, in key order; none, where all that was looked at is as it was.

    ``looked_at_to``: the last row that was looked at, changed or not: what there is more of lies behind it; ``None``:
    there is no more.
    """

    rows: list[ChangedRow]
    looked_at_to: bytes | None


@dataclass(frozen=True, slots=True)
class ChangedColumns:
    """Many rows that are different now, in key order.

    ``cells``: as they are now; those that have been deleted have none. ``deleted``: which these are, ``[rows]``.
    ``commit_timestamps``: of the last commit that changed each, ``[rows]``.
    """

    cells: CellColumns
    deleted: npt.NDArray[np.bool_]
    commit_timestamps: Places

    @classmethod
    def of_pieces(
        cls, pieces: Iterable[CellColumns], deleted: npt.NDArray[np.bool_], commit_timestamps: Places
    ) -> Iterator[ChangedColumns]:
        """Rows that come in ``pieces``; the rest is of all of them in their order."""
        first = 0
        for cells in pieces:
            last = first + cells.rows
            yield cls(cells, deleted[first:last], commit_timestamps[first:last])
            first = last

    def by_row(self) -> Iterator[ChangedRow]:
        """Each by itself."""
        lines = zip(self.cells.puts(), self.deleted.tolist(), self.commit_timestamps.tolist(), strict=True)
        for put, is_deleted, commit_timestamp in lines:
            yield ChangedRow(put.row, None if is_deleted else dict(put.columns), commit_timestamp)
