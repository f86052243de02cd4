"""What a transaction has written and not yet sent to the store: its read-your-writes, and half of its write set. Pure.

A value here is as it will be stored: escaped, or a tombstone. That it was written *conflict-free* travels with it, so
that whatever brings a value back brings that back as well; a cell is conflict-free when each of its writes was that was
not undone.

A *mark* is a moment between two writes. While one is kept, a write notes what it found in its cells, once a cell and
mark: from these notes the buffer goes back to the mark, or shows a row as it was then. The invariant: what is in the
buffer and what it counts against its limit depend on the writes that were not undone and on the marks that are kept,
and on nothing else. Without marks a write notes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import gt, lt

from client.cells import TOMBSTONE, decode_value, family_of, is_reserved
from client.errors import InvalidRequest
from store import KeyRange, RowPut

CELL_OVERHEAD_BYTES = 200
"""What a buffered cell takes beside its key and value, about: objects and their places in two dictionaries."""

Values = dict[bytes, bytes]
Found = dict[bytes, bytes | None]
"""Column → the stored value that a write found; ``None``: nothing was written there."""


class ConflictFree(bytes):
    """A stored value whose write conflicts with nobody's."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class Mark:
    """A moment between two writes of one buffer; made by ``WriteBuffer.mark``."""

    found: dict[tuple[str, bytes], Found] = field(default_factory=dict)
    """(table, row) → what the writes after this mark, up to the next one, found."""
    found_bytes: int = 0


