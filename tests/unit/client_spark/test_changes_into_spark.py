"""What Spark's processes ask of a reader of changes, without Spark and without a cluster."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from client import InvalidRequest, TransactionManager
from client.spark import changes, source
from client.spark.change_columns import DELETE, UPSERT
from client.spark.changes import ChangesReader, FilteringChangesReader, PythiaStreamReader
from client.spark.errors import InvalidMapping, InvalidOption
from client.spark.key_codec import row_key
from client.spark.mapping import KeyColumn, TableMapping, ValueColumn
from client.spark.options import POLL_INTERVAL_MS
from client.spark.source import PythiaDataSource
from client.spark.tables import create_table

MAPPING = TableMapping("w", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "string")))
OPTIONS = {"table": "w", "zookeeper": "127.0.0.1:1", "thrift": "127.0.0.1:1", "min_partitions": "1"}
CELL = b"f:v"


@pytest.fixture
def manager(manager: TransactionManager, monkeypatch: pytest.MonkeyPatch) -> TransactionManager:
    for module in (changes, source):
        monkeypatch.setattr(module, "manager_for", lambda settings: manager)
    create_table(manager, MAPPING)
    return manager


def put(manager: TransactionManager, **values: str | None) -> int:
    """Rows by number, as in ``_1="a"``; returns a moment after it."""
    with manager.transaction() as transaction:
        for name, value in values.items():
            row = row_key(MAPPING, int(name[1:]))
            if value is None:
                transaction.delete("w", row)
            else:
                transaction.put("w", row, {CELL: value.encode()})
    return manager.snapshot().timestamp


def batch_reader(manager: TransactionManager, **options: Any) -> ChangesReader:
    made = PythiaDataSource({**OPTIONS, **{name: str(value) for name, value in options.items()}})
    reader = made.reader(made.schema())
    assert isinstance(reader, ChangesReader)
    return reader


def rows_of(reader: ChangesReader | PythiaStreamReader, partitions: Any) -> list[tuple[Any, ...]]:
    """Without when they were committed."""
    return [tuple(row.values())[:3] for each in partitions for batch in reader.read(each) for row in batch.to_pylist()]


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(changes, "time", made)
    return made


class Query:
    """Asks a stream's reader as Spark does, batch by batch."""

    def __init__(self, since: int | str = 0, checkpoint: dict[str, Any] | None = None, **options: str) -> None:
        made = PythiaDataSource({**OPTIONS, "changed_since": str(since), **options})
        self.reader = made.streamReader(made.schema())
        self.done = checkpoint or self.reader.initialOffset()

    def batch(self, end: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        end = end or self.reader.latestOffset()
        rows = rows_of(self.reader, self.reader.partitions(self.done, end))
        self.reader.commit(end)
        self.done = end
        return rows


def test_a_batch_has_what_changed_with_what_is_to_be_done(manager: TransactionManager) -> None:
    before = put(manager, _1="a", _2="b", _3="c")
    put(manager, _1=None, _2="B", _4="d")
    reader = batch_reader(manager, changed_since=before)
    assert rows_of(reader, reader.partitions()) == [(1, None, DELETE), (2, "B", UPSERT), (4, "d", UPSERT)]
    beginning = batch_reader(manager, changed_since=0)
    assert rows_of(beginning, beginning.partitions()) == [(2, "B", UPSERT), (3, "c", UPSERT), (4, "d", UPSERT)]


def test_filters_on_the_row_key_narrow_what_is_looked_at_and_no_others_do(manager: TransactionManager) -> None:
    before = put(manager, _1="a", _2="b", _3="c")
    put(manager, _1=None, _2="B", _3=None)
    reader = batch_reader(manager, changed_since=before, push_filters="true")
    assert isinstance(reader, FilteringChangesReader)
    others = [EqualTo(("_change_type",), UPSERT), GreaterThan(("_commit_timestamp",), 7), EqualTo(("v",), "B")]
    assert list(reader.pushFilters([GreaterThan(("k",), 1), *others])) == others
    assert rows_of(reader, reader.partitions()) == [(2, "B", UPSERT), (3, None, DELETE)]


def test_a_schema_that_is_asked_for_decides_which_columns_come_and_in_which_order(manager: TransactionManager) -> None:
    put(manager, _1="a")
    made = PythiaDataSource({**OPTIONS, "changed_since": "0"})
    asked = StructType([StructField("_CHANGE_TYPE", StringType()), StructField("v", StringType())])
    reader = made.reader(asked)
    (batch,) = (batch for each in reader.partitions() for batch in reader.read(each))
    assert batch.to_pydict() == {"_CHANGE_TYPE": [UPSERT], "v": ["a"]}
    with pytest.raises(InvalidMapping, match="column 'w' "):
        made.reader(StructType([StructField("w", IntegerType()), StructField("_commit_timestamp", LongType())]))


def test_a_table_that_has_a_column_of_that_name_is_refused(manager: TransactionManager) -> None:
    columns = (KeyColumn("k", "int"), ValueColumn("_Change_Type", "string"), ValueColumn("v", "int"))
    create_table(manager, TableMapping("taken", ("k",), columns))
    taken = PythiaDataSource({**OPTIONS, "table": "taken", "changed_since": "0"})
    with pytest.raises(InvalidOption, match="has a column '_Change_Type' that says what, and table 'taken' has one"):
        taken.schema()
    chosen = PythiaDataSource({**OPTIONS, "table": "taken", "changed_since": "0", "columns": "k,v"})
    assert chosen.schema().names == ["k", "v", "_change_type", "_commit_timestamp"]


def test_a_stream_begins_with_all_rows_and_goes_on_with_what_changes(manager: TransactionManager, clock: Clock) -> None:
    put(manager, _1="a", _2="b", _3="c")
    put(manager, _3=None)
    query = Query()
    assert query.batch() == [(1, "a", UPSERT), (2, "b", UPSERT)]
    put(manager, _1=None, _2="B")
    clock.now_s += POLL_INTERVAL_MS / 1000
    assert query.batch() == [(1, None, DELETE), (2, "B", UPSERT)]
    clock.now_s += POLL_INTERVAL_MS / 1000
    assert query.batch() == []


def test_between_two_batches_lies_the_interval(manager: TransactionManager, clock: Clock) -> None:
    query = Query()
    assert query.batch() == []
    put(manager, _1="a")
    clock.now_s += POLL_INTERVAL_MS / 1000 - 1
    assert query.reader.latestOffset() == query.done, "so that Spark makes no batch"
    assert query.reader.partitions(query.done, query.done) == []
    clock.now_s += 1
    assert query.batch() == [(1, "a", UPSERT)]


def test_a_query_that_takes_what_there_is_stops_where_it_was_told_to(manager: TransactionManager, clock: Clock) -> None:
    put(manager, _1="a")
    query = Query()
    query.reader.prepareForTriggerAvailableNow()
    put(manager, _1="A", _2="b")
    clock.now_s += POLL_INTERVAL_MS / 1000
    assert query.batch() == [(1, "a", UPSERT)]
    clock.now_s += POLL_INTERVAL_MS / 1000
    assert query.reader.latestOffset(query.done, None) == query.done


def test_after_a_restart_a_batch_is_what_it_was_and_the_rest_comes_with_the_next(manager: TransactionManager) -> None:
    put(manager, _1="a")
    first = Query()
    assert first.batch() == [(1, "a", UPSERT)]
    checkpoint = dict(first.done)
    put(manager, _2="b")
    end = {"timestamp": manager.snapshot().timestamp}
    put(manager, _2="B", _3="c")
    again = Query(checkpoint=checkpoint)
    assert again.batch(end) == [(2, "b", UPSERT)]
    assert again.batch() == [(2, "B", UPSERT), (3, "c", UPSERT)]


def test_a_stream_may_begin_at_a_moment(manager: TransactionManager) -> None:
    since = put(manager, _1="a")
    put(manager, _2="b")
    manager.create_snapshot("then", since)
    for begin in (since, "then"):
        assert Query(begin).batch() == [(2, "b", UPSERT)]


def test_snapshots_are_held_for_as_long_as_a_batch_begins_or_ends_there(
    manager: TransactionManager, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[weakref.ref[Any]] = []
    take = manager.snapshot

    def snapshot(*arguments: Any, **named: Any) -> Any:
        taken = take(*arguments, **named)
        held.append(weakref.ref(taken))
        return taken

    def alive() -> list[bool]:
        gc.collect()
        return [each() is not None for each in held]

    monkeypatch.setattr(manager, "snapshot", snapshot)
    query = Query()
    first = query.reader.latestOffset()
    list(query.reader.partitions(query.done, first))
    clock.now_s += POLL_INTERVAL_MS / 1000
    second = query.reader.latestOffset()
    assert alive() == [True, True], "of one batch and the next"
    query.reader.commit(first)
    assert alive() == [True, True], "where the next one begins"
    query.reader.commit(second)
    assert alive() == [False, True]


def test_a_name_goes_where_the_next_batch_begins_and_stays_there_while_nothing_runs(
    manager: TransactionManager, clock: Clock
) -> None:
    def position() -> int:
        (named,) = manager.snapshots()
        assert (named.name, named.is_finished) == ("copy", True)
        return named.timestamp

    query = Query(position_snapshot="copy")
    first = query.reader.latestOffset()
    query.reader.partitions(query.done, first)
    assert position() == first["timestamp"], "nothing is needed from before the first batch"
    clock.now_s += POLL_INTERVAL_MS / 1000
    second = query.reader.latestOffset()
    query.reader.commit(first)
    query.reader.partitions(first, second)
    assert position() == first["timestamp"]
    again = Query(position_snapshot="copy", checkpoint=second)
    third = again.reader.latestOffset()
    again.reader.partitions(second, third)
    assert position() == second["timestamp"], "Spark does not say of the last batch of a query that it is done"
    again.reader.partitions(first, second)
    assert position() == second["timestamp"], "never back"
    again.reader.commit(third)
    assert position() == third["timestamp"]


def test_a_stream_from_a_moment_on_takes_a_name_that_stands_there_along(manager: TransactionManager) -> None:
    since = put(manager, _1="a")
    manager.create_snapshot("copy", since)
    query = Query("copy", position_snapshot="copy")
    query.reader.partitions(query.done, query.reader.latestOffset())
    assert [each.timestamp for each in manager.snapshots()] == [since]
    assert query.batch() == []
    assert [each.timestamp for each in manager.snapshots()] == [query.done["timestamp"]]


@pytest.mark.parametrize("offset", [{}, {"timestamp": "7"}, {"0": {"index": 3}}])
def test_the_offset_of_another_source_is_refused(manager: TransactionManager, offset: dict[str, Any]) -> None:
    query = Query()
    with pytest.raises(InvalidRequest, match="Start with a new checkpointLocation"):
        query.reader.partitions(offset, query.reader.latestOffset())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "say from when on, with 'changed_since': 0 for all"),
        ({"changed_since": "0", "as_of": "then"}, "leave the options 'transaction', 'snapshot', 'as_of' and"),
        ({"changed_since": "0", "push_filters": "true"}, "and 'push_filters' out of a stream"),
        ({"changed_since": "0", "overwrite_prefix": "[1]"}, "are for writing"),
    ],
)
def test_what_a_stream_cannot_be_told(manager: TransactionManager, options: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidOption, match=reason):
        PythiaDataSource({**OPTIONS, **options}).streamReader(MAPPING.to_struct())


