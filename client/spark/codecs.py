"""Record batches of a DataFrame to rows as they are stored, and back. Pure.

Column by column, from Arrow's bytes to the bytes of cells, without an object for any of them: that is what a Spark job
spends its time on. Keys are made in ``key_codec``, values in ``value_codec``, rows of packed tables in ``packing``.

A null is written as a tombstone: an older value must not shine through. A row of nothing but nulls has a row marker as
well, or it would not exist. A DataFrame with some of the value columns leaves the cells of the others as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from client.cells import ROW_MARKER_VALUE, TOMBSTONE, row_marker_column
from client.key_hashing import HASHED_BYTES_MIN, hashes_of_rows
from client.spark.byte_columns import ByteColumn, escaped_like, stacked
from client.spark.errors import InvalidData
from client.spark.key_codec import as_type, by_name, key_arrays, row_keys
from client.spark.mapping import TableMapping, ValueColumn
from client.spark.packing import pack, unpack
from client.spark.value_codec import null_mask, of_bytes, shown, to_array, to_bytes
from store.columns import ABSENT, CellColumns, taken

_TOMBSTONE_AND_MARKER: Final = of_bytes(TOMBSTONE + ROW_MARKER_VALUE)
_BEFORE_KEYS: Final = bytes(HASHED_BYTES_MIN)
"""What is hashed before each row's key: no table, for only keys of one table are compared."""


class RowEncoder:
    """Record batches to rows as they are stored. ``names``: the DataFrame's columns, by default all."""

    def __init__(self, mapping: TableMapping, names: Sequence[str] | None = None) -> None:
        self._mapping = mapping
        columns = mapping.columns if names is None else mapping.choose(names)
        self._columns = [column for column in columns if isinstance(column, ValueColumn)]
        self._cells = tuple(column.cell for column in self._columns)  # those of a packed table are never written
        self._marker = row_marker_column(mapping.families[0].encode())

    def encode(self, batch: pa.RecordBatch) -> CellColumns:
        """Every row of a batch, in its order; columns are found by name, whatever their order.

        Raises ``InvalidData`` for a null in a key column, a row key that is too long, a row key that occurs twice
        (which of the two rows would win is not defined), and a value that its column's type cannot hold.
        """
        keys, values = self.values(batch)
        self._require_different(keys, batch)
        if self._mapping.packed:
            return in_cells(self._mapping.cells, keys, [pack(self._columns, values)])
        return self._with_tombstones(keys, values)

    def pieces(self, batch: pa.RecordBatch) -> Sequence[CellColumns]:
        """What ``encode`` makes, in one piece: it has no more columns than the mapping. Raises as ``encode``."""
        return [self.encode(batch)]

    def values(self, batch: pa.RecordBatch) -> tuple[ByteColumn, list[ByteColumn]]:
        """The row keys of a batch, and the bytes of its value columns, none where a null is. Raises as ``encode``."""
        columns = by_name(batch)
        values = [to_bytes(column.type, as_type(column.name, column.type, columns)) for column in self._columns]
        return row_keys(self._mapping, batch), values

    def _with_tombstones(self, keys: ByteColumn, values: Sequence[ByteColumn]) -> CellColumns:
        rows = len(keys.starts)
        stored = [escaped_like(column, TOMBSTONE[0]) for column in values]
        data, starts, lengths = stacked([*stored, keys], rows, _TOMBSTONE_AND_MARKER)
        offset = len(data) - len(_TOMBSTONE_AND_MARKER)
        value_starts, value_lengths = starts[:-1], lengths[:-1]
        nulls = value_lengths == ABSENT
        columns = self._cells
        if nulls.any():
            empty = nulls.all(axis=0)
            value_starts[nulls], value_lengths[nulls] = offset, len(TOMBSTONE)
            if empty.any():
                columns = (*columns, self._marker)
                value_starts = np.vstack([value_starts, np.full((1, rows), offset + len(TOMBSTONE))])
                value_lengths = np.vstack([value_lengths, np.where(empty, len(ROW_MARKER_VALUE), ABSENT)[None, :]])
        return CellColumns(columns, data, starts[-1], lengths[-1], value_starts, value_lengths)

    def _require_different(self, keys: ByteColumn, batch: pa.RecordBatch) -> None:
        hashes = hashes_of_rows(_BEFORE_KEYS, *keys)  # an object for each key takes seven times as long
        hashes.sort()
        if (hashes[1:] != hashes[:-1]).all():
            return
        found = taken(*keys)
        if len(set(found)) == len(found):
            return
        twice = found.index(_first_repeated(found))
        columns = by_name(batch)
        values = ", ".join(f"{name!r}: {shown(columns[name.lower()][twice])}" for name in self._mapping.row_key)
        raise InvalidData(
            f"two rows of one write to table {self._mapping.table!r} have the row key {{{values}}}: which of them "
            f"would win is not defined; use df.dropDuplicates({list(self._mapping.row_key)}) or aggregate first"
        )


