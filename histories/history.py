"""What transactions did, as values: the input of every check. Pure.

Invariant: what a read returned names its writer. A value is a whole number above 0 that no other write of its key ever
uses; what an application would have stored instead (a balance, a count) travels beside it as the *payload*. The idea of
unique values is that of the checkers Elle and PolySI; to compare timestamps rather than search for an order is that of
TimeKiller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from histories.errors import HistoryError

Key = str | int
"""Names a cell. Keys of both types may occur in one history; ``1`` and ``"1"`` are two keys."""


class OperationKind(Enum):
    """What an operation does."""

    READ = "r"
    WRITE = "w"


@dataclass(frozen=True, slots=True)
class Operation:
    """A read of what was in a cell, or a write of what shall be there; ``value`` ``None``: nothing, or a deletion.

    Raises ``HistoryError`` for a value that cannot name its writer.
    """

    kind: OperationKind
    key: Key
    value: int | None
    payload: int | None = None

    def __post_init__(self) -> None:
        if self.value is None:
            if self.payload is not None:
                raise HistoryError(f"key {self.key!r}: a payload needs a value beside it, and there is none")
        elif self.value <= 0:
            raise HistoryError(f"key {self.key!r}: values are above 0 and unique for their key, not {self.value}")


class Outcome(Enum):
    """How a transaction ended, as far as its caller knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RealTime:
    """When a transaction began and ended, in nanoseconds of one machine's monotonic clock.

    ``…_sent_ns`` is read before the request leaves, ``…_answered_ns`` after its answer has come, so that the event
    itself lies between the two. ``None`` where there was no such moment. Raises ``HistoryError`` for a clock that goes
    back.
    """

    begin_sent_ns: int
    begin_answered_ns: int
    commit_sent_ns: int | None = None
    commit_answered_ns: int | None = None

    def __post_init__(self) -> None:
        times = (self.begin_sent_ns, self.begin_answered_ns, self.commit_sent_ns, self.commit_answered_ns)
        known = [time for time in times if time is not None]
        if any(later < earlier for earlier, later in pairwise(known)):
            raise HistoryError(f"the real times of a transaction go back: {known} (begin, commit; sent, answered)")
        if self.commit_sent_ns is None and self.commit_answered_ns is not None:
            raise HistoryError("a commit was answered that was not sent")


@dataclass(frozen=True, slots=True)
class RecordedTransaction:
    """One transaction: what it did, in order, and how it ended.

    ``process``: whoever runs transactions one after the other. ``id``: the start timestamp. ``snapshot``: what it
    reads, every commit at or below it. ``commit_timestamp``: of a committed one; one that wrote nothing has no place of
    its own in the order of commits, and its snapshot there. ``reason``: why it was aborted, the name of an error.
    ``real_time``: ``None`` where nobody looked at a clock. ``guarded``: keys that nobody else was to change before its
    commit (``Transaction.guard``).

    Raises ``HistoryError`` where outcome and commit timestamp do not go together.
    """

    process: str
    id: int
    snapshot: int
    outcome: Outcome
    operations: tuple[Operation, ...]
    commit_timestamp: int | None = None
    reason: str = ""
    real_time: RealTime | None = None
    guarded: frozenset[Key] = frozenset()

    def __post_init__(self) -> None:
        if self.id < 0 or self.snapshot < 0:
            raise HistoryError(f"timestamps are not below 0, as in transaction {self.id} with snapshot {self.snapshot}")
        if (self.outcome is Outcome.COMMITTED) != (self.commit_timestamp is not None):
            raise HistoryError(
                f"transaction {self.id} is {self.outcome.value} with commit timestamp {self.commit_timestamp}: "
                f"committed transactions have one, and no others"
            )

    def last_writes(self) -> dict[Key, Operation]:
        """Key → the write that counts: the last one of each key."""
        return {each.key: each for each in self.operations if each.kind is OperationKind.WRITE}

    def external_reads(self) -> dict[Key, Operation]:
        """Key → the first read of it, unless the transaction had written it by then: what came from its snapshot."""
        touched: dict[Key, Operation] = {}
        for each in self.operations:
            touched.setdefault(each.key, each)
        return {key: each for key, each in touched.items() if each.kind is OperationKind.READ}

    @property
    def is_read_only(self) -> bool:
        """Whether it wrote nothing."""
        return all(each.kind is OperationKind.READ for each in self.operations)


@dataclass(frozen=True, slots=True)
class History:
    """All transactions of a run, in any order.

    ``workload``: the name of the workload in ``histories.workloads`` whose promises hold as well, if any.
    ``ids_are_timestamps``: whether ids are start timestamps, and so are checked as such; in files of other recorders
    they are only names.
    """

    transactions: tuple[RecordedTransaction, ...]
    workload: str | None = None
    ids_are_timestamps: bool = True

    @classmethod
    def merged(cls, histories: Iterable[History]) -> History:
        """One history of what several recorders of one run recorded, on one machine and for one workload.

        Raises ``HistoryError`` where they do not belong together.
        """
        parts = tuple(histories)
        kinds = {(part.workload, part.ids_are_timestamps) for part in parts}
        if len(kinds) != 1:
            raise HistoryError(f"only histories of one workload and one form are merged, not {sorted(map(str, kinds))}")
        ((workload, ids_are_timestamps),) = kinds
        transactions = tuple(transaction for part in parts for transaction in part.transactions)
        return cls(transactions, workload, ids_are_timestamps)
