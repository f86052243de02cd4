"""The cells of a table in a Parquet file, a line each: written row by row, and read back as rows.

Both hold a row group at a time in memory, which ends at so many lines or bytes, and at one row at the least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet

from client.backups.errors import DamagedBackup
from client.backups.layout import TableBackup, TableFile
from client.bulk_writes.batching import ScannedRow
from client.cells import family_of, is_reserved, validate_row
from client.errors import InvalidRequest
from client.tables.files import sha256_of

GROUP_LINES_MAX: Final = 100_000
GROUP_BYTES_MAX: Final = 16 * 2**20
SCHEMA: Final = pa.schema([pa.field("row", pa.binary(), False), ("column", pa.binary()), ("value", pa.binary())])

Line = tuple[bytes, bytes | None, bytes | None]
Tell = Callable[[int], None]
"""Told how many rows of the table are done."""


def write_cells(path: Path, rows: Iterable[tuple[bytes, Mapping[bytes, bytes]]], tell: Tell) -> TableFile:
    """Write rows, in the order of their keys, to a new file. Raises ``OSError``, and what ``rows`` raise."""
    done = cells = 0
    with pa.parquet.ParquetWriter(path, SCHEMA, compression="zstd", use_dictionary=["row", "column"]) as writer:
        for group in _groups(rows):
            for _, values in group:
                cells += len(values)
            done += len(group)
            writer.write_batch(_batch(group))
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


def read_rows(path: Path, backup: TableBackup) -> Iterator[ScannedRow]:
    """The rows of a file as they were, in the order of their keys; one without cells is empty.

    Raises ``DamagedBackup`` for what no snapshot can have shown.
    """
    row: bytes | None = None
    values: dict[bytes, bytes] = {}
    families = frozenset(backup.entry.family_columns)
    rows = cells = 0
    for key, column, value in _lines(path):
        if key != row:
            if row is not None:
                yield row, values
            _require_next(path, key, row)
            row, values = key, {}
            rows += 1
        elif not values or column is None or column in values:
            raise DamagedBackup(f"{path}: row {key!r} has its column {column!r} twice, or none and another")
        if column is not None and value is not None:
            if is_reserved(column) or b":" not in column or family_of(column) not in families:
                raise DamagedBackup(f"{path}: row {key!r} has a column {column!r}, which its table cannot have")
            values[column] = value
            cells += 1
        elif column is not value:
            raise DamagedBackup(f"{path}: row {key!r} has a column without a value, or a value without a column")
    if row is not None:
        yield row, values
    if (rows, cells) != (backup.file.rows, backup.file.cells):
        raise DamagedBackup(
            f"{path} has {rows:,} rows and {cells:,} cells, and {backup.file.rows:,} and {backup.file.cells:,} were "
            "written"
        )


def _groups(rows: Iterable[tuple[bytes, Mapping[bytes, bytes]]]) -> Iterator[list[ScannedRow]]:
    group: list[ScannedRow] = []
    lines = size = 0
    for row, values in rows:
        group.append((row, values))
        lines += len(values) or 1
        size += sum(len(row) + len(column) + len(value) for column, value in values.items())
        if lines >= GROUP_LINES_MAX or size >= GROUP_BYTES_MAX:
            yield group
            group, lines, size = [], 0, 0
    if group:
        yield group


def _batch(group: Sequence[ScannedRow]) -> pa.RecordBatch:
    keys: list[bytes] = []
    columns: list[bytes | None] = []
    cells: list[bytes | None] = []
    for row, values in group:
        keys += [row] * (len(values) or 1)
        columns += values or [None]
        cells += values.values() or [None]
    return pa.RecordBatch.from_arrays([pa.array(each, pa.binary()) for each in (keys, columns, cells)], schema=SCHEMA)


def _lines(path: Path) -> Iterator[Line]:
    try:
        with pa.parquet.ParquetFile(path) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise DamagedBackup(f"{path} has other columns than a backup's file: {file.schema_arrow.names}")
            for group in range(file.num_row_groups):
                taken = file.read_row_group(group)
                yield from zip(*(column.to_pylist() for column in taken.columns), strict=True)
    except (OSError, pa.ArrowException) as error:
        raise DamagedBackup(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _require_next(path: Path, key: bytes, before: bytes | None) -> None:
    try:
        validate_row(key)
    except InvalidRequest as error:
        raise DamagedBackup(f"{path}: {error}") from None
    if before is not None and key <= before:
        raise DamagedBackup(f"{path}: row {key!r} comes after {before!r}: the rows are not in the order of their keys")
