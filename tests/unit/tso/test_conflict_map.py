"""The conflict map: bounded, forgets oldest commits first, and says what it has forgotten."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tso.conflict_map import ConflictMap

PATIENT = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))
"""No test here is about time: a busy machine must not fail one."""


def test_a_commit_above_the_snapshot_is_seen_and_one_at_the_snapshot_is_not() -> None:
    conflicts = ConflictMap(10, low_watermark=0)
    conflicts.enter(40, [1, 2], 50)
    assert conflicts.written_after([9, 2], 49)
    assert not conflicts.written_after([1, 2], 50)
    assert not conflicts.written_after([3], 0)


def test_the_oldest_commit_goes_first_and_raises_the_low_watermark() -> None:
    conflicts = ConflictMap(6, low_watermark=5)
    conflicts.enter(6, [1], 10)
    conflicts.enter(7, [2], 20)
    conflicts.enter(8, [1], 30)
    assert conflicts.low_watermark == 5
    conflicts.enter(9, [3], 40)
    assert conflicts.low_watermark == 10, "transaction 6 had to go; its cell was written again since"
    conflicts.enter(10, [4], 50)
    assert conflicts.low_watermark == 20
    assert conflicts.written_after([1], 29)


def test_decisions_are_remembered_with_the_commits() -> None:
    conflicts = ConflictMap(4, low_watermark=0)
    conflicts.enter(5, [5, 6], 10)
    conflicts.enter_refusal(7, 11)
    assert conflicts.decision_of(5) == 10
    assert conflicts.decision_of(7) == -11
    assert conflicts.decision_of(6) is None
    conflicts.enter(8, [1, 2, 3], 12)
    assert conflicts.decision_of(7) is None
    assert conflicts.low_watermark == 11


def test_any_cell_id_is_legal() -> None:
    conflicts = ConflictMap(10, low_watermark=0)
    conflicts.enter(5, [0, 2**63, 2**64 - 1], 10)
    assert conflicts.written_after([2**63], 9)
    assert [conflicts.decision_of(start) for start in (0, 1, 2**63 - 1)] == [None] * 3


def test_the_low_watermark_never_falls() -> None:
    conflicts = ConflictMap(10, low_watermark=5)
    conflicts.raise_low_watermark(9)
    conflicts.raise_low_watermark(7)
    assert conflicts.low_watermark == 9


@PATIENT
@given(
    st.integers(2, 40),
    st.lists(st.lists(st.integers(0, 12), max_size=5), max_size=60),
    st.lists(st.integers(0, 12), max_size=5),
)
def test_what_is_above_the_low_watermark_is_never_forgotten(
    entries_max: int, commits: list[list[int]], asked: list[int]
) -> None:
    conflicts, newest = ConflictMap(entries_max, low_watermark=0), dict[int, int]()
    for number, cells in enumerate(commits, start=1):
        conflicts.enter(10 * number - 1, cells[: entries_max - 1], 10 * number)
        newest |= dict.fromkeys(cells[: entries_max - 1], 10 * number)
        assert len(conflicts) <= entries_max
    for snapshot in range(conflicts.low_watermark, 10 * len(commits) + 1, 5):
        expected = any(newest.get(cell, 0) > snapshot for cell in asked)
        assert conflicts.written_after(asked, snapshot) == expected
    for number in range(conflicts.low_watermark // 10 + 1, len(commits) + 1):
        assert conflicts.decision_of(10 * number - 1) == 10 * number
