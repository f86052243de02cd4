"""Rows as columns: many rows of one shape, without an object for each cell.

A cell that is made into a Python object, looked at and thrown away costs a microsecond, ten times what HBase's bytes
cost to copy. So whoever moves many rows says for each row and column only *where in a block of bytes* it lies: a batch
of Arrow columns is such a block, and so is an answer of the gateway, as it arrived.

``store.hbase`` writes and reads this form with compiled kernels. What is here is the form, its checks, and the way from
and to single rows, which is how every other store does it: the twin that the same contract tests hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from store import validation
from store.cells import ROW_KEY_BYTES_MAX, Cell, KeyRange, Row, RowPut
from store.errors import InvalidCell

Bytes: TypeAlias = npt.NDArray[np.uint8]
Places: TypeAlias = npt.NDArray[np.int64]

ABSENT: Final = -1
"""The length of a cell that is not there."""
PLACES_MAX: Final = 2**18
"""Rows times columns of what ``in_pieces`` makes: 16 bytes each, whether there is a cell or none."""


@dataclass(frozen=True, slots=True)
class CellColumns:
    """Rows with their cells in ``columns`` (``b"family:qualifier"``), as places in ``data``.

    Row ``i`` has the key ``data[key_starts[i]:][:key_lengths[i]]``, and in column ``c`` the value
    ``data[value_starts[c, i]:][:value_lengths[c, i]]``; a length of ``ABSENT`` means that it has no such cell.

    Shapes: keys ``[rows]``, values ``[columns, rows]``. What is in the same place may overlap.
    """

    columns: tuple[bytes, ...]
    data: Bytes
    key_starts: Places
    key_lengths: Places
    value_starts: Places
    value_lengths: Places

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.key_starts)

    @classmethod
    def of_puts(cls, puts: Sequence[RowPut]) -> CellColumns:
        """The same cells as columns; a cell for which a row names no value is absent."""
        columns = tuple(dict.fromkeys(itertools.chain.from_iterable(put.columns for put in puts)))
        return cls.of_values(columns, [put.row for put in puts], [put.columns for put in puts])

    @classmethod
    def of_values(
        cls, columns: tuple[bytes, ...], keys: Sequence[bytes], values: Sequence[Mapping[bytes, bytes]]
    ) -> CellColumns:
        """Rows of which each has some of ``columns``; whatever else it has is left out."""
        data = BlockBuilder()
        key_starts, key_lengths = data.add(keys)
        places = [data.add([row.get(column) for row in values]) for column in columns]
        shape = (len(columns), len(keys))
        return cls(
            columns,
            data.block(),
            key_starts,
            key_lengths,
            np.array([starts for starts, _ in places], np.int64).reshape(shape),
            np.array([lengths for _, lengths in places], np.int64).reshape(shape),
        )

    def row_keys(self) -> list[bytes]:
        """The row keys."""
        return taken(self.data, self.key_starts, self.key_lengths)

    def row_key(self, index: int) -> bytes:
        """The key of one row, counted from the end where the index is negative."""
        start = int(self.key_starts[index])
        return self.data[start : start + int(self.key_lengths[index])].tobytes()

    def joined_keys(self) -> bytes:
        """The row keys one after the other."""
        ends = self.key_starts + self.key_lengths
        if self.rows and (ends[:-1] == self.key_starts[1:]).all():
            return self.data[self.key_starts[0] : ends[-1]].tobytes()
        return b"".join(self.row_keys())

    def puts(self) -> Iterator[RowPut]:
        """Each row by itself."""
        found: list[dict[bytes, bytes]] = [{} for _ in range(self.rows)]
        for index, column in enumerate(self.columns):
            for row, value in zip(found, self.values(index), strict=True):
                if value is not None:
                    row[column] = value
        yield from map(RowPut, self.row_keys(), found)

    def values(self, column: int) -> list[bytes | None]:
        """The values of the column with this index; ``None`` where it has none."""
        lengths = self.value_lengths[column]
        found = taken(self.data, self.value_starts[column], lengths)
        return [None if length == ABSENT else value for value, length in zip(found, lengths.tolist(), strict=True)]

    def slice(self, start: int, stop: int) -> CellColumns:
        """The rows from ``start`` up to ``stop``; nothing is copied."""
        return CellColumns(
            self.columns,
            self.data,
            self.key_starts[start:stop],
            self.key_lengths[start:stop],
            self.value_starts[:, start:stop],
            self.value_lengths[:, start:stop],
        )

    def cut(self, rows: int) -> tuple[CellColumns, CellColumns]:
        """The first ``rows`` rows, and the others."""
        return self.slice(0, rows), self.slice(rows, self.rows)

    def only(self, keep: npt.NDArray[np.bool_]) -> CellColumns:
        """The rows where ``keep`` is true; their bytes are not copied."""
        return self if keep.all() else self.at(np.flatnonzero(keep))

    def at(self, indexes: npt.NDArray[np.int64]) -> CellColumns:
        """The rows with these indexes, in this order; their bytes are not copied."""
        return CellColumns(
            self.columns,
            self.data,
            self.key_starts[indexes],
            self.key_lengths[indexes],
            self.value_starts[:, indexes],
            self.value_lengths[:, indexes],
        )

    def with_rows(self, rows: Sequence[int], values: Sequence[Mapping[bytes, bytes]]) -> CellColumns:
        """The same, but for the rows with these indexes, which have these values and no others."""
        data = BlockBuilder()
        data.add_block(self.data)
        starts, lengths = self.value_starts.copy(), self.value_lengths.copy()
        for index, column in enumerate(self.columns):
            starts[index, rows], lengths[index, rows] = data.add([each.get(column) for each in values])
        return CellColumns(self.columns, data.block(), self.key_starts, self.key_lengths, starts, lengths)

    def with_columns(self, further: Sequence[bytes]) -> CellColumns:
        """The same rows with further columns, in which they have no cells."""
        absent = np.full((len(further), self.rows), ABSENT, np.int64)
        return CellColumns(
            (*self.columns, *further),
            self.data,
            self.key_starts,
            self.key_lengths,
            np.vstack([self.value_starts, np.zeros_like(absent)]),
            np.vstack([self.value_lengths, absent]),
        )


@dataclass(frozen=True, slots=True)
class ScannedColumns:
    """Rows as a store gave them: the newest cells, and the ``timestamps`` of those in ``cells``, ``[columns, rows]``.

    ``others``: of the rows that have cells in further columns, by their index, those cells.
    """

    cells: CellColumns
    timestamps: npt.NDArray[np.int64]
    others: Mapping[int, Row] = field(default_factory=dict)

    @classmethod
    def of_rows(cls, columns: tuple[bytes, ...], rows: Sequence[tuple[bytes, Row]]) -> ScannedColumns:
        """The same rows as columns."""
        values = [{column: cell.value for column, cell in cells.items()} for _, cells in rows]
        timestamps = [[cells[column].timestamp if column in cells else 0 for _, cells in rows] for column in columns]
        known = frozenset(columns)
        others = {
            index: {column: cell for column, cell in cells.items() if column not in known}
            for index, (_, cells) in enumerate(rows)
            if not known.issuperset(cells)
        }
        return cls(
            CellColumns.of_values(columns, [key for key, _ in rows], values),
            np.array(timestamps, np.int64).reshape(len(columns), len(rows)),
            others,
        )

    @classmethod
    def joined(cls, parts: Sequence[ScannedColumns]) -> ScannedColumns:
        """The rows of all of them, one at least, which have the same columns; their bytes are copied."""
        if len(parts) == 1:
            return parts[0]
        cells = [part.cells for part in parts]
        data_before = list(itertools.accumulate((len(each.data) for each in cells[:-1]), initial=0))
        rows_before = itertools.accumulate((each.rows for each in cells[:-1]), initial=0)
        return cls(
            CellColumns(
                cells[0].columns,
                np.concatenate([each.data for each in cells]),
                np.concatenate([each.key_starts + before for each, before in zip(cells, data_before, strict=True)]),
                np.concatenate([each.key_lengths for each in cells]),
                np.hstack([each.value_starts + before for each, before in zip(cells, data_before, strict=True)]),
                np.hstack([each.value_lengths for each in cells]),
            ),
            np.hstack([part.timestamps for part in parts]),
            {
                before + index: row
                for part, before in zip(parts, rows_before, strict=True)
                for index, row in part.others.items()
            },
        )

    def rows_at(self, indexes: Sequence[int]) -> list[tuple[bytes, Row]]:
        """The rows with these indexes, each by itself."""
        places = np.array(indexes, np.int64)
        cells, timestamps = self.cells.at(places), self.timestamps[:, places]
        found: list[dict[bytes, Cell]] = [{} for _ in indexes]
        for index, column in enumerate(cells.columns):
            for row, value, timestamp in zip(found, cells.values(index), timestamps[index].tolist(), strict=True):
                if value is not None:
                    row[column] = Cell(value, timestamp)
        for index, row in zip(indexes, found, strict=True):
            row.update(self.others.get(index, {}))
        return list(zip(cells.row_keys(), found, strict=True))

    def without_first(self) -> ScannedColumns:
        """All rows but the first."""
        others = {index - 1: cells for index, cells in self.others.items() if index}
        return ScannedColumns(self.cells.slice(1, self.cells.rows), self.timestamps[:, 1:], others)


class BlockBuilder:
    """Collects strings of bytes into one block, and says where each came to lie."""

    def __init__(self) -> None:
        self._pieces: list[Bytes] = []
        self._size = 0

    def add(self, values: Sequence[bytes | None]) -> tuple[Places, Places]:
        """Starts and lengths of these values; ``None`` becomes ``ABSENT``."""
        lengths = np.array([ABSENT if value is None else len(value) for value in values], np.int64)
        taken_up = np.maximum(lengths, 0)
        ends = np.cumsum(taken_up)
        offset = self.add_block(np.frombuffer(b"".join(value for value in values if value), np.uint8))
        return ends - taken_up + offset, lengths

    def add_block(self, data: Bytes) -> int:
        """Add bytes as they are; returns where they begin."""
        offset, self._size = self._size, self._size + len(data)
        self._pieces.append(data)
        return offset

    def block(self) -> Bytes:
        """Everything that was added."""
        return np.concatenate(self._pieces) if self._pieces else np.empty(0, np.uint8)


def taken(data: Bytes, starts: Places, lengths: Places) -> list[bytes]:
    """Each of these strings of bytes; an absent one is empty."""
    block = data.tobytes() if _is_dense(data, lengths) else np.ascontiguousarray(data).data
    ends = (starts + np.maximum(lengths, 0)).tolist()
    return [bytes(block[start:end]) for start, end in zip(starts.tolist(), ends, strict=True)]


def in_pieces(puts: Iterable[RowPut]) -> Iterator[CellColumns]:
    """The same rows as columns, in their order, in pieces of at most ``PLACES_MAX`` places.

    For rows that may each have columns of their own: all in one, they would have as many columns as all of them
    together. A row that has more columns than that goes alone.
    """
    together: list[RowPut] = []
    columns: set[bytes] = set()
    for put in puts:
        further = put.columns.keys() - columns
        if together and (len(together) + 1) * (len(columns) + len(further)) > PLACES_MAX:
            yield CellColumns.of_puts(together)
            together, columns = [], set()
        together.append(put)
        columns.update(put.columns)
    if together:
        yield CellColumns.of_puts(together)


def cuts(sizes: Places, bytes_max: int, rows_max: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows of these sizes that go together within the limits; a row that is larger goes alone."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < len(sizes):
        fitting = int(np.searchsorted(ends, before + bytes_max, side="right"))
        last = max(first + 1, min(fitting, first + rows_max))
        yield first, last
        first, before = last, int(ends[last - 1])


def check_columns(table: str, cells: CellColumns, timestamp: int) -> None:
    """Raise ``InvalidCell`` unless every cell can be held. Nothing has been written then."""
    validation.check_table(table)
    validation.check_timestamp(timestamp)
    for column in cells.columns:
        validation.check_column(column)
    if len(set(cells.columns)) != len(cells.columns):
        raise InvalidCell("a column is named twice: of two cells in one place HBase does not say which stays")
    if not cells.rows:
        return
    wrong = np.flatnonzero((cells.key_lengths < 1) | (cells.key_lengths > ROW_KEY_BYTES_MAX))
    if len(wrong):
        validation.check_row(cells.row_key(int(wrong[0])))
    if not len(cells.columns) or (cells.value_lengths.max(axis=0) == ABSENT).any():
        raise InvalidCell("a row has no cell in any column: leave it out, or name what to write")
    largest = int(cells.value_lengths.max())
    if largest > validation.VALUE_BYTES_MAX:
        place, row = divmod(int(cells.value_lengths.argmax()), cells.rows)
        name, key = validation.shown(cells.columns[place]), validation.shown(cells.row_key(row))
        raise InvalidCell(
            f"a value is at most {validation.VALUE_BYTES_MAX:,} bytes, not {largest:,}, as that of column {name} in "
            f"row {key} of table {table!r}"
        )
    bytes_of_rows = np.maximum(cells.value_lengths, 0).sum(axis=0)
    row_bytes = int(bytes_of_rows.max()) + sum(map(len, cells.columns))
    if row_bytes > validation.ROW_PUT_BYTES_MAX:
        row = int(bytes_of_rows.argmax())
        raise InvalidCell(
            f"one row's put is at most {validation.ROW_PUT_BYTES_MAX:,} bytes, not {row_bytes:,}, as that of row "
            f"{validation.shown(cells.row_key(row))} of table {table!r}"
        )


class _StoreOfRows(Protocol):
    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]: ...

    def scan(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Row]]: ...

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None: ...


class ColumnsByRows:
    """The calls of a ``CellStore`` that take or give columns, made of those with rows: for stores without kernels."""

    def get_columns(
        self: _StoreOfRows,
        table: str,
        rows: Sequence[bytes],
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
    ) -> Iterator[ScannedColumns]:
        """See ``CellStore``."""
        found = self.get_many(table, rows, columns, before=before)
        return batches_of_columns(found.items(), tuple(known), max(1, len(found)))

    def scan_columns(
        self: _StoreOfRows,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        without_qualifier: bytes | None = None,
    ) -> Iterator[ScannedColumns]:
        """See ``CellStore``."""
        rows = self.scan(table, key_range, columns, before=before, batch_rows=batch_rows)
        if without_qualifier is not None:
            rows = _without(rows, without_qualifier)
        return batches_of_columns(rows, tuple(known), batch_rows)

    def put_columns(
        self: _StoreOfRows,
        table: str,
        cells: CellColumns,
        timestamp: int,
        *,
        before_each: Callable[[], None] = lambda: None,
    ) -> None:
        """See ``CellStore``."""
        check_columns(table, cells, timestamp)
        before_each()
        self.put(table, list(cells.puts()), timestamp)


def _without(rows: Iterable[tuple[bytes, Row]], qualifier: bytes) -> Iterator[tuple[bytes, Row]]:
    for key, row in rows:
        kept = {column: cell for column, cell in row.items() if column.partition(b":")[2] != qualifier}
        if kept:
            yield key, kept


def batches_of_columns(
    rows: Iterable[tuple[bytes, Row]], columns: tuple[bytes, ...], batch_rows: int
) -> Iterator[ScannedColumns]:
    """Rows as they come, in blocks of ``batch_rows``."""
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, batch_rows)):
        yield ScannedColumns.of_rows(columns, batch)


def gathered(batches: Iterable[ScannedColumns], rows_max: int, bytes_wanted: int) -> Iterator[ScannedColumns]:
    """The same rows in fewer batches: each ends at ``bytes_wanted``, or before it has more than ``rows_max``."""
    parts: list[ScannedColumns] = []
    rows = size = 0
    for batch in batches:
        if parts and rows + batch.cells.rows > rows_max:
            yield ScannedColumns.joined(parts)
            parts, rows, size = [], 0, 0
        parts.append(batch)
        rows, size = rows + batch.cells.rows, size + len(batch.cells.data)
        if size >= bytes_wanted:
            yield ScannedColumns.joined(parts)
            parts, rows, size = [], 0, 0
    if parts:
        yield ScannedColumns.joined(parts)


def _is_dense(data: Bytes, lengths: Places) -> bool:
    """Whether most of a block is asked for, so that one copy of it is cheaper than a view of each part."""
    return 2 * int(np.maximum(lengths, 0).sum()) >= len(data)
