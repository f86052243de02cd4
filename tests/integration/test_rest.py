"""REST beside real oracle processes, on real ZooKeeper and HBase: who serves, and what a failover leaves."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator

import httpx
import pytest

from client import ClientSettings, TransactionManager
from tests.conftest import Services
from tests.integration.oracle_processes import OracleWithRest

pytestmark = pytest.mark.integration

WAIT_S = 60.0


@pytest.fixture
def installation(services: Services) -> Iterator[tuple[OracleWithRest, OracleWithRest, ClientSettings]]:
    """A primary and a standby of their own; the primary's REST owes shadow cells for a moment, at most."""
    settings = ClientSettings(services.zookeeper, services.thrift, root=f"/pythia-rest-{uuid.uuid4().hex[:8]}")
    primary = OracleWithRest("a", settings, "--rest-shadow-cells", "in_background")
    standby = None
    try:
        primary.until_primary()
        standby = OracleWithRest("b", settings)
        yield primary, standby, settings
    finally:
        for oracle in filter(None, (primary, standby)):
            oracle.end()


def until_status(client: httpx.Client, method: str, path: str, status: int) -> httpx.Response:
    for _ in range(int(WAIT_S / 0.1)):
        answer = client.request(method, path)
        if answer.status_code == status:
            return answer
        threading.Event().wait(0.1)
    raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}, not {status}")


@contextlib.contextmanager
def begun(primary: OracleWithRest, settings: ClientSettings) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """A transaction that REST beside the primary holds, and that wrote 70 to a table; and how to read what is there."""
    table = f"rest_{uuid.uuid4().hex[:8]}"
    with TransactionManager.connect(settings) as manager:
        manager.create_table(table, ["d"])
        until_status(primary.client, "GET", "/v1/health/ready", 200)
        id = primary.client.post("/v1/transactions").json()["id"]
        write(primary, id, table, "70")
        yield id, table, lambda: manager.snapshot().get(table, b"alice")
        manager.drop_table(table)


def write(oracle: OracleWithRest, id: str, table: str, balance: str) -> None:
    row = f"/v1/transactions/{id}/tables/{table}/rows/alice"
    assert oracle.client.put(row, json={"values": {"d:balance": balance}}).status_code == 200


def drain_a(settings: ClientSettings, *options: str) -> subprocess.CompletedProcess[str]:
    where = ["--zookeeper", settings.zookeeper, "--root", settings.root]
    command = [sys.executable, "-m", "tso", "drain", "a", *where, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S)


def test_a_drain_waits_for_what_rest_holds(
    installation: tuple[OracleWithRest, OracleWithRest, ClientSettings],
) -> None:
    primary, standby, settings = installation
    with begun(primary, settings) as (id, _, read):
        for _ in range(int(WAIT_S)):
            drained = drain_a(settings, "--timeout-ms", "1000")
            if "no standby is ready to take over" not in drained.stderr:
                break
        assert drained.returncode == 1
        assert "a serves on: 1 transactions were still under way after 1000 ms" in drained.stderr
        until_status(standby.client, "GET", "/v1/health/ready", 200)
        assert primary.client.post("/v1/transactions").status_code == 421
        assert primary.client.post(f"/v1/transactions/{id}/commit").status_code == 200
        drained = drain_a(settings)
        assert drained.returncode == 0, drained.stderr
        assert primary.process.wait(WAIT_S) == 0
        assert read() == {b"d:balance": b"70"}


def test_a_commit_is_answered_alike_by_the_next_primary_after_the_first_was_killed(
    installation: tuple[OracleWithRest, OracleWithRest, ClientSettings],
) -> None:
    primary, standby, settings = installation
    refusal = until_status(standby.client, "POST", "/v1/transactions", 421).json()
    assert refusal["primary"] == str(primary.client.base_url).rstrip("/")
    with begun(primary, settings) as (id, table, read):
        committed = primary.client.post(f"/v1/transactions/{id}/commit").json()
        lost = primary.client.post("/v1/transactions").json()["id"]
        write(primary, lost, table, "0")
        primary.process.send_signal(signal.SIGKILL)
        primary.process.wait(WAIT_S)
        until_refused(primary.client)
        until_status(standby.client, "GET", "/v1/health/ready", 200)
        assert standby.client.post(f"/v1/transactions/{id}/commit").json() == committed
        answer = standby.client.post(f"/v1/transactions/{lost}/commit")
        assert (answer.status_code, answer.json()["code"]) == (410, "transaction-lost")
        assert read() == {b"d:balance": b"70"}


def test_what_a_transaction_changed_is_told_by_the_standby_once_the_primary_was_killed(
    installation: tuple[OracleWithRest, OracleWithRest, ClientSettings],
) -> None:
    primary, standby, settings = installation
    with begun(primary, settings) as (id, table, _):
        earlier = primary.client.post("/v1/oracle/snapshot").json()["snapshot"]
        committed = primary.client.post(f"/v1/transactions/{id}/commit").json()["commit_timestamp"]
        later = primary.client.post("/v1/oracle/snapshot").json()["snapshot"]
        path = f"/v1/snapshots/{later}/tables/{table}/changes?since={earlier}"
        alice = {"row": "alice", "values": {"d:balance": "70"}, "commit_timestamp": committed}
        told = {"rows": [alice], "next": None, "snapshot": later}
        assert primary.client.get(path).json() == told
        assert primary.client.get(f"{path}&limit=1").json() == told, "there is nothing more"
        primary.process.send_signal(signal.SIGKILL)
        primary.process.wait(WAIT_S)
        assert until_status(standby.client, "GET", path, 200).json() == told


def until_refused(client: httpx.Client) -> None:
    """Nobody listens any more: the process beside has ended with its oracle."""
    for _ in range(int(WAIT_S / 0.1)):
        try:
            client.get("/v1/health/live")
        except httpx.TransportError:
            return
        threading.Event().wait(0.1)
    raise AssertionError("the REST process outlived its oracle")