def test_what_a_batch_cannot_be_told(manager: TransactionManager) -> None:
    for options, reason in (
        ({"poll_interval_ms": "5"}, "'poll_interval_ms' and 'position_snapshot' are for streams"),
        ({"position_snapshot": "copy"}, "'poll_interval_ms' and 'position_snapshot' are for streams"),
        ({"changed_since": "0", "operation": "delete"}, "are for writing"),
    ):
        with pytest.raises(InvalidOption, match=reason):
            PythiaDataSource({**OPTIONS, **options}).reader(MAPPING.to_struct())
    with pytest.raises(InvalidOption, match="are for reading: leave them out of a write"):
        PythiaDataSource({**OPTIONS, "changed_since": "0"}).writer(MAPPING.to_struct(), overwrite=False)
    with pytest.raises(InvalidOption, match="out of a streaming write"):
        PythiaDataSource({**OPTIONS, "changed_since": "0"}).streamWriter(MAPPING.to_struct(), overwrite=False)
    earlier, later = put(manager, _1="a"), put(manager, _1="b")
    with pytest.raises(InvalidRequest, match="take the moments in their order"):
        batch_reader(manager, changed_since=later, as_of=earlier).partitions()


def test_what_a_transaction_wrote_itself_is_no_change(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = put(manager, _1="a")
    put(manager, _1="b")
    with manager.transaction() as transaction:
        reader = batch_reader(manager, changed_since=before, transaction=transaction.handle().to_json())
        put(manager, _1="c")
        assert rows_of(reader, reader.partitions()) == [(1, "b", UPSERT)]
        monkeypatch.setattr(
            changes, "view_to_read", lambda manager, options: (transaction.handle(), frozenset({"job"}))
        )
        with pytest.raises(InvalidRequest, match="what it wrote itself is no change"):
            reader.partitions()
