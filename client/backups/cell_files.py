"""The cells of a table in a Parquet file, a line each: columns are written as lines, and lines read as columns.

Both hold a row group at a time in memory, which ends at so many lines or bytes, and at one row at the least.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from client.backups.errors import DamagedBackup
from client.backups.layout import TableBackup, TableFile
from client.cells import family_of, is_reserved, validate_row
from client.errors import InvalidRequest
from client.spark.byte_columns import ByteColumn, stacked
from client.spark.value_codec import null_mask, texts, to_array
from client.tables.files import sha256_of
from store.columns import ABSENT, PLACES_MAX, CellColumns, Places

GROUP_LINES_MAX: Final = 100_000
GROUP_BYTES_MAX: Final = 16 * 2**20
SCHEMA: Final = pa.schema([pa.field("row", pa.binary(), False), ("column", pa.binary()), ("value", pa.binary())])

Tell = Callable[[int], None]
"""Told how many rows of the table are done."""


def write_cells(path: Path, batches: Iterable[CellColumns], tell: Tell) -> TableFile:
    """Write rows, in the order of their keys, to a new file. Raises ``OSError``, and what ``batches`` raise."""
    done = cells = 0
    with pa.parquet.ParquetWriter(path, SCHEMA, compression="zstd", use_dictionary=["row", "column"]) as writer:
        for group in _groups(batches):
            lines = pa.Table.from_batches(map(_lines_of, group), SCHEMA)
            writer.write_table(lines, row_group_size=lines.num_rows)
            done += sum(part.rows for part in group)
            cells += lines.num_rows - lines.column("column").null_count
            tell(done)
    return TableFile(path.name, path.stat().st_size, sha256_of(path), done, cells)


def require_whole(path: Path, file: TableFile) -> None:
    """Raise ``DamagedBackup`` unless a file is, byte by byte, what was written."""
    try:
        found = sha256_of(path)
    except OSError as error:
        raise DamagedBackup(f"{path} cannot be read: {error.strerror or error}") from error
    if found != file.sha256:
        raise DamagedBackup(f"{path} is not what was written: its SHA-256 is {found}, and was {file.sha256}")


def read_cells(path: Path, backup: TableBackup) -> Iterator[CellColumns]:
    """The rows of a file as they were, in the order of their keys; one without cells is empty.

    Raises ``DamagedBackup`` for what no snapshot can have shown.
    """
    families = frozenset(backup.entry.family_columns)
    rows = cells = 0
    last_key = b""
    for lines in _whole_rows(path):
        for piece in _pieces(lines):
            read = _as_columns(path, piece)
            _require_columns(path, read.columns, families)
            last_key = _require_order(path, read.row_keys(), last_key)
            rows += read.rows
            cells += int((read.value_lengths != ABSENT).sum())
            yield read
    if (rows, cells) != (backup.file.rows, backup.file.cells):
        raise DamagedBackup(
            f"{path} has {rows:,} rows and {cells:,} cells, and {backup.file.rows:,} and {backup.file.cells:,} were "
            "written"
        )


def _groups(batches: Iterable[CellColumns]) -> Iterator[list[CellColumns]]:
    """The same rows in lists that end with the row by which they have so many lines or bytes."""
    group: list[CellColumns] = []
    lines_held = bytes_held = 0
    for batch in batches:
        lines, sizes = _lines_and_bytes(batch)
        lines_before, bytes_before, first = -lines_held, -bytes_held, 0
        while first < batch.rows:
            last = int(
                min(
                    np.searchsorted(lines, lines_before + GROUP_LINES_MAX),
                    np.searchsorted(sizes, bytes_before + GROUP_BYTES_MAX),
                )
            )
            group.append(batch.slice(first, last + 1))
            first = last + 1
            if first <= batch.rows:
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


def _lines_of(cells: CellColumns) -> pa.RecordBatch:
    is_there = np.vstack([cells.value_lengths != ABSENT, (cells.value_lengths == ABSENT).all(axis=0)])
    rows, columns = np.nonzero(is_there.T)  # the last one where a row has none
    none = np.full((1, cells.rows), ABSENT, np.int64)
    starts = np.vstack([cells.value_starts, none])[columns, rows]
    lengths = np.vstack([cells.value_lengths, none])[columns, rows]
    arrays = [
        to_array("binary", ByteColumn(cells.data, cells.key_starts[rows], cells.key_lengths[rows])),
        pa.array([*cells.columns, None], pa.binary()).take(pa.array(columns)),
        to_array("binary", ByteColumn(cells.data, starts, lengths)),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _whole_rows(path: Path) -> Iterator[pa.Table]:
    """The lines of a file, a row group or so at a time, in which those of a row are together."""
    rest = SCHEMA.empty_table()
    try:
        with pa.parquet.ParquetFile(path) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise DamagedBackup(f"{path} has other columns than a backup's file: {file.schema_arrow.names}")
            for group in range(file.num_row_groups):
                lines = pa.concat_tables([rest, file.read_row_group(group)]).combine_chunks()
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
    keys, columns, values = (column.is_valid() for column in lines.columns)
    if not pc.all(pc.and_(keys, pc.equal(columns, values)), min_count=0).as_py():
        raise DamagedBackup(f"{path}: a row has a column without a value, or a value without a column")


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
    keys, columns, values = (column.combine_chunks() for column in lines.columns)
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


def _require_columns(path: Path, columns: Iterable[bytes], families: Collection[bytes]) -> None:
    for column in columns:
        if is_reserved(column) or b":" not in column or family_of(column) not in families:
            raise DamagedBackup(f"{path}: a row has a column {column!r}, which its table cannot have")


def _require_order(path: Path, keys: Sequence[bytes], last_key: bytes) -> bytes:
    """Raise ``DamagedBackup`` unless these are keys of rows behind the last one; the last of them."""
    try:
        for key in (min(keys, key=len), max(keys, key=len)):
            validate_row(key)
    except InvalidRequest as error:
        raise DamagedBackup(f"{path}: {error}") from None
    for before, key in pairwise((last_key, *keys)):
        if key <= before:
            raise DamagedBackup(
                f"{path}: row {key!r} comes after {before!r}: the rows are not in the order of their keys"
            )
    return keys[-1]
