"""The same calls by Spark Connect: a client without a JVM, a server that runs the jobs, both on real services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from client import ClientSettings, TransactionManager
from client.spark import stream_progress
from client.spark.progress import Progress
from client.vacuum import run_vacuum
from commit_table.timestamps import milliseconds_of
from tests.horizon import at_once, await_horizon
from tests.integration.client_spark import driver_calls
from tests.integration.client_spark.conftest import counts_of
from tests.integration.client_spark.driver_process import Driver, driver
from tests.integration.client_spark.stream_files import add_file, forget_last_batch, query_of
from tests.spark_jobs.connect_server import running

pytestmark = [pytest.mark.integration, pytest.mark.with_spark, pytest.mark.takes_minutes]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where clients connect."""
    with running(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(scope="module")
def client(server: str, oracle: ClientSettings) -> Iterator[Driver]:
    with driver(driver_calls.connect, server, oracle) as call:
        yield call


def test_the_session_is_one_of_spark_connect_and_filters_may_be_pushed_down(client: Driver) -> None:
    assert client(driver_calls.mode) == ("pyspark.sql.connect.session", "true")


def test_a_job_writes_and_reads_filters_and_past_snapshots(
    client: Driver, manager: TransactionManager, counts: str
) -> None:
    client(driver_calls.write, counts, 0, 100, 1)
    before = manager.snapshot()
    client(driver_calls.write, counts, 50, 100, 2)
    assert client(driver_calls.read, counts) == [(k, 1 if k < 50 else 2) for k in range(150)]
    assert client(driver_calls.read, counts, "k >= 98", push_filters="true", as_of=str(before.timestamp)) == [
        (98, 1),
        (99, 1),
    ]


def test_two_tables_land_in_one_transaction(client: Driver, oracle: ClientSettings, counts: str, others: str) -> None:
    seen, own = client(driver_calls.write_two_tables, oracle, (counts, others))
    assert (seen, own) == ([], [(0, 1), (1, 1), (2, 1)])
    assert client(driver_calls.read, counts) == client(driver_calls.read, others) == own


def test_two_jobs_that_write_one_row_conflict(client: Driver, oracle: ClientSettings, counts: str) -> None:
    assert client(driver_calls.write_what_another_wrote, oracle, counts)


def test_a_view_is_replaced_by_sql(client: Driver, counts: str) -> None:
    client(driver_calls.write, counts, 0, 3, 1)
    assert client(driver_calls.use_sql, counts) == [(2, -2), (3, -3)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"table": "no_such_table"}, "there is no table 'no_such_table'"),
        ({"min_partitions": "0"}, "a whole number from 1"),
        ({"zookeeper": "nowhere"}, "ZooKeeper's hosts are host:port"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(
    client: Driver, counts: str, options: dict[str, str], reason: str
) -> None:
    assert reason in client(driver_calls.reason_for_refusing, **{"table": counts, **options})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder whose ``input`` has two files, a batch each: 0 in both of them, and a number of its own."""
    for number in range(2):
        add_file(tmp_path, number, {0: 1, number + 1: 1})
    return tmp_path


def test_a_sink_writes_each_batch_once(client: Driver, manager: TransactionManager, counts: str, files: Path) -> None:
    client(driver_calls.sink, counts, files)
    assert counts_of(manager, counts) == {0: 1, 1: 1, 2: 1}
    assert forget_last_batch(files / "sunk") == 1
    written = manager.snapshot().timestamp
    client(driver_calls.sink, counts, files)
    assert list(manager.snapshot().changes(counts, written)) == []
    assert stream_progress(manager, query_of(files / "sunk"), counts) == Progress(0, 1)


def test_a_function_of_foreach_batch_lands_each_batch_once(
    client: Driver, manager: TransactionManager, oracle: ClientSettings, counts: str, files: Path
) -> None:
    assert "died after batch 0" in client(driver_calls.land, oracle, counts, files, "landed", dies_after=0)
    assert counts_of(manager, counts) == {0: 1, 1: 1}
    assert client(driver_calls.land, oracle, counts, files, "landed") == "the end"
    assert counts_of(manager, counts) == {0: 2, 1: 1, 2: 1}
    assert stream_progress(manager, query_of(files / "landed")) == Progress(0, 1)


def test_a_function_of_foreach_batch_names_the_checkpoint_of_its_query(
    client: Driver, manager: TransactionManager, oracle: ClientSettings, counts: str, files: Path
) -> None:
    another = files / "another's [1]"
    for name in ("metadata", "offsets/7"):
        (another / name).parent.mkdir(parents=True, exist_ok=True)
        (another / name).write_text('{"id":"of another query"}')
    assert "is not at batch 0" in client(driver_calls.land, oracle, counts, files, another.name)
    told = client(driver_calls.land, oracle, counts, files, "nowhere")
    assert "there is no checkpoint of a streaming query at" in told
    assert counts_of(manager, counts) == {}


def write_twice(manager: TransactionManager, table: str) -> None:
    """Twenty rows, until a vacuum may drop what they were."""
    manager.create_table(table, ["f"])
    for value in (b"1", b"2"):
        with manager.transaction() as transaction:
            for row in range(20):
                transaction.put(table, b"%d" % row, {b"f:a": value})
    moment = milliseconds_of(manager.snapshot().timestamp)
    await_horizon(manager, lambda report: milliseconds_of(report.outcomes_horizon) > moment)


def test_the_server_sweeps_for_a_vacuum(client: Driver, forgetful: TransactionManager) -> None:
    one, other = (f"{forgetful.settings.root.strip('/')}-{name}" for name in ("one", "other"))
    write_twice(forgetful, one)
    here = run_vacuum(forgetful, retain_ms=0, outcomes_retain_ms=0, wait=at_once).tables[one]
    write_twice(forgetful, other)
    there = client(driver_calls.vacuum, forgetful.settings).tables[other]
    assert there == here
    assert there.columns_trimmed == 20
