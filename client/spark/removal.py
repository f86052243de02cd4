"""Deleting rows: those whose keys a DataFrame gives, and those that an overwrite leaves out.

A row is gone once none of its cells is visible, so each of its cells gets a tombstone: those of all mapped columns
whether they are there or not, and whatever else of the row is in the store, visible or not. A task that is repeated
thereby deletes what it deleted before, and a row that somebody else writes meanwhile is a conflict in any case.

An overwrite deletes when its rows are written and before its job is sealed. Its tasks cannot: none of them knows what
the others write. The process that commits scans the table once, as the transaction sees it, and holds no more of it
than the row keys of its job, which the commit holds anyway.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from client.bulk_writes.manifest import Attempt, Piece
from client.bulk_writes.writing import AttemptWriter
from client.cells import TOMBSTONE, row_marker_column, shadow_column
from client.spark.byte_columns import ByteColumn
from client.spark.codecs import RowEncoder
from client.spark.errors import InvalidData
from client.spark.kept_rows import KeptRows
from client.spark.key_codec import row_keys
from client.spark.mapping import TableMapping
from store import CellStore, KeyRange, RowPut
from store.columns import ABSENT, PLACES_MAX, CellColumns, ScannedColumns, in_pieces, taken

SCANNED_ROWS: Final = 2_000
"""At a time, of those between the keys of the rows to delete."""
ROWS_MET_FOR_EACH_MAX: Final = 8
BYTES_MET_FOR_EACH_MAX: Final = 4_096
"""For each row that is to be deleted: where more is met between them they are read by their keys."""


def tombstones(mapping: TableMapping, others: Iterable[bytes] = ()) -> dict[bytes, bytes]:
    """What deletes a row: its mapped columns, the marker that it exists, and ``others``."""
    columns = [*mapping.cells, row_marker_column(mapping.families[0].encode())]
    return dict.fromkeys([*columns, *others], TOMBSTONE)


class RowRemover:
    """Record batches of row keys to what deletes these rows in the transaction of ``start_timestamp``."""

    def __init__(self, store: CellStore, mapping: TableMapping, start_timestamp: int) -> None:
        self._store = store
        self._mapping = mapping
        self._families = [family.encode() for family in mapping.families]
        self._always = list(tombstones(mapping))
        self._before = start_timestamp + 1

    def pieces(self, batch: pa.RecordBatch) -> Iterator[CellColumns]:
        """Each row once. Raises ``InvalidData`` for a null in a key column, ``StoreUnavailable``."""
        return self._pieces(dict.fromkeys(taken(*row_keys(self._mapping, batch))))

    def _pieces(self, keys: dict[bytes, None]) -> Iterator[CellColumns]:
        """Rows that have columns which are not mapped by themselves, and then all the others, alike."""
        for batch in self._rows(sorted(keys)):
            rows = ((batch.cells.row_key(row), cells) for row, cells in batch.others.items())
            others = {key: cells for key, cells in rows if key in keys}
            yield from in_pieces(RowPut(key, tombstones(self._mapping, cells)) for key, cells in others.items())
            for key in others:
                del keys[key]
        yield from _deleted(CellColumns.of_values((), list(keys), []), self._always, [])

    def _rows(self, keys: Sequence[bytes]) -> Iterator[ScannedColumns]:
        """The rows with these keys, which are sorted, and others between them; what is mapped as columns.

        By a scan as long as it meets few other rows: HBase reads a row by its key ten times as long as in a scan. Of
        large rows that is nothing beside their bytes.
        """
        table, families, before = self._mapping.table, self._families, self._before
        known = [*self._always, *map(shadow_column, families)]
        passed = 0
        if len(keys) > SCANNED_ROWS // ROWS_MET_FOR_EACH_MAX:
            rows_met = bytes_met = 0
            between = KeyRange(keys[0], keys[-1] + b"\x00")
            for batch in self._store.scan_columns(
                table, between, families, known, before=before, batch_rows=SCANNED_ROWS
            ):
                yield batch
                rows_met, bytes_met = rows_met + batch.cells.rows, bytes_met + len(batch.cells.data)
                passed = bisect_right(keys, batch.cells.row_key(-1))
                if rows_met > ROWS_MET_FOR_EACH_MAX * passed or bytes_met > BYTES_MET_FOR_EACH_MAX * passed:
                    break
            else:
                return
        yield from self._store.get_columns(table, keys[passed:], families, known, before=before)


class PrefixedEncoder:
    """An encoder of rows that may not lie outside the part of the table that is replaced."""

    def __init__(self, encoder: RowEncoder, prefixes: tuple[bytes, ...], text: str) -> None:
        self._encoder = encoder
        self._prefixes = prefixes
        self._text = text

    def pieces(self, batch: pa.RecordBatch) -> Sequence[CellColumns]:
        """As ``RowEncoder.pieces``. Raises ``InvalidData`` for a row outside, too."""
        cells = self._encoder.encode(batch)
        for row in cells.row_keys():
            if not row.startswith(self._prefixes):
                raise InvalidData(
                    f"the row with the key {row!r} lies outside of what overwrite_prefix={self._text} replaces: "
                    "filter the DataFrame, or leave the option out to replace the whole table"
                )
        return [cells]


def delete_the_rest(
    writer: AttemptWriter, mapping: TableMapping, batches: Iterable[CellColumns], kept: KeptRows
) -> int:
    """Delete the rows seen that are not ``kept``, and what is not mapped of those that are; from how many rows."""
    deleted = 0
    for batch in batches:
        for cells in _deletes(mapping, batch, kept.among(batch)):
            writer.write(cells)
            deleted += cells.rows
    return deleted


def _deletes(mapping: TableMapping, cells: CellColumns, is_kept: npt.NDArray[np.bool_]) -> Iterator[CellColumns]:
    mapped = frozenset(mapping.cells)
    others = [index for index, column in enumerate(cells.columns) if column not in mapped]
    yield from _deleted(cells.only(~is_kept), list(tombstones(mapping)), others)
    yield from _deleted(cells.only(is_kept & (cells.value_lengths[others] != ABSENT).any(axis=0)), [], others)


def _deleted(cells: CellColumns, always: Sequence[bytes], where_there: Sequence[int]) -> Iterator[CellColumns]:
    """Tombstones in columns of all rows, and in those of the batch with these indexes for each cell that is there."""
    columns = (*always, *(cells.columns[index] for index in where_there))
    rows_max = max(1, PLACES_MAX // max(1, len(columns)))
    data = np.concatenate([cells.data, np.frombuffer(TOMBSTONE, np.uint8)])
    for first in range(0, cells.rows, rows_max):
        rows = cells.slice(first, first + rows_max)
        there = rows.value_lengths[where_there] != ABSENT
        lengths = np.full((len(columns), rows.rows), len(TOMBSTONE))
        lengths[len(always) :][~there] = ABSENT
        starts = np.full_like(lengths, len(cells.data))
        yield CellColumns(columns, data, rows.key_starts, rows.key_lengths, starts, lengths)


def keys_written(pieces: Iterable[Piece], job: str, winners: Iterable[Attempt], table: str) -> Iterator[ByteColumn]:
    """The row keys that the attempts that count of one job wrote into a table."""
    counting = set(winners)
    for piece in pieces:
        if piece.job == job and piece.table == table and piece.attempt in counting:
            yield ByteColumn(piece.data, piece.starts, piece.lengths)
