"""Savepoints, checkpoints and hooks of docs/concepts/transactions.md, on the real store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from client import (
    ClientSettings,
    Conflict,
    InvalidRequest,
    OwnWrites,
    Transaction,
    TransactionHooks,
    TransactionManager,
)
from client.snapshots.reading import ROW_BY_ROW_MAX
from client.snapshots.stored_cells import SCAN_BATCH_ROWS
from store import RowPut
from store.columns import CellColumns

pytestmark = pytest.mark.integration

A, B = b"f:a", b"f:b"


@pytest.fixture(scope="module", params=["cell", "row"])
def table(request: pytest.FixtureRequest, manager: TransactionManager) -> Iterator[str]:
    name = f"life_{request.param}_{uuid.uuid4().hex[:8]}"
    manager.create_table(name, ["f"], conflict_level=request.param)
    yield name
    manager.drop_table(name)


@pytest.fixture
def prefix() -> bytes:
    return uuid.uuid4().hex.encode()


def seen(manager: TransactionManager, table: str, prefix: bytes) -> dict[bytes, dict[bytes, bytes]]:
    rows = manager.snapshot().scan(table, prefix=prefix)
    return {row.removeprefix(prefix): values for row, values in rows}


def test_what_was_undone_reaches_neither_the_store_nor_the_oracle(
    manager: TransactionManager, table: str, prefix: bytes
) -> None:
    transaction, other = manager.transaction(), manager.transaction()
    transaction.put(table, prefix + b"r", {A: b"1"})
    savepoint = transaction.savepoint()
    transaction.put(table, prefix + b"r", {A: b"2", B: b"2"})
    transaction.put(table, prefix + b"s", {A: b"2"})
    other.put(table, prefix + b"s", {A: b"other"})
    other.commit()
    transaction.rollback_to(savepoint)
    transaction.commit()
    assert seen(manager, table, prefix) == {b"r": {A: b"1"}, b"s": {A: b"other"}}
    versions = manager.store.versions(table, prefix + b"s", A, limit=10)
    assert [version.value for version in versions] == [b"other"]


def test_a_savepoint_and_the_bulk_writes_around_it(manager: TransactionManager, table: str, prefix: bytes) -> None:
    transaction = manager.transaction()
    handle = transaction.handle()
    jobs = []
    for number in range(2):
        jobs.append(manager.open_job(handle))
        writer = manager.attempt_writer(handle, table, jobs[-1], partition=0, attempt=0)
        writer.write(CellColumns.of_puts([RowPut(prefix + b"bulk%d" % number, {A: b"bulk"})]))
        manager.seal_job(handle, jobs[-1], [(0, 0)])
        if number == 0:
            savepoint = transaction.savepoint()
            transaction.put(table, prefix + b"bulk0", {A: b"own"})
            transaction.rollback_to(savepoint)
            transaction.put(table, prefix + b"r", {A: b"own"})
    with pytest.raises(InvalidRequest, match=jobs[1]) as caught:
        transaction.rollback_to(savepoint)
    assert jobs[0] not in str(caught.value)
    transaction.commit()
    assert seen(manager, table, prefix) == {b"bulk0": {A: b"bulk"}, b"bulk1": {A: b"bulk"}, b"r": {A: b"own"}}


def test_a_statement_that_reads_what_it_writes(manager: TransactionManager, table: str, prefix: bytes) -> None:
    """More rows than one batch of a scan, half of them stored and half of them its own; each is copied once."""
    rows = [b"%05d" % number for number in range(2 * SCAN_BATCH_ROWS)]
    with manager.transaction() as before:
        for row in rows[::2]:
            before.put(table, prefix + row, {A: b"1"})
    with manager.transaction() as transaction:
        for row in rows[1::2]:
            transaction.put(table, prefix + row, {A: b"2"})
        transaction.checkpoint()
        for row, values in transaction.scan(table, prefix=prefix, own_writes="before_checkpoint"):
            transaction.put(table, row + b"+", values)
        for row, values in transaction.scan(table, prefix=prefix):
            transaction.put(table, row, {B: values[A]})
        none = [row for row, _ in transaction.scan(table, prefix=prefix, own_writes="none")]
        assert none == [prefix + row for row in rows[::2]]
    values_of = {row: b"12"[number % 2 : number % 2 + 1] for number, row in enumerate(rows)}
    assert seen(manager, table, prefix) == {
        row + copied: {A: value, B: value} for row, value in values_of.items() for copied in (b"", b"+")
    }


def test_page_by_page_come_the_rows_of_a_scan_over_many_deleted_ones(
    manager: TransactionManager, table: str, prefix: bytes
) -> None:
    rows = [prefix + b"%05d" % number for number in range(ROW_BY_ROW_MAX + 2 * SCAN_BATCH_ROWS)]
    with manager.transaction() as before:
        for row in rows:
            before.put(table, row, {A: b"1", B: b"1"})
    with manager.transaction() as before:
        for row in rows[20:-20]:
            before.delete(table, row, [A, B])
    snapshot = manager.snapshot()
    stop = prefix + b"~"
    with manager.transaction(read_only=True) as reading, manager.transaction() as writing:
        writing.put(table, prefix + b"00500", {A: b"own"})
        for source in (snapshot, reading, writing):
            want = list(source.scan(table, prefix=prefix))
            assert list(source.scan(table, prefix=prefix, reverse=True)) == want[::-1]
            last = source.scan_page(table, start=prefix, stop=stop, rows_max=30, reverse=True)
            assert last.rows == want[:-31:-1]
            assert source.get_many(table, rows) == dict(want)
            for looked_at_max in (300, 10_000):
                found, start, pages = [], prefix, 0
                while start:
                    page = source.scan_page(table, start=start, stop=stop, rows_max=30, looked_at_max=looked_at_max)
                    found += page.rows
                    start = page.looked_at_to + b"\x00" if page.looked_at_to else b""
                    pages += 1
                assert found == want
                assert pages >= (len(rows) // (2 * looked_at_max) or 2)
        writing.forbid_commit("it was for reading")
        writing.rollback()


def test_bulk_writes_after_a_checkpoint_are_not_before_it(
    manager: TransactionManager, table: str, prefix: bytes
) -> None:
    with manager.transaction() as before:
        before.put(table, prefix + b"r", {A: b"stored"})
    with manager.transaction() as transaction:
        transaction.put(table, prefix + b"s", {A: b"own"})
        transaction.checkpoint()
        handle = transaction.handle()
        job = manager.open_job(handle)
        writer = manager.attempt_writer(handle, table, job, partition=0, attempt=0)
        writer.write(CellColumns.of_puts([RowPut(prefix + b"r", {A: b"bulk"})]))
        manager.seal_job(handle, job, [(0, 0)])
        stored, own, bulk = {A: b"stored"}, {A: b"own"}, {A: b"bulk"}
        expected: dict[OwnWrites, list[dict[bytes, bytes]]] = {
            "none": [stored],
            "before_checkpoint": [stored, own],
            "all": [bulk, own],
        }
        for level, rows in expected.items():
            assert [values for _, values in transaction.scan(table, prefix=prefix, own_writes=level)] == rows
        with pytest.raises(InvalidRequest, match=f"takes no checkpoint.*{job}"):
            transaction.checkpoint()


def test_hooks_write_into_the_transactions_that_they_are_told_of(
    oracle: ClientSettings, manager: TransactionManager, table: str, prefix: bytes
) -> None:
    class Audit(TransactionHooks):
        def before_commit(self, transaction: Transaction) -> None:
            written = [row for row, _ in transaction.scan(table, prefix=prefix)]
            transaction.put(table, prefix + b"audit", {A: b"%d" % len(written)})

    with TransactionManager.connect(oracle, hooks=Audit()) as audited:
        with audited.transaction() as transaction:
            transaction.put(table, prefix + b"r", {A: b"1"})
        loser = audited.transaction()
        loser.put(table, prefix + b"r", {A: b"2"})
        with manager.transaction() as rival:
            rival.put(table, prefix + b"r", {A: b"3"})
        with pytest.raises(Conflict):
            loser.commit()
    assert seen(manager, table, prefix) == {b"audit": {A: b"1"}, b"r": {A: b"3"}}
