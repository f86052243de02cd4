"""The columns of a file as the types of a table. Pure.

The invariant: a value lands as it stands in the file, or it is refused by file, row and column. What would round, cut
off or read a zone into a time is refused, be it possible: by the types where they say it, else by the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from client.spark.change_columns import CHANGE_TYPE, says_what
from client.spark.column_types import arrow_type
from client.spark.errors import InvalidData
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.value_codec import is_utf8, shown
from client.tables.files import FileFormat
from client.tables.supply import Piece

_KINDS: Final = {
    "integer": pa.types.is_integer,
    "float": pa.types.is_floating,
    "decimal": pa.types.is_decimal,
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    "binary": lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind),
    "boolean": pa.types.is_boolean,
    "date": pa.types.is_date,
    "zoned": lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    "zoneless": pa.types.is_timestamp,
}
"""The first that says yes counts."""
_CHECKED_CASTS: Final = {("integer", "float"), ("integer", "decimal"), *((kind, kind) for kind in _KINDS)}
"""From and to which kinds Arrow looks at each value, and refuses what it cannot keep."""
_WHOLE_NUMBER: Final = "^[+-]?[0-9]+$"
_INFINITY: Final = "(?i)^[+-]?inf(inity)?$"


def check_fits(
    mapping: TableMapping, schema: pa.Schema, file: str, file_format: FileFormat, *, changes: bool = False
) -> None:
    """Raise ``InvalidData`` that names every column in which a file does not fit a table.

    ``changes``: whether the file says what has changed, with columns for that (``client.spark.change_columns``).
    """
    found = {name.lower(): kind for name, kind in zip(schema.names, schema.types, strict=True)}
    wanted = {column.name.lower() for column in mapping.columns}
    if changes:
        wanted |= {name for name in found if says_what(name)}
    problems = [f"column {name!r} is not in the table" for name in schema.names if name.lower() not in wanted]
    if changes:
        problems += [
            f"the table has a column {column.name!r} of its own, which in a file of what has changed says what to do: "
            "land such files by a program"
            for column in mapping.columns
            if says_what(column.name)
        ]
    if not changes and CHANGE_TYPE in found and CHANGE_TYPE not in wanted:
        problems.append("it says what has changed: import it with --changes")
    if len(found) < len(schema.names):
        problems.append("a column's name occurs twice")
    for column in mapping.columns:
        kind = found.get(column.name.lower())
        if kind is None:
            problems.append(f"column {column.name!r} ({column.type}) is missing")
        elif not _may_become(kind, arrow_type(column.type)):
            problems.append(f"column {column.name!r} is {kind}, which cannot become the table's {column.type} exactly")
        elif file_format != "csv" and column.type == "binary" and _is_text(kind):
            problems.append(
                f"column {column.name!r} is {kind}, which cannot become the table's binary exactly: hexadecimal digits "
                f"are for CSV files, so cast it to binary when the file is written"
            )
    if changes and not _is_text(found.get(CHANGE_TYPE, pa.null())):
        problems.append(f"column {CHANGE_TYPE!r}, which says what is to be done with each row, is missing, or no text")
    if problems:
        raise InvalidData(f"{file} does not fit table {mapping.table!r}: {'; '.join(problems)}")


def cast(mapping: TableMapping, piece: Piece) -> pa.RecordBatch:
    """The rows of a file that fits, as the table's types. Raises ``InvalidData`` with file, row and column."""
    arrays = {name.lower(): array for name, array in zip(piece.batch.schema.names, piece.batch.columns, strict=True)}
    columns = [_column(column, arrays, piece) for column in mapping.columns]
    return pa.RecordBatch.from_arrays(columns, names=[column.name for column in mapping.columns])


def _may_become(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        return _may_become(found.value_type, wanted)
    if pa.types.is_null(found) or _kind(found) == "text":
        return True
    if _kind(found) == _kind(wanted) == "float":
        return bool(found.bit_width <= wanted.bit_width)
    return (_kind(found), _kind(wanted)) in _CHECKED_CASTS


def _is_text(found: pa.DataType) -> bool:
    return _kind(found.value_type if pa.types.is_dictionary(found) else found) == "text"


def _kind(arrow: pa.DataType) -> str:
    return next((name for name, is_of in _KINDS.items() if is_of(arrow)), "other")


def _column(column: KeyColumn | ValueColumn, arrays: Mapping[str, pa.Array], piece: Piece) -> pa.Array:
    array = arrays[column.name.lower()]
    wanted = arrow_type(column.type)
    try:
        converted = _converted(array, wanted)
    except (pa.ArrowException, ValueError):
        row = _first_refused(array, wanted)
        raise InvalidData(
            f"{_place(piece, row, column)}: {shown(array[row])} is no {column.type}; nothing of its transaction "
            f"has landed: correct the file, and import it again"
        ) from None
    if isinstance(column, KeyColumn) and converted.null_count:
        row = converted.is_null().to_pylist().index(True)
        raise InvalidData(f"{_place(piece, row, column)}: it is empty, but part of the row key")
    return converted


def _converted(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if _kind(array.type) == "text" and pa.types.is_binary(wanted):
        return pa.array(_from_hexadecimal(array.to_pylist()), type=wanted)
    converted = array.cast(wanted)
    if pa.types.is_string(wanted) and not is_utf8(converted):
        raise ValueError("a text is no UTF-8")
    if _kind(array.type) == "text":
        _require_said(array.cast(pa.string()), converted)
    return converted


def _require_said(texts: pa.Array, numbers: pa.Array) -> None:
    """Raise ``ValueError`` for numbers that Arrow reads into texts: of ``0xFFFFFFFF`` -1, of ``1e999`` infinity."""
    if pa.types.is_integer(numbers.type):
        said = pc.match_substring_regex(texts, _WHOLE_NUMBER)
    elif pa.types.is_floating(numbers.type):
        said = pc.or_(pc.invert(pc.is_inf(numbers)), pc.match_substring_regex(texts, _INFINITY))
    else:
        return
    if not pc.all(said, min_count=0).as_py():
        raise ValueError("a text is no number of this type")


def _from_hexadecimal(texts: Sequence[str | None]) -> list[bytes | None]:
    return [None if text is None else bytes.fromhex(text) for text in texts]


def _first_refused(array: pa.Array, wanted: pa.DataType) -> int:
    """The first row that cannot be converted, of an array that cannot."""
    good, bad = 0, len(array)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _converted(array.slice(good, middle - good), wanted)
            good = middle
        except (pa.ArrowException, ValueError):
            bad = middle
    return good


def _place(piece: Piece, row: int, column: KeyColumn | ValueColumn) -> str:
    return f"{piece.file}, row {piece.first_row + row:,}, column {column.name!r}"
