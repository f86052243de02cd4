"""Real processes for integration tests: an oracle on the shared services, with its own znode root and tables."""

from __future__ import annotations

import queue
import re
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import pytest

from benchmarks.compiled_code import Code, compiled_code
from client import ClientSettings, TransactionManager
from commit_table import CommitTable, table_name
from drills.guard import Guard
from store.hbase import HBaseCellStore
from tests.conftest import Services

ORACLE_STARTS_SECONDS_MAX = 60
LEASE_MS = 10_000
"""Longer than the pauses of a shared machine: these tests are not about failover."""


COMPILING_SECONDS_MAX = 3_000
"""For a test that has what it needs compiled before, which another process may be doing, on a slow machine."""


@pytest.fixture(scope="session")
def compiled() -> Code:
    """The project compiled; as it is installed where there is no compiler, which is said."""
    return compiled_code(lambda step: print(step.text, file=sys.stderr))


@pytest.fixture(scope="session")
def oracle(services: Services) -> Iterator[ClientSettings]:
    """Where a primary oracle serves, of an installation that no other test run shares."""
    root = f"/pythia-test-{uuid.uuid4().hex[:8]}"
    command = [
        sys.executable, "-m", "tso", "serve", "--name", "oracle", "--zookeeper", services.zookeeper,
        "--thrift", services.thrift, "--root", root, "--listen", "127.0.0.1:0", "--lease-ms", str(LEASE_MS),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with Guard() as guard:  # a run that is interrupted ends without coming to its end
        guard.watch_process(process.pid)
        try:
            assert process.stdout is not None
            _await_primary(process.stdout)
            yield ClientSettings(zookeeper=services.zookeeper, thrift=services.thrift, root=root)
        finally:
            process.terminate()
            process.wait(timeout=30)
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture(scope="session")
def manager(oracle: ClientSettings) -> Iterator[TransactionManager]:
    """One manager for a test run; tests take tables or rows of their own."""
    with TransactionManager.connect(oracle) as manager:
        yield manager


def _await_primary(output: IO[str]) -> None:
    """Read the oracle's output until it serves as primary, and go on reading so that it never blocks on a full pipe."""
    primary = threading.Event()

    def read() -> None:
        for line in output:
            if "primary" in line:
                primary.set()

    threading.Thread(target=read, daemon=True).start()
    assert primary.wait(ORACLE_STARTS_SECONDS_MAX), "the oracle did not become primary"


SHORT_LEASE_MS = 2_000
"""For tests about failover."""
WAIT_S = 60.0


class Oracle:
    """A `tso serve` process and what it prints."""

    def __init__(self, name: str, root: str, services: Services) -> None:
        arguments = ["--name", name, "--root", root, "--lease-ms", str(SHORT_LEASE_MS), "--listen", "127.0.0.1:0"]
        where = ["--zookeeper", services.zookeeper, "--thrift", services.thrift]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tso", "serve", *arguments, *where], stdout=subprocess.PIPE, text=True
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.address = self.expect(r"serving on (127\.0\.0\.1:\d+) as standby")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def expect(self, pattern: str) -> str:
        """The group of the pattern in the next line, which has to match it."""
        line = self._lines.get(timeout=WAIT_S)
        match = re.fullmatch(pattern, line.strip())
        assert match is not None, f"{line!r} is not {pattern!r}"
        return match[1]

    def until_primary(self) -> int:
        return int(self.expect(r"primary, epoch (\d+)"))

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@dataclass
class Installation:
    """A root of its own on the shared services, and the processes started on it."""

    services: Services
    root: str
    table: CommitTable
    oracles: list[Oracle]

    @property
    def settings(self) -> ClientSettings:
        """By which its clients find it."""
        return ClientSettings(zookeeper=self.services.zookeeper, thrift=self.services.thrift, root=self.root)

    def start(self, name: str) -> Oracle:
        self.oracles.append(Oracle(name, self.root, self.services))
        return self.oracles[-1]


@pytest.fixture
def installation(services: Services) -> Iterator[Installation]:
    root = f"/tso-process-{uuid.uuid4().hex[:8]}"
    store = HBaseCellStore(services.thrift)
    made = Installation(services, root, CommitTable(store, table_name(root)), [])
    try:
        yield made
    finally:
        for oracle in made.oracles:
            if oracle.process.poll() is None:
                oracle.end(signal.SIGKILL)
        if table_name(root) in store.table_names():
            store.drop_table(table_name(root))
        store.close()
