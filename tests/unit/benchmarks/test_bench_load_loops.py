from __future__ import annotations

import socket
import time

import numpy as np
import pytest

from benchmarks.echo_load import round_trips
from benchmarks.load_loops import Tally, percentiles_us
from client.tickets import Begun
from commit_table.timestamps import compose


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
