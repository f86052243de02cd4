"""Writes with the option ``claim``, without Spark: however often one is started, and with whatever rows, one lands."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from client import Conflict, InvalidRequest, PythiaError, TransactionManager
from client.catalog.record_tables import CLAIMS
from client.claims import claim_of
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, row_key, writer
from client.spark.errors import InvalidOption
from client.spark.options import SourceOptions, parse
from client.spark.source import PythiaDataSource
from client.spark.writer import PythiaWriter, WrittenRows
from client.transactions.claims import RECORD, row_of
from store import StoreError
from tests.unit.client.conftest import SETTINGS, Installation
from tests.unit.client_spark.striking import Died, Fault, struck_manager

MAPPING = TableMapping("w", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "string")))
CONNECTION = {"zookeeper": SETTINGS.zookeeper, "thrift": SETTINGS.thrift}
KEY = "orders/2026-11-21"


class Job:
    """One write of a DataFrame of two partitions, phase by phase, each in a process of its own."""

    def __init__(self, value: str, *, overwrite: bool = False, **options: Any) -> None:
        self._value = value
        planned = PythiaWriter(SourceOptions(SETTINGS, "w", **options), MAPPING, ["k", "v"], overwrite=overwrite)
        self._pickled = pickle.dumps(planned)
        self.left = 0
        """Rows that no task has taken."""

    def process(self) -> PythiaWriter:
        return cast(PythiaWriter, pickle.loads(self._pickled))

    def run_tasks(self, monkeypatch: pytest.MonkeyPatch) -> list[WrittenRows]:
        return [self._run_task(monkeypatch, partition) for partition in (0, 1)]

    def run(self, monkeypatch: pytest.MonkeyPatch) -> int:
        """The rows that its tasks say they have written."""
        reports = self.run_tasks(monkeypatch)
        self.process().commit(reports)
        return sum(report.rows for report in reports)

    def _run_task(self, monkeypatch: pytest.MonkeyPatch, partition: int) -> WrittenRows:
        task = SimpleNamespace(partitionId=lambda: partition, taskAttemptId=lambda: partition)
        monkeypatch.setattr(writer, "TaskContext", SimpleNamespace(get=lambda: task))
        rows = self._batches(partition)
        report = self.process().write(rows)
        self.left += sum(1 for _ in rows)
        return report

    def _batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        for key in (2 * partition, 2 * partition + 1):
            yield pa.record_batch([pa.array([key], pa.int32()), pa.array([self._value])], ["k", "v"])


@pytest.fixture(autouse=True)
def using(manager: TransactionManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each process finds."""
    monkeypatch.setattr(writer, "manager_for", lambda settings: manager)
    create_table(manager, MAPPING)


def found(manager: TransactionManager) -> dict[int, bytes]:
    rows = dict(manager.snapshot().scan("w"))
    return {key: rows[row_key(MAPPING, key)][b"f:v"] for key in range(100) if row_key(MAPPING, key) in rows}


def all_with(value: bytes) -> dict[int, bytes]:
    return dict.fromkeys(range(4), value)


