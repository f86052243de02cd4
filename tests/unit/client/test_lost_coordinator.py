"""ZooKeeper comes back empty under an installation whose timestamps run ahead of the clock: nothing is lost by it."""

from __future__ import annotations

import time

import pytest

from client import TransactionManager
from lease import wall_ms
from lease.memory import MemoryTree
from tests.unit.client.conftest import Installation
from tests.unit.client.transacting import fail_over, get, put

LIMIT_S = 30
HOUR_MS = 3_600_000
LEASE_MS = 2_000
"""Which a new installation waits for, since somebody may still hold one of the lost."""


def begun_ms(manager: TransactionManager) -> int:
    return manager.oracle.begin().first_start_timestamp >> 18


def lose_and_serve(installation: Installation) -> TransactionManager:
    """A client of the oracle that serves next."""
    installation._oracles.pop(0).stop()
    installation.tree = MemoryTree()
    oracle = installation.oracle("c")
    oracle.await_primary()
    installation.find_primary = lambda: oracle.address
    return installation.manager()


def test_what_was_committed_under_a_clock_that_was_ahead_stays_visible(
    empty_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_ms = 0
    monkeypatch.setattr("tso.process.wall_ms", lambda: wall_ms() + ahead_ms)
    installation = empty_installation
    installation.lease_ms = LEASE_MS
    oracle = installation.oracle("a")
    oracle.await_primary()
    installation.find_primary = lambda: oracle.address
    manager = installation.manager()
    manager.create_table("t", ["f"])
    ahead_ms = HOUR_MS
    end_s = time.monotonic() + LIMIT_S
    while begun_ms(manager) < wall_ms() + HOUR_MS - 60_000:
        assert time.monotonic() < end_s, "timestamps do not follow the clock"
        time.sleep(0.1)
    ahead_ms = 0  # somebody has mended it
    put(manager, b"r", b"acknowledged")
    last_ms = begun_ms(manager)
    after = lose_and_serve(installation)
    assert begun_ms(after) > last_ms
    assert get(after, b"r") == b"acknowledged"


def test_no_timestamp_is_given_twice_after_a_failover_and_a_loss(empty_installation: Installation) -> None:
    """A new epoch begins at the ceiling of the one before, which is ahead of the clock."""
    installation = empty_installation
    installation.lease_ms = LEASE_MS
    installation.serve()
    manager = installation.manager()
    fail_over(installation)
    last = manager.oracle.begin().first_start_timestamp
    after = lose_and_serve(installation)
    assert after.oracle.begin().first_start_timestamp > last
