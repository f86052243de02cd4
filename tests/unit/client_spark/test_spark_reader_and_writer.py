"""What tasks and the driver's process do, without Spark and without a cluster."""

from __future__ import annotations

import gc
import itertools
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import types as spark
from pyspark.sql.datasource import Filter, GreaterThan, InputPartition, IsNotNull

from client import (
    Aborted,
    ClientSettings,
    Committed,
    NoPrimary,
    OutcomeUnknown,
    PythiaError,
    SnapshotHandle,
    TransactionAborted,
    TransactionHandle,
    TransactionManager,
)
from client.bulk_writes import batching
from client.bulk_writes.manifest import SWEEP
from client.bulk_writes.writing import AttemptWriter
from client.spark import codecs, connections, reader, writer
from client.spark.errors import InvalidMapping, InvalidOption
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.options import SourceOptions
from store.columns import CellColumns
from store.garbage import collector_paused
from tests.unit.client_spark.three_regions import ThreeRegions

SETTINGS = ClientSettings("127.0.0.1:1", "127.0.0.1:2")
HANDLE = TransactionHandle(30, 20, 10, SETTINGS)
MAPPING = TableMapping("t", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "string")))
MESSAGES = (writer.WrittenRows(0, 7, 10), writer.WrittenRows(1, 9, 5))


@dataclass
class FakeTransaction:
    """Ends as the test says: a result, or an error to raise."""

    calls: list[str]
    start_timestamp: int = HANDLE.start_timestamp
    committing: Committed | Exception = field(default_factory=lambda: Committed(40))
    rolling_back: Committed | Aborted | Exception = field(default_factory=Aborted)

    def handle(self) -> TransactionHandle:
        return HANDLE

    def commit(self) -> Committed:
        self.calls.append("commit")
        if isinstance(self.committing, Exception):
            raise self.committing
        return self.committing

    def rollback(self) -> Committed | Aborted:
        self.calls.append("rollback")
        if isinstance(self.rolling_back, Exception):
            raise self.rolling_back
        return self.rolling_back


class FakeManager:
    """A manager of one transaction that writes down what was asked of it."""

    def __init__(self, **ends: Any) -> None:
        self.calls: list[str] = []
        self.fake_transaction = FakeTransaction(self.calls, **ends)

    def transaction(self) -> FakeTransaction:
        self.calls.append("begin")
        return self.fake_transaction

    def resume(self, handle: TransactionHandle) -> FakeTransaction:
        assert handle == HANDLE
        return self.fake_transaction

    def open_job(self, handle: TransactionHandle) -> str:
        assert handle == HANDLE
        self.calls.append("open")
        return "the job"

    def seal_job(self, handle: TransactionHandle, job: str, winners: Sequence[tuple[int, int]]) -> None:
        assert (handle, job) == (HANDLE, "the job")
        self.calls.append(f"seal {winners}")

    def abort(self, start_timestamp: int) -> Committed | Aborted:
        self.calls.append(f"abort {start_timestamp}")
        return Aborted()


Using = Callable[..., FakeManager]


@pytest.fixture
def using(monkeypatch: pytest.MonkeyPatch) -> Using:
    def use(**ends: Any) -> FakeManager:
        manager = FakeManager(**ends)
        monkeypatch.setattr(writer, "manager_for", lambda settings: manager)
        return manager

    return use


def a_writer(*, shared: bool = False) -> writer.PythiaWriter:
    options = SourceOptions(SETTINGS, "t", transaction=HANDLE if shared else None)
    return cast(writer.PythiaWriter, pickle.loads(pickle.dumps(writer.PythiaWriter(options, MAPPING))))


def test_a_job_with_its_own_transaction_seals_and_commits(using: Using) -> None:
    manager = using()
    a_writer().commit(MESSAGES)
    assert manager.calls == ["begin", "open", "seal [(0, 7), (1, 9)]", "commit"]


