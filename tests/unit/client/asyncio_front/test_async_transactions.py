"""Transactions for tasks, through the real oracle: the same as for threads, several tasks in one, and cancellations."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from anyio import CancelScope

from client import (
    Aborted,
    AsyncTransaction,
    AsyncTransactionManager,
    Committed,
    Conflict,
    InvalidRequest,
    Snapshot,
    Transaction,
    TransactionAborted,
    TransactionHooks,
    TransactionManager,
    TransactionStatus,
    Undecided,
)
from client.asyncio_front.blocking_calls import BlockingCalls
from client.snapshots.stored_cells import SCAN_BATCH_ROWS
from store import RowPut, StoreUnavailable
from tests.unit.client.conftest import A, Installation
from tests.unit.client.transacting import get, put

WAIT_SECONDS_MAX = 20
Test = Callable[[AsyncTransactionManager], Awaitable[None]]
Block = AbstractAsyncContextManager[object]


class Failure(Exception):
    """What a block raises in these tests."""


class Gates(TransactionHooks):
    """Lets a commit, or a rollback, block until the test lets it go on."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.goes_on = threading.Event()

    def before_commit(self, transaction: Transaction) -> None:
        self._pass()

    def before_rollback(self, transaction: Transaction) -> None:
        self._pass()

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.began.wait, WAIT_SECONDS_MAX)

    def _pass(self) -> None:
        self.began.set()
        assert self.goes_on.wait(WAIT_SECONDS_MAX)


def on_a_loop(manager: TransactionManager, test: Test, threads: int = 4, wait_ms_max: int | None = None) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT_SECONDS_MAX), AsyncTransactionManager(manager, threads=threads) as front:
            if wait_ms_max is not None:
                front._calls = BlockingCalls(threads, wait_ms_max)
            await test(front)

    asyncio.run(bounded())


async def fail_in(block: Block, before: Callable[[], Awaitable[None]] | None = None) -> None:
    async with block:
        if before is not None:
            await before()
        raise Failure


async def take_too_long_in(block: Block, transaction: AsyncTransaction) -> None:
    async with asyncio.timeout(0.01), block:
        await transaction.put("t", b"late", {A: b"1"})
        await asyncio.sleep(WAIT_SECONDS_MAX)


async def do_nothing_in(block: Block) -> None:
    async with block:
        pass


def test_a_transaction_reads_its_own_writes_and_nobody_else_does(manager: TransactionManager) -> None:
    put(manager, b"r", b"old")

    async def test(front: AsyncTransactionManager) -> None:
        async with front.transaction() as transaction:
            await transaction.put("t", b"r", {A: b"new"})
            await transaction.put("t", b"s", {b"g:b": b"added"})
            await transaction.delete("t", b"s", [A])
            assert await transaction.get("t", b"r") == {A: b"new"}
            assert await transaction.get("t", b"r", own_writes="none") == {A: b"old"}
            assert await transaction.get_many("t", [b"s", b"r"]) == {b"s": {b"g:b": b"added"}, b"r": {A: b"new"}}
            assert await transaction.get_many("t", [b"s", b"r"], own_writes="none") == {b"r": {A: b"old"}}
            assert await (await front.snapshot()).get_many("t", [b"s", b"r"], [b"f"]) == {b"r": {A: b"old"}}
            assert [row async for row in transaction.scan("t")] == [(b"r", {A: b"new"}), (b"s", {b"g:b": b"added"})]
            assert await transaction.scan_page("t", rows_max=1) == ([(b"r", {A: b"new"})], b"r")
            others = await front.snapshot()
            assert [row async for row in others.scan("t")] == [(b"r", {A: b"old"})]
            assert await others.scan_page("t") == ([(b"r", {A: b"old"})], None)
            backward = [row async for row, _ in transaction.scan("t", reverse=True)]
            assert backward == [b"s", b"r"]
            assert await transaction.scan_page("t", reverse=True, rows_max=1) == ([(b"s", {b"g:b": b"added"})], b"s")
            assert [row async for row, _ in others.scan("t", reverse=True)] == [b"r"]
            assert (await others.scan_page("t", reverse=True, stop=b"r")).rows == []
            assert transaction.start_timestamp > transaction.snapshot_timestamp >= transaction.epoch
        assert transaction.status is TransactionStatus.COMMITTED
        assert isinstance(await front.outcome(transaction.start_timestamp), Committed)
        assert await (await front.snapshot()).get("t", b"r") == {A: b"new"}
        (batch,) = [batch async for batch in (await front.snapshot()).scan_columns("t", [A], prefix=b"r")]
        assert batch.rows == 1

    on_a_loop(manager, test)


