"""REST beside real oracle processes, on real ZooKeeper and HBase: who serves, and what a failover leaves."""

from __future__ import annotations

import contextlib
import queue
import re
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

pytestmark = pytest.mark.integration

WAIT_S = 60.0


class OracleWithRest:
    """A `tso serve --rest-listen` process and what it prints."""

    def __init__(self, name: str, root: str, services: Services, *more: str) -> None:
        where = ["--zookeeper", services.zookeeper, "--thrift", services.thrift, "--root", root, "--name", name]
        command = [
            sys.executable,
            "-m",
            "tso",
            "serve",
            *where,
            "--listen",
            "127.0.0.1:0",
            "--rest-listen",
            "127.0.0.1:0",
            *more,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.client = httpx.Client(base_url=f"http://{self.expect(r'REST on (.*)')}", timeout=WAIT_S, trust_env=False)
        self.expect(r"serving on (.*) as standby")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def expect(self, pattern: str) -> str:
        line = self._lines.get(timeout=WAIT_S)
        match = re.fullmatch(pattern, line.strip())
        assert match is not None, f"{line!r} is not {pattern!r}"
        return match[1]

    def end(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(WAIT_S)
            self._reader.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.client.close()


@pytest.fixture
def installation(services: Services) -> Iterator[tuple[OracleWithRest, OracleWithRest, ClientSettings]]:
    """A primary and a standby of their own."""
    root = f"/pythia-rest-{uuid.uuid4().hex[:8]}"
    primary = OracleWithRest("a", root, services)
    standby = None
    try:
        primary.expect(r"primary, epoch (\d+)")
        standby = OracleWithRest("b", root, services)
        yield primary, standby, ClientSettings(zookeeper=services.zookeeper, thrift=services.thrift, root=root)
    finally:
        for oracle in filter(None, (primary, standby)):
            oracle.end(signal.SIGTERM)


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


def until_refused(client: httpx.Client) -> None:
    """Nobody listens any more: the process beside has ended with its oracle."""
    for _ in range(int(WAIT_S / 0.1)):
        try:
            client.get("/v1/health/live")
        except httpx.TransportError:
            return
        threading.Event().wait(0.1)
    raise AssertionError("the REST process outlived its oracle")
