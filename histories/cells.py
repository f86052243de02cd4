"""Where the keys of a history lie in HBase, and how a unique value and its payload share one cell. Pure.

One cell rather than two: so the cell that the check is about is the very cell that the workload lives on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from histories.errors import HistoryError
from histories.history import Key

FAMILY = "d"
KEY_MAX = 10**19 - 1
_NUMBER, _NAME = b"n", b"s"


class Cell(NamedTuple):
    """A place in HBase; the column is ``b"family:qualifier"``."""

    table: str
    row: bytes
    column: bytes


@dataclass(frozen=True, slots=True)
class CellMapping:
    """Each key is a row of ``table`` with one ``column``; whole numbers sort before names, each in their own order."""

    table: str
    column: bytes = FAMILY.encode() + b":value"

    def cell(self, key: Key) -> Cell:
        """Where a key lies. Raises ``HistoryError`` for a number below 0 or above ``KEY_MAX``."""
        if isinstance(key, str):
            return Cell(self.table, _NAME + key.encode(), self.column)
        if not 0 <= key <= KEY_MAX:
            raise HistoryError(f"a key that is a number lies in 0…{KEY_MAX}, not {key}")
        return Cell(self.table, _NUMBER + b"%019d" % key, self.column)

    def key(self, cell: Cell) -> Key:
        """Whose cell that is. Raises ``HistoryError`` where it is of no key."""
        kind, rest = cell.row[:1], cell.row[1:]
        if (cell.table, cell.column) == (self.table, self.column):
            if kind == _NUMBER and rest.isdigit():
                return int(rest)
            if kind == _NAME:
                return rest.decode()
        raise HistoryError(f"{cell} is not the cell of any key of {self}")


def encode(value: int, payload: int | None) -> bytes:
    """A cell's content."""
    return b"%d" % value if payload is None else b"%d %d" % (value, payload)


def decode(content: bytes) -> tuple[int, int | None]:
    """The value and payload of a cell's content. Raises ``HistoryError`` for what ``encode`` never gave."""
    try:
        numbers = [int(part) for part in content.split(b" ")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 2 or encode(numbers[0], numbers[1] if len(numbers) == 2 else None) != content:
        raise HistoryError(f"a cell of a history holds a value and perhaps a payload, not {content!r}")
    return numbers[0], numbers[1] if len(numbers) == 2 else None
