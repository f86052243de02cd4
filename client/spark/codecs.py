"""Arrow columns to the bytes of row keys and cells, and back. Pure; column by column, since a cell costs a microsecond.

Row keys keep order: comparing two keys as bytes is comparing their columns one after the other, so a range of keys is a
range of values. Whole numbers, dates and timestamps are big-endian with the sign bit flipped; text and binary have each
zero byte followed by 0xFF and end with two zero bytes, so that "a" sorts before "ab" whatever comes after it.

Values are what HBase's own ``Bytes`` makes of them, big-endian, so that its shell and other readers understand them:
dates are days and timestamps microseconds since 1970 (UTC), a boolean is one byte, a decimal its unscaled value in 16.

A null is written as a tombstone: an older value must not shine through. A row of
nothing but nulls has a row marker as well, or it would not exist. A DataFrame with some of the value columns leaves the
cells of the others as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from client.cells import ROW_MARKER_VALUE, TOMBSTONE, encode_value, row_marker_column
from client.spark.column_types import arrow_type
from client.spark.errors import InvalidData
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from store import ROW_KEY_BYTES_MAX, RowPut

ScannedRow = tuple[bytes, Mapping[bytes, bytes]]
"""A row key, and the row's visible values by column."""

_TERMINATOR: Final = b"\x00\x00"
_ESCAPED_ZERO: Final = b"\x00\xff"
_DECIMAL_BYTES: Final = 16
_WIDTHS: Final = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "bigint": 8,
    "float": 4,
    "double": 8,
    "date": 4,
    "timestamp": 8,
    "timestamp_ntz": 8,
}
_TRUE: Final = 0xFF


def _is_whole_number(value: Any) -> bool:
    return type(value) is int


_IS_OF_TYPE: Final[Mapping[str, Callable[[Any], bool]]] = {
    "tinyint": _is_whole_number,
    "smallint": _is_whole_number,
    "int": _is_whole_number,
    "bigint": _is_whole_number,
    "boolean": lambda value: isinstance(value, bool),
    "date": lambda value: type(value) is date,
    "timestamp": lambda value: isinstance(value, datetime) and value.tzinfo is not None,
    "timestamp_ntz": lambda value: isinstance(value, datetime) and value.tzinfo is None,
    "string": lambda value: isinstance(value, str),
    "binary": lambda value: isinstance(value, bytes | bytearray),
}
"""Arrow would make a whole number of ``True``, and a date of a datetime."""


class RowEncoder:
    """Record batches of a DataFrame to rows as they are stored. ``names``: its columns, by default all."""

    def __init__(self, mapping: TableMapping, names: Sequence[str] | None = None) -> None:
        self._mapping = mapping
        columns = mapping.columns if names is None else mapping.choose(names)
        self._columns = [column for column in columns if isinstance(column, ValueColumn)]
        self._cells = [column.cell for column in self._columns]
        self._marker = row_marker_column(mapping.families[0].encode())

    def encode(self, batch: pa.RecordBatch) -> list[RowPut]:
        """Every row of a batch, in its order; columns are found by name, whatever their order.

        Raises ``InvalidData`` for a null in a key column, a row key that is too long, a row key that occurs twice
        (which of the two rows would win is not defined), and a value that its column's type cannot hold.
        """
        columns = _by_name(batch)
        keys = self._row_keys(columns)
        arrays = [_as_type(column.name, column.type, columns) for column in self._columns]
        stored = [_stored_values(column.type, array) for column, array in zip(self._columns, arrays, strict=True)]
        names = self._cells
        puts = [
            RowPut(key, dict(zip(names, cells, strict=True)))
            for key, cells in zip(keys, zip(*stored, strict=True), strict=True)
        ]
        for index in _rows_without_values(arrays):
            puts[index] = RowPut(keys[index], {**puts[index].columns, self._marker: ROW_MARKER_VALUE})
        return puts

    def _row_keys(self, columns: Mapping[str, pa.Array]) -> list[bytes]:
        key_columns = self._mapping.key_columns
        arrays = [_as_type(column.name, column.type, columns) for column in key_columns]
        keys = _join_keys(key_columns, arrays)
        if len(set(keys)) != len(keys):
            twice = keys.index(_first_repeated(keys))
            values = {column.name: array[twice].as_py() for column, array in zip(key_columns, arrays, strict=True)}
            raise InvalidData(
                f"two rows of one write to table {self._mapping.table!r} have the row key {values}: which of them "
                f"would win is not defined; use df.dropDuplicates({list(self._mapping.row_key)}) or aggregate first"
            )
        return keys