class WriteBuffer:
    """Rows by table, in memory, up to ``bytes_max``; what its marks keep counts, too."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._tables: dict[str, dict[bytes, Values]] = {}
        self._marks: list[Mark] = []
        self._any_conflict_free = False
        self._changed: set[tuple[str, bytes]] | None = None
        """The rows written since the last scan began, which alone no scan holds; ``None``: there was no scan."""

    def __bool__(self) -> bool:
        return bool(self._tables)

    @property
    def size_bytes(self) -> int:
        """What it counts against its limit."""
        return self._bytes

    def write(self, table: str, row: bytes, stored: Mapping[bytes, bytes], *, conflict_free: bool = False) -> None:
        """Add stored values to a row; raises ``InvalidRequest`` and changes nothing where the buffer is full.

        ``conflict_free``: for those cells that are not written otherwise before or after.
        """
        standing = self._tables.get(table, {}).get(row, {})
        if conflict_free:
            stored = _conflict_free(stored, standing)
        replaced = {column: standing[column] for column in stored if column in standing}
        found = self._not_noted(table, row, stored, standing) if self._marks else {}
        found_bytes = _bytes_of(row, found) if found else 0
        added = _bytes_of(row, stored) - _bytes_of(row, replaced) + found_bytes
        if self._bytes + added > self._bytes_max:
            raise InvalidRequest(
                f"the transaction would hold more than {self._bytes_max:,} bytes in memory before it commits: "
                f"raise transaction_bytes_max, split the work, or write through Spark, which holds none of it"
            )
        self._bytes += added
        self._any_conflict_free = self._any_conflict_free or bool(conflict_free)
        if found:
            self._marks[-1].found.setdefault((table, row), {}).update(found)
            self._marks[-1].found_bytes += found_bytes
        self._changeable(table, row).update(stored)

    def mark(self) -> Mark:
        """Keep this moment, until ``keep_only`` or ``undo_to`` does away with it."""
        self._marks.append(Mark())
        return self._marks[-1]

    def undo_to(self, mark: Mark) -> None:
        """Undo every write after a mark that is kept. Later marks are gone, this one stays."""
        while self._marks[-1] is not mark:
            self._undo(self._marks.pop())
        self._undo(mark)

    def keep_only(self, marks: Collection[Mark | None]) -> None:
        """Do away with all other marks, and with what was noted for their sake alone."""
        kept: list[Mark] = []
        for mark in self._marks:
            if mark in marks:
                kept.append(mark)
            elif kept:
                self._hand_over(mark, kept[-1])
            else:
                self._bytes -= mark.found_bytes
        self._marks = kept

    def rows(self) -> Iterator[tuple[str, dict[bytes, Values]]]:
        """Table → row → column → stored value."""
        yield from self._tables.items()

    def compared_rows(self) -> dict[str, dict[bytes, Values]]:
        """The same without what was written conflict-free: in the rest it conflicts with others."""
        if not self._any_conflict_free:
            return self._tables
        compared = {table: {row: _compared(values) for row, values in rows.items()} for table, rows in self.rows()}
        return {table: {row: values for row, values in rows.items() if values} for table, rows in compared.items()}

    def puts(self) -> Iterator[tuple[str, list[RowPut]]]:
        """What to write to the store, by table."""
        for table, rows in self._tables.items():
            if self._any_conflict_free:
                rows = {row: {column: bytes(value) for column, value in each.items()} for row, each in rows.items()}
            yield table, [RowPut(row, columns) for row, columns in rows.items()]

    def overlay(
        self,
        table: str,
        row: bytes,
        values: Values | None,
        columns: Sequence[bytes] | None,
        as_of: Mark | None = None,
    ) -> Values | None:
        """A row as the transaction sees it: ``values`` of its snapshot under its own writes; ``None``: no such row.

        ``as_of``: only the writes before that mark, which is kept; all of them by default.
        """
        return _merged(values, self._own_row(table, row, as_of), columns)

    def overlay_scan(
        self,
        table: str,
        key_range: KeyRange,
        rows: Iterable[tuple[bytes, Values]],
        columns: Sequence[bytes] | None,
        as_of: Mark | None = None,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Values]]:
        """Rows of a snapshot in key order, or ``reverse``, with the transaction's own rows and values in their places.

        The own ones are those of this call: what is written, undone or marked while the rows are looked at is no part
        of them.
        """
        own_rows = self._own_rows(table, key_range, as_of)
        return _merged_scan(own_rows[::-1] if reverse else own_rows, rows, columns, reverse=reverse)

    def _own_rows(self, table: str, key_range: KeyRange, as_of: Mark | None) -> list[tuple[bytes, Values]]:
        """The rows written in a range, as they stay from now on: the next write to one of them makes it anew."""
        self._changed = set()
        start, stop = key_range
        chosen = sorted(row for row in self._tables.get(table, ()) if start <= row and (not stop or row < stop))
        rows = ((row, self._own_row(table, row, as_of)) for row in chosen)
        return [(row, own) for row, own in rows if own is not None]

    def _own_row(self, table: str, row: bytes, as_of: Mark | None) -> Values | None:
        """A row as it was written before a mark. Of what several marks noted of a cell, the earliest note is that."""
        own = self._tables.get(table, {}).get(row)
        if own is None or as_of is None:
            return own
        found: Found = {}
        for mark in self._marks[self._marks.index(as_of) :]:
            found = mark.found.get((table, row), {}) | found
        if not found:
            return own
        then = {column: found.get(column, value) for column, value in own.items()}
        return {column: value for column, value in then.items() if value is not None} or None

    def _not_noted(self, table: str, row: bytes, columns: Iterable[bytes], standing: Mapping[bytes, bytes]) -> Found:
        """What a write finds in the cells that were not written since the last mark."""
        noted = self._marks[-1].found.get((table, row), {})
        return {column: standing.get(column) for column in columns if column not in noted}

    def _undo(self, newest: Mark) -> None:
        """Put back what the writes after the newest mark found; all of it was written since, so it is there."""
        for (table, row), found in newest.found.items():
            values = self._changeable(table, row)
            undone = {column: values.pop(column) for column in found}
            back = {column: value for column, value in found.items() if value is not None}
            values.update(back)
            self._bytes += _bytes_of(row, back) - _bytes_of(row, undone)
            if not values:
                self._drop(table, row)
        self._bytes -= newest.found_bytes
        newest.found, newest.found_bytes = {}, 0

    def _hand_over(self, mark: Mark, earlier: Mark) -> None:
        """Note for the mark before it what was noted for one that goes; an earlier note of a cell stands."""
        for (table, row), found in mark.found.items():
            noted = earlier.found.setdefault((table, row), {})
            new = {column: value for column, value in found.items() if column not in noted}
            noted.update(new)
            new_bytes = _bytes_of(row, new)
            earlier.found_bytes += new_bytes
            self._bytes += new_bytes
        self._bytes -= mark.found_bytes

    def _changeable(self, table: str, row: bytes) -> Values:
        """The row's own dictionary, which no scan holds."""
        rows = self._tables.setdefault(table, {})
        values = rows.setdefault(row, {})
        if self._changed is not None and (table, row) not in self._changed:
            self._changed.add((table, row))
            values = rows[row] = dict(values)
        return values

    def _drop(self, table: str, row: bytes) -> None:
        del self._tables[table][row]
        if not self._tables[table]:
            del self._tables[table]


