"""How long a scan waits, one time after the other."""

from __future__ import annotations

import pytest

from store.hbase.patience import Patience


@pytest.mark.parametrize(
    ("wait_ms", "wait_ms_max", "waits_ms"),
    [
        (10_000, 120_000, [10_000, 20_000, 40_000, 80_000, 120_000]),
        (10, 80, [10, 20, 40, 80]),
        (10, 10, [10]),
        (20, 10, [20]),
    ],
)
def test_each_wait_is_twice_as_long_up_to_the_longest(wait_ms: int, wait_ms_max: int, waits_ms: list[int]) -> None:
    patience = Patience(wait_ms, wait_ms_max)
    waited = [wait_ms]
    while len(waited) < 9 and patience.grow():
        waited.append(patience.wait_ms)
    assert waited == waits_ms
    assert sum(waited) < 3 * max(wait_ms, wait_ms_max)
