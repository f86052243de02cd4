"""The oracle as its own users see it: a real one, asked without any of the library's transactions."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import numpy as np
import pytest

from client import (
    AsyncOracleClient,
    CommitRequest,
    InvalidRequest,
    NoPrimary,
    OutcomeStatus,
    Reason,
    ReplyLost,
    cell_id,
)
from client.connection.deadline import Deadline
from client.connection.dispatch import COMMIT_CELLS_MAX
from client.connection.oracle import _LoopThread, _Waiter
from client.connection.tickets import BeginTicket, Ticket
from commit_table import Committed
from tests.unit.client.conftest import SETTINGS, Installation
from wire import PART_CELLS_MAX


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


def test_threads_begin_commit_and_ask_in_batches_too(installation: Installation) -> None:
    oracle = installation.manager().oracle
    begun = oracle.begin_many(3)
    starts = begun.first_start_timestamp + np.arange(3)
    alone = oracle.begin()
    key = 2**64 - 1
    cells = np.array([key, key, 7], np.uint64)
    request = CommitRequest(starts, np.full(3, begun.snapshot), np.zeros(3, "i8"), np.arange(4, dtype=np.uint32), cells)
    reply, after_loss = oracle.commit_many(request)
    assert not after_loss
    assert reply.reasons.tolist() == [Reason.COMMITTED, Reason.CONFLICT, Reason.COMMITTED]
    lost = oracle.commit(alone.first_start_timestamp, alone.snapshot, [key], guards=[5])
    assert (lost.commit_timestamp, lost.reason) == (0, Reason.CONFLICT)
    found = oracle.outcomes(starts.tolist())
    assert found.commit_timestamps.tolist() == reply.commit_timestamps.tolist()
    assert found.statuses.tolist() == [OutcomeStatus.COMMITTED, OutcomeStatus.UNDECIDED, OutcomeStatus.COMMITTED]
    many = oracle.begin()
    large = oracle.commit(many.first_start_timestamp, many.snapshot, list(range(2**63, 2**63 + COMMIT_CELLS_MAX + 1)))
    assert large.reason is Reason.COMMITTED


def test_a_batch_that_no_frame_can_carry_is_refused_to_threads_at_once(installation: Installation) -> None:
    oracle = installation.manager().oracle
    begun = oracle.begin_many(2)
    starts = begun.first_start_timestamp + np.arange(2)
    offsets, cells = np.array([0, 1, 150_000], np.uint32), np.arange(150_000, dtype=np.uint64)
    request = CommitRequest(starts, np.full(2, begun.snapshot), np.zeros(2, "i8"), offsets, cells)
    with pytest.raises(InvalidRequest, match="send fewer at once"):
        oracle.commit_many(request)
    for count in (0, 2**32):
        with pytest.raises(InvalidRequest, match="at least one transaction"):
            oracle.begin_many(count)


def test_a_batch_of_commits_whose_answer_does_not_come_may_have_been_done(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(_: object, wanted: Ticket) -> None:
        wanted.callers[0].set_exception(ReplyLost("no answer came"))

    oracle = installation.manager().oracle
    begun = oracle.begin()
    monkeypatch.setattr(_LoopThread, "submit", lose)
    request = CommitRequest(*map(np.array, ([begun.first_start_timestamp], [begun.snapshot], [0], [0, 1], [1])))
    with pytest.raises(ReplyLost):
        oracle.commit_many(request)
    with pytest.raises(NoPrimary):
        oracle.begin_many(2)


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
