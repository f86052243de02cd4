"""An oracle that is asked and settled by hand, a call at a time: what the tests of its decisions share."""

from __future__ import annotations

import numpy as np

from testkit import small_limits
from tso.decisions.oracle import Begun, Decided, Moment, Oracle
from wire import CommitRequest, Reason
from wire.gathering import GatheredCommits, gather_commits

EPOCH = 1000
NOW = Moment(wall_ms=0, monotonic_ms=0.0)


def make(ceiling: int = 10**9, **limits: float) -> Oracle:
    return Oracle(EPOCH, ceiling, small_limits(**limits))


def begin(oracle: Oracle, count: int = 1) -> Begun:
    begun = oracle.begin(count, NOW)
    assert isinstance(begun, Begun)
    return begun


def request(*commits: tuple[int, int, list[int]], validated: list[int] | None = None) -> GatheredCommits:
    starts, snapshots, cells = zip(*commits, strict=True)
    offsets = np.cumsum([0, *map(len, cells)])
    flat = [cell for write_set in cells for cell in write_set]
    validated = validated or [0] * len(starts)
    message = CommitRequest(starts, snapshots, validated, offsets, flat)  # type: ignore[arg-type]
    return gather_commits([message.payload()])


def decide(
    oracle: Oracle, *commits: tuple[int, int, list[int]], validated: list[int] | None = None, now: Moment = NOW
) -> Decided:
    decided = oracle.commit(request(*commits, validated=validated), now)
    assert isinstance(decided, Decided)
    return decided


def settle(oracle: Oracle, decided: Decided) -> Decided:
    if decided.start_timestamps.size:
        oracle.persisted(decided.number)
    oracle.release()
    return decided


def reasons(decided: Decided) -> list[Reason]:
    return [Reason(code) for code in decided.reasons]


def answers(decided: Decided) -> list[tuple[int, int]]:
    return list(zip(decided.times.tolist(), decided.reasons.tolist(), strict=True))


def commit_one(
    oracle: Oracle, start: int, snapshot: int, cells: list[int], validated: int = 0, now: Moment = NOW
) -> Reason:
    decided = decide(oracle, (start, snapshot, cells), validated=[validated], now=now)
    return reasons(settle(oracle, decided))[0]


def transact(oracle: Oracle, cells: list[int]) -> int:
    begun = begin(oracle)
    decided = settle(oracle, decide(oracle, (begun.first_start_timestamp, begun.snapshot, cells)))
    assert reasons(decided) == [Reason.COMMITTED]
    return int(decided.times[0])
