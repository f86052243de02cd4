"""Key columns to row keys, and back. Pure; a column at a time.

Row keys keep order: comparing two keys as bytes is comparing their columns one after the other, so a range of keys is a
range of values. Whole numbers, dates and timestamps are big-endian with the sign bit flipped; text and binary have each
zero byte followed by 0xFF and end with two zero bytes, so that "a" sorts before "ab" whatever comes after it. A *plain*
row key is one text or binary, as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from client.snapshots.ranges import end_of_prefix
from client.spark.byte_columns import ByteColumn, joined, split_text_keys, text_key_parts
from client.spark.column_types import TEXTS, arrow_type
from client.spark.errors import InvalidData
from client.spark.mapping import KeyColumn, TableMapping
from client.spark.salting import SALT_BYTES, in_every_bucket, salted, salted_key
from client.spark.value_codec import (
    WIDTHS,
    big_endian,
    is_utf8,
    null_mask,
    numbers,
    shown,
    texts,
    to_array,
)
from store import ROW_KEY_BYTES_MAX
from store.columns import Places, taken

_TERMINATOR: Final = b"\x00\x00"
_ESCAPED_ZERO: Final = b"\x00\xff"


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


def row_keys(mapping: TableMapping, batch: pa.RecordBatch) -> ByteColumn:
    """The row key of every row of a batch, in its order.

    Raises ``InvalidData`` for a null in a key column, a row key that is too long, and a value that is not of its type.
    """
    columns = by_name(batch)
    arrays = [as_type(column.name, column.type, columns) for column in mapping.key_columns]
    keys = _join(mapping.key_columns, arrays, ROW_KEY_BYTES_MAX - _salt_bytes(mapping))
    return salted(keys, mapping.salt_buckets) if mapping.salt_buckets else keys


def row_key(mapping: TableMapping, *values: Any) -> bytes:
    """The row key of these values of the key columns; fewer values than key columns give the prefix of such rows.

    For programs that read or write the table without Spark. Values are Python's (``int``, ``str``, ``date``,
    ``datetime``, …). Raises ``InvalidData``; also for fewer values where the table is salted, in which such rows begin
    with several (``row_key_prefixes``).
    """
    prefixes = row_key_prefixes(mapping, *values)
    if len(prefixes) > 1:
        raise InvalidData(
            f"table {mapping.table!r} is salted: its rows with these values of {', '.join(mapping.row_key)} lie in "
            f"{len(prefixes)} places; give all values, or read each of row_key_prefixes"
        )
    return prefixes[0]


def row_key_prefixes(mapping: TableMapping, *values: Any) -> list[bytes]:
    """With what the row keys begin of the rows with these values of the leading key columns: one in a table that is not
    salted, or where all values are given; else one for each bucket. Values as for ``row_key``. Raises ``InvalidData``.
    """
    columns = mapping.key_columns[: len(values)]
    if not values or len(values) > len(mapping.key_columns):
        raise InvalidData(f"table {mapping.table!r} has the key columns {mapping.row_key}; {len(values)} values given")
    given = {column.name.lower(): _one_value(column, value) for column, value in zip(columns, values, strict=True)}
    arrays = [as_type(column.name, column.type, given) for column in columns]
    key = taken(*_join(columns, arrays, ROW_KEY_BYTES_MAX - _salt_bytes(mapping)))[0]
    return placed(mapping, key, is_whole=len(columns) == len(mapping.key_columns))


def _salt_bytes(mapping: TableMapping) -> int:
    """Before each row key of the table."""
    return SALT_BYTES if mapping.salt_buckets else 0


def placed(mapping: TableMapping, key: bytes, *, is_whole: bool) -> list[bytes]:
    """Where rows lie whose keys, without a salt, begin with ``key``; ``is_whole``: it is that of one row."""
    if not mapping.salt_buckets:
        return [key]
    return [salted_key(key, mapping.salt_buckets)] if is_whole else in_every_bucket(key, mapping.salt_buckets)


def key_part(column: KeyColumn, value: Any) -> bytes:
    """The bytes of one value in a row key. Raises ``InvalidData`` for a value that is not of the column's very type."""
    if not _IS_OF_TYPE[column.type](value):
        raise InvalidData(f"key column {column.name!r}: {value!r} is no {column.type}")
    return taken(*_join([column], [_one_value(column, value)]))[0]


def key_part_prefix(column: KeyColumn, text: str) -> bytes:
    """What the key parts of all text begin with that begins with ``text``, and no others."""
    return text.encode() if column.plain else text.encode().replace(b"\x00", _ESCAPED_ZERO)


def end_of_key_part(column: KeyColumn, part: bytes) -> bytes:
    """The first bytes after all row keys in which the column has this part; empty where there are none."""
    return part + b"\x00" if column.plain else end_of_prefix(part)


def is_whole_key_part(column: KeyColumn, part: bytes) -> bool:
    """Whether these bytes, with which some part of the column begins, are a whole one, and others may follow."""
    if column.type in TEXTS:
        return not column.plain and part.endswith(_TERMINATOR)
    return len(part) == WIDTHS[column.type]


