"""The cells of a table in a Parquet file, a line each: columns are written as lines, and lines read as they were.

Both hold a row group at a time in memory, which ends at so many lines or bytes, and at one row at the least.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from client.backups.errors import DamagedBackup
from client.backups.layout import TableBackup, TableFile
from client.cells import family_of, is_reserved, validate_row
from client.errors import InvalidRequest
from client.snapshots.changed_rows import ChangedColumns
from client.spark.byte_columns import ByteColumn, stacked
from client.spark.value_codec import null_mask, texts, to_array
from client.tables.files import sha256_of
from store.columns import ABSENT, PLACES_MAX, CellColumns, Places

GROUP_LINES_MAX: Final = 100_000
GROUP_BYTES_MAX: Final = 16 * 2**20
SCHEMA: Final = pa.schema([pa.field("row", pa.binary(), False), ("column", pa.binary()), ("value", pa.binary())])
SCHEMA_OF_CHANGES: Final = SCHEMA.append(pa.field("deleted", pa.bool_(), False))

Tell = Callable[[int], None]
"""Told how many rows of the table are done."""


class _Rows(NamedTuple):
    """Rows in the order of their keys, and which of them are gone, ``[rows]``; these have no cells."""

    cells: CellColumns
    deleted: npt.NDArray[np.bool_]


def write_cells(path: Path, batches: Iterable[CellColumns], tell: Tell) -> TableFile:
    """Write rows, in the order of their keys, to a new file. Raises ``OSError``, and what ``batches`` raise."""
    return _write(path, SCHEMA, (_Rows(cells, np.zeros(cells.rows, np.bool_)) for cells in batches), tell)


def write_changes(path: Path, batches: Iterable[ChangedColumns], tell: Tell) -> TableFile:
    """Write rows that have changed, in the order of their keys, to a new file. Raises as ``write_cells``."""
    return _write(path, SCHEMA_OF_CHANGES, (_Rows(changed.cells, changed.deleted) for changed in batches), tell)


def _write(path: Path, schema: pa.Schema, batches: Iterable[_Rows], tell: Tell) -> TableFile:
    done = cells = deleted = 0
    with pa.parquet.ParquetWriter(path, schema, compression="zstd", use_dictionary=["row", "column"]) as writer:
        for group in _groups(batches):
            lines = pa.Table.from_batches(map(_lines_of, group), SCHEMA_OF_CHANGES)
            writer.write_table(lines.select(schema.names), row_group_size=lines.num_rows)
            done += sum(part.cells.rows for part in group)
            cells += lines.num_rows - lines.column("column").null_count
            deleted += sum(int(part.deleted.sum()) for part in group)
            tell(done)
    return TableFile(path.name, path.stat().st_size, sha256_of(path), done, cells, deleted)


def require_whole(path: Path, file: TableFile) -> None:
    """Raise ``DamagedBackup`` unless a file is, byte by byte, what was written."""
    try:
        found = sha256_of(path)
    except OSError as error:
        raise DamagedBackup(f"{path} cannot be read: {error.strerror or error}") from error
    if found != file.sha256:
        raise DamagedBackup(f"{path} is not what was written: its SHA-256 is {found}, and was {file.sha256}")


def read_lines(path: Path, backup: TableBackup) -> Iterator[pa.Table]:
    """The lines of a file, some rows at a time, in the order of their keys; by ``SCHEMA_OF_CHANGES`` also where nothing
    is deleted.

    Raises ``DamagedBackup`` for what no snapshot can have shown.
    """
    families = frozenset(backup.entry.family_columns)
    rows = cells = deleted = 0
    last_key = b""
    for lines in _whole_rows(path, SCHEMA_OF_CHANGES if backup.since else SCHEMA):
        starts = _row_starts(lines)
        gone = lines.column("deleted").to_numpy()
        _require_columns(path, lines.column("column"), families)
        _require_nothing_else(path, lines, starts, gone)
        last_key = _require_order(path, lines.column("row"), last_key)
        rows += len(starts)
        cells += lines.num_rows - lines.column("column").null_count
        deleted += int(gone.sum())
        yield lines
    if (rows, cells, deleted) != (backup.file.rows, backup.file.cells, backup.file.deleted):
        raise DamagedBackup(
            f"{path} has {rows:,} rows, {deleted:,} of them deleted, and {cells:,} cells, and {backup.file.rows:,}, "
            f"{backup.file.deleted:,} and {backup.file.cells:,} were written"
        )


def to_columns(lines: pa.Table, where: Path) -> Iterator[CellColumns]:
    """Lines of whole rows, of which none is deleted, as columns; a row without cells is empty. ``where``: for errors.

    Raises ``DamagedBackup`` where a row has a column twice.
    """
    for piece in _pieces(lines):
        yield _as_columns(where, piece)


def _groups(batches: Iterable[_Rows]) -> Iterator[list[_Rows]]:
    """The same rows in lists that end with the row by which they have so many lines or bytes."""
    group: list[_Rows] = []
    lines_held = bytes_held = 0
    for cells, deleted in batches:
        lines, sizes = _lines_and_bytes(cells)
        lines_before, bytes_before, first = -lines_held, -bytes_held, 0
        while first < cells.rows:
            last = int(
                min(
                    np.searchsorted(lines, lines_before + GROUP_LINES_MAX),
                    np.searchsorted(sizes, bytes_before + GROUP_BYTES_MAX),
                )
            )
            group.append(_Rows(cells.slice(first, last + 1), deleted[first : last + 1]))
            first = last + 1
            if first <= cells.rows:
                yield group
                group, lines_before, bytes_before = [], int(lines[last]), int(sizes[last])
        lines_held, bytes_held = int(lines[-1]) - lines_before, int(sizes[-1]) - bytes_before
    if group:
        yield group


def _lines_and_bytes(cells: CellColumns) -> tuple[Places, Places]:
    """Of the rows up to each, that one included; names of columns do not count as bytes, keys do in each line."""
    lines = np.maximum(1, (cells.value_lengths != ABSENT).sum(axis=0))
    sizes = lines * cells.key_lengths + np.maximum(0, cells.value_lengths).sum(axis=0)
    return np.cumsum(lines), np.cumsum(sizes)


def _lines_of(written: _Rows) -> pa.RecordBatch:
    cells = written.cells
    is_there = np.vstack([cells.value_lengths != ABSENT, (cells.value_lengths == ABSENT).all(axis=0)])
    rows, columns = np.nonzero(is_there.T)  # the last one where a row has none
    none = np.full((1, cells.rows), ABSENT, np.int64)
    starts = np.vstack([cells.value_starts, none])[columns, rows]
    lengths = np.vstack([cells.value_lengths, none])[columns, rows]
    arrays = [
        to_array("binary", ByteColumn(cells.data, cells.key_starts[rows], cells.key_lengths[rows])),
        pa.array([*cells.columns, None], pa.binary()).take(pa.array(columns)),
        to_array("binary", ByteColumn(cells.data, starts, lengths)),
        pa.array(written.deleted[rows]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA_OF_CHANGES)


def _whole_rows(path: Path, schema: pa.Schema) -> Iterator[pa.Table]:
    """The lines of a file of this schema, a row group or so at a time, in which those of a row are together."""
    rest = SCHEMA_OF_CHANGES.empty_table()
    try:
        with pa.parquet.ParquetFile(path) as file:
            if not file.schema_arrow.equals(schema):
                raise DamagedBackup(f"{path} has other columns than a backup's file: {file.schema_arrow.names}")
            for group in range(file.num_row_groups):
                lines = pa.concat_tables([rest, _with_deleted(file.read_row_group(group))]).combine_chunks()
                _require_whole_lines(path, lines)
                last = int(_row_starts(lines)[-1])
                rest = lines.slice(last)
                if last:
                    yield lines.slice(0, last)
    except (OSError, pa.ArrowException) as error:
        raise DamagedBackup(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if rest.num_rows:
        yield rest


def _require_whole_lines(path: Path, lines: pa.Table) -> None:
    keys, columns, values, said = (column.is_valid() for column in lines.columns)
    if not pc.all(pc.and_(pc.and_(keys, said), pc.equal(columns, values)), min_count=0).as_py():
        raise DamagedBackup(f"{path}: a row has a column without a value, or a value without a column")


def _with_deleted(lines: pa.Table) -> pa.Table:
    """The same lines, which say that nothing is deleted where they say nothing of it."""
    if lines.num_columns == len(SCHEMA_OF_CHANGES):
        return lines
    return lines.append_column(SCHEMA_OF_CHANGES.field("deleted"), pa.array(np.zeros(lines.num_rows, np.bool_)))


def _row_starts(lines: pa.Table) -> Places:
    """Where in lines each row begins."""
    keys = lines.column("row")
    changes = pc.not_equal(keys.slice(1), keys.slice(0, max(0, len(keys) - 1)))
    return np.concatenate([[0], 1 + np.flatnonzero(changes)])


def _pieces(lines: pa.Table) -> Iterator[pa.Table]:
    """The same rows, in several pieces where they have so many different columns that most are in few of them."""
    starts = _row_starts(lines)
    if len(starts) == 1 or len(starts) * pc.count_distinct(lines.column("column")).as_py() <= PLACES_MAX:
        yield lines
        return
    middle = int(starts[len(starts) // 2])
    yield from _pieces(lines.slice(0, middle))
    yield from _pieces(lines.slice(middle))


def _as_columns(path: Path, lines: pa.Table) -> CellColumns:
    """Lines of whole rows."""
    keys, columns, values = (column.combine_chunks() for column in lines.select(SCHEMA.names).columns)
    starts = _row_starts(lines)
    lines_of_rows = np.diff(starts, append=len(keys))
    names, is_cell = columns.dictionary_encode(), ~null_mask(columns)
    places = names.indices.drop_null().to_numpy(), np.repeat(np.arange(len(starts)), lines_of_rows)[is_cell]
    data, found, lengths = stacked([texts(keys), texts(values)], len(keys))
    value_starts = np.zeros((len(names.dictionary), len(starts)), np.int64)
    value_lengths = np.full_like(value_starts, ABSENT)
    value_starts[places], value_lengths[places] = found[1][is_cell], lengths[1][is_cell]
    cells = CellColumns(
        tuple(names.dictionary.to_pylist()), data, found[0][starts], lengths[0][starts], value_starts, value_lengths
    )
    wrong = np.flatnonzero(np.maximum(1, (value_lengths != ABSENT).sum(axis=0)) != lines_of_rows)
    if len(wrong):
        key = cells.row_key(int(wrong[0]))
        raise DamagedBackup(f"{path}: row {key!r} has one of its columns twice, or none and another")
    return cells


def _require_columns(path: Path, columns: pa.ChunkedArray, families: Collection[bytes]) -> None:
    for column in columns.unique().drop_null().to_pylist():
        if is_reserved(column) or b":" not in column or family_of(column) not in families:
            raise DamagedBackup(f"{path}: a row has a column {column!r}, which its table cannot have")


def _require_nothing_else(path: Path, lines: pa.Table, starts: Places, gone: npt.NDArray[np.bool_]) -> None:
    """Raise ``DamagedBackup`` where a row that is deleted has something."""
    alone = np.diff(starts, append=lines.num_rows) == 1
    is_empty = lines.column("column").is_null().to_numpy()
    if gone.sum() != (gone & is_empty)[starts[alone]].sum():
        raise DamagedBackup(f"{path}: a row is deleted, and has cells, or is deleted twice")


def _require_order(path: Path, keys: pa.ChunkedArray, last_key: bytes) -> bytes:
    """Raise ``DamagedBackup`` unless these are keys of rows behind the last one; the last of them."""
    try:
        lengths = pc.binary_length(keys)
        for length in pc.min_max(lengths).as_py().values():
            validate_row(keys[lengths.index(length).as_py()].as_py())
    except InvalidRequest as error:
        raise DamagedBackup(f"{path}: {error}") from None
    follow = pc.greater_equal(keys.slice(1), keys.slice(0, len(keys) - 1))
    wrong = follow.index(False).as_py()
    before, key = (last_key, keys[0].as_py()) if wrong < 0 else (keys[wrong].as_py(), keys[wrong + 1].as_py())
    if wrong >= 0 or key <= before:
        raise DamagedBackup(f"{path}: row {key!r} comes after {before!r}: the rows are not in the order of their keys")
    last: bytes = keys[-1].as_py()
    return last
