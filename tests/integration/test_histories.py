"""Recorded histories of the real oracle over real HBase and ZooKeeper: nothing is found wrong with them."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from client import ClientSettings, TransactionManager
from histories import Driven, History, Outcome, Recorder, check, drive
from histories.commands import history
from histories.workloads import WORKLOADS

pytestmark = pytest.mark.integration

CLIENTS = 2
THREADS = 3
SECONDS = 3.0


@pytest.mark.parametrize("name", ["bank", "long-fork", "on-call"])
def test_several_clients_of_several_threads_are_snapshot_isolated(
    oracle: ClientSettings, manager: TransactionManager, name: str
) -> None:
    workload = WORKLOADS[name](f"history_{uuid.uuid4().hex[:8]}")
    workload.setup(manager)
    managers = [TransactionManager.connect(oracle) for _ in range(CLIENTS)]
    recorders = [Recorder(each, workload.cells, process=str(number)) for number, each in enumerate(managers)]

    def work(number: int) -> Driven:
        return drive(workload, recorders[number], threads=THREADS, seconds=SECONDS, seed=number)

    try:
        with ThreadPoolExecutor(CLIENTS) as pool:
            driven = list(pool.map(work, range(CLIENTS)))
        assert all(each.steps > 0 and each.unavailable == 0 for each in driven)
        final_state = workload.final_state(recorders[0])
    finally:
        for each in managers:
            each.close()
    recorded = History.merged([each.history(name) for each in recorders])
    assert any(each.outcome is Outcome.COMMITTED and not each.is_read_only for each in recorded.transactions)
    assert check(recorded, final_state) == []
    assert workload.check(recorded) == []
    manager.drop_table(workload.table)


def test_the_command_records_and_checks(oracle: ClientSettings, tmp_path: Path) -> None:
    out, exported = str(tmp_path / "history"), str(tmp_path / "history.json")
    services = ["--zookeeper", oracle.zookeeper, "--thrift", oracle.thrift, "--root", oracle.root]
    recording = [*services, "--workload", "set", "--seconds", "1", "--threads", "2", "--out", out]
    for arguments in (
        ["record", *recording],
        ["check", out],
        ["export", out, "--out", exported],
        ["check", "--kv", exported],
    ):
        ended = CliRunner().invoke(history, arguments)
        assert ended.exit_code == 0, ended.output
