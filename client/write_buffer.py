"""What a transaction has written and not yet sent to the store: its read-your-writes, and half of its write set. Pure.

A value here is as it will be stored: escaped, or a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from client.cells import TOMBSTONE, decode_value, family_of, is_reserved
from client.errors import InvalidRequest
from store import KeyRange, RowPut

CELL_OVERHEAD_BYTES = 200
"""What a buffered cell takes beside its key and value, about: objects and their places in two dictionaries."""

Values = dict[bytes, bytes]


class WriteBuffer:
    """Rows by table, in memory, up to ``bytes_max``."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._tables: dict[str, dict[bytes, Values]] = {}

    def __bool__(self) -> bool:
        return bool(self._tables)

    def write(self, table: str, row: bytes, stored: Mapping[bytes, bytes]) -> None:
        """Add stored values to a row; raises ``InvalidRequest`` and changes nothing where the buffer is full."""
        standing = self._tables.get(table, {}).get(row, {})
        replaced = {column: standing[column] for column in stored if column in standing}
        added = _bytes_of(row, stored) - _bytes_of(row, replaced)
        if self._bytes + added > self._bytes_max:
            raise InvalidRequest(
                f"the transaction would hold more than {self._bytes_max:,} bytes in memory before it commits: "
                f"raise transaction_bytes_max, split the work, or write through Spark, which holds none of it"
            )
        self._bytes += added
        self._tables.setdefault(table, {}).setdefault(row, {}).update(stored)

    def rows(self) -> Iterator[tuple[str, dict[bytes, Values]]]:
        """Table → row → column → stored value."""
        yield from self._tables.items()

    def puts(self) -> Iterator[tuple[str, list[RowPut]]]:
        """What to write to the store, by table."""
        for table, rows in self._tables.items():
            yield table, [RowPut(row, columns) for row, columns in rows.items()]

    def overlay(self, table: str, row: bytes, values: Values | None, columns: Sequence[bytes] | None) -> Values | None:
        """A row as the transaction sees it: ``values`` of its snapshot under its own writes; ``None``: no such row."""
        own = self._tables.get(table, {}).get(row)
        if own is None:
            return values
        chosen = {column: value for column, value in own.items() if _is_chosen(column, columns)}
        merged = {column: value for column, value in (values or {}).items() if column not in chosen}
        for column, stored in chosen.items():
            value = decode_value(stored)
            if value is not None:
                merged[column] = value
        return merged or None

    def overlay_scan(
        self,
        table: str,
        key_range: KeyRange,
        rows: Iterable[tuple[bytes, Values]],
        columns: Sequence[bytes] | None,
    ) -> Iterator[tuple[bytes, Values]]:
        """Rows of a snapshot in key order, with the transaction's own rows and values in their places."""
        own = iter(self._keys(table, key_range))
        next_own = next(own, None)
        for row, values in rows:
            while next_own is not None and next_own < row:
                yield from self._overlaid(table, next_own, None, columns)
                next_own = next(own, None)
            yield from self._overlaid(table, row, values, columns)
            if next_own == row:
                next_own = next(own, None)
        while next_own is not None:
            yield from self._overlaid(table, next_own, None, columns)
            next_own = next(own, None)

    def _overlaid(
        self, table: str, row: bytes, values: Values | None, columns: Sequence[bytes] | None
    ) -> Iterator[tuple[bytes, Values]]:
        overlaid = self.overlay(table, row, values, columns)
        if overlaid is not None:
            yield row, overlaid

    def _keys(self, table: str, key_range: KeyRange) -> list[bytes]:
        """The rows written so far: those that the caller writes while it scans may or may not be met."""
        start, stop = key_range
        return sorted(row for row in self._tables.get(table, ()) if start <= row and (not stop or row < stop))


def tombstones(columns: Iterable[bytes]) -> Values:
    """Stored values that delete these columns."""
    return dict.fromkeys(columns, TOMBSTONE)


def _bytes_of(row: bytes, stored: Mapping[bytes, bytes]) -> int:
    return sum(len(row) + len(column) + len(value) + CELL_OVERHEAD_BYTES for column, value in stored.items())


def _is_chosen(column: bytes, columns: Sequence[bytes] | None) -> bool:
    return columns is None or column in columns or family_of(column) in columns or is_reserved(column)
