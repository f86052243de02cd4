"""Jobs on Spark's own cluster: the library comes as an archive, executors are lost and stand still, tasks run twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from client import ClientSettings, TransactionManager
from drills.waiting import wait_until
from tests.integration.client_spark import cluster_calls, driver_calls
from tests.integration.client_spark.cluster_calls import ROWS
from tests.integration.client_spark.conftest import counts_of
from tests.integration.client_spark.driver_process import Driver, driver
from tests.integration.client_spark.stream_files import add_file
from tests.spark_jobs.machines import HOSTS, strike
from tests.spark_jobs.processes import descendants, is_alive
from tests.spark_jobs.standalone import Cluster, running

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
THRIFTY = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.maxExecutors": "1",
}
"""Executors that have nothing to do are given back."""


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
def thrifty(cluster: Cluster, oracle: ClientSettings) -> Iterator[Driver]:
    with driver(cluster_calls.connect, cluster, oracle, THRIFTY) as call:
        yield call


WHOLE = ({key: 2 * key for key in range(ROWS)}, {key: key for key in range(10)})
"""What the write that is held leaves in its two tables."""


@dataclass(frozen=True)
class HeldWrite:
    """A write into two tables, of whose first partition the first attempt stands still until it may go on."""

    manager: TransactionManager
    settings: ClientSettings
    tables: tuple[str, str]
    gate: Path

    def begin(self, driver: Driver, **how: Any) -> Future[str]:
        """What it ends with; ``how``: as of ``cluster_calls.write_held``."""
        return driver.begin(cluster_calls.write_held, self.settings, self.tables, self.gate, **how)

    def task(self) -> int:
        """Wait until it stands still, and a part of its rows is in HBase; the task's process."""
        wait_until((self.gate / "held").exists, "the task that is held", HELD_SECONDS_MAX)

        def is_written() -> bool:
            pieces = self.manager.manifest.pieces(self.start_timestamp)
            return any(piece.attempt[0] == 0 and piece.table == self.tables[0] for piece in pieces)

        wait_until(is_written, "rows of the task that is held", HELD_SECONDS_MAX)
        return int((self.gate / "held").read_text())

    @property
    def start_timestamp(self) -> int:
        return int((self.gate / "transaction").read_text())

    def tasks(self) -> list[int]:
        """The processes of all attempts at that partition so far."""
        said = (file.read_text() for file in self.gate.glob("attempt-0-*"))
        return [int(pid) for pid in said if pid]  # one that was just made is empty

    def go_on(self) -> None:
        (self.gate / "open").touch()

    def found(self) -> tuple[dict[int, int], ...]:
        """What the tables have now."""
        return tuple(counts_of(self.manager, table) for table in self.tables)


@pytest.fixture
def held(manager: TransactionManager, oracle: ClientSettings, counts: str, others: str, tmp_path: Path) -> HeldWrite:
    (tmp_path / "gate").mkdir()
    return HeldWrite(manager, oracle, (counts, others), tmp_path / "gate")


def test_a_machine_has_what_the_archive_brings_and_compiles_nothing(client: Driver, cluster: Cluster) -> None:
    found = client(cluster_calls.where_tasks_run)
    assert {python for python, _, _ in found} == {str(cluster.python)}
    places = {Path(file).relative_to(cluster.logs).parts for _, file, _ in found}
    assert {place[0] for place in places} == set(HOSTS)
    assert {place[-3:] for place in places} == {("pythia", "client", "__init__.py")}
    assert {compiled for _, _, compiled in found} == {0}


def test_jobs_write_read_stream_and_conflict_as_on_one_machine(
    client: Driver, manager: TransactionManager, oracle: ClientSettings, counts: str, others: str, tmp_path: Path
) -> None:
    client(driver_calls.write, counts, 0, 100, 1)
    assert client(driver_calls.read, counts, "k >= 98", push_filters="true") == [(98, 1), (99, 1)]
    assert client(driver_calls.write_what_another_wrote, oracle, counts)
    add_file(tmp_path, 0, {7: 7})
    client(driver_calls.sink, others, tmp_path)
    assert counts_of(manager, others) == {7: 7}


@pytest.mark.parametrize("shuffled", [False, True], ids=["as it is read", "shuffled"])
def test_an_executor_that_is_lost_in_the_middle_of_a_write_costs_time_alone(
    client: Driver, cluster: Cluster, held: HeldWrite, shuffled: bool
) -> None:
    """And with it, where the rows are shuffled, a part of them, for which the stage before runs again."""
    write = held.begin(client, shuffled=shuffled)
    strike(cluster.executor_of(held.task()), signal.SIGKILL)
    assert write.result(HELD_SECONDS_MAX) == "committed"
    assert len(held.tasks()) > 1
    assert held.found() == WHOLE
    if shuffled:
        assert client(cluster_calls.stage_attempts) > 1


def test_rows_that_a_second_attempt_does_not_have_are_not_committed(
    client: Driver, cluster: Cluster, held: HeldWrite
) -> None:
    write = held.begin(client, random=True)
    strike(cluster.executor_of(held.task()), signal.SIGKILL)
    assert "persist or checkpoint" in write.result(HELD_SECONDS_MAX)
    assert held.found() == ({}, {})


def test_a_machine_that_stood_still_changes_nothing_any_more(client: Driver, cluster: Cluster, held: HeldWrite) -> None:
    """Others have done its work, which was committed, and a later transaction has changed half of the rows."""
    write = held.begin(client)
    frozen = cluster.executor_of(held.task())
    machine = [frozen, *descendants(frozen)]
    strike(frozen, signal.SIGSTOP)
    try:
        assert write.result(HELD_SECONDS_MAX) == "committed"
        assert len(held.tasks()) == 2
        assert held.found() == WHOLE
        client(driver_calls.write, held.tables[0], 0, ROWS // 2, 1)
    finally:
        held.go_on()
        strike(frozen, signal.SIGCONT)
    wait_until(lambda: not any(map(is_alive, machine)), "the machine that stood still to give up", HELD_SECONDS_MAX)
    held.manager.finish_bulk_writes()  # of what it may have announced still, and not written
    assert held.manager.manifest.summary(held.start_timestamp) is None
    changed = {key: 1 if key < ROWS // 2 else value for key, value in WHOLE[0].items()}
    assert held.found() == (changed, WHOLE[1])


@pytest.mark.parametrize("goes_on", [True, False], ids=["both write", "one is ended"])
def test_a_task_that_is_begun_a_second_time_elsewhere_writes_its_rows_once(
    impatient: Driver, cluster: Cluster, held: HeldWrite, goes_on: bool
) -> None:
    """Both write at once, or the first one is ended in the middle."""
    write = held.begin(impatient)
    first = held.task()
    machine = cluster.executor_of(first)
    wait_until(lambda: len(held.tasks()) == 2, "the second attempt", HELD_SECONDS_MAX)
    (second,) = {*held.tasks()} - {first}
    assert cluster.executor_of(second) != machine
    if goes_on:
        held.go_on()
    assert write.result(HELD_SECONDS_MAX) == "committed"
    assert held.found() == WHOLE


def test_executors_that_are_given_back_in_the_middle_of_a_transaction_leave_what_they_wrote(
    thrifty: Driver, cluster: Cluster, manager: TransactionManager, oracle: ClientSettings, counts: str, others: str
) -> None:
    assert thrifty(cluster_calls.write_between_executors, oracle, (counts, others)) == ([True, True], "committed")
    assert counts_of(manager, counts) == counts_of(manager, others) == {key: key for key in range(100)}