class RowDecoder:
    """Rows as a scan gives them to record batches of ``schema``, whose columns are some of the mapping's."""

    def __init__(self, mapping: TableMapping, schema: pa.Schema) -> None:
        self._mapping = mapping
        self._schema = schema
        self._cells = {column.name.lower(): column for column in mapping.value_columns}
        wanted = {name.lower() for name in schema.names}
        self._needs_keys = any(column.name.lower() in wanted for column in mapping.key_columns)

    def decode(self, rows: Sequence[ScannedRow]) -> pa.RecordBatch:
        """A batch with one row for each of ``rows``. Raises ``InvalidData`` for bytes that the mapping cannot mean."""
        arrays = self._key_arrays([key for key, _ in rows]) if self._needs_keys else {}
        for name in self._schema.names:
            column = self._cells.get(name.lower())
            if column is not None:
                cell = column.cell
                values = [values.get(cell) for _, values in rows]
                arrays[name.lower()] = _decoded(column.name, column.type, values, rows)
        return pa.RecordBatch.from_arrays([arrays[name.lower()] for name in self._schema.names], schema=self._schema)

    def _key_arrays(self, keys: Sequence[bytes]) -> dict[str, pa.Array]:
        arrays: dict[str, pa.Array] = {}
        positions = [0] * len(keys)
        for column in self._mapping.key_columns:
            try:
                array, positions = _split_key_column(column.type, keys, positions)
            except ValueError as error:
                raise InvalidData(
                    f"table {self._mapping.table!r}: a row key does not fit key column {column.name!r}: {error}"
                ) from error
            arrays[column.name.lower()] = array
        if positions != [len(key) for key in keys]:
            strange = next(key for key, position in zip(keys, positions, strict=True) if len(key) != position)
            raise InvalidData(f"table {self._mapping.table!r}: row key {strange!r} is longer than its key columns")
        return arrays


def row_keys(mapping: TableMapping, batch: pa.RecordBatch) -> list[bytes]:
    """The row key of every row of a batch, in its order. Raises ``InvalidData`` as ``RowEncoder`` does."""
    columns = _by_name(batch)
    key_columns = mapping.key_columns
    return _join_keys(key_columns, [_as_type(column.name, column.type, columns) for column in key_columns])


def row_key(mapping: TableMapping, *values: Any) -> bytes:
    """The row key of these values of the key columns; fewer values than key columns give the prefix of such rows.

    For programs that read or write the table without Spark. Values are Python's (``int``, ``str``, ``date``,
    ``datetime``, …). Raises ``InvalidData``.
    """
    columns = mapping.key_columns[: len(values)]
    if not values or len(values) > len(mapping.key_columns):
        raise InvalidData(f"table {mapping.table!r} has the key columns {mapping.row_key}; {len(values)} values given")
    given = {column.name.lower(): _one_value(column, value) for column, value in zip(columns, values, strict=True)}
    return _join_keys(columns, [_as_type(column.name, column.type, given) for column in columns])[0]


def key_part(column: KeyColumn, value: Any) -> bytes:
    """The bytes of one value in a row key. Raises ``InvalidData`` for a value that is not of the column's very type."""
    if not _IS_OF_TYPE[column.type](value):
        raise InvalidData(f"key column {column.name!r}: {value!r} is no {column.type}")
    return _key_parts(column, _one_value(column, value))[0]


def key_part_prefix(text: str) -> bytes:
    """What the key parts of all text begin with that begins with ``text``, and no others."""
    return text.encode().replace(b"\x00", _ESCAPED_ZERO)


def is_whole_key_part(column: KeyColumn, part: bytes) -> bool:
    """Whether these bytes, with which some part of the column begins, are a whole one."""
    return part.endswith(_TERMINATOR) if column.type in ("string", "binary") else len(part) == _WIDTHS[column.type]


def _one_value(column: KeyColumn, value: Any) -> pa.Array:
    try:
        return pa.array([value], type=arrow_type(column.type))
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise InvalidData(f"key column {column.name!r}: {value!r} is no {column.type}: {error}") from error


