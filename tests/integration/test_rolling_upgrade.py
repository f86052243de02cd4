"""Two releases side by side, as real processes under load: one after the other is upgraded, then the level is raised.

There is one release so far. So processes are made to work at other levels than it says (``other_release``): *old* at
level 1, *new* at 1 and 2, *next* at 2 and 3. All oracles have credentials for ZooKeeper, the clients have none.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from client import ClientSettings, TransactionManager, UpgradeNeeded
from devcluster.guard import Guard
from drills.children import Child
from drills.evidence import gather
from drills.flights import Stage
from drills.load import LoadSettings
from drills.loads import LoadProcess, Loads, create_tables, load_tables, running
from drills.site import Announced
from drills.verdict import judge
from drills.waiting import wait_until
from lease.credentials import CREDENTIALS_VARIABLE, load_credentials
from lease.protection import require_protection
from lease.raising import attendance
from lease.zookeeper import ZooKeeperCoordinator
from store.hbase import HBaseCellStore
from tests.conftest import Services
from tso.commands.upgrading import CannotRaise, finish, outlook
from versions import LevelRange, levels

pytestmark = pytest.mark.integration

LIMIT_S = 60.0
OLD, NEW, NEXT = LevelRange(1, 1), LevelRange(1, 2), LevelRange(2, 3)


class Site:
    """The oracles of one installation, each of one release or another."""

    def __init__(self, services: Services, logs: Path, guard: Guard) -> None:
        self.client = ClientSettings(
            services.zookeeper, services.thrift, f"/upgraded-{uuid.uuid4().hex[:8]}", deadline_ms=int(1000 * LIMIT_S)
        )
        self.logs = logs
        self.guard = guard
        self.oracles: dict[str, tuple[Child, Announced]] = {}

    def command(self, name: str, spoken: LevelRange) -> list[str]:
        where = ["--zookeeper", self.client.zookeeper, "--thrift", self.client.thrift, "--root", self.client.root]
        options = ["--name", name, "--listen", "127.0.0.1:0", "--lease-ms", "3000", *where]
        return [*program(spoken, "tso"), "serve", *options]

    def start(self, spoken: LevelRange, *names: str) -> None:
        for name in names:
            announced = Announced(name)
            log = self.logs / f"{name}.log"
            child = Child(name, self.command(name, spoken), log, self.guard, take=announced.begin())
            self.oracles[name] = child, announced
        for name in names:
            self.wait(lambda name=name: self.oracles[name][1].address is not None, f"{name} to listen")  # type: ignore[misc]

    def end(self, name: str) -> None:
        assert self.oracles[name][0].end() == 0

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what, LIMIT_S, explain=lambda: "\n".join(one.tail() for one, _ in self.oracles.values()))

    def primary(self) -> str | None:
        serving = {name: one.epoch for name, (child, one) in self.oracles.items() if one.epoch and child.is_running()}
        return max(serving, key=lambda name: serving[name] or 0) if serving else None

    def tenures(self) -> list[int]:
        return sorted(tenure.epoch for _, announced in self.oracles.values() for tenure in announced.tenures)


def program(spoken: LevelRange, module: str) -> list[str]:
    numbers = [str(spoken.lowest), str(spoken.highest)]
    return [sys.executable, "-m", "tests.integration.other_release", *numbers, module]


@pytest.fixture
def site(services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv(CREDENTIALS_VARIABLE, "pythia:rolling")
    with Guard() as guard:
        site = Site(services, tmp_path, guard)
        try:
            yield site
        finally:
            for child, _ in site.oracles.values():
                child.kill()
            with closing(HBaseCellStore(services.thrift)) as store:
                for table in store.table_names():
                    if table.startswith((site.client.root.strip("/"), load_tables(site.client.root))):
                        store.drop_table(table)


def load(stack: ExitStack, site: Site, name: str, spoken: LevelRange) -> LoadProcess:
    settings = LoadSettings(
        name, site.client.to_json(), load_tables(site.client.root), str(site.logs), seed=5, pause_ms=20
    )
    command = program(spoken, "drills.load")
    return stack.enter_context(running([settings], command, site.logs, site.guard)).processes[0]


def commits(loads: Loads, when: str) -> None:
    loads.await_commits(time.monotonic_ns(), LIMIT_S, when)


def begin_on_and_on(manager: TransactionManager) -> None:
    while True:
        manager.transaction().rollback()


class Refused:
    """An oracle that is to end at once."""

    def __init__(self, site: Site, spoken: LevelRange) -> None:
        self._process = subprocess.Popen(
            site.command("refused", spoken), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def reason(self) -> str:
        """The last line that it said."""
        output, errors = self._process.communicate(timeout=LIMIT_S)
        assert self._process.returncode == 1, output + errors
        assert "serving" not in output
        return errors.splitlines()[-1]


def test_oracles_and_clients_are_upgraded_one_at_a_time_under_load(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    root, operator = site.client.root, ZooKeeperCoordinator(site.client.zookeeper, load_credentials(""))
    with ExitStack() as stack:
        stack.enter_context(closing(operator))
        store = stack.enter_context(closing(HBaseCellStore(site.client.thrift)))
        site.start(OLD, "old-1", "old-2")
        site.wait(lambda: site.primary() is not None, "a primary")
        old_client = stack.enter_context(TransactionManager.connect(site.client))
        create_tables(old_client, load_tables(root))
        old_load, new_load = load(stack, site, "old", OLD), load(stack, site, "new", NEW)
        both = Loads([old_load, new_load])
        commits(both, "at first")
        both.open(1)
        too_new = Refused(site, NEXT)
        site.start(NEW, "new-1", "new-2")
        assert "it is too new. Upgrade the installation step by step" in too_new.reason()
        with pytest.raises(CannotRaise, match=r"Upgrade first: old-1 \(level 1\), old-2 \(level 1\)"):
            finish(operator, store, root, NEW, tell=lambda _: None)
        both.reach(1, Stage.STRUCK)
        for name in sorted(["old-1", "old-2"], key=lambda name: name == site.primary()):
            site.end(name)
            commits(both, f"after the end of {name}")
        assert (site.primary() or "").startswith("new")
        for stage in Stage:
            both.reach(1, stage)
        both.land(1)
        old_client.transaction().rollback()
        Loads([old_load]).stop()

        assert (
            finish(operator, store, root, NEW, tell=lambda _: None, wait=lambda seconds: time.sleep(seconds % 1)) == 2
        )
        too_old = Refused(site, OLD)
        commits(Loads([new_load]), "at the new level")
        assert all(2 in member.levels for member in attendance(operator, root).members)
        assert not outlook(operator, store, root, NEW).is_unfinished
        with pytest.raises(UpgradeNeeded, match=r"requires level 2.*works at level 1: upgrade this program"):
            begin_on_and_on(old_client)  # until the next look at the lease, however well the connection works
        assert "requires level 2" in too_old.reason()
        require_protection(operator, root)
        Loads([new_load]).stop()

        monkeypatch.setattr(levels, "SPOKEN", NEW)
        new_client = stack.enter_context(TransactionManager.connect(site.client))
        record = gather(new_client, [old_load.settings, new_load.settings], [], site.tenures())
    verdict = judge(record)
    assert verdict.is_clean, verdict.harms
    assert sum(both.landed.values()) > 0
    assert both.landed.keys() <= {"committed", "Conflict"}