def tombstones(columns: Iterable[bytes]) -> Values:
    """Stored values that delete these columns."""
    return dict.fromkeys(columns, TOMBSTONE)


def _conflict_free(stored: Mapping[bytes, bytes], standing: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
    """Stored values, marked as such but in the cells whose standing value is not."""
    return {
        column: ConflictFree(value) if isinstance(standing.get(column, ConflictFree()), ConflictFree) else value
        for column, value in stored.items()
    }


def _compared(values: Values) -> Values:
    return {column: value for column, value in values.items() if not isinstance(value, ConflictFree)}


def _merged(values: Values | None, own: Values | None, columns: Sequence[bytes] | None) -> Values | None:
    if own is None:
        return values
    chosen = {column: value for column, value in own.items() if _is_chosen(column, columns)}
    merged = {column: value for column, value in (values or {}).items() if column not in chosen}
    for column, stored in chosen.items():
        value = decode_value(stored)
        if value is not None:
            merged[column] = bytes(value)  # who writes it again must not be taken to write it conflict-free
    return merged or None


def _merged_scan(
    own_rows: Iterable[tuple[bytes, Values]],
    rows: Iterable[tuple[bytes, Values]],
    columns: Sequence[bytes] | None,
    *,
    reverse: bool,
) -> Iterator[tuple[bytes, Values]]:
    for row, values, own in _side_by_side(rows, own_rows, reverse=reverse):
        merged = _merged(values, own, columns)
        if merged is not None:
            yield row, merged


def _side_by_side(
    rows: Iterable[tuple[bytes, Values]], own_rows: Iterable[tuple[bytes, Values]], *, reverse: bool
) -> Iterator[tuple[bytes, Values | None, Values | None]]:
    """Two sequences of rows in key order, or ``reverse``, as one: row → its values in each."""
    comes_before = gt if reverse else lt
    waiting = iter(own_rows)
    own_row, own = next(waiting, (None, None))
    for row, values in rows:
        while own_row is not None and comes_before(own_row, row):
            yield own_row, None, own
            own_row, own = next(waiting, (None, None))
        if own_row == row:
            yield row, values, own
            own_row, own = next(waiting, (None, None))
        else:
            yield row, values, None
    while own_row is not None:
        yield own_row, None, own
        own_row, own = next(waiting, (None, None))


def _bytes_of(row: bytes, cells: Mapping[bytes, bytes | None]) -> int:
    return sum(len(row) + len(column) + len(value or b"") + CELL_OVERHEAD_BYTES for column, value in cells.items())


def _is_chosen(column: bytes, columns: Sequence[bytes] | None) -> bool:
    return columns is None or column in columns or family_of(column) in columns or is_reserved(column)
