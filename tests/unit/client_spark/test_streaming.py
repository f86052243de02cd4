"""The life of a micro-batch without Spark: a real oracle, twins of HBase and ZooKeeper, and a death at every step."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.datasource import WriterCommitMessage

from client import (
    Aborted,
    Committed,
    Conflict,
    InvalidRequest,
    PythiaError,
    Transaction,
    TransactionManager,
)
from client.cells import encode_value
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, row_key, streaming
from client.spark.errors import InvalidOption
from client.spark.options import SourceOptions, parse
from client.spark.progress import Progress
from client.spark.streaming import PythiaStreamWriter, WrittenPart, land_batch, stream_progress
from store import StoreError
from tests.unit.client.conftest import SETTINGS, Installation
from tests.unit.client_spark.striking import Died, Fault, struck_manager

MAPPING = TableMapping("counts", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "string")))
V = b"f:v"

numbers = itertools.count(1)


@dataclass
class World:
    """An installation, and which process's manager the code under test is using now."""

    installation: Installation
    sound: TransactionManager
    """Of a process that looks on."""
    using: TransactionManager
    query: str = field(default_factory=lambda: f"query-{next(numbers)}")
    attempts: Iterator[int] = field(default_factory=itertools.count)

    @property
    def key(self) -> int:
        """The row that the query's batches write; no other query does."""
        return int(self.query.partition("-")[2])

    def process(self, fault: Fault | None = None) -> TransactionManager:
        """Go on in another process, in which a fault lies in wait."""
        self.close()
        self.using = struck_manager(self.installation, fault or Fault())
        return self.using

    def close(self) -> None:
        """End the process in use."""
        if self.using is not self.sound:
            self.using.close()

    def plan(self) -> PythiaStreamWriter:
        return cast(PythiaStreamWriter, pickle.loads(pickle.dumps(a_writer())))

    def write(self, planned: PythiaStreamWriter, value: str) -> list[WriterCommitMessage | None]:
        rows = pa.record_batch([pa.array([self.key], pa.int32()), pa.array([value], pa.string())], ["k", "v"])
        return [pickle.loads(pickle.dumps(planned.write(iter([rows]))))]

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        a_writer().commit(messages, batch)

    def run(self, batch: int, value: str) -> None:
        """What Spark does with a batch; raises what made it fail."""
        messages: list[WriterCommitMessage | None] = [None]
        try:
            messages = self.write(self.plan(), value)
            self.commit(messages, batch)
        except (PythiaError, StoreError):
            a_writer().abort(messages, batch)
            raise

    def land(self, batch: int, value: str) -> bool:
        """What a function of ``foreachBatch`` does with a batch; raises what ends the query."""

        def job(transaction: Transaction) -> None:
            transaction.put("counts", row_key(MAPPING, self.key), {V: value.encode()})

        return land_batch(self.using, a_batch_of(self.query), batch, job)

    def landed(self) -> list[str]:
        """Every value of the query's row that committed, the newest first."""
        row = row_key(MAPPING, self.key)
        found = []
        before: int | None = None
        while versions := self.sound.store.versions("counts", row, V, before=before, limit=1):
            before = versions[0].timestamp
            if isinstance(self.sound.outcome(before), Committed):
                found.append(versions[0].value)
        return [next(value for value in VALUES if encode_value(value.encode()) == stored) for stored in found]

    def on_record(self, table: str = "counts") -> Progress | None:
        return stream_progress(self.sound, self.query, table)


VALUES = ("first", "second", "third", "rival")


@dataclass
class FakeTask:
    world: World

    def partitionId(self) -> int:  # noqa: N802  # Spark's names
        return 0

    def taskAttemptId(self) -> int:  # noqa: N802
        return next(self.world.attempts)

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        return {"sql.streaming.queryId": self.world.query}.get(name)


def a_batch_of(query: str | None) -> DataFrame:
    """A DataFrame of which only the query is looked at that it comes from."""
    context = SimpleNamespace(getLocalProperty={"sql.streaming.queryId": query}.get)
    return cast(DataFrame, SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context)))