def test_a_key_that_tasks_claim_lands_once(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        async def job(transaction: AsyncTransaction) -> bool:
            return await transaction.claim("orders/2026-11-21")

        landed = await asyncio.gather(*(front.run(job) for _ in range(4)))
        assert sorted(landed) == [False, False, False, True]

    on_a_loop(manager, test)


def test_what_a_task_guards_may_not_change_before_the_commit(manager: TransactionManager) -> None:
    async def by_a_call(transaction: AsyncTransaction) -> None:
        await transaction.guard("t", [b"r"], [A])

    async def by_a_read(transaction: AsyncTransaction) -> None:
        assert await transaction.get("t", b"r", [A], guarded=True) == {}

    async def by_a_read_of_many(transaction: AsyncTransaction) -> None:
        assert await transaction.get_many("t", [b"r"], [A], guarded=True) == {}

    async def test(front: AsyncTransactionManager) -> None:
        guarding = [await front.transaction() for _ in range(3)]
        for transaction, guard in zip(guarding, (by_a_call, by_a_read, by_a_read_of_many), strict=True):
            await guard(transaction)
            await transaction.put("t", b"%d" % transaction.start_timestamp, {A: b"1"})
        async with front.transaction() as rival:
            await rival.put("t", b"r", {A: b"rival"})
        for transaction in guarding:
            with pytest.raises(Conflict):
                await transaction.commit()

    on_a_loop(manager, test)


def test_tasks_are_told_what_changed(manager: TransactionManager) -> None:
    put(manager, b"r", b"old")
    put(manager, b"s", b"old")

    async def test(front: AsyncTransactionManager) -> None:
        earlier = (await front.snapshot()).timestamp
        async with front.transaction() as transaction:
            await transaction.put("t", b"r", {A: b"new"})
            await transaction.delete("t", b"s", [A])
        later = await front.snapshot()
        changes = [(row, values) async for row, values, _ in later.changes("t", earlier)]
        assert changes == [(b"r", {A: b"new"}), (b"s", None)]
        (batch,) = [batch async for batch in later.changes_columns("t", earlier, [A], stop=b"s")]
        assert (batch.cells.row_keys(), batch.deleted.tolist()) == ([b"r"], [False])
        page = await later.changes_page("t", earlier, rows_max=1)
        assert ([(row, values) for row, values, _ in page.rows], page.looked_at_to) == (changes[:1], b"r")

    on_a_loop(manager, test)


def test_a_block_that_raises_is_rolled_back(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        transaction = await front.transaction()
        await transaction.put("t", b"r", {A: b"1"})
        with pytest.raises(Failure):
            await fail_in(transaction)
        assert transaction.status is TransactionStatus.ABORTED
        assert await (await front.snapshot()).get("t", b"r") == {}

    on_a_loop(manager, test)


def test_begun_without_a_block(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        first, second = await front.transaction(), await front.transaction()
        for transaction in (first, second):
            await transaction.put("t", b"r", {A: b"%d" % transaction.start_timestamp})
            assert transaction.written_bytes > 200
        assert isinstance(await first.commit(), Committed)
        with pytest.raises(Conflict):
            await second.commit()
        third = await front.transaction(read_only=True)
        with pytest.raises(InvalidRequest, match="read-only"):
            await third.put("t", b"r", {A: b"1"})
        assert await third.rollback() == Aborted()
        fourth = await front.transaction()
        await fourth.forbid_commit("the test says so")
        assert fourth.commit_forbidden == "the test says so"
        with pytest.raises(TransactionAborted, match="the test says so"):
            await fourth.commit()

    on_a_loop(manager, test)


def test_savepoints_and_checkpoints(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        async with front.transaction() as transaction:
            await transaction.put("t", b"kept", {A: b"1"})
            with pytest.raises(Failure):
                await fail_in(transaction.savepoint(), lambda: transaction.put("t", b"undone", {A: b"1"}))
            async with transaction.savepoint() as released:
                await transaction.put("t", b"kept", {A: b"2"})
            assert not released.is_open
            await transaction.checkpoint()
            savepoint = await transaction.savepoint()
            await transaction.put("t", b"kept", {A: b"3"})
            assert await transaction.get("t", b"kept", own_writes="before_checkpoint") == {A: b"2"}
            await transaction.rollback_to(savepoint)
            await transaction.release(savepoint)
            with pytest.raises(InvalidRequest, match="is gone"):
                await transaction.rollback_to(savepoint)
        assert [row async for row in (await front.snapshot()).scan("t")] == [(b"kept", {A: b"2"})]

    on_a_loop(manager, test)


def test_tables_snapshots_and_the_ids_of_others(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        await front.create_table("u", ["f"], conflict_level="row", split_keys=[b"m"])
        assert [region.start for region in front.blocking.store.regions("u")] == [b"", b"m"]
        put(manager, b"r", b"before", table="u")
        fenced = await front.fence("u")
        await front.create_snapshot("then", fenced.timestamp)
        put(manager, b"r", b"after", table="u")
        for snapshot in (fenced, await front.snapshot("then"), await front.resume_snapshot(fenced.handle())):
            assert await snapshot.get("u", b"r") == {A: b"before"}
            assert snapshot.timestamp == fenced.timestamp
            assert snapshot.epoch == fenced.epoch
        assert [named.name for named in await front.snapshots()] == ["then"]
        assert (await front.move_snapshot("then")).timestamp > fenced.timestamp
        await front.drop_snapshot("then")
        transaction = await front.transaction()
        shared = await front.resume(await transaction.handle())
        await shared.put("u", b"s", {A: b"by another"})
        assert await shared.commit() == await transaction.commit()
        open_one = await front.transaction()
        assert await front.outcome(open_one.start_timestamp) == Undecided()
        assert await front.abort(open_one.start_timestamp) == Aborted()
        await front.drop_table("u")
        with pytest.raises(InvalidRequest):
            await front.drop_table("u")

    on_a_loop(manager, test)


def test_a_function_is_run_again_after_a_conflict_and_only_then(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        async def add_one(transaction: AsyncTransaction) -> int:
            before = int((await transaction.get("t", b"counter")).get(A, b"0"))
            await transaction.put("t", b"counter", {A: b"%d" % (before + 1)})
            return before + 1

        counted = await asyncio.gather(*(front.run(add_one, attempts_max=1_000) for _ in range(20)))
        assert sorted(counted) == list(range(1, 21))

        tries = list[int]()

        async def failing(transaction: AsyncTransaction) -> None:
            tries.append(transaction.start_timestamp)
            raise Failure

        with pytest.raises(Failure):
            await front.run(failing)
        assert len(tries) == 1

        async def in_conflict(transaction: AsyncTransaction) -> None:
            tries.append(transaction.start_timestamp)
            await transaction.put("t", b"counter", {A: b"mine"})
            await asyncio.to_thread(put, manager, b"counter", b"theirs")

        with pytest.raises(Conflict):
            await front.run(in_conflict, attempts_max=3)
        assert len(tries) == 1 + 3

    on_a_loop(manager, test)


def test_what_can_not_be_run(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        async def nothing(transaction: AsyncTransaction) -> None:
            raise Failure

        with pytest.raises(InvalidRequest, match="attempts_max is at least 1"):
            await front.run(nothing, attempts_max=0)
        with pytest.raises(InvalidRequest, match="make it async def"):
            await front.run(lambda _: 17)  # type: ignore[arg-type,return-value]
        transaction = await front.transaction()
        with pytest.raises(InvalidRequest, match="a function that blocks"):
            await transaction.apply(nothing)  # type: ignore[arg-type,unused-coroutine]

    on_a_loop(manager, test)


def test_work_for_threads_is_done_in_its_turn(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        def fill(transaction: Transaction) -> int:
            for number in range(100):
                transaction.put("t", b"%03d" % number, {A: b"1"})
            return threading.get_ident()

        async with front.transaction() as transaction:
            assert await transaction.apply(fill) != threading.get_ident()
        assert len([row async for row in (await front.snapshot()).scan("t")]) == 100

    on_a_loop(manager, test)


def test_tasks_in_one_transaction_are_never_in_it_at_once(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        alone = threading.Lock()

        def work(transaction: Transaction) -> None:
            assert alone.acquire(blocking=False)
            transaction.get("t", b"r")
            time.sleep(0.001)  # another would come in between
            alone.release()

        async with front.transaction() as transaction, asyncio.TaskGroup() as tasks:
            for number in range(50):
                tasks.create_task(transaction.apply(work))
                tasks.create_task(transaction.put("t", b"%02d" % number, {A: b"1"}))
        assert len([row async for row in (await front.snapshot()).scan("t")]) == 50

    on_a_loop(manager, test)


def test_a_scan_of_several_pieces_and_one_that_is_left(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = SCAN_BATCH_ROWS + 7
    with manager.transaction() as transaction:
        for number in range(rows):
            transaction.put("t", b"%04d" % number, {A: b"1"})
    closed_in, closed = list[str](), threading.Event()
    scan = Snapshot.scan

    def noting(*arguments: object, **named: object) -> Iterator[object]:
        try:
            yield from scan(*arguments, **named)  # type: ignore[arg-type]
        finally:
            closed_in.append(threading.current_thread().name)
            closed.set()

    monkeypatch.setattr(Snapshot, "scan", noting)

    async def test(front: AsyncTransactionManager) -> None:
        snapshot = await front.snapshot()
        assert len([row async for row in snapshot.scan("t")]) == rows
        left = snapshot.scan("t")
        assert (await anext(left))[0] == b"0000"
        closed_in.clear()
        closed.clear()
        await left.aclose()
        assert await asyncio.to_thread(closed.wait, WAIT_SECONDS_MAX)  # nobody else waits for it
        (thread,) = closed_in
        assert thread.startswith("pythia-blocking")
        async with front.transaction() as transaction:
            seen = 0
            async for row, _ in transaction.scan("t"):
                await transaction.delete("t", row, [A])
                seen += 1
            assert seen == rows
        with pytest.raises(InvalidRequest, match="columns names nothing"):
            await anext(snapshot.scan("t", columns=[]))

    on_a_loop(manager, test)


def test_a_commit_that_is_cancelled_goes_on_and_its_status_says_so(installation: Installation) -> None:
    gates = Gates()

    async def test(front: AsyncTransactionManager) -> None:
        transaction = await front.transaction()
        await transaction.put("t", b"r", {A: b"1"})
        committing = asyncio.create_task(transaction.commit())
        await gates.has_begun()
        committing.cancel()
        await asyncio.sleep(0)
        gates.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await committing
        assert transaction.status is TransactionStatus.COMMITTED
        assert await (await front.snapshot()).get("t", b"r") == {A: b"1"}

    on_a_loop(installation.manager(hooks=gates), test)


def test_a_block_that_takes_too_long_is_rolled_back(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        async with front.transaction() as transaction:
            await transaction.put("t", b"r", {A: b"1"})
            late = await front.transaction()
            for block, writing in ((transaction.savepoint(), transaction), (late, late)):
                with pytest.raises(TimeoutError):
                    await take_too_long_in(block, writing)
            assert late.status is TransactionStatus.ABORTED
        assert [row async for row in (await front.snapshot()).scan("t")] == [(b"r", {A: b"1"})]

    on_a_loop(manager, test)


@asynccontextmanager
async def busy(transaction: AsyncTransaction) -> AsyncIterator[None]:
    """Inside, another task's call is under way in the transaction."""
    began, goes_on = threading.Event(), threading.Event()

    def work(_: Transaction) -> None:
        began.set()
        assert goes_on.wait(WAIT_SECONDS_MAX)

    working = asyncio.create_task(transaction.apply(work))
    assert await asyncio.to_thread(began.wait, WAIT_SECONDS_MAX)
    try:
        yield
    finally:
        goes_on.set()
        await working


@pytest.mark.parametrize("fails", [True, False], ids=["after-an-error", "at-its-end"])
def test_a_savepoints_block_whose_end_is_cancelled_forbids_the_commit(manager: TransactionManager, fails: bool) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    async def block(transaction: AsyncTransaction) -> None:
        async with transaction.savepoint():
            await transaction.put("t", b"half", {A: b"1"})
            inside.set()
            await leave.wait()
            if fails:
                raise Failure

    async def test(front: AsyncTransactionManager) -> None:
        transaction = await front.transaction()
        in_block = asyncio.create_task(block(transaction))
        await inside.wait()
        async with busy(transaction):
            leave.set()
            await asyncio.sleep(0.01)  # it waits for its turn now, to go back or to release
            in_block.cancel()
            with pytest.raises(asyncio.CancelledError):
                await in_block
        with pytest.raises(TransactionAborted, match="a block in it did not come to its end"):
            await transaction.commit()
        assert await (await front.snapshot()).get("t", b"half") == {}

    on_a_loop(manager, test)


@pytest.mark.parametrize("fails", [True, False], ids=["after-an-error", "at-its-end"])
def test_no_thread_to_end_a_savepoints_block_with(manager: TransactionManager, fails: bool) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        transaction, other = await front.transaction(), await front.transaction()
        savepoint = await transaction.savepoint()
        async with busy(other):
            with pytest.raises(Failure if fails else StoreUnavailable):
                await (fail_in if fails else do_nothing_in)(savepoint)
        with pytest.raises(TransactionAborted, match="a block in it did not come to its end"):
            await transaction.commit()

    on_a_loop(manager, test, threads=1, wait_ms_max=200)


@pytest.mark.parametrize("fails", [True, False], ids=["after-an-error", "at-its-end"])
def test_no_thread_to_end_a_transactions_block_with(
    installation: Installation, manager: TransactionManager, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        transaction, other = await front.transaction(), await front.transaction()
        await transaction.put("t", b"r", {A: b"1"})
        async with busy(other):
            with pytest.raises(Failure if fails else StoreUnavailable):
                await (fail_in if fails else do_nothing_in)(transaction)
            assert "a block in it did not come to its end" in str(transaction.commit_forbidden)
            await until_rolled_back(transaction)
        with pytest.raises(InvalidRequest, match="is aborted"):
            await transaction.commit()

    on_a_loop(manager, test, threads=1, wait_ms_max=200)
    assert ("the end of a block that failed" in caplog.text) is fails
    assert get(installation.manager(), b"r") is None


@pytest.mark.parametrize("by_anyio", [True, False], ids=["by AnyIO", "by asyncio"])
@pytest.mark.parametrize("fails", [True, False], ids=["after-an-error", "at-its-end"])
def test_a_transaction_whose_blocks_end_is_cancelled_is_rolled_back_after_what_is_under_way_in_it(
    manager: TransactionManager, fails: bool, by_anyio: bool
) -> None:
    leave = asyncio.Event()

    async def block(transaction: AsyncTransaction, scope: CancelScope) -> None:
        with scope:
            async with transaction:
                await leave.wait()
                if fails:
                    raise Failure

    async def test(front: AsyncTransactionManager) -> None:
        scope, transaction = CancelScope(), await front.transaction()
        await transaction.put("t", b"half", {A: b"1"})
        in_block = asyncio.create_task(block(transaction, scope))
        async with busy(transaction):
            leave.set()
            await asyncio.sleep(0.01)  # it waits for its turn now, to roll back or to commit
            (scope if by_anyio else in_block).cancel()
            (ended,) = await asyncio.gather(in_block, return_exceptions=True)
            assert isinstance(ended, asyncio.CancelledError) is not by_anyio
            assert transaction.status is TransactionStatus.ACTIVE
        await until_rolled_back(transaction)
        assert await (await front.snapshot()).get("t", b"half") == {}

    on_a_loop(manager, test)


async def until_rolled_back(transaction: AsyncTransaction) -> None:
    """By nobody that is waited for."""
    while transaction.status is not TransactionStatus.ABORTED:
        await asyncio.sleep(0.01)


def test_a_closed_manager_says_so(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        transaction = await front.transaction()
        await front.close()
        await front.close()
        for call in (front.transaction, front.snapshot, transaction.commit):
            with pytest.raises(InvalidRequest, match="the manager is closed"):
                await call()

    on_a_loop(manager, test)


def test_a_block_whose_manager_was_closed_shows_its_own_error(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        transaction, savepoint_of = await front.transaction(), await front.transaction()
        savepoint = await savepoint_of.savepoint()
        await front.close()
        for block in (transaction, savepoint):
            with pytest.raises(Failure):
                await fail_in(block)
        with pytest.raises(InvalidRequest, match="closed"):
            await do_nothing_in(savepoint)
        assert transaction.commit_forbidden is not None

    on_a_loop(manager, test)


def test_a_begin_that_is_cancelled_is_rolled_back_and_the_hooks_are_told(installation: Installation) -> None:
    class Told(TransactionHooks):
        def __init__(self) -> None:
            self.began, self.goes_on, self.rolled_back = threading.Event(), threading.Event(), threading.Event()

        def after_begin(self, transaction: Transaction) -> None:
            self.began.set()
            assert self.goes_on.wait(WAIT_SECONDS_MAX)

        def after_rollback(self, transaction: Transaction) -> None:
            self.rolled_back.set()

    told = Told()

    async def test(front: AsyncTransactionManager) -> None:
        async def begin() -> None:
            await front.transaction()

        beginning = asyncio.create_task(begin())
        assert await asyncio.to_thread(told.began.wait, WAIT_SECONDS_MAX)
        beginning.cancel()
        await asyncio.sleep(0)
        told.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await beginning
        assert await asyncio.to_thread(told.rolled_back.wait, WAIT_SECONDS_MAX)

    on_a_loop(installation.manager(hooks=told), test)


def test_what_opens_once_does_not_open_again(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        opening = front.transaction()
        async with opening:
            with pytest.raises(InvalidRequest, match="ask for another one"):
                await do_nothing_in(opening)
            with pytest.raises(InvalidRequest, match="ask for another one"):
                await opening

    on_a_loop(manager, test)


def test_a_savepoints_block_that_somebody_else_undid_says_so(manager: TransactionManager) -> None:
    async def test(front: AsyncTransactionManager) -> None:
        transaction = await front.transaction()
        before = await transaction.savepoint()

        async def undone() -> None:
            async with transaction.savepoint():
                await transaction.put("t", b"r", {A: b"1"})
                await transaction.rollback_to(before)

        with pytest.raises(InvalidRequest, match="what this block wrote was undone"):
            await undone()
        with pytest.raises(TransactionAborted, match="what this block wrote was undone"):
            await transaction.commit()

    on_a_loop(manager, test)


def test_scans_that_are_left_are_closed_though_the_manager_is_or_no_thread_is_free(
    manager: TransactionManager, caplog: pytest.LogCaptureFixture
) -> None:
    put(manager, b"r", b"1")

    async def test(front: AsyncTransactionManager) -> None:
        snapshot, other = await front.snapshot(), await front.transaction()
        with manager.transaction() as transaction:
            for number in range(2 * SCAN_BATCH_ROWS):
                transaction.put("t", b"%04d" % number, {A: b"1"})
        rows, whole, left = [(await front.snapshot()).scan("t") for _ in range(3)]
        assert (await anext(rows))[0] == b"0000"
        assert (await anext(left))[0] == b"0000"
        short = snapshot.scan("t")
        async with busy(other):
            with pytest.raises(StoreUnavailable):
                await anext(short)
            await rows.aclose()
        assert len([row async for row in whole]) == 2 * SCAN_BATCH_ROWS + 1
        await front.close()
        await left.aclose()

    on_a_loop(manager, test, threads=1, wait_ms_max=200)
    assert "could not be given back" not in caplog.text


def test_batches_of_a_transactions_own_writes(manager: TransactionManager) -> None:
    put(manager, b"r", b"1")

    async def test(front: AsyncTransactionManager) -> None:
        async with front.transaction() as transaction:
            await transaction.put("t", b"s", {A: b"2"})
            assert [batch.rows async for batch in transaction.scan_columns("t", [A])] == [2]
            others = transaction.scan_columns("t", own_writes="none")
            assert [list(batch.puts()) async for batch in others] == [[RowPut(b"r", {A: b"1"})]]

    on_a_loop(manager, test)
