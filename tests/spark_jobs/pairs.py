"""Two tables that every transaction replaces together, and what a reader may find in them. Pure.

A job writes one value into every row of both. So whatever a snapshot shows, each table has one value in all rows, or
none at all; and the pair of the two is one that some job left, never a mixture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

Pair = tuple[int | None, int | None]
"""The value in the rows of either table; ``None``: there are no rows."""


class Result(Enum):
    """How a job ended for who started it."""

    COMMITTED = "committed"
    REFUSED = "refused"
    """It was told that nothing of it will ever be seen."""
    FAILED = "failed"
    """It was told of an error; Spark itself says no more of a write without a transaction of the driver's."""
    DIED = "died"
    """Nobody was left to be told."""


@dataclass(frozen=True)
class Ending:
    """A job that was disturbed: its result, with the reason where it has one, and what readers found."""

    kind: str
    moment: str
    result: Result
    reason: str
    committed: bool
    """Whether its rows are there."""
    violations: Sequence[str]
    snapshots: int
    """That were read meanwhile."""


def value_of(values: Iterable[int], rows_wanted: int) -> int | None:
    """The one value of a table's rows. Raises ``ValueError`` where they are not as one job left them."""
    found = list(values)
    if not found:
        return None
    if len(found) != rows_wanted or len(set(found)) != 1:
        raise ValueError(f"{len(found)} of {rows_wanted} rows, with the values {sorted(set(found))}")
    return found[0]


def violations(
    before: Pair, wanted: Pair, after: Pair, seen: Iterable[Pair], result: Result, *, must: bool | None = None
) -> list[str]:
    """What is wrong; ``seen``: by snapshots taken meanwhile, oldest first; ``must``: whether it has to have committed,
    ``None`` where that is open.
    """
    wrong = []
    if after not in (before, wanted):
        wrong.append(f"{after} is left, neither {before}, what was there before, nor {wanted}, what the job wrote")
    if result is Result.COMMITTED or must is True:
        wrong += [f"it committed, and {after} is left"] * (after != wanted)
    if result is Result.REFUSED or must is False:
        wrong += [f"it never commits, and {after} is left"] * (after != before)
    order = [before, wanted]
    known = [pair for pair in [*seen, after] if pair in order]
    wrong += [f"a snapshot showed {pair}" for pair in seen if pair not in order]
    if [order.index(pair) for pair in known] != sorted(order.index(pair) for pair in known):
        wrong.append(f"snapshots went back, from {wanted} to {before}")
    return wrong


def counted(endings: Iterable[Ending]) -> list[dict[str, str | int]]:
    """The table: kind of kill and moment, result, reason, whether it committed, how often, violations."""
    rows: dict[tuple[str, str, str, str, bool], list[int]] = {}
    for ending in endings:
        key = (ending.kind, ending.moment, ending.result.value, ending.reason, ending.committed)
        row = rows.setdefault(key, [0, 0])
        row[0] += 1
        row[1] += len(ending.violations)
    return [
        {
            "kind": kind, "moment": moment, "result": result, "reason": reason, "committed": committed,
            "times": times, "violations": wrong,
        }
        for (kind, moment, result, reason, committed), (times, wrong) in sorted(rows.items())
    ]  # fmt: skip


def table_of(endings: Iterable[Ending]) -> list[str]:
    """The same for people, a line a row."""
    endings = list(endings)
    lines = [f"{'killed':16} {'moment':18} {'result':10} {'rows there':10} {'times':>5} {'violations':>10}  reason"]
    for row in counted(endings):
        there = "all" if row["committed"] else "none"
        lines.append(
            f"{row['kind']:16} {row['moment']:18} {row['result']:10} {there:10} {row['times']:5} "
            f"{row['violations']:10}  {row['reason']}"
        )
    snapshots = sum(ending.snapshots for ending in endings)
    wrong = sum(len(ending.violations) for ending in endings)
    return [*lines, f"{len(endings):,} kills, {snapshots:,} snapshots read meanwhile, {wrong} violations"]
