"""Transactions for the tasks of an event loop, on real ZooKeeper and HBase, through a failover too."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from client import AsyncTransaction, AsyncTransactionManager, ClientSettings, Transaction, TransactionManager
from client.snapshots.stored_cells import SCAN_BATCH_ROWS
from tests.integration.oracle_processes import SHORT_LEASE_MS

if TYPE_CHECKING:
    from tests.integration.conftest import Installation

pytestmark = pytest.mark.integration

COLUMN = b"f:value"
TASKS = 20
ROUNDS = 5
"""Before the primary is killed, and again after that."""
WAIT_SECONDS_MAX = 120


@pytest.fixture
def settings(installation: Installation) -> ClientSettings:
    installation.start("a", SHORT_LEASE_MS).until_primary()
    return installation.settings


@pytest.fixture
def table(settings: ClientSettings) -> Iterator[str]:
    name = f"async_{uuid.uuid4().hex[:8]}"
    with TransactionManager.connect(settings) as manager:
        manager.create_table(name, ["f"])
        try:
            yield name
        finally:
            manager.store.drop_table(name)


async def add_one(transaction: AsyncTransaction, table: str, row: bytes) -> None:
    number = int((await transaction.get(table, row)).get(COLUMN, b"0"))
    await transaction.put(table, row, {COLUMN: b"%d" % (number + 1)})


def test_tasks_count_on_through_a_failover(installation: Installation, settings: ClientSettings, table: str) -> None:
    standby = installation.start("b", SHORT_LEASE_MS)

    async def count(front: AsyncTransactionManager) -> None:
        async def work(task: int) -> None:
            for _ in range(ROUNDS):
                await front.run(lambda transaction: add_one(transaction, table, b"%02d" % task))
                await front.run(lambda transaction: add_one(transaction, table, b"shared"), attempts_max=10_000)

        async with asyncio.TaskGroup() as tasks:
            for task in range(TASKS):
                tasks.create_task(work(task))

    async def everything() -> None:
        async with asyncio.timeout(WAIT_SECONDS_MAX), AsyncTransactionManager.connect(settings) as front:
            await count(front)
            in_flight = await front.transaction()
            await in_flight.put(table, b"in flight", {COLUMN: b"1"})
            counting = asyncio.create_task(count(front))
            await asyncio.sleep(0.05)
            assert not counting.done()
            await asyncio.to_thread(installation.oracles[0].end, signal.SIGKILL)
            await asyncio.to_thread(standby.until_primary)
            await counting
            await in_flight.commit()
            found = {row: int(values[COLUMN]) async for row, values in (await front.snapshot()).scan(table)}
            own = {b"%02d" % task: 2 * ROUNDS for task in range(TASKS)}
            assert found == own | {b"shared": 2 * ROUNDS * TASKS, b"in flight": 1}

    asyncio.run(everything())


def test_a_scan_in_pieces_and_one_that_is_left(settings: ClientSettings, table: str) -> None:
    rows = 2 * SCAN_BATCH_ROWS + 1

    def fill(transaction: Transaction) -> None:
        for number in range(rows):
            transaction.put(table, b"%04d" % number, {COLUMN: b"1"})

    async def everything() -> None:
        async with asyncio.timeout(WAIT_SECONDS_MAX), AsyncTransactionManager.connect(settings) as front:
            async with front.transaction() as transaction:
                await transaction.apply(fill)
            snapshot = await front.snapshot()
            assert len([row async for row in snapshot.scan(table)]) == rows
            for _ in range(2 * settings.store_connections_max):  # each that is left gives its connection back
                left = snapshot.scan(table)
                assert (await anext(left))[0] == b"0000"
                await left.aclose()
            assert await snapshot.get(table, b"0000") == {COLUMN: b"1"}

    asyncio.run(everything())
