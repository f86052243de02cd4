"""What the clients saw, in their own words: the record from which a run is judged.

Every call notes the moment before it was made and the moment after it ended; every read and write is noted when it is
done. Values name their write: no two writes of a run have the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from client import Outcome
from tests.simulation.kernel import Kernel

Cell = str
"""``table/row/column``."""


class Told(Enum):
    """What the caller was told of its transaction's end."""

    NOTHING = "nothing"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Access:
    """One read or write of one cell; ``value`` 0: nothing was there, or it was deleted."""

    is_write: bool
    cell: Cell
    value: int


@dataclass(slots=True)
class Record:
    """One transaction as its caller saw it."""

    process: str
    begin_sent: int
    begin_answered: int
    start: int
    snapshot: int
    epoch: int
    accesses: list[Access] = field(default_factory=list)
    commit_sent: int | None = None
    ended: int | None = None
    told: Told = Told.NOTHING
    commit_timestamp: int | None = None
    error: str = ""
    guarded: set[Cell] = field(default_factory=set)
    """Cells that nobody else was to change before its commit."""

    def read(self, cell: Cell, value: int) -> None:
        """Note a read."""
        self.accesses.append(Access(False, cell, value))

    def write(self, cell: Cell, value: int) -> None:
        """Note a write, which has been asked for."""
        self.accesses.append(Access(True, cell, value))

    @property
    def writes(self) -> dict[Cell, int]:
        """Cell → the last value written."""
        return {access.cell: access.value for access in self.accesses if access.is_write}


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody was told of somebody's transaction, who asked for its outcome or its abort."""

    moment: int
    process: str
    start: int
    outcome: Outcome


class Journal:
    """The records of all clients of a run."""

    def __init__(self, kernel: Kernel) -> None:
        self.records: list[Record] = []
        self.answers: list[Answer] = []
        self._kernel = kernel
        self._values = 0

    def new_value(self) -> int:
        """A value that nobody has written yet."""
        self._values += 1
        return self._values

    def tell(self, text: str) -> None:
        """A line of the story."""
        self._kernel.tell(text)

    def moment(self) -> int:
        """Now; no two moments are the same."""
        return self._kernel.moment()

    def begun(self, process: str, begin_sent: int, start: int, snapshot: int, epoch: int) -> Record:
        """Open the record of a transaction that just began."""
        record = Record(process, begin_sent, self.moment(), start, snapshot, epoch)
        self.records.append(record)
        return record

    def told(self, record: Record, told: Told, *, commit_timestamp: int | None = None, error: str = "") -> None:
        """Note how a transaction ended for its caller."""
        record.ended = self.moment()
        record.told, record.commit_timestamp, record.error = told, commit_timestamp, error

    def answered(self, process: str, start: int, outcome: Outcome) -> None:
        """Note the answer to a question about a transaction."""
        self.answers.append(Answer(self.moment(), process, start, outcome))

    def known_starts(self) -> Sequence[int]:
        """Transactions that somebody could ask about."""
        return [record.start for record in self.records]
