"""Which of its own writes a transaction reads, and what a scan shows while its transaction writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from client import InvalidRequest, OwnWrites, Transaction, TransactionManager
from store import RowPut
from store.columns import CellColumns

A, B = b"f:a", b"f:b"
LEVELS: tuple[OwnWrites, ...] = ("none", "before_checkpoint", "all")


@pytest.fixture
def transaction(manager: TransactionManager) -> Iterator[Transaction]:
    """One over a stored row ``b"r"``, that has put into it before and after a checkpoint."""
    with manager.transaction() as before:
        before.put("t", b"r", {A: b"stored", B: b"stored"})
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"before"})
        transaction.put("t", b"s", {A: b"before"})
        transaction.checkpoint()
        transaction.put("t", b"r", {A: b"after"})
        transaction.delete("t", b"s")
        transaction.put("t", b"u", {A: b"after"})
        yield transaction


def rows_of(batches: Iterable[CellColumns]) -> list[RowPut]:
    return [put for batch in batches for put in batch.puts()]


EXPECTED: dict[OwnWrites, dict[bytes, dict[bytes, bytes]]] = {
    "none": {b"r": {A: b"stored", B: b"stored"}},
    "before_checkpoint": {b"r": {A: b"before", B: b"stored"}, b"s": {A: b"before"}},
    "all": {b"r": {A: b"after", B: b"stored"}, b"u": {A: b"after"}},
}


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_shows_its_writes(transaction: Transaction, level: OwnWrites) -> None:
    assert dict(transaction.scan("t", own_writes=level)) == EXPECTED[level]
    assert dict(rows_of(transaction.scan_columns("t", own_writes=level))) == EXPECTED[level]
    assert rows_of(transaction.scan_columns("t", [B], batch_rows=1, own_writes=level)) == [
        RowPut(row, {column: value for column, value in values.items() if column == B})
        for row, values in EXPECTED[level].items()
    ]
    for row in (b"r", b"s", b"u"):
        assert transaction.get("t", row, own_writes=level) == EXPECTED[level].get(row, {})
    assert transaction.get_many("t", [b"r", b"s", b"u"], own_writes=level) == EXPECTED[level]
    assert transaction.get("t", b"r", [B], own_writes=level) == {B: b"stored"}
    assert list(transaction.scan("t", prefix=b"u", own_writes=level)) == [
        (row, values) for row, values in EXPECTED[level].items() if row == b"u"
    ]


def test_all_writes_are_the_default_and_all_of_them_commit(
    manager: TransactionManager, transaction: Transaction
) -> None:
    assert dict(transaction.scan("t")) == EXPECTED["all"]
    assert transaction.get("t", b"r") == EXPECTED["all"][b"r"]
    transaction.commit()
    assert dict(manager.snapshot().scan("t")) == EXPECTED["all"]


def test_without_a_checkpoint_no_write_was_before_it(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})
        assert transaction.get("t", b"r", own_writes="before_checkpoint") == {}
        assert list(transaction.scan("t", own_writes="before_checkpoint")) == []


def test_the_last_checkpoint_counts_and_there_may_be_any_number(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        for number in range(200):
            transaction.put("t", b"r", {A: b"%d" % number})
            transaction.checkpoint()
            transaction.put("t", b"s", {A: b"%d" % number})
            assert transaction.get("t", b"r", own_writes="before_checkpoint") == {A: b"%d" % number}
            expected = {A: b"%d" % (number - 1)} if number else {}
            assert transaction.get("t", b"s", own_writes="before_checkpoint") == expected


def test_a_statement_that_reads_what_it_writes_meets_no_row_of_its_own(manager: TransactionManager) -> None:
    """Insert into t select from t: row by row, with gets and scans anew for each, and twice over."""
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})
        for _ in range(2):
            transaction.checkpoint()
            for row, values in transaction.scan("t", own_writes="before_checkpoint"):
                rows = [each for each, _ in transaction.scan("t", own_writes="before_checkpoint")]
                transaction.put("t", b"z%d/" % len(rows) + row, values)
        assert [row for row, _ in transaction.scan("t")] == [b"r", b"z1/r", b"z2/r", b"z2/z1/r"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_scan_under_way_shows_the_writes_of_its_beginning(
    manager: TransactionManager, transaction: Transaction, level: OwnWrites
) -> None:
    savepoint = transaction.savepoint()
    scan = transaction.scan("t", own_writes=level)
    transaction.put("t", b"a", {A: b"new"})  # before its first row was asked for: the call is its beginning
    rows = [next(scan)]
    transaction.put("t", b"r", {A: b"new"})
    transaction.put("t", b"s", {A: b"new"})
    transaction.delete("t", b"u")
    transaction.put("t", b"z", {A: b"new"})
    transaction.checkpoint()
    transaction.rollback_to(savepoint)
    for row in (b"s", b"u", b"v"):
        transaction.put("t", row, {A: b"new"})
    assert dict([*rows, *scan]) == EXPECTED[level]


def test_a_scan_that_copies_every_row_it_meets_ends(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})
        for row, values in transaction.scan("t"):
            transaction.put("t", row + b"+", values)
    assert [row for row, _ in manager.snapshot().scan("t")] == [b"r", b"r+"]


def test_a_rollback_brings_the_earlier_checkpoint_back(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})
    transaction.checkpoint()
    transaction.put("t", b"r", {A: b"2"})
    savepoint = transaction.savepoint()
    for _ in range(2):
        transaction.put("t", b"r", {A: b"3"})
        transaction.checkpoint()
        transaction.put("t", b"r", {A: b"4"})
        assert transaction.get("t", b"r", own_writes="before_checkpoint") == {A: b"3"}
        transaction.rollback_to(savepoint)
        assert transaction.get("t", b"r", own_writes="before_checkpoint") == {A: b"1"}
        assert transaction.get("t", b"r") == {A: b"2"}
    transaction.release(savepoint)
    assert transaction.get("t", b"r", own_writes="before_checkpoint") == {A: b"1"}


def test_a_rollback_behind_the_first_checkpoint_leaves_none(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})
    savepoint = transaction.savepoint()
    transaction.checkpoint()
    transaction.rollback_to(savepoint)
    assert transaction.get("t", b"r", own_writes="before_checkpoint") == {}
    assert transaction.get("t", b"r") == {A: b"1"}


def test_a_level_that_there_is_not_is_refused(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    wrong: OwnWrites = "some"  # type: ignore[assignment]
    with pytest.raises(InvalidRequest, match="own_writes is one of all, before_checkpoint, none"):
        transaction.get("t", b"r", own_writes=wrong)
    with pytest.raises(InvalidRequest, match="own_writes is one of all, before_checkpoint, none"):
        transaction.scan("t", own_writes=wrong)
    with pytest.raises(InvalidRequest, match="own_writes is one of all, before_checkpoint, none"):
        transaction.scan_columns("t", own_writes=wrong)


def test_what_bulk_writers_write_after_a_checkpoint_is_not_before_it(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"own"})
        transaction.checkpoint()
        handle = transaction.handle()
        scan = transaction.scan("t", own_writes="before_checkpoint")
        job = manager.open_job(handle)
        writer = manager.attempt_writer(handle, "t", job, partition=0, attempt=0)
        writer.write(CellColumns.of_puts([RowPut(b"a", {A: b"bulk"}), RowPut(b"r", {B: b"bulk"})]))
        manager.seal_job(handle, job, [(0, 0)])
        assert dict(scan) == {b"r": {A: b"own"}}
        assert transaction.get("t", b"a", own_writes="before_checkpoint") == {}
        assert dict(transaction.scan("t", own_writes="none")) == {}
        assert rows_of(transaction.scan_columns("t", own_writes="none")) == []
        assert dict(transaction.scan("t")) == {b"a": {A: b"bulk"}, b"r": {A: b"own", B: b"bulk"}}


def test_there_is_no_checkpoint_after_a_bulk_write(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})
    handle = transaction.handle()
    transaction.checkpoint()
    transaction.put("t", b"r", {A: b"2"})
    job = manager.open_job(handle)
    manager.seal_job(handle, job, [])
    with pytest.raises(InvalidRequest, match=f"takes no checkpoint.*{job}"):
        transaction.checkpoint()
    assert transaction.get("t", b"r", own_writes="before_checkpoint") == {A: b"1"}


def test_a_transaction_that_has_ended_takes_no_checkpoint(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    transaction.commit()
    with pytest.raises(InvalidRequest, match="is committed"):
        transaction.checkpoint()