def key_arrays(mapping: TableMapping, keys: ByteColumn) -> dict[str, pa.Array]:
    """The key columns of row keys, by their names in lower case. Raises ``InvalidData`` for a key of another form."""
    arrays: dict[str, pa.Array] = {}
    positions = np.full(len(keys.starts), _salt_bytes(mapping), np.int64)
    for column in mapping.key_columns:
        try:
            array, positions = _split(column, keys, positions)
        except (ValueError, pa.ArrowException) as error:
            raise InvalidData(
                f"table {mapping.table!r}: a row key does not fit key column {column.name!r}: {error}"
            ) from error
        arrays[column.name.lower()] = array
    longer = np.flatnonzero(positions != keys.lengths)
    if len(longer):
        strange = taken(keys.data, keys.starts[longer[:1]], keys.lengths[longer[:1]])[0]
        raise InvalidData(f"table {mapping.table!r}: row key {strange!r} is longer than its key columns")
    return arrays


def by_name(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """A batch's columns by their names in lower case, as Spark compares them."""
    return {name.lower(): array for name, array in zip(batch.schema.names, batch.columns, strict=True)}


def as_type(name: str, type_name: str, columns: Mapping[str, pa.Array]) -> pa.Array:
    """The column of this name in the Arrow type of ``type_name``. Raises ``InvalidData`` where that cannot be."""
    array, wanted = columns.get(name.lower()), arrow_type(type_name)
    if array is None:
        raise InvalidData(f"there is no column {name!r} among these: {', '.join(columns)}")
    if not array.type.equals(wanted):
        try:
            array = array.cast(wanted)
        except pa.ArrowException as error:
            raise InvalidData(f"column {name!r}: {array.type} cannot become {type_name}: {error}") from error
    if type_name == "string":
        _require_utf8(name, array)
    return array


def _require_utf8(name: str, array: pa.Array) -> None:
    """Raise ``InvalidData`` for text of other bytes, which Spark and Arrow may hold: no read would take it again."""
    if is_utf8(array):
        return
    row = next(row for row in range(len(array)) if not is_utf8(array.slice(row, 1)))
    raise InvalidData(
        f"column {name!r} is no UTF-8 in row {row} of a batch ({shown(array[row])}), and a string has to be: correct "
        f"the text, or cast it to binary and write it to a column of that type"
    )


def _one_value(column: KeyColumn, value: Any) -> pa.Array:
    try:
        return pa.array([value], type=arrow_type(column.type))
    except (pa.ArrowException, TypeError, OverflowError, UnicodeError) as error:
        raise InvalidData(f"key column {column.name!r}: {value!r} is no {column.type}: {error}") from error


def _join(columns: Sequence[KeyColumn], arrays: Sequence[pa.Array], bytes_max: int = ROW_KEY_BYTES_MAX) -> ByteColumn:
    parts = [_parts(column, array) for column, array in zip(columns, arrays, strict=True)]
    keys = joined(parts, [column.type in TEXTS and not column.plain for column in columns])
    if columns[0].plain and not keys.lengths.all():
        raise InvalidData(f"row key column {columns[0].name!r} is empty: a plain row key has at least one byte")
    longest = int(keys.lengths.max(initial=0))
    if longest > bytes_max:
        names = ", ".join(column.name for column in columns)
        raise InvalidData(f"a row key has at most {bytes_max:,} bytes; ({names}) made one of {longest:,}")
    return keys


def _parts(column: KeyColumn, array: pa.Array) -> ByteColumn:
    if array.null_count:
        index = int(np.flatnonzero(null_mask(array))[0])
        raise InvalidData(
            f"row key column {column.name!r} is null (row {index} of a batch): a row key needs every part"
        )
    if column.type in TEXTS:
        return texts(array) if column.plain else text_key_parts(texts(array))
    if column.type == "boolean":
        return big_endian(numbers(array.cast(pa.uint8())))
    values = numbers(array)
    unsigned = values.view(f"u{values.itemsize}")
    return big_endian(unsigned ^ _sign_bit(values.itemsize))


def _split(column: KeyColumn, keys: ByteColumn, positions: Places) -> tuple[pa.Array, Places]:
    """One key column of every key, read from ``positions`` on, and where the next column begins."""
    type_name = column.type
    if column.plain:
        return to_array(type_name, keys), keys.lengths
    if type_name in TEXTS:
        found, after = split_text_keys(keys, positions)
        return to_array(type_name, found), after
    width = WIDTHS[type_name]
    part = ByteColumn(keys.data, keys.starts + positions, np.minimum(keys.lengths - positions, width))
    array = to_array(type_name, part)
    if type_name == "boolean":
        return array, positions + width
    flipped = numbers(array).view(f"u{width}") ^ _sign_bit(width)
    buffers = [None, pa.py_buffer(flipped.tobytes())]
    return pa.Array.from_buffers(array.type, len(array), buffers), positions + width


def _sign_bit(width: int) -> Any:
    return np.array(1 << (8 * width - 1), dtype=f"u{width}")
