"""The record of a stream's batches: what is written once is never written again, and nothing unwritten is skipped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import InvalidRequest
from client.spark.progress import Progress, advanced, judge


@pytest.mark.parametrize(
    ("progress", "batch", "verdict"),
    [
        (None, 0, "write"),
        (None, 57, "write"),
        (Progress(3, 5), 6, "write"),
        (Progress(3, 5), 9, "write"),
        (Progress(3, 5), 5, "skip"),
        (Progress(3, 5), 4, "refuse"),
        (Progress(3, 5), 2, "refuse"),
    ],
)
def test_a_batch_is_judged_by_what_is_on_record(progress: Progress | None, batch: int, verdict: str) -> None:
    assert judge(progress, batch) == verdict


@given(st.lists(st.integers(min_value=-5, max_value=3), max_size=150), st.integers(min_value=0, max_value=300))
def test_only_what_committed_is_skipped_and_nothing_commits_twice(steps: list[int], start: int) -> None:
    progress: Progress | None = None
    committed: set[int] = set()
    batch = start
    for step in steps:  # mostly back, as restarts go, now and then ahead
        batch = max(0, batch + step)
        verdict = judge(progress, batch)
        if verdict == "write":
            assert batch not in committed
            committed.add(batch)
            progress = advanced(progress, batch)
        elif verdict == "skip":
            assert batch in committed
    if progress is not None:
        assert judge(progress, max(committed)) == "skip"


def test_the_record_is_one_run_without_a_gap() -> None:
    progress: Progress | None = None
    for batch in range(7, 10):
        progress = advanced(progress, batch)
    assert progress == Progress(7, 9)


def test_a_record_begins_anew_after_a_gap() -> None:
    assert advanced(Progress(0, 4), 7) == Progress(7, 7)
    assert judge(Progress(7, 7), 5) == "refuse"


def test_a_record_comes_back_as_it_was_stored() -> None:
    assert Progress.from_json(Progress(3, 102).to_json()) == Progress(3, 102)


@pytest.mark.parametrize("value", [b"", b"\xff", b"[]", b"{}", b'{"format": 1, "first": 1}'])
def test_what_is_no_record_is_refused(value: bytes) -> None:
    with pytest.raises(InvalidRequest, match="no record of a stream's batches"):
        Progress.from_json(value)


def test_a_record_of_a_newer_format_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="format version 2 of records of streams"):
        Progress.from_json(b'{"format": 2, "first": 1, "last": 1}')
