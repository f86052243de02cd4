"""The gateway's answers of rows as columns: a kernel notes where each cell lies in the bytes as they came.

They come from ``scannerGetList`` and ``getRowsWithColumnsTs``. Nothing is copied out of them, and no object is made for
a row or a cell but for those in columns that the caller did not name. The bytes are read a row at a time, from the last
whole row on each time more of them arrive: over a buffered transport nothing else tells where an answer ends.

Invariants: a place that is noted lies within what has arrived; whatever is not what the gateway sends is refused at
once, as by ``store.hbase.answers``, which also reads the exceptions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kernels import kernel
from store.cells import Cell
from store.columns import ABSENT, Bytes, CellColumns, Places, ScannedColumns
from store.hbase.answers import Answer, AnswerReader, NotAnAnswer
from store.hbase.binary_protocol import (
    COUNT_BYTES,
    FRAME_BYTES,
    INT64,
    LIST,
    MAP,
    REPLY,
    SCANNER_GET_LIST,
    STOP,
    STRING,
    STRUCT,
    VERSION,
)

ANSWER_BYTES_MAX: Final = 2**31 - 1
"""What Thrift itself can say of a length. How large an answer becomes is up to the rows that were asked for."""
RECEIVE_BYTES_MIN: Final = 2**18
_OTHERS_FIRST: Final = 64

_ROWS: Final = struct.pack(">bhb", LIST, 0, STRUCT)
"""How its rows begin, up to how many there are."""

_DONE, _INCOMPLETE, _OTHERS_FULL, _MALFORMED = 0, 1, 2, 3
_AT, _ROW, _OTHERS, _STATE_SIZE = 0, 1, 2, 3

Receive = Callable[[memoryview], int]
"""Fills some of a buffer with what arrives; how many bytes it was, 0 once the gateway has hung up."""


class ColumnAnswerReader:
    """Reads answers whose rows have the columns ``columns``, and perhaps others, to calls of ``method``. One a scan."""

    def __init__(self, columns: Sequence[bytes], method: bytes = SCANNER_GET_LIST, *, framed: bool) -> None:
        self._method = method
        self._columns = tuple(columns)
        self._framed = framed
        self._order = np.array(sorted(range(len(columns)), key=columns.__getitem__), np.int64)
        self._names = np.frombuffer(bytearray(b"".join(sorted(columns))), np.uint8)
        self._name_ends = np.cumsum([0, *map(len, sorted(columns))], dtype=np.int64)
        self._answer_bytes_last = 0

    def read(self, receive: Receive, sequence: int, rows_max: int) -> ScannedColumns | Answer:
        """The rows of the answer to the request with this number, which asked for so many at most; or what it says
        instead.

        Raises ``NotAnAnswer``, ``EOFError``, and what ``receive`` raises.
        """
        arriving = _Arriving(receive, self._answer_bytes_last)
        start = FRAME_BYTES if self._framed else 0
        method = self._method
        reply = struct.pack(f">Ii{len(method)}si", VERSION | REPLY, len(method), method, sequence)
        head = reply + _ROWS
        arriving.wait_for(start + len(reply))  # an exception may be shorter than the head of rows
        if arriving.begins_with(start, reply):
            arriving.wait_for(start + len(head) + COUNT_BYTES)
        if not arriving.begins_with(start, head):
            return self._read_other(arriving, sequence)
        rows = self._read_rows(arriving, start + len(head), rows_max)
        self._answer_bytes_last = arriving.size
        return rows

    def _read_rows(self, arriving: _Arriving, start: int, rows_max: int) -> ScannedColumns:
        (count,) = struct.unpack_from(">i", arriving.data.data, start)
        if not 0 <= count <= rows_max:  # before memory is taken for as many
            raise NotAnAnswer(f"a list of {count} rows, where {rows_max} were asked for")
        found = _Found(count, len(self._columns))
        found.state[_AT] = start + COUNT_BYTES
        while (status := self._parse(arriving, found)) != _DONE:
            if status == _MALFORMED:
                raise NotAnAnswer("rows that are none")
            if status == _OTHERS_FULL:
                found.make_place_for_others()
            else:
                arriving.wait_for(arriving.size + 1)
        end = int(found.state[_AT])
        arriving.wait_for(end + 1)
        if arriving.data[end] != STOP or arriving.size != end + 1:
            raise NotAnAnswer(f"{arriving.size - end - 1} bytes follow the answer")
        if self._framed and struct.unpack_from(">i", arriving.data.data, 0)[0] != end + 1 - FRAME_BYTES:
            raise NotAnAnswer("a frame that is not as long as its answer")
        return found.scanned(self._columns, arriving.data[: arriving.size])

    def _parse(self, arriving: _Arriving, found: _Found) -> int:
        status: int = read_rows(
            arriving.data, arriving.size, self._names, self._name_ends, self._order, found.state, found.key_starts,
            found.key_lengths, found.value_starts, found.value_lengths, found.timestamps, found.others,
        )  # fmt: skip
        return status

    def _read_other(self, arriving: _Arriving, sequence: int) -> Answer:
        reader = AnswerReader(self._method, sequence, framed=self._framed)
        seen = 0
        while True:
            answer = reader.feed(arriving.data[seen : arriving.size].tobytes())
            if answer is not None:
                return answer
            seen = arriving.size
            arriving.wait_for(seen + 1)


class _Arriving:
    """The bytes of one answer as they come."""

    def __init__(self, receive: Receive, size_expected: int) -> None:
        self._receive = receive
        self.data: Bytes = np.empty(max(RECEIVE_BYTES_MIN, size_expected + size_expected // 8), np.uint8)
        self.size = 0

    def wait_for(self, size: int) -> None:
        while self.size < size:
            if self.size == len(self.data):
                self._grow()
            received = self._receive(self.data.data[self.size :])
            if not received:
                raise EOFError("the gateway hung up in the middle of an answer")
            self.size += received

    def begins_with(self, start: int, expected: bytes) -> bool:
        return self.size >= start + len(expected) and self.data[start : start + len(expected)].tobytes() == expected

    def _grow(self) -> None:
        if len(self.data) >= ANSWER_BYTES_MAX:
            raise NotAnAnswer(f"more than {ANSWER_BYTES_MAX:,} bytes")
        larger = np.empty(min(2 * len(self.data), ANSWER_BYTES_MAX), np.uint8)
        larger[: self.size] = self.data[: self.size]
        self.data = larger


class _Found:
    """What the kernel has noted so far."""

    def __init__(self, rows: int, columns: int) -> None:
        self.state = np.zeros(_STATE_SIZE, np.int64)
        self.key_starts = np.zeros(rows, np.int64)
        self.key_lengths = np.zeros(rows, np.int64)
        self.value_starts = np.zeros((columns, rows), np.int64)
        self.value_lengths = np.full((columns, rows), ABSENT, np.int64)
        self.timestamps = np.zeros((columns, rows), np.int64)
        self.others = np.zeros((_OTHERS_FIRST, 6), np.int64)

    def make_place_for_others(self) -> None:
        self.others = np.concatenate([self.others, np.zeros_like(self.others)])

    def scanned(self, columns: tuple[bytes, ...], data: Bytes) -> ScannedColumns:
        cells = CellColumns(columns, data, self.key_starts, self.key_lengths, self.value_starts, self.value_lengths)
        others: dict[int, dict[bytes, Cell]] = {}
        for row, name_at, name_bytes, value_at, value_bytes, timestamp in self.others[: self.state[_OTHERS]].tolist():
            name = data[name_at : name_at + name_bytes].tobytes()
            value = data[value_at : value_at + value_bytes].tobytes()
            others.setdefault(row, {})[name] = Cell(value, timestamp)
        return ScannedColumns(cells, self.timestamps, others)


@kernel(nogil=True)
def _number(data: Bytes, at: int, count: int) -> int:
    """The ``count`` bytes from ``at``, as a signed number."""
    number = np.int64(data[at])
    if number >= 128:
        number -= 256
    for place in range(1, count):
        number = (number << 8) | np.int64(data[np.uint64(at + place)])
    return int(number)


@kernel(nogil=True)
def _column_of(data: Bytes, start: int, length: int, names: Bytes, name_ends: npt.NDArray[np.int64], guess: int) -> int:
    """The place of a name among the sorted ones, or -1; ``guess`` is looked at first, as cells come sorted."""
    count = name_ends.shape[0] - 1
    for step in range(count):
        place = (guess + step) % count
        if name_ends[place + 1] - name_ends[place] != length:
            continue
        first, same = name_ends[place], 0
        while same < length and data[np.uint64(start + same)] == names[np.uint64(first + same)]:
            same += 1
        if same == length:
            return int(place)
    return -1


@kernel(nogil=True)
def _read_text(data: Bytes, size: int, at: int, place: Places) -> int:
    """Where the text in the first field of a struct lies into ``place``; where it ends, maybe beyond what has come.

    Minus a status where it is not known.
    """
    if at + 7 > size:
        return -_INCOMPLETE
    if data[at] != STRING or _number(data, at + 1, 2) != 1:
        return -_MALFORMED
    place[0], place[1] = at + 7, _number(data, at + 3, 4)
    return int(at + 7 + place[1]) if place[1] >= 0 else -_MALFORMED


@kernel(nogil=True)
def _read_cell(data: Bytes, size: int, at: int, cell: Places) -> int:
    """Name, value and timestamp of the cell at ``at`` into ``cell``; where it ends, or minus a status."""
    if at + 4 > size:
        return -_INCOMPLETE
    cell[0], cell[1] = at + 4, _number(data, at, 4)
    if cell[1] < 0:
        return -_MALFORMED
    at = _read_text(data, size, at + 4 + cell[1], cell[2:4])
    if at < 0:
        return int(at)
    if at + 12 > size:
        return -_INCOMPLETE
    if data[at] != INT64 or _number(data, at + 1, 2) != 2 or data[at + 11] != STOP:
        return -_MALFORMED
    cell[4] = _number(data, at + 3, 8)
    return int(at + 12)


@kernel(nogil=True)
def _read_row_start(data: Bytes, size: int, at: int, row_start: Places) -> int:
    """A row's key, and how many cells follow, into ``row_start``; where they begin, or minus a status."""
    at = _read_text(data, size, at, row_start[:2])
    if at < 0:
        return int(at)
    if at + 9 > size:
        return -_INCOMPLETE
    if data[at] != MAP or _number(data, at + 1, 2) != 2 or data[at + 3] != STRING or data[at + 4] != STRUCT:
        return -_MALFORMED
    row_start[2] = _number(data, at + 5, 4)
    return int(at + 9) if row_start[2] >= 0 else -_MALFORMED


