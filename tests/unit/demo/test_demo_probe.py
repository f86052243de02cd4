from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from client import NoPrimary, TransactionManager
from demo.errors import ComparisonFailed, Overdue
from demo.probe import Probe

LIMIT_SECONDS = 60.0


class Manager:
    """What of a manager the probe uses; from the commit with the number ``served`` on nobody answers."""

    def __init__(self, served: int) -> None:
        self._served = served

    def create_table(self, table: str, families: list[str]) -> None:
        assert (table, families) == ("probe", ["f"])

    @contextmanager
    def transaction(self) -> Iterator[Manager]:
        yield self
        if not self._served:
            raise NoPrimary(30_000, "nobody listens")
        self._served -= 1

    def put(self, table: str, row: bytes, values: dict[bytes, bytes]) -> None:
        assert (table, row, list(values)) == ("probe", b"probe", [b"f:number"])


def probing(served: int) -> Probe:
    return Probe(cast(TransactionManager, Manager(served)), "probe")


def test_each_commit_is_counted_with_its_moment() -> None:
    with probing(served=1_000_000) as probe:
        probe.wait_for_commit(time.monotonic(), LIMIT_SECONDS)
    acknowledged = probe.acknowledged()
    assert len(acknowledged) == probe.count > 0
    assert acknowledged == sorted(acknowledged)
    probe.refuse_failure()


def test_a_failure_ends_the_wait_and_is_refused_by_its_name() -> None:
    with probing(served=3) as probe, pytest.raises(ComparisonFailed, match=r"transaction 4 of the probe .*NoPrimary"):
        probe.wait_for_commit(float("inf"), LIMIT_SECONDS)
    with pytest.raises(ComparisonFailed, match="nobody listens"):
        probe.refuse_failure()


def test_a_commit_that_does_not_come_is_told_at_the_limit() -> None:
    with probing(served=1_000_000) as probe, pytest.raises(Overdue, match="no next commit of the probe within 0 s"):
        probe.wait_for_commit(float("inf"), 0.05)
