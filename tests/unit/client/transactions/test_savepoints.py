"""Going back to a savepoint, as SQL has it, through the whole client; and what cannot be gone back on."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections.abc import Callable

import pytest

from client import (
    Committed,
    Conflict,
    InvalidRequest,
    Transaction,
    TransactionAborted,
    TransactionManager,
    TransactionStatus,
)
from client.transactions.savepoints import SAVEPOINTS_OPEN_MAX
from store import RowPut
from store.columns import CellColumns
from store.faults import Fault
from tests.unit.client.conftest import SETTINGS, Installation

A, B = b"f:a", b"f:b"


def seen(transaction: Transaction) -> dict[bytes, dict[bytes, bytes]]:
    return dict(transaction.scan("t"))


def test_writes_after_a_savepoint_are_gone_and_those_before_commit(manager: TransactionManager) -> None:
    with manager.transaction() as before:
        before.put("t", b"stored", {A: b"stored"})
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})
        savepoint = transaction.savepoint()
        transaction.put("t", b"r", {A: b"2", B: b"2"})
        transaction.put("t", b"s", {A: b"2"})
        transaction.delete("t", b"stored")
        assert seen(transaction) == {b"r": {A: b"2", B: b"2"}, b"s": {A: b"2"}}
        transaction.rollback_to(savepoint)
        assert seen(transaction) == {b"r": {A: b"1"}, b"stored": {A: b"stored"}}
        assert transaction.get("t", b"s") == {}
    assert dict(manager.snapshot().scan("t")) == {b"r": {A: b"1"}, b"stored": {A: b"stored"}}
    assert manager.store.versions("t", b"s", A, limit=1) == []


def test_what_was_undone_is_not_judged(manager: TransactionManager) -> None:
    """The rival wrote a cell that this transaction wrote and took back: no conflict; of the other cell there is one."""
    for taken_back in (True, False):
        transaction = manager.transaction()
        transaction.put("t", b"mine", {A: b"1"})
        savepoint = transaction.savepoint()
        transaction.put("t", b"r", {A: b"mine"})
        with manager.transaction() as rival:
            rival.put("t", b"r", {A: b"rival"})
        if taken_back:
            transaction.rollback_to(savepoint)
            transaction.commit()
        else:
            with pytest.raises(Conflict):
                transaction.commit()
    assert manager.snapshot().get("t", b"r") == {A: b"rival"}


def test_a_transaction_whose_writes_were_all_undone_commits_without_the_oracle(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    savepoint = transaction.savepoint()
    transaction.put("t", b"r", {A: b"1"})
    transaction.rollback_to(savepoint)
    installation.find_primary = lambda: None
    manager.oracle.close()
    assert transaction.commit() == Committed(transaction.snapshot_timestamp)


def test_savepoints_nest_and_can_be_gone_back_to_again(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    first = transaction.savepoint()
    transaction.put("t", b"r", {A: b"1"})
    second = transaction.savepoint()
    for value in (b"2", b"3"):
        transaction.put("t", b"r", {A: value})
        transaction.rollback_to(second)
        assert transaction.get("t", b"r") == {A: b"1"}
    for value in (b"4", b"5"):
        transaction.put("t", b"r", {A: value})
        transaction.rollback_to(first)
        assert transaction.get("t", b"r") == {}
    assert first.is_open
    assert not second.is_open
    with pytest.raises(InvalidRequest, match="released, or undone"):
        transaction.rollback_to(second)


def test_a_released_savepoint_keeps_what_was_written_and_takes_later_ones_along(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    outer = transaction.savepoint()
    transaction.put("t", b"r", {A: b"1"})
    middle = transaction.savepoint()
    transaction.put("t", b"r", {A: b"2", B: b"2"})
    inner = transaction.savepoint()
    transaction.put("t", b"r", {A: b"3"})
    transaction.put("t", b"s", {A: b"3"})
    transaction.release(middle)
    assert seen(transaction) == {b"r": {A: b"3", B: b"2"}, b"s": {A: b"3"}}
    uses: list[Callable[[], object]] = [
        lambda: transaction.rollback_to(middle),
        lambda: transaction.release(middle),
        lambda: transaction.rollback_to(inner),
    ]
    for use in uses:
        with pytest.raises(InvalidRequest, match="released, or undone"):
            use()
    transaction.rollback_to(outer)
    assert seen(transaction) == {}


def test_a_savepoint_serves_the_object_that_made_it_only(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    resumed = manager.resume(transaction.handle())
    savepoint = transaction.savepoint()
    for other in (manager.transaction(), resumed):
        uses: list[Callable[[], object]] = [
            lambda other=other: other.rollback_to(savepoint),  # type: ignore[misc]
            lambda other=other: other.release(savepoint),  # type: ignore[misc]
        ]
        for use in uses:
            with pytest.raises(InvalidRequest, match=f"another object, of transaction {transaction.start_timestamp}"):
                use()
    transaction.rollback_to(savepoint)


def test_nothing_is_gone_back_to_in_a_transaction_that_has_ended(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    savepoint = transaction.savepoint()
    transaction.rollback()
    uses: list[Callable[[], object]] = [
        transaction.savepoint,
        lambda: transaction.rollback_to(savepoint),
        lambda: transaction.release(savepoint),
    ]
    for use in uses:
        with pytest.raises(InvalidRequest, match="is aborted"):
            use()


def test_so_many_savepoints_may_be_open_and_no_more(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    first = transaction.savepoint()
    for _ in range(SAVEPOINTS_OPEN_MAX - 1):
        transaction.savepoint()
    with pytest.raises(InvalidRequest, match=r"1,000 savepoints open"):
        transaction.savepoint()
    transaction.rollback_to(first)
    transaction.savepoint()
    transaction.release(first)
    for _ in range(2 * SAVEPOINTS_OPEN_MAX):
        with transaction.savepoint():
            transaction.put("t", b"r", {A: b"1"})


def test_a_block_that_fails_is_undone_and_its_error_goes_on(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})

        def fail() -> None:
            with transaction.savepoint():
                transaction.put("t", b"r", {A: b"2"})
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        with transaction.savepoint() as kept:
            transaction.put("t", b"s", {A: b"1"})
        assert not kept.is_open
    assert dict(manager.snapshot().scan("t")) == {b"r": {A: b"1"}, b"s": {A: b"1"}}


def test_a_block_may_end_its_transaction_or_give_its_savepoint_up(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    with transaction.savepoint() as outer:
        with transaction.savepoint():
            transaction.put("t", b"r", {A: b"1"})
            transaction.rollback_to(outer)
        transaction.put("t", b"s", {A: b"1"})
        transaction.commit()
    assert transaction.status is TransactionStatus.COMMITTED
    assert dict(manager.snapshot().scan("t")) == {b"s": {A: b"1"}}


def test_a_failed_block_that_cannot_be_undone_never_commits(
    manager: TransactionManager, caplog: pytest.LogCaptureFixture
) -> None:
    transaction = manager.transaction()

    def fail() -> None:
        with transaction.savepoint() as savepoint:
            transaction.put("t", b"r", {A: b"half"})
            transaction.release(savepoint)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "cannot commit any more" in caplog.text
    with pytest.raises(TransactionAborted, match=r"a block failed.*released, or undone"):
        transaction.commit()
    assert manager.snapshot().get("t", b"r") == {}


def test_a_failed_block_keeps_its_error_when_the_transaction_has_expired(manager: TransactionManager) -> None:
    transaction = manager.transaction()

    def fail() -> None:
        with transaction.savepoint():
            transaction.give_up()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def write_in_bulk(manager: TransactionManager, transaction: Transaction, row: bytes, *, seal: bool = True) -> None:
    handle = transaction.handle()
    job = manager.open_job(handle)
    manager.attempt_writer(handle, "t", job, partition=0, attempt=0).write(
        CellColumns.of_puts([RowPut(row, {A: b"bulk"})])
    )
    if seal:
        manager.seal_job(handle, job, [(0, 0)])


def test_a_bulk_write_that_ended_before_a_savepoint_stays(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    write_in_bulk(manager, transaction, b"bulk")
    savepoint = transaction.savepoint()
    transaction.put("t", b"bulk", {A: b"own"})
    transaction.put("t", b"r", {A: b"own"})
    transaction.rollback_to(savepoint)
    assert seen(transaction) == {b"bulk": {A: b"bulk"}}
    transaction.commit()
    assert dict(manager.snapshot().scan("t")) == {b"bulk": {A: b"bulk"}}


@pytest.mark.parametrize("begun", ["before", "after"])
def test_a_bulk_write_that_had_not_ended_at_a_savepoint_cannot_be_gone_back_on(
    manager: TransactionManager, begun: str
) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    if begun == "before":
        job = manager.open_job(handle)
    savepoint = transaction.savepoint()
    if begun == "after":
        job = manager.open_job(handle)
    transaction.put("t", b"r", {A: b"own"})
    manager.attempt_writer(handle, "t", job, partition=0, attempt=0).write(
        CellColumns.of_puts([RowPut(b"bulk", {A: b"bulk"})])
    )
    manager.seal_job(handle, job, [(0, 0)])
    with pytest.raises(InvalidRequest, match=f"bulk writes had not ended when it was made .{job}."):
        transaction.rollback_to(savepoint)
    assert seen(transaction) == {b"bulk": {A: b"bulk"}, b"r": {A: b"own"}}
    later = transaction.savepoint()
    transaction.put("t", b"r", {A: b"later"})
    transaction.rollback_to(later)
    transaction.commit()
    assert dict(manager.snapshot().scan("t")) == {b"bulk": {A: b"bulk"}, b"r": {A: b"own"}}


def test_a_transaction_that_is_shared_after_a_savepoint_had_no_bulk_write_before_it(
    manager: TransactionManager,
) -> None:
    transaction = manager.transaction()
    savepoint = transaction.savepoint()
    transaction.put("t", b"r", {A: b"own"})
    transaction.handle()
    transaction.rollback_to(savepoint)
    write_in_bulk(manager, transaction, b"bulk")
    with pytest.raises(InvalidRequest, match="roll the whole transaction back"):
        transaction.rollback_to(savepoint)


def test_a_writer_that_was_never_announced_counts_as_a_bulk_write(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    savepoint = transaction.savepoint()
    manager.attempt_writer(handle, "t", "job", partition=0, attempt=0).write(
        CellColumns.of_puts([RowPut(b"bulk", {A: b"bulk"})])
    )
    with pytest.raises(InvalidRequest, match="had not ended"):
        transaction.rollback_to(savepoint)


def test_who_claimed_the_end_is_no_bulk_write(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    savepoint = transaction.savepoint()
    assert manager.manifest.claim_end(handle.start_timestamp, "somebody")
    transaction.rollback_to(savepoint)


def test_a_failed_block_with_a_bulk_write_in_it_never_commits(manager: TransactionManager) -> None:
    transaction = manager.transaction()

    def fail() -> None:
        with transaction.savepoint():
            write_in_bulk(manager, transaction, b"bulk")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(TransactionAborted, match=r"a block failed.*bulk writes"):
        transaction.commit()
    assert dict(manager.snapshot().scan("t")) == {}


def test_a_failed_block_of_which_the_store_cannot_say_whether_it_can_be_undone_never_commits(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    transaction.handle()

    def fail() -> None:
        with transaction.savepoint():
            transaction.put("t", b"r", {A: b"half"})
            installation.store.plan("scan", Fault.LOST)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(TransactionAborted, match="a block failed"):
        transaction.commit()


def test_a_transaction_that_nobody_holds_is_not_held_by_its_savepoints(manager: TransactionManager) -> None:
    gc.disable()
    try:
        transaction = manager.transaction()
        savepoint = transaction.savepoint()
        held = weakref.ref(transaction)
        del transaction
        assert held() is None
        assert savepoint.is_open
    finally:
        gc.enable()


def test_undone_writes_leave_room_for_others(installation: Installation) -> None:
    transaction = installation.manager(
        settings=dataclasses.replace(SETTINGS, transaction_bytes_max=2_500)
    ).transaction()

    def fail() -> None:
        with transaction.savepoint():
            transaction.put("t", b"r", {A: bytes(1_500)})
            raise ZeroDivisionError

    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            fail()
        assert transaction.written_bytes == 0
    transaction.put("t", b"r", {A: bytes(1_500)})
    assert 1_500 < transaction.written_bytes < 2_500
    with pytest.raises(InvalidRequest, match="transaction_bytes_max"):
        transaction.put("t", b"s", {A: bytes(1_500)})