def _by_name(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return {name.lower(): array for name, array in zip(batch.schema.names, batch.columns, strict=True)}


def _as_type(name: str, type_name: str, columns: Mapping[str, pa.Array]) -> pa.Array:
    array, wanted = columns[name.lower()], arrow_type(type_name)
    if array.type.equals(wanted):
        return array
    try:
        return array.cast(wanted)
    except pa.ArrowException as error:
        raise InvalidData(f"column {name!r}: {array.type} cannot become {type_name}: {error}") from error


def _rows_without_values(arrays: Sequence[pa.Array]) -> list[int]:
    if any(array.null_count == 0 for array in arrays):
        return []
    empty = np.logical_and.reduce([_null_mask(array) for array in arrays])
    return [int(index) for index in np.flatnonzero(empty)]


def _null_mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return mask


# --- values -----------------------------------------------------------------------------------------------------------


def _stored_values(type_name: str, array: pa.Array) -> list[bytes]:
    values = list(map(encode_value, _plain_values(type_name, array)))
    if array.null_count:
        for index in np.flatnonzero(_null_mask(array)):
            values[index] = TOMBSTONE
    return values


def _plain_values(type_name: str, array: pa.Array) -> list[bytes]:
    """The bytes of each value; nulls give any bytes."""
    if type_name in ("string", "binary"):
        filled: list[bytes] = array.cast(pa.binary()).fill_null(b"").to_pylist()
        return filled
    if type_name.startswith("decimal"):
        return _decimal_values(array)
    if type_name == "boolean":
        return _fixed_bytes(pc.if_else(array, pa.scalar(_TRUE, pa.uint8()), pa.scalar(0, pa.uint8())))
    return _fixed_bytes(array)


def _fixed_bytes(array: pa.Array) -> list[bytes]:
    values = _numbers(array)
    return _split_fixed(values.astype(values.dtype.newbyteorder(">"), copy=False))


def _split_fixed(values: npt.NDArray[Any]) -> list[bytes]:
    """Each value's bytes. As a void type, since numpy's byte strings lose zero bytes at the end."""
    parts: list[bytes] = np.ascontiguousarray(values).view(f"V{values.itemsize}").tolist()
    return parts


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    """The values without any change of their bits, whatever stands where a null is."""
    if pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        array = array.view(pa.int32() if pa.types.is_date(array.type) else pa.int64())
    return _data(array, np.dtype(array.type.to_pandas_dtype()), 1)


def _decimal_values(array: pa.Array) -> list[bytes]:
    words = _data(array, np.dtype("<u8"), 2).reshape(-1, 2)
    swapped = np.ascontiguousarray(words[:, ::-1].astype(">u8"))
    parts: list[bytes] = swapped.view(f"V{_DECIMAL_BYTES}").ravel().tolist()
    return parts


def _data(array: pa.Array, dtype: np.dtype[Any], words_per_value: int) -> npt.NDArray[Any]:
    if len(array) == 0:
        return np.empty(0, dtype)
    words_before = array.offset * words_per_value
    return np.frombuffer(
        array.buffers()[1], dtype, count=len(array) * words_per_value, offset=words_before * dtype.itemsize
    )


def _first_repeated(keys: Sequence[bytes]) -> bytes:
    seen: set[bytes] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    raise ValueError("no key is repeated")


def _decoded(name: str, type_name: str, values: list[bytes | None], rows: Sequence[ScannedRow]) -> pa.Array:
    try:
        return _values_to_array(type_name, values)
    except (ValueError, pa.ArrowException) as error:
        row = next((key for (key, _), value in zip(rows, values, strict=True) if not _readable(type_name, value)), b"")
        raise InvalidData(
            f"column {name!r} of row {row!r} holds bytes that are no {type_name} ({error}): was it written by a "
            "program that does not know the table's mapping?"
        ) from error


def _readable(type_name: str, value: bytes | None) -> bool:
    try:
        _values_to_array(type_name, [value])
    except (ValueError, pa.ArrowException):
        return False
    return True


def _values_to_array(type_name: str, values: Sequence[bytes | None]) -> pa.Array:
    if type_name == "binary":
        return pa.array(values, type=pa.binary())
    if type_name == "string":
        return pa.array(values, type=pa.binary()).cast(pa.string())
    if type_name.startswith("decimal"):
        return _decimals(type_name, values)
    width = _WIDTHS[type_name]
    data = _joined(values, width)
    if type_name == "boolean":
        bits = np.packbits(np.frombuffer(data, dtype=np.uint8) != 0, bitorder="little")
        return _array(type_name, values, bits.tobytes())
    return _array(type_name, values, np.frombuffer(data, dtype=f">u{width}").astype(f"=u{width}").tobytes())


def _decimals(type_name: str, values: Sequence[bytes | None]) -> pa.Array:
    words = np.frombuffer(_joined(values, _DECIMAL_BYTES), dtype=">u8").reshape(-1, 2)[:, ::-1]
    array = _array(type_name, values, np.ascontiguousarray(words.astype("<u8")).tobytes())
    array.validate(full=True)  # 16 bytes can hold numbers beyond the precision
    return array


def _joined(values: Sequence[bytes | None], width: int) -> bytes:
    strange = {len(value) for value in values if value is not None} - {width}
    if strange:
        raise ValueError(f"{width} bytes are needed, not {min(strange)}")
    zero = bytes(width)
    return b"".join([zero if value is None else value for value in values])


def _array(type_name: str, values: Sequence[bytes | None], data: bytes) -> pa.Array:
    valid = np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values))
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(arrow_type(type_name), len(values), [validity, pa.py_buffer(data)])