def test_a_write_that_is_started_again_writes_nothing(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert Job("first", claim=KEY).run(monkeypatch) == 4
    landed = claim_of(manager, KEY, table="w")
    monkeypatch.setattr(manager.store, "put_columns", lambda *arguments, **named: pytest.fail("it writes"))
    again = Job("second", claim=KEY)
    assert again.run(monkeypatch) == 0
    assert again.left == 0, "Spark waits until its rows are taken"
    assert caplog.messages[-1] == f"{KEY!r} has landed in w before: nothing is written"
    assert claim_of(manager, KEY, table="w") == landed
    assert found(manager) == all_with(b"first")


def test_an_overwrite_that_has_landed_deletes_nothing(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    Job("first", overwrite=True, claim=KEY).run(monkeypatch)
    with manager.transaction() as transaction:
        transaction.put("w", row_key(MAPPING, 7), {b"f:v": b"later"})
    Job("second", overwrite=True, claim=KEY).run(monkeypatch)
    assert found(manager) == all_with(b"first") | {7: b"later"}


def test_writes_without_a_claim_or_with_others_all_land(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("first", "second"):
        assert Job(value).run(monkeypatch) == Job(value, claim=f"{KEY}/{value}").run(monkeypatch) == 4
        assert found(manager) == all_with(value.encode())


def test_each_table_has_keys_of_its_own_and_one_that_is_made_anew_has_none(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    with manager.transaction() as transaction:
        assert transaction.claim(KEY)
    assert Job("first", claim=KEY).run(monkeypatch) == 4
    manager.drop_table("w")
    create_table(manager, MAPPING)
    assert Job("second", claim=KEY).run(monkeypatch) == 4
    assert found(manager) == all_with(b"second")


def test_of_two_that_run_at_once_one_lands_and_the_other_ends_well(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Job("first", claim=KEY), Job("second", claim=KEY)
    assert second.run(monkeypatch) == 4
    assert first.run(monkeypatch) == 4
    assert caplog.messages[-1] == f"{KEY!r} has landed in w before: nothing is written"
    assert found(manager) == all_with(b"second")


def test_a_conflict_that_has_nothing_to_do_with_the_claim_is_told(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("first", claim=KEY)
    with manager.transaction() as rival:
        rival.put("w", row_key(MAPPING, 1), {b"f:v": b"rival"})
    with pytest.raises(Conflict):
        job.run(monkeypatch)
    assert claim_of(manager, KEY, table="w") is None
    assert found(manager) == {1: b"rival"}
    assert Job("again", claim=KEY).run(monkeypatch) == 4
    assert found(manager) == all_with(b"again")


def test_a_driver_that_dies_before_its_commit_has_claimed_nothing(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    Job("of the dead", claim=KEY).run_tasks(monkeypatch)
    assert Job("of the living", claim=KEY).run(monkeypatch) == 4
    assert found(manager) == all_with(b"of the living")


@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
@pytest.mark.parametrize("kills", [False, True], ids=["a call that fails", "a process that dies"])
def test_a_write_lands_exactly_once_whichever_call_its_first_run_ended_at(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, kills: bool, after: bool
) -> None:
    def run(key: str, value: str, fault: Fault) -> None:
        struck = struck_manager(installation, fault)
        monkeypatch.setattr(writer, "manager_for", lambda settings: struck)
        try:
            job = Job(value, claim=key)
            try:
                job.run(monkeypatch)
            except (PythiaError, StoreError):
                job.process().abort([])  # as Spark does
                raise
        finally:
            struck.close()

    counting, ends = Fault(), set[tuple[bool, bool]]()
    run("counted", "before", counting)
    for at in range(1, counting.calls + 1):
        failed = True
        try:
            run(f"key {at}", f"first {at}", Fault(at, kills, after))
            failed = False
        except (Died, PythiaError, StoreError):
            pass
        earlier = claim_of(manager, f"key {at}", table="w")
        first = all_with(b"first %d" % at)
        assert (found(manager) == first) == (earlier is not None), f"call {at}: the claim and the rows go together"
        assert failed or earlier, f"call {at}: the write was acknowledged, and nothing landed"
        run(f"key {at}", f"second {at}", Fault())
        assert found(manager) == (first if earlier else all_with(b"second %d" % at)), f"call {at}"
        ends.add((failed, earlier is not None))
    assert (True, False) in ends
    assert (True, True) in ends or not kills  # dead, and committed: what the record is there for


def test_the_option_is_a_key_for_a_write_with_a_transaction_of_its_own(manager: TransactionManager) -> None:
    assert parse({"table": "w", "Claim": KEY}, CONNECTION).claim == KEY
    handle = manager.transaction().handle().to_json()
    with pytest.raises(InvalidOption, match="in the given one its holder claims the key"):
        parse({"table": "w", "claim": KEY, "transaction": handle}, CONNECTION)
    for wrong in ("", "x" * 2_000):
        with pytest.raises(InvalidOption, match="the option 'claim': a key to claim has 1 to 1,024 bytes"):
            parse({"table": "w", "claim": wrong}, CONNECTION)
    source = PythiaDataSource({"table": "w", "claim": KEY, **CONNECTION})
    with pytest.raises(InvalidOption, match="'claim' are for writing"):
        source.reader(MAPPING.to_struct())
    with pytest.raises(InvalidOption, match="leave the option 'claim' out of a streaming write"):
        source.streamWriter(MAPPING.to_struct(), overwrite=False)


def test_a_record_that_cannot_be_read_lets_nothing_land(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    with manager.transaction() as transaction:
        records = manager.catalog.create_record_table(CLAIMS)
        transaction.put(records, row_of(KEY, "w"), {RECORD: b"of a newer release"})
    with pytest.raises(InvalidRequest, match="no record of a claim"):
        Job("first", claim=KEY)
    assert found(manager) == {}
