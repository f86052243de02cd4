"""Real processes for integration tests: an oracle on the shared services, with its own znode root and tables."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from typing import IO

import pytest

from client import ClientSettings, TransactionManager
from tests.conftest import Services

ORACLE_STARTS_SECONDS_MAX = 60
LEASE_MS = 10_000
"""Longer than the pauses of a shared machine: these tests are not about failover, which aborts their transactions."""


@pytest.fixture(scope="session")
def oracle(services: Services) -> Iterator[ClientSettings]:
    """Where a primary oracle serves, of an installation that no other test run shares."""
    root = f"/pythia-test-{uuid.uuid4().hex[:8]}"
    command = [
        sys.executable, "-m", "tso", "serve", "--name", "oracle", "--zookeeper", services.zookeeper,
        "--thrift", services.thrift, "--root", root, "--listen", "127.0.0.1:0", "--lease-ms", str(LEASE_MS),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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
