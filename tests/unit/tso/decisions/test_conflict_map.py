"""The conflict map: bounded, forgets oldest commits first, and says what it has forgotten."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tso.decisions.conflict_map import ConflictMap
from tso.decisions.large_write_sets import LargeWriteSets
from wire import CommitRequest, Reason
from wire.gathering import gather_commits

PATIENT = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))
"""No test here is about time: a busy machine must not fail one."""


def make(cells_max: int, decisions_max: int, low_watermark: int) -> ConflictMap:
    return ConflictMap(cells_max, decisions_max, low_watermark, LargeWriteSets(10, 1000))


def decide(
    conflicts: ConflictMap, timestamp: int, cells: list[int], snapshot: int | None = None, *, guards: int = 0
) -> Reason:
    """Of the transaction that began just before ``timestamp``, at which it may commit."""
    start = np.array([timestamp - 1])
    offsets, columns = np.array([0, len(cells)]), np.array(cells, "<u8")
    snapshots = np.array([timestamp - 1 if snapshot is None else snapshot])
    request = CommitRequest(start, snapshots, np.array([0]), offsets, columns, np.array([guards]))
    commits = gather_commits([request.payload()])
    times, reasons, _ = conflicts.decide(commits, commits.snapshots, np.zeros(1, np.uint8), timestamp)
    reason = Reason(int(reasons[0]))
    assert int(times[0]) == (timestamp if reason is Reason.COMMITTED else 0)
    return reason


def test_a_commit_above_the_snapshot_is_seen_and_one_at_the_snapshot_is_not() -> None:
    conflicts = make(10, 10, 0)
    decide(conflicts, 50, [1, 2])
    assert decide(conflicts, 60, [9, 2], snapshot=49) is Reason.CONFLICT
    assert decide(conflicts, 70, [1, 2], snapshot=50) is Reason.COMMITTED


def test_a_guard_is_checked_and_not_entered() -> None:
    conflicts = make(10, 10, 0)
    decide(conflicts, 50, [1])
    assert decide(conflicts, 60, [7, 1], snapshot=49, guards=1) is Reason.CONFLICT
    assert decide(conflicts, 70, [7, 1], snapshot=50, guards=1) is Reason.COMMITTED
    assert decide(conflicts, 80, [1], snapshot=60) is Reason.COMMITTED, "who only guards a cell is in nobody's way"
    assert decide(conflicts, 90, [7], snapshot=60) is Reason.CONFLICT, "what is not a guard is entered"


def test_the_oldest_commit_goes_first_and_raises_the_low_watermark() -> None:
    conflicts = make(2, 100, 5)
    decide(conflicts, 10, [1])
    decide(conflicts, 20, [2])
    decide(conflicts, 30, [1])
    assert conflicts.low_watermark == 5
    decide(conflicts, 40, [3])
    assert conflicts.low_watermark == 20, "cell 1 was written again since"
    assert decide(conflicts, 50, [1], snapshot=29) is Reason.CONFLICT
    assert decide(conflicts, 60, [9], snapshot=19) is Reason.TOO_OLD


def test_decisions_are_remembered_and_forgotten_oldest_first() -> None:
    conflicts = make(100, 2, 0)
    decide(conflicts, 10, [5])
    conflicts.enter_refusal(7, 11)
    assert conflicts.decision_of(9) == 10
    assert conflicts.decision_of(7) == -11
    assert conflicts.decision_of(6) is None
    decide(conflicts, 20, [1])
    assert conflicts.decision_of(9) is None
    assert conflicts.low_watermark == 10


def test_any_cell_id_is_legal() -> None:
    conflicts = make(10, 10, 0)
    decide(conflicts, 10, [0, 2**63, 2**64 - 1])
    for timestamp, cell in enumerate((0, 2**63, 2**64 - 1), start=20):
        assert decide(conflicts, timestamp, [cell], snapshot=9) is Reason.CONFLICT
    assert [conflicts.decision_of(start) for start in (0, 1, 2**63 - 1)] == [None] * 3


def test_the_low_watermark_never_falls() -> None:
    conflicts = make(10, 10, 5)
    conflicts.raise_low_watermark(9)
    conflicts.raise_low_watermark(7)
    assert conflicts.low_watermark == 9


@PATIENT
@given(
    st.integers(4, 40),
    st.lists(st.lists(st.integers(0, 12), max_size=4), max_size=60),
    st.lists(st.integers(0, 12), max_size=4),
)
def test_what_is_above_the_low_watermark_is_never_forgotten(
    cells_max: int, commits: list[list[int]], asked: list[int]
) -> None:
    conflicts, newest = make(cells_max, 1000, 0), dict[int, int]()
    for number, cells in enumerate(commits, start=1):
        assert decide(conflicts, 10 * number, cells) is Reason.COMMITTED
        newest |= dict.fromkeys(cells, 10 * number)
        assert len(conflicts) <= cells_max
    now = 10 * len(commits) + 10
    for timestamp, snapshot in enumerate(range(conflicts.low_watermark, now - 9, 5), start=now):
        conflict = any(newest.get(cell, 0) > snapshot for cell in asked)
        expected = Reason.CONFLICT if conflict else Reason.COMMITTED
        assert decide(conflicts, timestamp, asked, snapshot, guards=len(asked)) is expected
    for number in range(conflicts.low_watermark // 10 + 1, len(commits) + 1):
        assert conflicts.decision_of(10 * number - 1) == 10 * number
