from __future__ import annotations

import asyncio
import itertools
import socket
import time
from typing import cast

import numpy as np
import pytest

from benchmarks.echo_load import round_trips
from benchmarks.load_loops import (
    CELL_BITS,
    DRAWN_TOGETHER,
    TIMED_EVERY,
    Tally,
    drawn_batches,
    drawn_write_sets,
    in_batches,
    percentiles_us,
    transactions,
)
from client.connection.async_oracle import AsyncOracleClient
from client.connection.tickets import Begun, Decision
from commit_table.timestamps import compose
from wire import Reason


def test_what_ends_after_the_window_does_not_count() -> None:
    tally = Tally(ends_at=10.0)
    tally.add(8.0, 8.5, 9.5, 3, 4)
    tally.add(9.0, 9.5, 10.5, 1, 1)
    fields = tally.to_fields(2.0, 0.5)
    assert (fields["transactions"], fields["aborted"]) == (3, 1)
    assert fields["whole_us"] == [1_500_000.0, 1_500_000.0]
    assert fields["begin_us"] == [500_000.0, 500_000.0]
    assert fields["commit_us"] == [1_000_000.0, 1_000_000.0]
    assert fields["ahead_ms"] is None


def test_begins_count_their_transactions_and_how_far_the_last_timestamp_is_ahead() -> None:
    tally = Tally(ends_at=10.0)
    batch = Begun(compose(5_000, 2**18 - 1), 2, 0, 1)
    tally.add_begin(1.0, 2.0, batch, 4.998)
    tally.add_begin(2.0, 3.0, batch, 6.0)
    tally.add_begin(9.0, 11.0, batch, 0.0)
    fields = tally.to_fields(1.0, 0.0)
    assert fields["transactions"] == 4
    # The second of the two is of the next millisecond.
    assert fields["ahead_ms"] == pytest.approx(3.0)
    assert fields["commit_us"] is None


def test_nothing_measured_is_zero() -> None:
    assert percentiles_us(np.empty(0)) == [0.0, 0.0]


def test_an_echo_that_is_gone_is_an_error() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        with pytest.raises(OSError, match=r"closed|Broken pipe"):
            round_trips(ours, Tally(time.perf_counter() + 60.0))


@pytest.mark.parametrize("cells", [0, 1, 2, 1_000])
def test_write_sets_are_drawn_without_end_and_anew_each_time(cells: int) -> None:
    drawn = list(itertools.islice(drawn_write_sets(cells, np.random.default_rng(1)), DRAWN_TOGETHER + 2))
    assert {len(write_set) for write_set in drawn} == {cells}
    keys = [key for write_set in drawn for key in write_set]
    assert all(type(key) is int and 0 <= key < 2**CELL_BITS for key in keys)
    assert len(set(keys)) >= 0.99 * len(keys)


@pytest.mark.parametrize(("size", "cells"), [(1, 1), (64, 2), (DRAWN_TOGETHER + 1, 3)])
def test_batches_are_drawn_without_end_and_anew_each_time(size: int, cells: int) -> None:
    drawn = list(itertools.islice(drawn_batches(size, cells, np.random.default_rng(1)), 2 * DRAWN_TOGETHER // size + 2))
    assert {(batch.shape, batch.dtype) for batch in drawn} == {((size * cells,), np.dtype(np.uint64))}
    keys = np.concatenate(drawn)
    assert int(keys.max()) < 2**CELL_BITS
    assert np.unique(keys).size >= 0.99 * keys.size


@pytest.mark.parametrize(
    ("in_flight", "expected"),
    [
        (1, (1, 1)),
        (16, (1, 16)),
        (64, (1, 64)),
        (127, (1, 127)),
        (128, (2, 64)),
        (1_024, (4, 256)),
        (4_096, (4, 1_024)),
    ],
)
def test_few_transactions_go_in_one_batch_and_many_in_several(in_flight: int, expected: tuple[int, int]) -> None:
    assert in_batches(in_flight) == expected


class _EveryThirdIsRefused:
    """Of an oracle client what a load needs, and a clock by which a second passes with each transaction."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, object]] = []

    def clock_s(self) -> float:
        return float(len(self.asked))

    async def begin(self) -> Begun:
        start_timestamp = 2 * len(self.asked) + 2
        return Begun(start_timestamp, 1, start_timestamp - 1, 1)

    async def commit(self, start_timestamp: int, snapshot: int, cells: object) -> Decision:
        self.asked.append((start_timestamp, snapshot, cells))
        if len(self.asked) % 3 == 0:
            return Decision(0, Reason.CONFLICT, after_loss=False)
        return Decision(start_timestamp + 1, Reason.COMMITTED, after_loss=False)


def test_a_task_counts_all_transactions_that_ended_in_time_and_times_some(monkeypatch: pytest.MonkeyPatch) -> None:
    in_time, client = 3 * TIMED_EVERY, _EveryThirdIsRefused()
    monkeypatch.setattr("benchmarks.load_loops.time.perf_counter", client.clock_s)
    tally = Tally(ends_at=in_time)
    write_sets = iter([(number,) for number in range(in_time + 1)])
    asyncio.run(transactions(cast(AsyncOracleClient, client), write_sets, tally))
    assert (tally.committed, tally.aborted) == (in_time - in_time // 3, in_time // 3)
    assert tally.times == [(end - 1.0, end - 1.0, end) for end in (8.0, 16.0, 24.0)]
    assert client.asked == [(2 * number + 2, 2 * number + 1, (number,)) for number in range(in_time + 1)]
