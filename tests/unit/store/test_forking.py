"""What a forked child finds of the store that its parent used."""

from __future__ import annotations

import gc

import pytest

from store.garbage import collector_paused
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.pool import ConnectionPool, _Held
from tests.forked import entered_in_a_thread, in_child
from tests.unit.store.fake_gateway import FakeGateway


class Numbered:
    """A connection that knows which one it is, and by how many it was closed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = 0

    def is_usable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def made() -> list[Numbered]:
    return []


@pytest.fixture
def pool(made: list[Numbered]) -> ConnectionPool[Numbered]:
    def connect() -> Numbered:
        made.append(Numbered(len(made)))
        return made[-1]

    return ConnectionPool(connect, PoolSettings(connections_max=2, lease_wait_ms=5_000))


def number(pool: ConnectionPool[Numbered]) -> int:
    with pool.lease() as connection:
        return connection.number


def test_a_child_uses_no_connection_of_its_parents_and_closes_none(
    pool: ConnectionPool[Numbered], made: list[Numbered]
) -> None:
    assert number(pool) == 0

    def child() -> tuple[int, int, int]:
        used = number(pool)
        pool.close()
        return used, made[0].closed, made[1].closed

    assert in_child(child) == (1, 0, 1)
    assert number(pool) == 0


def test_what_was_leased_at_the_fork_takes_no_place_in_the_child_and_is_not_kept_there(
    pool: ConnectionPool[Numbered],
) -> None:
    with pool.lease() as first, pool.lease() as second:
        held: _Held[Numbered] = _Held()
        held.connection = first

        def child() -> list[int]:
            pool._give_back(held)  # as a thread does that was forked within the block
            with pool.lease() as one, pool.lease() as other:
                return [one.number, other.number]

        assert in_child(child) == [2, 3]
        assert (first.number, second.number) == (0, 1)


def test_a_child_waits_for_no_thread_of_its_parent(pool: ConnectionPool[Numbered]) -> None:
    with pool._lock:
        assert in_child(lambda: number(pool)) == 0


def test_a_child_opens_a_connection_of_its_own_and_hangs_up_none_of_its_parents(gateway: FakeGateway) -> None:
    store = HBaseCellStore(gateway.address)
    store.get("t", b"r", [b"f:a"])

    def child() -> None:
        store.get("t", b"r", [b"f:a"])
        store.close()
        gc.collect()  # a connection that Thrift's library finalizes is shut down, for both processes

    in_child(child)
    assert gateway.connections == 2
    store.get("t", b"r", [b"f:a"])
    assert gateway.connections == 2
    store.close()


def test_a_child_collects_garbage_though_another_thread_of_its_parent_paused_it() -> None:
    with entered_in_a_thread(collector_paused()):
        assert in_child(gc.isenabled)
        assert not gc.isenabled()
    gc.disable()
    try:
        assert not in_child(gc.isenabled)
    finally:
        gc.enable()