@kernel(
    "int64(uint8[::1], int64, uint8[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1], "
    "int64[:, ::1], int64[:, ::1], int64[:, ::1])",
    nogil=True,
)
def read_rows(
    data: Bytes,
    size: int,
    names: Bytes,
    name_ends: Places,
    order: Places,
    state: Places,
    key_starts: Places,
    key_lengths: Places,
    value_starts: Places,
    value_lengths: Places,
    timestamps: Places,
    others: Places,
) -> int:
    """Note the places of rows from ``state`` on, up to the last whole one; a status."""
    row_start, cell = np.zeros(3, np.int64), np.zeros(5, np.int64)
    while state[_ROW] < key_starts.shape[0]:
        row, found = state[_ROW], state[_OTHERS]
        at = _read_row_start(data, size, state[_AT], row_start)
        if at < 0:
            return int(-at)
        value_lengths[:, row] = ABSENT
        guess = 0
        for _ in range(row_start[2]):
            at = _read_cell(data, size, at, cell)
            if at < 0:
                return int(-at)
            place = _column_of(data, cell[0], cell[1], names, name_ends, guess)
            if place >= 0:
                guess, column = place + 1, order[place]
                value_starts[column, row], value_lengths[column, row] = cell[2], cell[3]
                timestamps[column, row] = cell[4]
                continue
            if found == others.shape[0]:
                return _OTHERS_FULL
            others[found, 0] = row
            others[found, 1:] = cell
            found += 1
        if at + 1 > size:
            return _INCOMPLETE
        if data[at] != STOP:
            return _MALFORMED
        key_starts[row], key_lengths[row] = row_start[0], row_start[1]
        state[_AT], state[_ROW], state[_OTHERS] = at + 1, row + 1, found
    return _DONE
