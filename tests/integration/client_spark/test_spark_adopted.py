"""A table that programs with HappyBase have written, adopted: Spark reads, writes and replaces it, and they agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import happybase
import pytest
from pyspark.sql import SparkSession

from client import Conflict, TransactionManager
from client.spark import KeyColumn, SparkSweep, TableMapping, ValueColumn, adopt_table
from client.vacuum import VacuumReport, run_vacuum
from client.vacuum.parts import SweepParts
from commit_table.timestamps import milliseconds_of
from store import ALL_VERSIONS
from tests.conftest import Services
from tests.horizon import at_once, await_horizon

pytestmark = pytest.mark.integration

ROWS = 300
OPTIONS = {"min_partitions": "3", "batch_rows": "50"}
Visits = dict[str, int | None]


@pytest.fixture
def plain(services: Services, table: str) -> Iterator[Any]:
    """HappyBase's table, with what it put: the newest of two versions counts, and some rows were deleted again."""
    host, _, port = services.thrift.partition(":")
    with closing(happybase.Connection(host, int(port), timeout=60_000)) as connection:
        connection.create_table(table, {"d": {"max_versions": ALL_VERSIONS}})
        made = connection.table(table)
        for offset in (1, 0):
            with made.batch(batch_size=1_000) as batch:
                for number in range(ROWS):
                    visits = (number + offset).to_bytes(8, "big")
                    batch.put(b"user%03d" % number, {b"d:visits": visits, b"d:note": b"\xc1"})
        for number in range(0, ROWS, 100):
            made.delete(b"user%03d" % number)
        yield made


@pytest.fixture
def adopted(manager: TransactionManager, plain: Any, table: str) -> str:
    columns = (KeyColumn("who", "string", plain=True), ValueColumn("visits", "bigint", "d"))
    assert adopt_table(manager, TableMapping(table, ("who",), columns)).rows == ROWS - 3
    return table


def there() -> Visits:
    return {f"user{number:03}": number for number in range(ROWS) if number % 100}


def load(spark: SparkSession, table: str, where: str = "true", **options: str) -> Visits:
    rows = spark.read.format("pythia").options(table=table, **OPTIONS, **options).load().where(where).collect()
    found = {row["who"]: row["visits"] for row in rows}
    assert len(found) == len(rows)
    return found


def save(spark: SparkSession, table: str, visits: Visits, mode: str = "append", **options: str) -> None:
    frame = spark.createDataFrame(list(visits.items()), "who STRING, visits BIGINT")
    if options.get("operation") == "delete":
        frame = frame.select("who")
    frame.write.format("pythia").mode(mode).options(table=table, **OPTIONS, **options).save()


def vacuumed(manager: TransactionManager, sweep: SweepParts) -> VacuumReport:
    moment = milliseconds_of(manager.snapshot().timestamp)
    await_horizon(manager, lambda counted: milliseconds_of(counted.outcomes_horizon) > moment)
    return run_vacuum(manager, retain_ms=0, outcomes_retain_ms=0, sweep=sweep, wait=at_once)


def test_spark_reads_what_was_there_and_filters_it_by_its_keys(spark: SparkSession, adopted: str) -> None:
    assert load(spark, adopted) == there()
    for condition, chosen in (
        ("who = 'user007'", {"user007"}),
        ("who LIKE 'user01%'", {f"user01{last}" for last in range(10)}),
        ("who > 'user298'", {"user299"}),
        ("who >= 'user298' AND who < 'user299'", {"user298"}),
        ("who IN ('user001', 'user001a', 'user100', 'user250')", {"user001", "user250"}),
        ("who <> 'user007' AND who <= 'user008'", {f"user00{last}" for last in (1, 2, 3, 4, 5, 6, 8)}),
    ):
        assert set(load(spark, adopted, condition, push_filters="true")) == chosen


def test_jobs_change_what_was_there_in_transactions(
    spark: SparkSession, manager: TransactionManager, plain: Any, adopted: str
) -> None:
    before, open_since = manager.snapshot(), manager.transaction()
    open_since.put(adopted, b"user001", {b"d:visits": bytes(8)})
    expected = there() | {"user001": -1, "user100": 5, "user1": 6, "ö": None}
    save(spark, adopted, {"user001": -1, "user100": 5, "user1": 6, "ö": None})
    save(spark, adopted, dict.fromkeys(["user002", "user003", "nobody"]), operation="delete")
    del expected["user002"], expected["user003"]
    assert load(spark, adopted) == expected
    assert load(spark, adopted, snapshot=before.handle().to_json()) == there()
    with pytest.raises(Conflict):
        open_since.commit()
    plain.put(b"user004", {b"d:visits": b"of who went on"})
    assert load(spark, adopted) == expected
    save(spark, adopted, {"user21": 1, "user219": None}, "overwrite", overwrite_prefix='["user21"]')
    expected = {who: visits for who, visits in expected.items() if not who.startswith("user21")}
    expected |= {"user21": 1, "user219": None}
    assert load(spark, adopted) == expected
    save(spark, adopted, {"user005": 5}, "overwrite")
    assert load(spark, adopted) == {"user005": 5}
    assert load(spark, adopted, snapshot=before.handle().to_json()) == there()
    assert dict(manager.snapshot().scan(adopted)) == {b"user005": {b"d:visits": (5).to_bytes(8, "big")}}


def test_a_vacuum_takes_what_was_there_once_it_was_written_over(
    spark: SparkSession, forgetful: TransactionManager, plain: Any, table: str
) -> None:
    forgetful.adopt_table(table, conflict_level="row")
    with forgetful.transaction() as transaction:
        for number in range(0, ROWS, 2):
            transaction.put(table, b"user%03d" % number, {b"d:visits": b"new"})
        transaction.delete(table, b"user001")
    left = dict(forgetful.snapshot().scan(table))
    assert len(left) == ROWS - 1
    for sweep, rows_passed_over in ((SparkSweep(spark, min_partitions=3), 0), (SparkSweep(spark), ROWS - 1)):
        report = vacuumed(forgetful, sweep).tables[table]
        assert (report.rows_passed_over, report.transactions_aborted) == (rows_passed_over, 0)
        assert dict(forgetful.snapshot().scan(table)) == left
    versions = {number: len(plain.cells(b"user%03d" % number, b"d:visits")) for number in (1, 2, 3)}
    assert (versions[1], versions[2]) == (0, 1)
    assert versions[3] > 1, "what lies below a cell that nobody wrote over is not looked for"