# --- row keys ---------------------------------------------------------------------------------------------------------


def _join_keys(columns: Sequence[KeyColumn], arrays: Sequence[pa.Array]) -> list[bytes]:
    parts = [_key_parts(column, array) for column, array in zip(columns, arrays, strict=True)]
    keys = list(map(b"".join, zip(*parts, strict=True)))
    if keys and max(map(len, keys)) > ROW_KEY_BYTES_MAX:
        longest = max(map(len, keys))
        names = ", ".join(column.name for column in columns)
        raise InvalidData(f"a row key has at most {ROW_KEY_BYTES_MAX:,} bytes; ({names}) made one of {longest:,}")
    return keys


def _key_parts(column: KeyColumn, array: pa.Array) -> list[bytes]:
    if array.null_count:
        index = int(np.flatnonzero(_null_mask(array))[0])
        raise InvalidData(
            f"row key column {column.name!r} is null (row {index} of a batch): a row key needs every part"
        )
    if column.type in ("string", "binary"):
        texts: list[bytes] = array.cast(pa.binary()).to_pylist()
        return [text.replace(b"\x00", _ESCAPED_ZERO) + _TERMINATOR for text in texts]
    if column.type == "boolean":
        return _fixed_bytes(array.cast(pa.uint8()))
    numbers = _numbers(array)
    width = numbers.itemsize
    flipped = numbers.view(f"u{width}") ^ np.array(1 << (8 * width - 1), dtype=f"u{width}")
    return _split_fixed(flipped.astype(f">u{width}"))


def _split_key_column(type_name: str, keys: Sequence[bytes], positions: Sequence[int]) -> tuple[pa.Array, list[int]]:
    """One key column of every key, read from ``positions`` on, and where the next column begins."""
    if type_name in ("string", "binary"):
        return _split_texts(type_name, keys, positions)
    width = _WIDTHS[type_name]
    parts = [key[position : position + width] for key, position in zip(keys, positions, strict=True)]
    data = np.frombuffer(_joined(parts, width), dtype=f">u{width}")
    after = [position + width for position in positions]
    if type_name == "boolean":
        return _array(type_name, parts, np.packbits(data != 0, bitorder="little").tobytes()), after
    native = data.astype(f"=u{width}") ^ np.array(1 << (8 * width - 1), dtype=f"u{width}")
    return _array(type_name, parts, native.tobytes()), after


def _split_texts(type_name: str, keys: Sequence[bytes], positions: Sequence[int]) -> tuple[pa.Array, list[int]]:
    ends = [key.find(_TERMINATOR, position) for key, position in zip(keys, positions, strict=True)]
    if ends and min(ends) < 0:
        raise ValueError(f"{keys[ends.index(-1)]!r} has no end of its text")
    spans = zip(keys, positions, ends, strict=True)
    parts = [key[position:end].replace(_ESCAPED_ZERO, b"\x00") for key, position, end in spans]
    return _values_to_array(type_name, parts), [end + len(_TERMINATOR) for end in ends]
