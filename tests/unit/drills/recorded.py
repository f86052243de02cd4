"""Made-up records of transactions: times are milliseconds, which the record keeps as nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence

from drills.outages import NS_PER_MS, Window
from histories import Operation, OperationKind, Outcome, RealTime, RecordedTransaction

Times = tuple[int, int] | tuple[int, int, int] | tuple[int, int, int, int]


def transaction(
    start: int,
    times_ms: Times,
    *,
    commit: int | None = None,
    snapshot: int | None = None,
    writes: Sequence[str] = ("key",),
    reason: str = "",
    unknown: bool = False,
    process: str = "p/1",
) -> RecordedTransaction:
    """Begin sent and answered, commit sent and answered; committed where it has a commit timestamp."""
    outcome = Outcome.COMMITTED if commit is not None else Outcome.UNKNOWN if unknown else Outcome.ABORTED
    return RecordedTransaction(
        process=process,
        id=start,
        snapshot=start - 1 if snapshot is None else snapshot,
        outcome=outcome,
        operations=tuple(Operation(OperationKind.WRITE, key, start) for key in writes),
        commit_timestamp=commit,
        reason=reason,
        real_time=RealTime(*(time * NS_PER_MS for time in times_ms)),
    )


def window(inflicted_ms: int, settled_ms: int) -> Window:
    """A fault's."""
    return Window(inflicted_ms * NS_PER_MS, settled_ms * NS_PER_MS)
