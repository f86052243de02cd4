"""Commits as columns are, line by line, what the layout says of each of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commit_table import layout
from commit_table.columns import Timestamps, commit_columns
from commit_table.timestamps import TIMESTAMP_MAX, compose, milliseconds_of

near_each_other = st.builds(compose, st.integers(1_764_000_000_000, 1_764_000_000_003), st.integers(0, 2**18 - 1))
start_timestamps = st.integers(1, TIMESTAMP_MAX - 1) | near_each_other
commits = st.dictionaries(start_timestamps, st.integers(0, TIMESTAMP_MAX), max_size=30)


def column(*timestamps: int) -> Timestamps:
    return np.array(timestamps, np.int64)


@given(commits)
def test_line_by_line_it_is_the_layout(commits: dict[int, int]) -> None:
    rows, columns, values = commit_columns(column(*commits), column(*commits.values()))
    assert [line.tobytes() for line in rows] == [layout.row_key(start) for start in sorted(commits)]
    assert [line.tobytes() for line in columns] == [layout.commit_column(start) for start in sorted(commits)]
    assert [line.tobytes() for line in values] == [layout.commit_value(commits[start]) for start in sorted(commits)]


@given(st.lists(near_each_other, unique=True, min_size=1))
def test_each_millisecond_is_one_run_of_lines(starts: list[int]) -> None:
    rows, _, _ = commit_columns(column(*starts), column(*starts))
    runs = 1 + int((rows[1:] != rows[:-1]).any(axis=1).sum())
    assert runs == len({milliseconds_of(start) for start in starts})


def test_columns_that_are_read_only_or_have_gaps_are_taken() -> None:
    starts = np.frombuffer(column(5, 7).tobytes(), np.int64)
    times = column(50, 0, 70, 0)[::2]
    _, _, values = commit_columns(starts, times)
    assert [line.tobytes() for line in values] == [layout.commit_value(50), layout.commit_value(70)]


@pytest.mark.parametrize("start", [0, -1, -(2**63), TIMESTAMP_MAX])
def test_what_is_no_start_timestamp_is_refused(start: int) -> None:
    with pytest.raises(ValueError, match=f"a start timestamp lies between 0 and .* not {start}"):
        commit_columns(column(7, start, 8), column(10, 11, 12))


def test_a_transaction_commits_once() -> None:
    with pytest.raises(ValueError, match="transaction 7 is there twice"):
        commit_columns(column(7, 5, 7), column(10, 11, 12))


@pytest.mark.parametrize(
    ("starts", "commits"),
    [
        (column(1, 2), column(3)),
        (column(1).reshape(1, 1), column(2).reshape(1, 1)),
        (column(1).astype(np.float64), column(2)),
        (column(1), column(2).astype(np.uint64)),
    ],
)
def test_what_are_no_two_columns_of_timestamps_is_refused(starts: Timestamps, commits: Timestamps) -> None:
    with pytest.raises(ValueError, match="timestamp"):
        commit_columns(starts, commits)
