"""Which cells of many rows a snapshot sees: ``client.snapshots.visibility``'s rule over columns of cells. Pure.

Nearly every cell of nearly every table was written by a few transactions that committed long ago, and is the newest one
of its column. So a batch is looked at once: who wrote in it, what became of them, and which rows show nothing but
visible cells. Those rows are done, without an object for any of their cells; the others, in which some newest cell is
not visible, are looked at one by one, by the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from client.cells import ABORTED_SHADOW, TOMBSTONE
from client.snapshots.visibility import NOT_COMMITTED, OPEN, View
from kernels import kernel
from store.columns import ABSENT, Bytes, CellColumns, Places, ScannedColumns
from store.lines import packed

_WRITERS_FIRST: Final = 64
_TOMBSTONE: Final = TOMBSTONE[0]
_SHADOW_BYTES: Final = 8

EMPTY, VISIBLE, HIDDEN = 0, 1, 2
"""What a row shows: no cell of value, only visible ones, or some newest cell that is not visible."""

States = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class SettledColumns:
    """``values``: of the rows that are ``VISIBLE``, what the snapshot sees; ``states``: of each row what it shows."""

    values: CellColumns
    states: States


def writers_of(scanned: ScannedColumns, columns: int) -> list[int]:
    """Who wrote the cells of the first ``columns`` columns; each once."""
    timestamps, lengths = scanned.timestamps[:columns], scanned.cells.value_lengths[:columns]
    found = np.empty(_WRITERS_FIRST, np.int64)
    count = distinct_writers(packed(timestamps), packed(lengths), found)
    if count < 0:
        found = np.unique(timestamps[lengths != ABSENT])
        count = len(found)
    writers: list[int] = found[:count].tolist()
    return writers


def shadowed(scanned: ScannedColumns, columns: int, writers: list[int]) -> dict[int, int]:
    """The outcomes of writers that shadow cells of the batch tell: those of the columns after the first ``columns``."""
    wanted = np.array(sorted(writers), np.int64)
    outcomes = np.full(len(wanted), OPEN, np.int64)
    cells = scanned.cells
    read_shadows(
        packed(cells.data),
        packed(scanned.timestamps[columns:]),
        packed(cells.value_starts[columns:]),
        packed(cells.value_lengths[columns:]),
        wanted,
        outcomes,
    )
    found = zip(wanted.tolist(), outcomes.tolist(), strict=True)
    return {
        writer: NOT_COMMITTED if outcome == ABORTED_SHADOW else outcome for writer, outcome in found if outcome != OPEN
    }


def is_visible(writer: int, outcome: int, view: View) -> bool:
    """Whether the view sees what a writer of this outcome wrote."""
    return NOT_COMMITTED < outcome <= view.snapshot or writer == view.own


def settle_columns(scanned: ScannedColumns, columns: int, shown: int, visible: Mapping[int, bool]) -> SettledColumns:
    """What the rows show in the first ``columns`` columns, of which the first ``shown`` have values to give.

    ``visible``: of each writer whether what it wrote is seen.
    """
    cells = scanned.cells
    writers = np.array(sorted(visible), np.int64)
    seen = np.array([visible[writer] for writer in writers.tolist()], np.uint8)
    starts = packed(cells.value_starts[:columns])
    lengths = packed(cells.value_lengths[:columns])
    timestamps = packed(scanned.timestamps[:columns])
    out_starts, out_lengths = starts.copy(), lengths.copy()
    states = np.zeros(cells.rows, np.uint8)
    settle_rows(packed(cells.data), timestamps, starts, lengths, writers, seen, out_starts, out_lengths, states)
    values = CellColumns(
        cells.columns[:shown], cells.data, cells.key_starts, cells.key_lengths, out_starts[:shown], out_lengths[:shown]
    )
    return SettledColumns(values, states)


def newest_commits(scanned: ScannedColumns, columns: int, outcomes: Mapping[int, int]) -> Places:
    """Of each row the greatest outcome of those who wrote its first ``columns`` columns: the last commit; 0 for none.

    ``outcomes``: of each writer, as ``client.snapshots.visibility`` has them.
    """
    writers = np.array(sorted(outcomes), np.int64)
    newest = np.zeros(scanned.cells.rows, np.int64)
    timestamps, lengths = packed(scanned.timestamps[:columns]), packed(scanned.cells.value_lengths[:columns])
    by_place = np.array([outcomes[writer] for writer in writers.tolist()], np.int64)
    find_newest_commits(timestamps, lengths, writers, by_place, newest)
    return newest


@kernel("void(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1])", nogil=True)
def find_newest_commits(timestamps: Places, lengths: Places, writers: Places, commits: Places, newest: Places) -> None:
    """The greatest of the commits of those who wrote a row's cells."""
    last, commit = np.int64(-1), np.int64(0)
    for column in range(timestamps.shape[0]):
        for row in range(timestamps.shape[1]):
            if lengths[column, row] == ABSENT:
                continue
            if timestamps[column, row] != last:
                last = timestamps[column, row]
                commit = commits[_place_of(writers, last)]
            newest[row] = max(newest[row], commit)


