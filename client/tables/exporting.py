"""A table as one snapshot shows it, written to a file.

The invariant: a file of the name that was asked for is whole, and it replaced no other. The rows go to another file
beside it, which gets the name once the last of them is on the disk, unless somebody has made such a file by then; an
export that fails removes it, and one that is killed leaves it, by a name that nobody takes for the file.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from client.snapshots.snapshot import Snapshot
from client.spark.batches import record_batches, record_batches_of_changes
from client.spark.change_columns import with_change_columns
from client.spark.errors import InvalidData
from client.spark.mapping import TableMapping
from client.spark.reader import arrow_schema
from client.spark.value_codec import shown
from client.tables.errors import UnreadableFile
from client.tables.files import FileFormat
from client.tables.unfinished import keep, unfinished_beside

BATCH_ROWS: Final = 50_000
"""Rows that are decoded and written at a time; in a Parquet file, a row group."""


def export(
    snapshot: Snapshot,
    mapping: TableMapping,
    columns: Sequence[str] | None,
    path: Path,
    file_format: FileFormat,
    tell: Callable[[int], None],
    since: int | None = None,
) -> int:
    """Write a table's rows, in the order of their keys, to a file that does not exist yet; how many they were.

    ``columns``: all where ``None``, in the table's order. ``since``: only what has changed since that timestamp, with
    columns that say what. Raises ``InvalidMapping`` for a column that the table lacks, ``InvalidData`` for a value that
    no import could read from a CSV file, ``UnreadableFile`` where the file is there or cannot be written, and every
    error of a read.
    """
    schema = mapping.to_struct(columns)
    if since is None:
        batches = record_batches(snapshot, mapping, columns, batch_rows=BATCH_ROWS)
    else:
        schema = with_change_columns(schema, mapping.table)
        batches = record_batches_of_changes(snapshot, mapping, since, columns, batch_rows=BATCH_ROWS)
    if path.exists():
        raise UnreadableFile(f"{path} exists already: remove it, or choose another name")
    rows = 0
    with _named_at_the_end(path) as unfinished, _writer(unfinished, arrow_schema(schema), file_format) as writer:
        for batch in batches:
            if file_format == "csv":
                _require_known_years(batch, mapping.table, first_row=rows + 1)
                batch = _as_text(batch)
            writer.write_batch(batch)
            rows += batch.num_rows
            tell(rows)
    return rows


@contextmanager
def _named_at_the_end(path: Path) -> Iterator[Path]:
    unfinished = unfinished_beside(path)
    try:
        yield unfinished
        keep(unfinished)
        _name(unfinished, path)
    except OSError as error:
        raise UnreadableFile(f"{path} cannot be written: {error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _name(unfinished: Path, path: Path) -> None:
    """Give a file its name. Raises ``FileExistsError`` where another has it, which a rename alone would replace."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise
    except OSError:  # where there are no hard links, an empty file has the name until the next line
        path.touch(exist_ok=False)
        unfinished.replace(path)


def _writer(path: Path, schema: pa.Schema, file_format: FileFormat) -> AbstractContextManager[Any]:
    if file_format == "parquet":
        writer: AbstractContextManager[Any] = pa.parquet.ParquetWriter(path, schema)
    else:
        writer = pa.csv.CSVWriter(path, _text_schema(schema))
    return writer


def _require_known_years(batch: pa.RecordBatch, table: str, *, first_row: int) -> None:
    """Raise ``InvalidData`` for a day that has no text of four digits a year, which is all that an import reads."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not pa.types.is_temporal(column.type):
            continue
        kind = datetime.date if pa.types.is_date(column.type) else datetime.datetime
        first, last = pa.scalar(kind.min, column.type), pa.scalar(kind.max, column.type)
        within = pc.and_(pc.less_equal(first, column), pc.less_equal(column, last))
        row = within.index(False).as_py()
        if row >= 0:
            raise InvalidData(
                f"table {table!r}, row {first_row + row:,}, column {name!r}: {shown(column[row])} does not lie in the "
                f"years 1 to 9999, and a CSV file can hold no others: export to Parquet"
            )


def _text_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(pa.string()) if pa.types.is_binary(field.type) else field for field in schema])


def _as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """With binary columns as hexadecimal digits, which an import reads back."""
    columns = [_hexadecimal(column) if pa.types.is_binary(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=_text_schema(batch.schema))


def _hexadecimal(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else value.hex() for value in column.to_pylist()], type=pa.string())