def a_writer() -> PythiaStreamWriter:
    return PythiaStreamWriter(SourceOptions(SETTINGS, "counts"), MAPPING)


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    made = Installation()
    made.serve()
    create_table(made.manager(), MAPPING)
    yield made
    made.close()


@pytest.fixture(scope="module")
def sound(installation: Installation) -> TransactionManager:
    return installation.manager()


@pytest.fixture
def world(installation: Installation, sound: TransactionManager, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(installation, sound, sound)
    task = type("TaskContext", (), {"get": staticmethod(lambda: FakeTask(world))})
    monkeypatch.setattr(streaming, "TaskContext", task)
    monkeypatch.setattr(streaming, "manager_for", lambda settings: world.using)
    yield world
    world.close()


def test_batches_land_with_their_record(world: World) -> None:
    world.run(0, "first")
    assert (world.landed(), world.on_record()) == (["first"], Progress(0, 0))
    world.run(1, "second")
    assert (world.landed(), world.on_record()) == (["second", "first"], Progress(0, 1))


def test_a_batch_that_is_on_record_is_dropped_though_it_was_computed_differently(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.run(0, "first")
    messages = world.write(world.plan(), "second")
    world.commit(messages, 0)
    assert "batch 0 of query" in caplog.text
    assert world.landed() == ["first"]
    dropped = cast(WrittenPart, messages[0]).part.handle.start_timestamp
    assert isinstance(world.using.outcome(dropped), Aborted)
    world.run(1, "third")
    assert world.landed() == ["third", "first"]


def test_of_two_incarnations_at_once_one_writes_the_batch_and_both_go_on(world: World) -> None:
    world.run(0, "first")
    one, other = world.write(world.plan(), "second"), world.write(world.plan(), "third")
    world.commit(other, 1)
    world.commit(one, 1)
    assert (world.landed(), world.on_record()) == (["third", "first"], Progress(0, 1))


def test_two_incarnations_conflict_by_their_record_alone(world: World) -> None:
    """Their rows are not the same, as where the input is not deterministic."""
    one = world.write(world.plan(), "first")
    query = world.query
    world.query = f"query-{next(numbers)}"  # whose row the second incarnation writes
    other_row = world.key
    planned = world.plan()
    rows = pa.record_batch([pa.array([other_row], pa.int32()), pa.array(["second"], pa.string())], ["k", "v"])
    world.query = query
    other = [planned.write(iter([rows]))]
    world.commit(one, 0)
    world.commit(other, 0)
    assert world.landed() == ["first"]
    world.query = f"query-{other_row}"
    assert world.landed() == []


def test_the_record_of_one_query_or_table_is_not_that_of_another(world: World) -> None:
    world.run(0, "first")
    key, world.query = world.key, f"query-{next(numbers)}"
    assert world.on_record() is None
    assert stream_progress(world.using, f"query-{key}", "another_table") is None
    world.run(0, "first")
    assert world.landed() == ["first"]


def test_a_conflict_over_rows_fails_the_batch_which_can_be_repeated(world: World) -> None:
    messages = world.write(world.plan(), "first")
    with world.using.transaction() as rival:
        rival.put("counts", row_key(MAPPING, world.key), {V: b"rival"})
    with pytest.raises(Conflict):
        world.commit(messages, 0)
    assert (world.landed(), world.on_record()) == (["rival"], None)
    world.run(0, "second")
    assert (world.landed(), world.on_record()) == (["second", "rival"], Progress(0, 0))


def test_a_batch_below_the_record_is_refused(world: World) -> None:
    world.run(7, "first")
    with pytest.raises(
        InvalidRequest, match=r"is older than the newest on record.* start the query with a new checkpoint"
    ):
        world.run(6, "second")
    assert world.landed() == ["first"]


def test_input_that_came_after_a_checkpoint_was_put_back_is_refused_rather_than_lost(world: World) -> None:
    """Spark cuts its batches anew then: batch 1 holds what came since, and is on record under another content."""
    for batch, value in enumerate(("first", "second", "third")):
        world.run(batch, value)
    with pytest.raises(InvalidRequest, match=r"batch 1 of .* was put back or copied.*nothing of it was written"):
        world.run(1, "rival")
    assert (world.landed(), world.on_record()) == (["third", "second", "first"], Progress(0, 2))


def test_a_batch_without_rows_is_on_record_like_any_other(world: World) -> None:
    messages = [world.plan().write(iter(()))]
    world.commit(messages, 0)
    assert (world.landed(), world.on_record()) == ([], Progress(0, 0))


def test_a_batch_without_partitions_does_nothing(world: World) -> None:
    fault = Fault()
    world.process(fault)
    world.commit([], 0)
    assert (fault.calls, world.on_record()) == (0, None)


def test_a_batch_of_which_a_partition_did_not_report_is_not_committed(world: World) -> None:
    messages = world.write(world.plan(), "first")
    with pytest.raises(PythiaError, match="1 partitions of the batch did not report"):
        world.commit([*messages, None], 0)
    assert world.landed() == []


def test_reports_of_two_attempts_at_a_batch_are_not_mixed(world: World) -> None:
    messages = world.write(world.plan(), "first") + world.write(world.plan(), "first")
    with pytest.raises(PythiaError, match="report 2 transactions"):
        world.commit(messages, 0)
    assert world.landed() == []


def test_a_transaction_begins_where_the_batch_is_planned_and_nowhere_else(world: World) -> None:
    fault = Fault()
    world.process(fault)
    writer = a_writer()
    assert fault.calls == 0
    tasks = [pickle.loads(pickle.dumps(writer)) for _ in range(2)]
    reports = [task.write(iter(())) for task in tasks]
    assert reports[0].part == reports[1].part


def test_an_abort_after_a_commit_that_took_effect_undoes_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    messages = world.write(world.plan(), "first")
    world.commit(messages, 0)
    a_writer().abort(messages, 0)
    assert world.landed() == ["first"]
    assert "had committed although its commit reported an error" in caplog.text


def test_after_an_abort_nothing_of_the_batch_can_commit(world: World) -> None:
    messages = world.write(world.plan(), "first")
    a_writer().abort([None, *messages], 0)
    with pytest.raises(PythiaError):
        world.commit(messages, 0)
    assert world.landed() == []


def test_an_abort_of_which_no_task_reported_does_nothing(world: World) -> None:
    fault = Fault()
    world.process(fault)
    a_writer().abort([None, None], 0)
    assert fault.calls == 0


def test_parts_are_written_in_tasks_of_a_query_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = world.plan()
    monkeypatch.setattr(FakeTask, "getLocalProperty", lambda task, name: None)
    with pytest.raises(PythiaError, match="a streaming query only"):
        planned.write(iter(()))


@pytest.mark.parametrize(
    ("options", "overwrite", "text"),
    [
        ({}, True, "output mode 'complete' is not supported"),
        ({"columns": ("v",)}, False, "leave the options 'transaction'"),
        ({"as_of": 7}, False, "leave the options 'transaction'"),
        ({"operation": "delete"}, False, "leave the options 'operation'"),
        ({"overwrite_prefix": "[1]"}, False, "leave the options 'operation'"),
    ],
)
def test_what_a_stream_cannot_be_written_with_is_refused(options: dict[str, Any], overwrite: bool, text: str) -> None:
    with pytest.raises(InvalidOption, match=text):
        streaming.check_streamable(SourceOptions(SETTINGS, "counts", **options), overwrite=overwrite)


def test_the_options_that_are_sparks_own_are_let_through() -> None:
    given = {"table": "counts", "checkpointLocation": "/somewhere", "queryName": "counting"}
    assert parse(given, {"zookeeper": SETTINGS.zookeeper, "thrift": SETTINGS.thrift}).table == "counts"


# --- foreachBatch -----------------------------------------------------------------------------------------------------


def test_a_function_of_foreach_batch_lands_each_batch_with_its_record(world: World) -> None:
    assert (world.land(0, "first"), world.land(1, "second")) == (True, True)
    assert (world.landed(), world.on_record("")) == (["second", "first"], Progress(0, 1))
    assert world.on_record() is None, "the record of a sink is another one"


def test_a_function_of_foreach_batch_is_not_called_for_what_has_landed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    assert (world.land(0, "first"), world.land(0, "second")) == (True, False)
    assert "is in its tables already" in caplog.text
    assert world.landed() == ["first"]


def test_a_function_of_foreach_batch_is_refused_a_batch_below_the_record(world: World) -> None:
    world.land(7, "first")
    with pytest.raises(InvalidRequest, match=r"newest on record for its tables, 7: .*nothing of it was written"):
        world.land(6, "second")
    assert world.landed() == ["first"]


def test_of_two_drivers_with_one_query_one_lands_the_batch_and_both_go_on(world: World) -> None:
    """The second one begins, and commits, while the first is at work; their rows are not the same."""
    calls = list[str]()

    def job(transaction: Transaction) -> None:
        calls.append("again" if calls else "first")
        transaction.put("counts", row_key(MAPPING, -1), {V: b"first"})
        if len(calls) == 1:
            assert world.land(0, "rival")

    assert not land_batch(world.sound, a_batch_of(world.query), 0, job)
    assert (calls, world.landed(), world.on_record("")) == (["first"], ["rival"], Progress(0, 0))
    assert world.sound.snapshot().get("counts", row_key(MAPPING, -1)) == {}


def test_a_function_of_foreach_batch_is_called_again_after_a_conflict_over_rows(world: World) -> None:
    calls = list[int]()

    def job(transaction: Transaction) -> None:
        calls.append(transaction.start_timestamp)
        transaction.put("counts", row_key(MAPPING, world.key), {V: b"first"})
        if len(calls) == 1:
            with world.using.transaction() as rival:
                rival.put("counts", row_key(MAPPING, world.key), {V: b"rival"})

    assert land_batch(world.using, a_batch_of(world.query), 0, job)
    assert (len(calls), world.landed(), world.on_record("")) == (2, ["first", "rival"], Progress(0, 0))


def test_a_batch_is_landed_within_foreach_batch_only(world: World) -> None:
    with pytest.raises(InvalidRequest, match="the function that foreachBatch calls"):
        land_batch(world.using, a_batch_of(None), 0, lambda transaction: None)


@pytest.mark.parametrize("checkpoint", [None, Path("counts")])
def test_where_spark_does_not_tell_the_query_the_checkpoint_has_to_be_named(world: World, checkpoint: Any) -> None:
    by_spark_connect = cast(DataFrame, SimpleNamespace(sparkSession=SimpleNamespace()))
    with pytest.raises(InvalidRequest, match=r"Spark Connect does not tell .*: call land_batch with checkpoint="):
        land_batch(world.using, by_spark_connect, 0, lambda transaction: None, checkpoint=checkpoint)


# --- faults at every call ---------------------------------------------------------------------------------------------


def calls_of_a_batch(world: World, run: Callable[[World, int, str], object]) -> int:
    """How often a batch that goes well calls the store and the oracle."""
    counting = Fault()
    world.process(counting)
    run(world, 0, "first")
    assert counting.calls > 5
    return counting.calls


@pytest.mark.parametrize(("run", "table"), [(World.run, "counts"), (World.land, "")], ids=["sink", "foreachBatch"])
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
@pytest.mark.parametrize("kills", [False, True], ids=["a call that fails", "a process that dies"])
def test_a_batch_lands_exactly_once_whichever_call_its_first_run_ended_at(
    world: World, kills: bool, after: bool, run: Callable[[World, int, str], object], table: str
) -> None:
    ends = set()
    for at in range(1, calls_of_a_batch(world, run) + 1):
        world.query = f"query-{next(numbers)}"
        world.process(Fault(at, kills, after))
        failed = True
        try:
            run(world, 0, "first")
            failed = False
        except (Died, PythiaError, StoreError):
            pass
        earlier = world.landed()
        assert earlier in ([], ["first"])
        assert failed or earlier, f"call {at}: the batch was acknowledged, and nothing landed"
        world.process()
        run(world, 0, "second")
        assert len(world.landed()) == 1, f"call {at}: the batch landed {len(world.landed())} times"
        assert world.landed() == (earlier or ["second"]), f"call {at}: what landed was taken back"
        assert world.on_record(table) == Progress(0, 0)
        run(world, 1, "third")
        assert world.landed() == ["third", *(earlier or ["second"])]
        ends.add((failed, bool(earlier)))
    assert (True, False) in ends
    assert (True, True) in ends or not kills  # dead, and committed: what the record is there for
