from __future__ import annotations

import pytest

from benchmarks.load_process import Answer, shares, window_of
from benchmarks.our_side import processes_for
from benchmarks.sides import Latency


def answer(transactions: int, whole_us: list[float], ahead_ms: float | None = None) -> Answer:
    return {
        "transactions": transactions,
        "aborted": 1,
        "seconds": 2.0,
        "whole_us": whole_us,
        "begin_us": whole_us,
        "commit_us": None,
        "cpu_seconds": 0.5,
        "ahead_ms": ahead_ms,
    }


def test_processes_together_are_one_window_with_the_largest_latencies() -> None:
    window = window_of([answer(10, [5.0, 70.0], -2.0), answer(20, [6.0, 40.0], -1.0)], 0.25)
    assert (window.transactions, window.aborted, window.per_second) == (30, 2, 15.0)
    assert window.whole == window.begin == Latency(6.0, 70.0)
    assert window.commit is None
    assert (window.client_cpu_seconds, window.oracle_cpu_seconds) == (1.0, 0.25)
    assert window.ahead_ms == -1.0


def test_a_window_that_did_not_look_at_the_clock_says_so() -> None:
    assert window_of([answer(1, [1.0, 1.0])], 0.0).ahead_ms is None


@pytest.mark.parametrize(("total", "parts", "expected"), [(500, 2, [250, 250]), (7, 3, [3, 2, 2]), (1, 1, [1])])
def test_shares_are_even_and_lose_nothing(total: int, parts: int, expected: list[int]) -> None:
    assert shares(total, parts) == expected


def test_several_processes_are_used_only_for_many_connections() -> None:
    assert processes_for(8, 3) == 1
    assert processes_for(64, 3) == 3