class RowDecoder:
    """Rows as a scan gives them to record batches of ``schema``, whose columns are some of the mapping's."""

    def __init__(self, mapping: TableMapping, schema: pa.Schema) -> None:
        self._mapping = mapping
        self._schema = schema
        wanted = {name.lower() for name in schema.names}
        columns = mapping.value_columns
        self._places = [place for place, column in enumerate(columns) if column.name.lower() in wanted]
        """Of the wanted ones among all value columns."""
        self._values = [columns[place] for place in self._places]
        self._without_nulls = {field.name.lower() for field in schema if not field.nullable}
        self._needs_keys = any(column.name.lower() in wanted for column in mapping.key_columns)

    def decode(self, cells: CellColumns) -> pa.RecordBatch:
        """A batch with one row for each of these, whose values are visible ones.

        Raises ``InvalidData`` for bytes that the mapping cannot mean, and for a null where the schema lets none be.
        """
        keys = ByteColumn(cells.data, cells.key_starts, cells.key_lengths)
        arrays = key_arrays(self._mapping, keys) if self._needs_keys else {}
        for column, values in zip(self._values, self._stored(cells), strict=True):
            array = _decoded(column, values, keys)
            if column.name.lower() in self._without_nulls:
                _require_no_null(column, array, keys)
            arrays[column.name.lower()] = array
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * cells.rows, pa.struct([])))
        return pa.RecordBatch.from_arrays([arrays[name.lower()] for name in self._schema.names], schema=self._schema)

    def _stored(self, cells: CellColumns) -> list[ByteColumn]:
        """The bytes of each wanted column; none at all where a cell is not in the batch."""
        places = {column: index for index, column in enumerate(cells.columns)}

        def column_of(cell: bytes) -> ByteColumn:
            if cell not in places:
                return ByteColumn(cells.data, cells.key_starts, np.full(cells.rows, ABSENT, np.int64))
            place = places[cell]
            return ByteColumn(cells.data, cells.value_starts[place], cells.value_lengths[place])

        if not self._mapping.packed:
            return [column_of(column.cell) for column in self._values]
        if not self._values:
            return []
        try:
            found = unpack(self._mapping.value_columns, column_of(self._mapping.cells[0]))
        except ValueError as error:
            raise InvalidData(f"table {self._mapping.table!r}: {error}") from error
        return [found[place] for place in self._places]


def in_cells(columns: tuple[bytes, ...], keys: ByteColumn, values: Sequence[ByteColumn]) -> CellColumns:
    """Rows with these keys, and these values in ``columns``."""
    data, starts, lengths = stacked([*values, keys], len(keys.starts))
    return CellColumns(columns, data, starts[-1], lengths[-1], starts[:-1], lengths[:-1])


def _first_repeated(keys: Sequence[bytes]) -> bytes:
    seen: set[bytes] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    raise ValueError("no key is repeated")


def _decoded(column: ValueColumn, values: ByteColumn, keys: ByteColumn) -> pa.Array:
    try:
        return to_array(column.type, values)
    except (ValueError, pa.ArrowException) as error:
        row = next((key for index, key in enumerate(taken(*keys)) if not _readable(column.type, values, index)), b"")
        raise InvalidData(
            f"column {column.name!r} of row {row!r} holds bytes that are no {column.type} ({error}): was it written "
            "by a program that does not know the table's mapping?"
        ) from error


def _require_no_null(column: ValueColumn, array: pa.Array, keys: ByteColumn) -> None:
    """Spark believes a schema of the user's, and looks for no null then."""
    if array.null_count:
        row = taken(*keys)[int(np.flatnonzero(null_mask(array))[0])]
        raise InvalidData(
            f"column {column.name!r} of row {row!r} is null, and the schema asked for says that it never is: leave NOT "
            "NULL out of it for columns that are not part of the row key"
        )


def _readable(type_name: str, values: ByteColumn, index: int) -> bool:
    one = slice(index, index + 1)
    try:
        to_array(type_name, ByteColumn(values.data, values.starts[one], values.lengths[one]))
    except (ValueError, pa.ArrowException):
        return False
    return True
