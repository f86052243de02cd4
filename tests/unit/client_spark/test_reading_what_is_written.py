"""Jobs of one transaction that read the table that they write: none may take what it has written for its input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition

from client import InvalidRequest, Transaction, TransactionAborted, TransactionManager
from client.spark import reader, writer
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.options import SourceOptions
from client.spark.tables import create_table
from store import Row, RowPut
from store.columns import in_pieces
from tests.unit.client.conftest import Installation

MAPPING = TableMapping("w", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "string")))
OTHER = TableMapping("o", ("k",), MAPPING.columns)
BEFORE = {1: "before", 2: "before"}


@pytest.fixture
def manager(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> TransactionManager:
    made = installation.manager()
    for module in (reader, writer):
        monkeypatch.setattr(module, "manager_for", lambda settings: made)
    for mapping in (MAPPING, OTHER):
        create_table(made, mapping)
    with made.transaction() as transaction:
        write(transaction, MAPPING, BEFORE)
    return made


class Job:
    """A write of the transaction, as far as its tasks have come."""

    def __init__(self, transaction: Transaction, mapping: TableMapping, operation: str = "upsert") -> None:
        handle = transaction.handle()
        options = SourceOptions(handle.settings, mapping.table, transaction=handle, operation=operation)
        self._writer = writer.PythiaWriter(options, mapping, ["k", "v"])

    def task(self, rows: dict[int, str]) -> None:
        batch = pa.record_batch([pa.array(list(rows), pa.int32()), pa.array(list(rows.values()))], ["k", "v"])
        writer.write_batches(self._writer._attempt_writer(0, 0), self._writer._encoder(), [batch], 10_000)

    def end(self) -> None:
        self._writer.commit([writer.WrittenRows(0, 0, 0)])


def write(transaction: Transaction, mapping: TableMapping, rows: dict[int, str]) -> None:
    job = Job(transaction, mapping)
    job.task(rows)
    job.end()


class Read:
    """A read of the table in the transaction, planned now."""

    def __init__(self, transaction: Transaction, *, batch_rows: int = 10_000) -> None:
        handle = transaction.handle()
        options = SourceOptions(handle.settings, "w", transaction=handle, min_partitions=1, batch_rows=batch_rows)
        self._reader = reader.PythiaReader(options, MAPPING, MAPPING.to_struct())
        self._partitions: list[InputPartition] = self._reader.partitions()

    def batches(self) -> Iterator[dict[int, str]]:
        for partition in self._partitions:
            for batch in self._reader.read(partition):
                yield dict(zip(*batch.to_pydict().values(), strict=True))

    def rows(self) -> dict[int, str]:
        return {key: value for batch in self.batches() for key, value in batch.items()}


def test_a_table_that_no_earlier_job_wrote_is_read_as_it_was_whatever_the_job_has_written_into_it(
    manager: TransactionManager,
) -> None:
    with manager.transaction() as transaction:
        write(transaction, OTHER, {7: "earlier"})
        reading = Read(transaction)
        job = Job(transaction, MAPPING)
        job.task({3: "own", 1: "own"})
        assert reading.rows() == Read(transaction).rows() == BEFORE
        job.end()
        assert Read(transaction).rows() == {1: "own", 2: "before", 3: "own"}


def test_a_job_that_reads_what_it_has_written_into_a_table_that_an_earlier_one_wrote_is_refused(
    manager: TransactionManager,
) -> None:
    with manager.transaction() as transaction:
        write(transaction, MAPPING, {2: "earlier"})
        reading = Read(transaction)
        job = Job(transaction, MAPPING)
        assert reading.rows() == {1: "before", 2: "earlier"}, "it has written nothing so far"
        job.task({3: "own"})
        with pytest.raises(InvalidRequest, match=r"'w' is read .* a job of that transaction has .*localCheckpoint"):
            reading.rows()
        job.end()
        assert Read(transaction).rows() == {1: "before", 2: "earlier", 3: "own"}


def test_no_read_is_half_of_before_and_half_of_after_a_job_that_began_and_ended_meanwhile(
    manager: TransactionManager,
) -> None:
    with manager.transaction() as transaction:
        write(transaction, MAPPING, {2: "earlier"})
        batches = Read(transaction, batch_rows=1).batches()
        assert next(batches) == {1: "before"}
        write(transaction, MAPPING, {1: "later", 2: "later"})
        with pytest.raises(InvalidRequest, match=r"has written into it since.* load it again"):
            next(batches)
        assert Read(transaction).rows() == {1: "later", 2: "later"}


def test_a_read_that_was_planned_while_a_job_wrote_does_not_take_what_it_wrote_for_the_whole(
    manager: TransactionManager,
) -> None:
    with manager.transaction() as transaction:
        write(transaction, MAPPING, {2: "earlier"})
        job = Job(transaction, MAPPING)
        job.task({1: "own"})
        reading = Read(transaction)
        job.task({2: "own"})
        job.end()
        with pytest.raises(InvalidRequest, match="load it again"):
            reading.rows()


def test_no_batch_comes_of_a_read_that_the_job_has_caught_up_with(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        write(transaction, MAPPING, {2: "earlier"})
        batches = Read(transaction, batch_rows=1).batches()
        assert next(batches) == {1: "before"}
        job = Job(transaction, MAPPING)
        job.task({3: "own"})
        with pytest.raises(InvalidRequest, match="or does so now"):
            next(batches)
        job.end()


def test_a_read_that_finds_nothing_any_more_is_refused_too(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        write(transaction, MAPPING, {2: "earlier"})
        reading = Read(transaction)
        job = Job(transaction, MAPPING, operation="delete")
        job.task({1: "", 2: ""})
        with pytest.raises(InvalidRequest, match="or does so now"):
            reading.rows()
        job.end()
        assert Read(transaction).rows() == {}


def test_what_was_rolled_back_is_not_read(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    write(transaction, MAPPING, {2: "rolled back"})
    reading = Read(transaction)
    assert reading.rows() == {1: "before", 2: "rolled back"}
    transaction.rollback()
    with pytest.raises(TransactionAborted, match="'w' is nothing to read"):
        reading.rows()


def test_a_job_reads_one_table_that_an_earlier_one_wrote_while_it_writes_another(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        write(transaction, MAPPING, {2: "earlier"})
        reading = Read(transaction)
        job = Job(transaction, OTHER)
        job.task({3: "own"})
        assert reading.rows() == {1: "before", 2: "earlier"}
        job.end()


@pytest.mark.parametrize("later_table", ["w", "o"])
def test_a_look_for_later_jobs_passes_over_what_known_ones_recorded_and_over_nothing_else(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, later_table: str
) -> None:
    manifest, start_timestamp = manager.manifest, manager.transaction().start_timestamp
    for job, table, records in [("a", "o", 2), ("known", "w", 1_000), ("other", "w", 1_000), ("z", later_table, 1)]:
        manifest.open(start_timestamp, job)
        (cells,) = in_pieces([RowPut(b"row", {b"f:v": b"1"})])
        for partition in range(records):
            manifest.record(start_timestamp, job, (partition, 0), 0, table, "row", cells)
    read = 0
    scan = manager.store.scan

    def counted(*arguments: Any, **options: Any) -> Iterator[tuple[bytes, Row]]:
        nonlocal read
        for row in scan(*arguments, **options):
            read += 1
            yield row

    monkeypatch.setattr(manager.store, "scan", counted)
    assert manifest.is_written_by_others(start_timestamp, "w", {"known", "other"}) == (later_table == "w")
    assert read < 300
    assert manifest.is_written_by_others(start_timestamp, "w", {"known"})
    assert not manifest.is_written_by_others(start_timestamp, "w", {"known", "other", "z"})