def test_an_overwrite_deletes_before_it_seals(using: Using, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = using()
    overwriting = writer.PythiaWriter(SourceOptions(SETTINGS, "t"), MAPPING, ["k", "v"], overwrite=True)
    monkeypatch.setattr(overwriting, "_delete_the_rest", lambda _, winners: manager.calls.append(f"rest {winners}"))
    overwriting.commit(MESSAGES)
    assert manager.calls[2:] == ["rest [(0, 7), (1, 9)]", f"seal {[(0, 7), (1, 9), SWEEP]}", "commit"]


def test_a_wrong_prefix_is_refused_before_a_transaction_begins(using: Using) -> None:
    manager = using()
    with pytest.raises(InvalidOption, match="overwrite_prefix"):
        writer.PythiaWriter(SourceOptions(SETTINGS, "t", overwrite_prefix="x"), MAPPING, overwrite=True)
    assert manager.calls == []


def test_a_job_in_a_given_transaction_only_seals(using: Using) -> None:
    manager = using()
    a_writer(shared=True).commit(MESSAGES)
    assert manager.calls == ["open", "seal [(0, 7), (1, 9)]"]


def test_a_partition_without_a_message_is_not_sealed_away(using: Using) -> None:
    manager = using()
    with pytest.raises(PythiaError, match="1 partitions of the job did not report"):
        a_writer().commit([*MESSAGES, None])
    assert manager.calls == ["begin", "open"]


def test_a_commit_whose_answer_was_lost_is_settled_as_committed(using: Using) -> None:
    manager = using(committing=OutcomeUnknown(30, 1), rolling_back=Committed(40))
    a_writer().commit(MESSAGES)
    assert manager.calls[-2:] == ["commit", "rollback"]


def test_a_commit_whose_answer_was_lost_is_settled_as_aborted(using: Using) -> None:
    using(committing=OutcomeUnknown(30, 1))
    with pytest.raises(TransactionAborted):
        a_writer().commit(MESSAGES)


def test_a_commit_that_nobody_answers_for_stays_unknown(using: Using) -> None:
    using(committing=OutcomeUnknown(30, 1), rolling_back=NoPrimary(1, "none"))
    with pytest.raises(OutcomeUnknown):
        a_writer().commit(MESSAGES)


def test_a_refused_commit_is_raised_as_it_is(using: Using) -> None:
    manager = using(committing=TransactionAborted(30, "a conflict"))
    with pytest.raises(TransactionAborted, match="a conflict"):
        a_writer().commit(MESSAGES)
    assert manager.calls[-1] == "commit"


def test_abort_rolls_back(using: Using, caplog: pytest.LogCaptureFixture) -> None:
    manager = using()
    a_writer().abort([None, MESSAGES[0], None])
    assert manager.calls == ["begin", "open", "rollback"]
    assert not caplog.records


def test_abort_after_a_commit_that_took_effect_undoes_nothing_and_says_so(
    using: Using, caplog: pytest.LogCaptureFixture
) -> None:
    using(rolling_back=Committed(40))
    a_writer().abort(MESSAGES)
    assert "transaction 30 had committed" in caplog.text


def test_abort_dooms_a_given_transaction(using: Using, caplog: pytest.LogCaptureFixture) -> None:
    manager = using()
    a_writer(shared=True).abort([None])
    assert manager.calls == ["open", "abort 30"]
    assert "all of the transaction is aborted" in caplog.text


def test_write_is_for_tasks_only(using: Using) -> None:
    using()
    with pytest.raises(PythiaError, match="within a Spark task"):
        a_writer().write(iter(()))


@pytest.mark.parametrize(
    ("batch_sizes", "batch_rows", "bytes_wanted", "expected"),
    [
        ([5, 0, 2], 2, 2**23, [2, 2, 1, 2]),
        ([2, 2, 0, 1, 3, 1], 5, 2**23, [5, 4]),
        ([0, 0], 5, 2**23, []),
        ([3, 3, 3], 100, 60, [6, 3]),
        ([9], 100, 30, [3, 3, 3]),
    ],
)
def test_batches_are_written_together_in_bounded_pieces(
    monkeypatch: pytest.MonkeyPatch, batch_sizes: list[int], batch_rows: int, bytes_wanted: int, expected: list[int]
) -> None:
    written: list[CellColumns] = []

    class FakeAttemptWriter:
        def write(self, cells: CellColumns) -> None:
            written.append(cells)

    for module in (batching, writer):
        monkeypatch.setattr(module, "PIECE_BYTES_WANTED", bytes_wanted)
    attempt_writer = cast(AttemptWriter, FakeAttemptWriter())
    ends = list(itertools.accumulate(batch_sizes, initial=0))
    batches = [a_batch(range(first, last)) for first, last in itertools.pairwise(ends)]
    assert writer.write_batches(attempt_writer, codecs.RowEncoder(MAPPING), batches, batch_rows) == ends[-1]
    assert [cells.rows for cells in written] == expected
    keys = [key for cells in written for key in cells.row_keys()]
    assert keys == codecs.RowEncoder(MAPPING).encode(a_batch(range(ends[-1]))).row_keys()


def a_batch(keys: range) -> pa.RecordBatch:
    return pa.record_batch([pa.array(keys, pa.int32()), pa.array(["x"] * len(keys), pa.string())], ["k", "v"])


def rows(*sizes: int) -> Iterator[batching.ScannedRow]:
    for index, size in enumerate(sizes):
        yield bytes([index]), {b"f:v": b"x" * size}


def test_lists_of_rows_end_at_their_number_of_rows_or_bytes() -> None:
    def sizes(rows_max: int, bytes_max: int, *row_sizes: int) -> list[int]:
        return [len(batch) for batch in batching.batches(rows(*row_sizes), rows_max, bytes_max)]

    assert sizes(2, 1000, 1, 1, 1, 1, 1) == [2, 2, 1]
    assert sizes(2, 1000, 1, 1) == [2]
    assert sizes(100, 10, 9, 4, 4, 4, 50, 1) == [1, 2, 2, 1]
    assert sizes(2, 1000) == []


def test_a_schema_that_the_table_does_not_have_cannot_be_read() -> None:
    schema = spark.StructType([spark.StructField("v", spark.LongType())])
    with pytest.raises(InvalidMapping, match="column 'v' is bigint, the table has string"):
        reader.PythiaReader(SourceOptions(SETTINGS, "t"), MAPPING, schema)


class FakeManifest:
    def __init__(self, **jobs: bool) -> None:
        self.jobs = jobs

    def jobs_into(self, start_timestamp: int, table: str) -> dict[str, bool]:
        assert (start_timestamp, table) == (HANDLE.start_timestamp, "t")
        return self.jobs


@pytest.mark.parametrize(
    ("jobs", "own_writes"), [({}, False), ({"reads": False}, False), ({"before": True, "reads": False}, True)]
)
def test_a_table_is_read_without_the_transactions_own_writes_until_a_job_that_wrote_into_it_has_ended(
    jobs: dict[str, bool], own_writes: bool
) -> None:
    manager = cast(TransactionManager, type("Manager", (), {"manifest": FakeManifest(**jobs)})())
    seen = reader.view_to_read(manager, SourceOptions(SETTINGS, "t", transaction=HANDLE))
    assert seen == (
        (HANDLE, frozenset({"before"})) if own_writes else (SnapshotHandle(20, 10, SETTINGS, 30), frozenset())
    )


@pytest.mark.parametrize("as_of", [20, "end-of-2013"])
def test_a_moment_is_resolved_once_where_the_read_is_planned(monkeypatch: pytest.MonkeyPatch, as_of: int | str) -> None:
    asked: list[Any] = []

    class Manager:
        store = ThreeRegions()

        def snapshot(self, at: object) -> Any:
            asked.append(at)
            return type("Taken", (), {"handle": lambda self: SnapshotHandle(20, 10, SETTINGS)})()

    monkeypatch.setattr(reader, "manager_for", lambda settings: Manager())
    planned = reader.PythiaReader(SourceOptions(SETTINGS, "t", as_of=as_of), MAPPING, MAPPING.to_struct()).partitions()
    assert asked == [as_of]
    assert {task.value.view for task in planned} == {SnapshotHandle(20, 10, SETTINGS)}


WIDE = TableMapping(
    "t", ("k",), (KeyColumn("k", "int"), ValueColumn("a", "int"), ValueColumn("b", "int", "g"), ValueColumn("c", "int"))
)


@pytest.mark.parametrize(
    ("names", "filters", "cells"),
    [
        (["k", "a"], [], [b"f", b"g"]),
        (["k", "a"], [IsNotNull(("k",))], [b"f", b"g"]),
        (["k", "a"], [IsNotNull(("a",))], [b"f:a"]),
        (["c", "b"], [IsNotNull(("b",)), GreaterThan(("b",), 1)], [b"g:b", b"f:c"]),
        (["a", "b", "c"], [IsNotNull(("b",))], [b"f", b"g"]),
    ],
)
def test_single_cells_are_read_only_where_no_row_of_nulls_can_pass(
    names: list[str], filters: list[Filter], cells: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[bytes]] = []

    def scan(
        manager: object, mapping: object, task: object, columns: Sequence[bytes], batch_rows: int
    ) -> Iterator[CellColumns]:
        asked.append(columns)
        yield from ()

    monkeypatch.setattr(reader, "manager_for", lambda settings: None)
    monkeypatch.setattr(reader, "scan", scan)
    reading = reader.FilteringReader(SourceOptions(SETTINGS, "t"), WIDE, WIDE.to_struct(names))
    assert reading.pushFilters(filters) == tuple(each for each in filters if each != IsNotNull(("k",)))
    list(pickle.loads(pickle.dumps(reading)).read(InputPartition(reader.ReadTask((), HANDLE))))
    assert asked == [cells]


def test_collection_is_paused_within_the_block_only() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_pauses_of_two_threads_that_cross_leave_the_collector_running() -> None:
    began, ended = threading.Event(), threading.Event()

    def pause() -> None:
        with collector_paused():
            began.set()
            ended.wait(60)

    thread = threading.Thread(target=pause)
    with collector_paused():
        thread.start()
        began.wait(60)
    assert gc.isenabled(), "whoever ends a pause lets collections run"
    ended.set()
    thread.join()
    assert gc.isenabled()


def test_a_process_keeps_a_bounded_number_of_managers(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Connected:
        def __init__(self, settings: ClientSettings) -> None:
            self.root = settings.root

        def close(self) -> None:
            closed.append(self.root)

    monkeypatch.setattr(TransactionManager, "connect", Connected)
    settings = [ClientSettings("127.0.0.1:1", "127.0.0.1:2", f"/{index}") for index in range(6)]
    first = connections.manager_for(settings[0])
    for chosen in settings[1:4]:
        connections.manager_for(chosen)
    assert connections.manager_for(settings[0]) is first
    connections.manager_for(settings[4])
    assert closed == ["/1"]
    connections.close_managers()
    assert sorted(closed) == ["/0", "/1", "/2", "/3", "/4"]
