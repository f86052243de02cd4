"""A real ZooKeeper of this module's own, killed and brought back without its data under two candidates."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.configuration import zookeeper_command, zookeeper_settings
from devcluster.guard import Guard
from devcluster.jars import ensure_jars
from devcluster.java import find_java
from devcluster.ports import claim
from devcluster.readiness import zookeeper_answers
from lease import (
    CoordinatorUnavailable,
    LeaseSettings,
    PrimaryFinder,
    Tenure,
    members,
)
from lease.memory import MemoryFloor
from lease.zookeeper import ZooKeeperCoordinator
from tests.integration.candidates import real_candidate

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

FETCH_SECONDS_MAX = 900
LIMIT_S = 60.0
HOUR_MS = 3_600_000
ROOT = "/pythia"
LEASE = LeaseSettings(lease_ms=1000)
SESSION_MS = 2_000


class OwnZooKeeper:
    """One on loopback whose data can be thrown away."""

    def __init__(self, directory: Path, guard: Guard) -> None:
        java = find_java()
        self._guard = guard
        self._data = directory / "data"
        self._port = claim(0, "ZooKeeper", "")
        (directory / "zoo.cfg").write_text(zookeeper_settings(self._data, self._port))
        jars = ensure_jars(java, FETCH_SECONDS_MAX, lambda step: None)
        self._command = zookeeper_command(str(java), [str(directory), *map(str, jars)], directory / "zoo.cfg")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._guard.watch_process(self._process.pid)
        end_s = time.monotonic() + LIMIT_S
        while not zookeeper_answers(self._port):
            assert time.monotonic() < end_s, "ZooKeeper does not come up"
            time.sleep(0.1)

    def lose_data(self) -> None:
        self.kill()
        shutil.rmtree(self._data)
        self.start()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[OwnZooKeeper]:
    with Guard() as guard:
        zookeeper = OwnZooKeeper(tmp_path, guard)
        try:
            zookeeper.start()
            yield zookeeper
        finally:
            zookeeper.kill()


def test_everybody_comes_back_and_the_next_epoch_is_above_the_last(zookeeper: OwnZooKeeper) -> None:
    floor = MemoryFloor()
    with contextlib.ExitStack() as closing:
        one, two, reader = (
            closing.enter_context(ZooKeeperCoordinator(zookeeper.address, session_timeout_ms=SESSION_MS))
            for _ in range(3)
        )
        first = real_candidate("a", one, LEASE, ROOT, floor, ahead_ms=HOUR_MS).attempt()
        assert isinstance(first, Tenure)
        standby = real_candidate("b", two, LEASE, ROOT, floor)
        standby.join("standby")
        standby.attempt()
        finder = PrimaryFinder(reader, ROOT)
        assert finder.current() == first.record
        zookeeper.lose_data()
        end_s = time.monotonic() + LIMIT_S
        second = standby.attempt()
        while not isinstance(second, Tenure):
            assert time.monotonic() < end_s, "nobody serves any more"
            time.sleep(0.1)
            second = standby.attempt()
        assert not first.is_held()
        assert second.epoch >= first.ceiling
        while True:
            with contextlib.suppress(CoordinatorUnavailable):
                if finder.current() == second.record:
                    break
            assert time.monotonic() < end_s, "clients do not find the primary any more"
            assert second.renew()
        assert [member.holder for member in members(reader, ROOT)] == ["b"]
        assert not first.renew()
        second.release()
