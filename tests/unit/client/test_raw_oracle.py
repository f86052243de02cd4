"""The oracle as its own users see it: a real one, asked without any of the library's transactions."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import numpy as np
import pytest

from client import AsyncOracleClient, InvalidRequest, cell_id
from client.deadline import Deadline
from client.oracle import _Waiter
from client.tickets import BeginTicket
from commit_table import Committed
from tests.unit.client.conftest import SETTINGS, Installation
from wire import PART_CELLS_MAX, CommitRequest, OutcomeStatus, Reason


def test_the_later_of_two_that_overlap_gets_its_reason_and_both_can_be_asked_about(installation: Installation) -> None:
    address = installation.find_primary()
    assert address is not None

    async def main() -> None:
        oracle = AsyncOracleClient.connect(replace(SETTINGS, zookeeper="", oracle=address))
        try:
            first, second = await asyncio.gather(oracle.begin(), oracle.begin())
            key = cell_id("accounts", b"alice", b"d:balance")
            won = await oracle.commit(first.first_start_timestamp, first.snapshot, [key])
            lost = await oracle.commit(second.first_start_timestamp, second.snapshot, [key, 7])
            assert won.commit_timestamp > second.first_start_timestamp
            assert (lost.commit_timestamp, lost.reason) == (0, Reason.CONFLICT)
            assert (await oracle.begin()).snapshot >= won.commit_timestamp
            both = await oracle.outcomes([first.first_start_timestamp, second.first_start_timestamp])
            assert both.commit_timestamps.tolist() == [won.commit_timestamp, 0]
            assert both.statuses[0] == OutcomeStatus.COMMITTED
        finally:
            oracle.close()
        recorded = installation.manager().commit_table.outcomes([first.first_start_timestamp])
        assert recorded[first.first_start_timestamp] == Committed(won.commit_timestamp)

    asyncio.run(main())


def test_whoever_asks_while_or_after_the_client_is_closed_is_told_so_at_once(installation: Installation) -> None:
    oracle = installation.manager().oracle
    oracle.begin()
    met = oracle._running()  # as a thread holds it that asks while another closes
    oracle.close()
    ended = Deadline(5_000)
    while not met.loop.is_closed() and ended.remaining_seconds():
        time.sleep(0.001)
    with pytest.raises(InvalidRequest, match="the client is closed"):
        oracle.begin()
    for _ in range(2):
        waiter = _Waiter()
        now_s = time.monotonic()
        met.submit(BeginTicket([waiter], now_s, now_s + 60, 1))
        with pytest.raises(InvalidRequest, match="the client is closed"):
            waiter.wait(1, None)


def test_a_large_write_set_is_held_while_it_comes_and_committed_whole(installation: Installation) -> None:
    address = installation.find_primary()
    assert address is not None
    cells = np.arange(3 * PART_CELLS_MAX + 5, dtype=np.uint64)

    async def main() -> None:
        oracle = AsyncOracleClient.connect(replace(SETTINGS, zookeeper="", oracle=address))
        try:
            large, early, late = await asyncio.gather(oracle.begin(), oracle.begin(), oracle.begin())
            entered = await oracle.commit(early.first_start_timestamp, early.snapshot, [2**40])
            decision = await oracle.commit_large(large.first_start_timestamp, large.snapshot, cells)
            assert decision.commit_timestamp > entered.commit_timestamp
            lost = await oracle.commit(late.first_start_timestamp, late.snapshot, [int(cells[-1])])
            assert lost.reason is Reason.CONFLICT
            over = await oracle.begin()
            again = await oracle.commit_large(over.first_start_timestamp, over.snapshot, cells.tolist())
            assert again.commit_timestamp > decision.commit_timestamp
            with pytest.raises(InvalidRequest, match="cells must hold integers"):
                await oracle.commit_large(over.first_start_timestamp, over.snapshot, ["a"])  # type: ignore[list-item]
            refused = await oracle.commit_large(late.first_start_timestamp, late.snapshot, cells + np.uint64(2**41))
            assert refused.reason is Reason.CONFLICT, "it was refused before"
        finally:
            oracle.close()

    asyncio.run(main())


def test_a_batch_is_decided_in_its_own_order(installation: Installation) -> None:
    address = installation.find_primary()
    assert address is not None

    async def main() -> None:
        oracle = AsyncOracleClient.connect(replace(SETTINGS, zookeeper="", oracle=address))
        try:
            begun = await oracle.begin_many(3)
            starts = np.arange(begun.first_start_timestamp, begun.first_start_timestamp + 3)
            cells = np.array([5, 5, 6], np.uint64)
            none = np.zeros(3, np.int64)
            offsets = np.arange(4, dtype=np.uint32)
            decisions = await oracle.commit_many(CommitRequest(starts, none + begun.snapshot, none, offsets, cells))
            assert decisions.reply.reasons.tolist() == [Reason.COMMITTED, Reason.CONFLICT, Reason.COMMITTED]
        finally:
            oracle.close()

    asyncio.run(main())
