"""Rows that changed between two snapshots, one by one or as columns, and since when they may be asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from client.errors import InvalidRequest
from client.snapshots.moments import SINCE_THE_BEGINNING, require_timestamp
from store.columns import CellColumns, Places


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
