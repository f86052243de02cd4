"""What a store of cells can hold, checked once for every adapter, before anything is sent.

HBase's gateway answers many bad arguments with nothing but "Internal error", and a table name that is too long for the
file system keeps HBase's master trying for good. So the invariant of this room: no adapter sees an argument that these
checks would refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from store.cells import (
    ALL_VERSIONS,
    CELL_TIMESTAMP_MAX,
    FOR_EVER_SECONDS,
    ROW_KEY_BYTES_MAX,
    Family,
    KeyRange,
    RowPut,
)
from store.errors import InvalidCell

TABLE_NAME_BYTES_MAX = 200
"""A table's name, with its namespace, becomes the name of a directory of at most 255 bytes."""

FAMILY_NAME_BYTES_MAX = 127
"""HBase keeps the length of a family's name in a signed byte."""

REGIONS_MAX = 10_000
"""Of a table that is made: HBase's master opens them all before it answers."""

COLUMN_BYTES_MAX = 32_000
"""Family, colon and qualifier together."""

VALUE_BYTES_MAX = 10 * 2**20 - 2**16
"""HBase refuses cells above 10 MiB (``hbase.client.keyvalue.maxsize``), row key and column included."""

ROW_PUT_BYTES_MAX = 64 * 2**20
"""One row's put, which cannot be split as it lands whole."""

BEFORE_MAX = CELL_TIMESTAMP_MAX + 1
"""The exclusive bound above every cell."""

RANGE_END_BYTES_MAX = ROW_KEY_BYTES_MAX + 1
"""The key right after the longest row key has one byte more; no row has it, but a range begins there."""

_DEFAULT_NAMESPACE = "default:"
_TABLE_NAME = re.compile(r"([A-Za-z0-9_]+:)?[A-Za-z0-9_][A-Za-z0-9_.-]*")
_FAMILY_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def check_table(table: str) -> None:
    """Raise ``InvalidCell`` unless HBase takes ``table`` as a name. The one rule for such names, here and above."""
    if not isinstance(table, str):
        raise InvalidCell(f"a table name is text, not a {type(table).__name__}")
    if not _TABLE_NAME.fullmatch(table) or len(table) > TABLE_NAME_BYTES_MAX:
        raise InvalidCell(
            f"a table name has 1 to {TABLE_NAME_BYTES_MAX} of A-Z a-z 0-9 _ . - and does not start with . or -, "
            f"with 'namespace:' before it if need be; not {shown(table)}"
        )
    if table.startswith(_DEFAULT_NAMESPACE):
        # HBase takes both names for one table: writers under the one would miss the conflicts with those of the other.
        raise InvalidCell(
            f"a table name has no 'default:' before it: a table has one name here, so leave it out of {shown(table)}"
        )


def check_families(families: Sequence[Family]) -> None:
    """Raise ``InvalidCell`` unless a table can be made of ``families``."""
    if not families:
        raise InvalidCell("a table needs at least one column family")
    for family in families:
        check_family_name(family.name)
        if not 1 <= family.versions_max <= ALL_VERSIONS:
            raise InvalidCell(f"a column family keeps 1 to {ALL_VERSIONS} versions, not {family.versions_max}")
        if not 1 <= family.lives_seconds_max <= FOR_EVER_SECONDS:
            raise InvalidCell(
                f"a column family keeps cells for 1 to {FOR_EVER_SECONDS} seconds, not {family.lives_seconds_max}"
            )
    if len({family.name for family in families}) != len(families):
        raise InvalidCell("two column families of one table share a name")


def check_split_keys(split_keys: Sequence[bytes]) -> None:
    """Raise ``InvalidCell`` unless a table's regions can begin at ``split_keys``."""
    check_rows(split_keys)
    if len(split_keys) >= REGIONS_MAX:
        raise InvalidCell(f"a table is made with {REGIONS_MAX:,} regions at most, not {len(split_keys) + 1:,}")
    seen: set[bytes] = set()
    for key in split_keys:
        if key in seen:
            raise InvalidCell(f"two regions of one table cannot both begin at {shown(key)}: name each key once")
        seen.add(key)


def check_family_name(name: str) -> None:
    """Raise ``InvalidCell`` unless ``name`` can be a column family's. The one rule for such names, here and above."""
    if not isinstance(name, str):
        raise InvalidCell(f"a column family's name is text, not a {type(name).__name__}")
    if not _FAMILY_NAME.fullmatch(name) or len(name) > FAMILY_NAME_BYTES_MAX:
        raise InvalidCell(
            f"a column family's name has 1 to {FAMILY_NAME_BYTES_MAX} of A-Z a-z 0-9 _ . - and does not start with "
            f". or -; not {shown(name)}"
        )


def check_row(row: bytes) -> None:
    """Raise ``InvalidCell`` unless ``row`` is 1 to ``ROW_KEY_BYTES_MAX`` bytes."""
    if not isinstance(row, bytes) or not 1 <= len(row) <= ROW_KEY_BYTES_MAX:
        raise InvalidCell(f"a row key is 1 to {ROW_KEY_BYTES_MAX:,} bytes, not {_described(row)}")


