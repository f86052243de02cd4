"""Jobs on Spark's own cluster: the library comes as an archive, executors are lost and stand still, tasks run twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from client import ClientSettings, TransactionManager
from client.spark import record_batches
from drills.waiting import wait_until
from tests.integration.client_spark import cluster_calls, driver_calls
from tests.integration.client_spark.cluster_calls import ROWS
from tests.integration.client_spark.conftest import counts_mapping
from tests.integration.client_spark.driver_process import Driver, driver
from tests.integration.client_spark.stream_files import add_file
from tests.spark_jobs.standalone import HOSTS, Cluster, running, strike

pytestmark = [pytest.mark.integration, pytest.mark.with_spark, pytest.mark.takes_minutes]

HELD_SECONDS_MAX = 120.0
REPEATED = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "500ms",
}
"""A task that takes longer than most is begun a second time on the other machine."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster: Cluster, oracle: ClientSettings) -> Iterator[Driver]:
    with driver(cluster_calls.connect, cluster, oracle, {}) as call:
        yield call


@pytest.fixture(scope="module")
def impatient(cluster: Cluster, oracle: ClientSettings) -> Iterator[Driver]:
    """One that speculates."""
    with driver(cluster_calls.connect, cluster, oracle, REPEATED) as call:
        yield call


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder


def values(manager: TransactionManager, table: str) -> dict[int, int]:
    """What a table has now."""
    found = [row for batch in record_batches(manager.snapshot(), counts_mapping(table)) for row in batch.to_pylist()]
    assert len({row["k"] for row in found}) == len(found)
    return {row["k"]: row["v"] for row in found}


WHOLE = {key: 2 * key for key in range(ROWS)}
OF_THE_OTHER = {key: key for key in range(10)}


def held(gate: Path, manager: TransactionManager, table: str) -> int:
    """Wait until the task stands still that is to, and a part of its rows is in HBase; its process."""
    wait_until((gate / "held").exists, "the task that is held", HELD_SECONDS_MAX)
    start = int((gate / "transaction").read_text())

    def is_written() -> bool:
        pieces = manager.manifest.pieces(start)
        return any(piece.attempt[0] == 0 and piece.table == table for piece in pieces)

    wait_until(is_written, "rows of the task that is held", HELD_SECONDS_MAX)
    return int((gate / "held").read_text())


def attempts(gate: Path, partition: int) -> int:
    """How often a partition was begun."""
    return len(list(gate.glob(f"attempt-{partition}-*")))


def test_a_machine_has_what_the_archive_brings_and_compiles_nothing(client: Driver, cluster: Cluster) -> None:
    found = client(cluster_calls.where_tasks_run)
    assert {python for python, _, _ in found} == {str(cluster.python)}
    places = {Path(file).relative_to(cluster.logs).parts for _, file, _ in found}
    assert {place[0] for place in places} == set(HOSTS)
    assert {place[-3:] for place in places} == {("pythia", "client", "__init__.py")}
    assert {compiled for _, _, compiled in found} == {0}


def test_jobs_write_and_read_several_tables(
    client: Driver, manager: TransactionManager, oracle: ClientSettings, counts: str, others: str, tmp_path: Path
) -> None:
    client(driver_calls.write, counts, 0, 100, 1)
    before = manager.snapshot()
    client(driver_calls.write, counts, 50, 100, 2)
    assert client(driver_calls.read, counts) == [(k, 1 if k < 50 else 2) for k in range(150)]
    assert client(driver_calls.read, counts, "k >= 98", push_filters="true", as_of=str(before.timestamp)) == [
        (98, 1),
        (99, 1),
    ]
    assert client(driver_calls.use_sql, counts) == [(2, -2), (3, -3)]
    assert client(driver_calls.write_what_another_wrote, oracle, counts)
    add_file(tmp_path, 0, {7: 7})
    client(driver_calls.sink, others, tmp_path)
    assert values(manager, others) == {7: 7}


@pytest.mark.parametrize("shuffled", [False, True], ids=["as it is read", "shuffled"])
def test_an_executor_that_is_lost_in_the_middle_of_a_write_costs_time_alone(
    client: Driver,
    cluster: Cluster,
    manager: TransactionManager,
    oracle: ClientSettings,
    counts: str,
    others: str,
    gate: Path,
    shuffled: bool,
) -> None:
    """And with it, where the rows are shuffled, a part of them, for which the stage before runs again."""
    write = client.begin(cluster_calls.write_held, oracle, (counts, others), gate, shuffled=shuffled)
    strike(cluster.executor_of(held(gate, manager, counts)), signal.SIGKILL)
    assert write.result(HELD_SECONDS_MAX) == "committed"
    assert attempts(gate, 0) > 1
    assert values(manager, counts) == WHOLE
    assert values(manager, others) == OF_THE_OTHER
    if shuffled:
        assert client(cluster_calls.stage_attempts) > 1


def test_rows_that_a_second_attempt_does_not_have_are_not_committed(
    client: Driver, cluster: Cluster, manager: TransactionManager, oracle: ClientSettings, counts: str, others: str,
    gate: Path,
) -> None:  # fmt: skip
    write = client.begin(cluster_calls.write_held, oracle, (counts, others), gate, random=True)
    strike(cluster.executor_of(held(gate, manager, counts)), signal.SIGKILL)
    assert "persist or checkpoint" in write.result(HELD_SECONDS_MAX)
    assert values(manager, counts) == values(manager, others) == {}


def test_a_machine_that_stood_still_changes_nothing_any_more(
    client: Driver, cluster: Cluster, manager: TransactionManager, oracle: ClientSettings, counts: str, others: str,
    gate: Path,
) -> None:  # fmt: skip
    """Others have done its work, which was committed, and a later transaction has changed and deleted the rows."""
    write = client.begin(cluster_calls.write_held, oracle, (counts, others), gate)
    frozen = cluster.executor_of(held(gate, manager, counts))
    strike(frozen, signal.SIGSTOP)
    try:
        assert write.result(HELD_SECONDS_MAX) == "committed"
        assert attempts(gate, 0) == 2
        assert values(manager, counts) == WHOLE
        client(driver_calls.write, counts, 0, ROWS // 2, 1)
    finally:
        (gate / "open").touch()
        strike(frozen, signal.SIGCONT)
    wait_until(lambda: frozen not in cluster.executors(), "the machine that stood still to give up", HELD_SECONDS_MAX)
    assert manager.manifest.summary(int((gate / "transaction").read_text())) is None
    assert values(manager, counts) == {key: 1 if key < ROWS // 2 else 2 * key for key in range(ROWS)}


@pytest.mark.parametrize("ends", ["first", "never"])
def test_a_task_that_is_begun_a_second_time_elsewhere_writes_its_rows_once(
    impatient: Driver,
    cluster: Cluster,
    manager: TransactionManager,
    oracle: ClientSettings,
    counts: str,
    others: str,
    gate: Path,
    ends: str,
) -> None:
    """Both write at once, or the first one is ended in the middle."""
    write = impatient.begin(cluster_calls.write_held, oracle, (counts, others), gate)
    held(gate, manager, counts)
    wait_until(lambda: attempts(gate, 0) == 2, "the second attempt", HELD_SECONDS_MAX)
    hosts = {cluster.executor_of(int(file.read_text())) for file in gate.glob("attempt-0-*")}
    if ends == "first":
        (gate / "open").touch()
    assert write.result(HELD_SECONDS_MAX) == "committed"
    assert len(hosts) == 2
    assert values(manager, counts) == WHOLE
    assert values(manager, others) == OF_THE_OTHER