@kernel("int64(int64[:, ::1], int64[:, ::1], int64[::1])", nogil=True)
def distinct_writers(timestamps: Places, lengths: Places, found: Places) -> int:
    """Collect the timestamps of the cells that are there; how many, or -1 where they are more than ``found`` takes."""
    count, last = 0, np.int64(-1)
    for column in range(timestamps.shape[0]):
        for row in range(timestamps.shape[1]):
            writer = timestamps[column, row]
            if lengths[column, row] == ABSENT or (count and writer == last):
                continue
            place = 0
            while place < count and found[place] != writer:
                place += 1
            if place == count:
                if count == found.shape[0]:
                    return -1
                found[count] = writer
                count += 1
            last = writer
    return count


@kernel(nogil=True)
def _place_of(writers: Places, writer: int) -> int:
    """Where a writer is among the sorted ones, or -1."""
    low, high = 0, writers.shape[0]
    while low < high:
        middle = (low + high) // 2
        if writers[middle] < writer:
            low = middle + 1
        else:
            high = middle
    return low if low < writers.shape[0] and writers[low] == writer else -1


@kernel("void(uint8[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1])")
def read_shadows(
    data: Bytes, timestamps: Places, starts: Places, lengths: Places, wanted: Places, outcomes: Places
) -> None:
    """The value of some shadow cell of each wanted writer, where there is one."""
    last = np.int64(-1)
    for column in range(timestamps.shape[0]):
        for row in range(timestamps.shape[1]):
            writer = timestamps[column, row]
            if lengths[column, row] != _SHADOW_BYTES or writer == last:
                continue
            last = writer
            place = _place_of(wanted, writer)
            if place < 0 or outcomes[place] != OPEN:
                continue
            outcome = np.int64(0)
            for byte in range(_SHADOW_BYTES):
                outcome = (outcome << 8) | np.int64(data[starts[column, row] + byte])
            outcomes[place] = outcome


@kernel(
    "void(uint8[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[::1], uint8[::1], int64[:, ::1], "
    "int64[:, ::1], uint8[::1])",
    nogil=True,
)
def settle_rows(
    data: Bytes,
    timestamps: Places,
    starts: Places,
    lengths: Places,
    writers: Places,
    seen: States,
    out_starts: Places,
    out_lengths: Places,
    states: States,
) -> None:
    """Take the tombstones and the escapes away, and note of each row what it shows."""
    last, last_seen = np.int64(-1), np.uint8(0)
    for column in range(timestamps.shape[0]):
        for row in range(timestamps.shape[1]):
            length = lengths[column, row]
            if length == ABSENT or states[row] == HIDDEN:
                continue
            if timestamps[column, row] != last:
                last = timestamps[column, row]
                last_seen = seen[_place_of(writers, last)]
            if not last_seen:
                states[row] = HIDDEN
                continue
            if length > 0 and data[starts[column, row]] == _TOMBSTONE:
                if length == 1:
                    out_lengths[column, row] = ABSENT
                    continue
                out_starts[column, row], out_lengths[column, row] = starts[column, row] + 1, length - 1
            states[row] = VISIBLE