def check_rows(rows: Iterable[bytes]) -> None:
    """``check_row`` for each."""
    for row in rows:
        check_row(row)


def check_range(key_range: KeyRange) -> None:
    """Raise ``InvalidCell`` unless both ends are 0 to ``RANGE_END_BYTES_MAX`` bytes."""
    for end in key_range:
        if not isinstance(end, bytes) or len(end) > RANGE_END_BYTES_MAX:
            raise InvalidCell(f"an end of a key range is 0 to {RANGE_END_BYTES_MAX:,} bytes, not {_described(end)}")


def check_column(column: bytes) -> None:
    """Raise ``InvalidCell`` unless ``column`` is ``b"family:qualifier"``; the qualifier may be empty."""
    if not isinstance(column, bytes) or not 1 <= column.find(b":") <= FAMILY_NAME_BYTES_MAX:
        raise InvalidCell(f"a column is bytes of the form family:qualifier, not {shown(column)}")
    if len(column) > COLUMN_BYTES_MAX:
        raise InvalidCell(f"a column is at most {COLUMN_BYTES_MAX:,} bytes, not {len(column):,}")


def chosen(columns: Sequence[bytes]) -> list[bytes]:
    """The families and columns to read, each once, and no column whose whole family is there too.

    HBase reads a family narrowed to one column when the column is named after the family, and whole when before.
    Raises ``InvalidCell`` when nothing is chosen, or a choice is neither a family nor a column.
    """
    if not columns:
        raise InvalidCell("name at least one family or column to read")
    for choice in columns:
        check_column(choice if isinstance(choice, bytes) and b":" in choice else _whole(choice))
    whole = {choice for choice in columns if b":" not in choice}
    return [choice for choice in dict.fromkeys(columns) if choice in whole or family_of(choice) not in whole]


def family_of(column: bytes) -> bytes:
    """The family of ``b"family:qualifier"`` or of ``b"family"``."""
    return column.partition(b":")[0]


def check_timestamp(timestamp: int) -> None:
    """Raise ``InvalidCell`` unless a cell can have ``timestamp``."""
    if not 0 <= timestamp <= CELL_TIMESTAMP_MAX:
        raise InvalidCell(f"a cell's timestamp lies in 0…{CELL_TIMESTAMP_MAX}, not {timestamp}")


def bound(before: int | None) -> int:
    """The exclusive upper bound as a number, whatever the caller gave. Raises ``InvalidCell`` when out of range."""
    if before is None:
        return BEFORE_MAX
    if not 0 <= before <= BEFORE_MAX:
        raise InvalidCell(f"the bound of a read lies in 0…{BEFORE_MAX}, not {before}")
    return before


def check_count(count: int, what: str) -> None:
    """Raise ``InvalidCell`` unless ``count`` is a positive 32-bit integer; ``what`` names it."""
    if not 1 <= count <= ALL_VERSIONS:
        raise InvalidCell(f"{what} lies in 1…{ALL_VERSIONS}, not {count}")


def check_puts(puts: Sequence[RowPut], timestamp: int) -> None:
    """Raise ``InvalidCell`` unless every cell of ``puts`` can be held; nothing has been written then."""
    check_timestamp(timestamp)
    checked: set[bytes] = set()
    for row, columns in puts:
        check_row(row)
        if not columns:
            raise InvalidCell(f"the put of row {shown(row)} has no columns: leave it out, or name what to write")
        if not checked.issuperset(columns):
            for column in columns:
                check_column(column)
            checked.update(columns)
        row_bytes = 0
        for column, value in columns.items():
            if not isinstance(value, bytes) or len(value) > VALUE_BYTES_MAX:
                check_value(value)
            row_bytes += len(column) + len(value)
        if row_bytes > ROW_PUT_BYTES_MAX:
            raise InvalidCell(
                f"one row's put is at most {ROW_PUT_BYTES_MAX:,} bytes, not {row_bytes:,}: "
                f"write row {shown(row)} in several"
            )


def check_value(value: bytes) -> None:
    """Raise ``InvalidCell`` unless ``value`` is at most ``VALUE_BYTES_MAX`` bytes."""
    if not isinstance(value, bytes) or len(value) > VALUE_BYTES_MAX:
        raise InvalidCell(f"a value is at most {VALUE_BYTES_MAX:,} bytes, not {_described(value)}")


def check_compare_and_set(row: bytes, check: bytes, expected: bytes | None, put: bytes, value: bytes) -> None:
    """Raise ``InvalidCell`` unless the compare-and-set can be asked of HBase without a second meaning."""
    check_row(row)
    check_column(check)
    check_column(put)
    for given in (value,) if expected is None else (value, expected):
        check_value(given)
        if not given:
            raise InvalidCell("a compare-and-set neither expects nor writes an empty value: it reads as an absent cell")


def _whole(choice: object) -> bytes:
    return choice + b":" if isinstance(choice, bytes) else b""


def shown(given: str | bytes) -> str:
    """The beginning of a name or a key, for an error."""
    return repr(given[:60]) + ("…" if len(given) > 60 else "")


def _described(given: object) -> str:
    return f"{len(given):,}" if isinstance(given, bytes) else f"a {type(given).__name__}"
