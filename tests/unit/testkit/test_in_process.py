"""An installation in the process of a test: all that a manager does, through hand-overs, and a clear end."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from client import Conflict, InvalidRequest, InvalidSettings, NoPrimary, TransactionManager
from store import MemoryCellStore
from testkit import InProcessInstallation, OracleThread, oracle, small_limits
from tests.imports import ROOT
from tests.unit.documentation.pages import blocks
from tso.settings import ServeSettings

PAGE_SECONDS_MAX = 300
A = b"d:a"
SERVE = ServeSettings("alone", zookeeper="", thrift="", listen_port=0, limits=small_limits())


@pytest.fixture
def installation() -> Iterator[InProcessInstallation]:
    with InProcessInstallation() as installation:
        installation.manager().create_table("t", ["d"])
        yield installation


def test_two_managers_see_one_another(installation: InProcessInstallation) -> None:
    one, other = installation.manager(), installation.manager(deadline_ms=2_000)
    assert other.settings.deadline_ms == 2_000
    first, second = one.transaction(), other.transaction()
    for transaction in (first, second):
        transaction.put("t", b"r", {A: b"1"})
    first.commit()
    with pytest.raises(Conflict):
        second.commit()
    assert other.snapshot().get("t", b"r") == {A: b"1"}
    assert "t" in installation.store.table_names()


def test_transactions_go_on_through_hand_overs_and_conflicts_are_still_found(
    installation: InProcessInstallation,
) -> None:
    manager = installation.manager()
    lasting, late = manager.transaction(), manager.transaction()
    lasting.put("t", b"lasting", {A: b"1"})
    late.put("t", b"r", {A: b"late"})
    with manager.transaction() as early:
        early.put("t", b"r", {A: b"early"})
    epochs = {manager.snapshot().epoch}
    for _ in range(2):
        installation.hand_over()
        epochs.add(manager.snapshot().epoch)
    assert len(epochs) == 3
    lasting.commit()
    with pytest.raises(Conflict):
        late.commit()
    assert dict(manager.snapshot().scan("t")) == {b"lasting": {A: b"1"}, b"r": {A: b"early"}}
    manager.create_snapshot("named")
    assert manager.snapshot("named").get("t", b"r") == {A: b"early"}


def test_each_has_a_store_of_its_own(installation: InProcessInstallation) -> None:
    with InProcessInstallation() as other:
        other.manager().create_table("other", ["d"])
        assert "t" not in other.store.table_names()
    assert "other" not in installation.store.table_names()


def test_its_end_ends_managers_and_oracles() -> None:
    with InProcessInstallation() as installation:
        manager = installation.manager(deadline_ms=100)
        manager.create_table("t", ["d"])
        installation.hand_over()
        oracles = list(installation._oracles)
    with pytest.raises(InvalidRequest, match="the client is closed"):
        manager.transaction()
    assert not any(each._thread.is_alive() for each in oracles)
    installation.close()


def test_settings_that_cannot_be_are_refused(installation: InProcessInstallation) -> None:
    with pytest.raises(InvalidSettings, match="deadline_ms"):
        installation.manager(deadline_ms=0)


def test_an_oracle_that_cannot_start_says_why_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError("no such address")

    monkeypatch.setattr("tso.process.OracleProcess.run", fail)
    with pytest.raises(RuntimeError, match="the oracle alone has ended: no such address"):
        OracleThread(SERVE, None, MemoryCellStore())


def test_an_oracle_that_has_ended_is_not_waited_for() -> None:
    thread = OracleThread(SERVE, None, MemoryCellStore())
    thread.await_primary()
    assert thread.address.startswith("127.0.0.1:")
    thread.stop()
    thread.stop()
    with pytest.raises(RuntimeError, match="the oracle alone has ended"):
        thread.await_primary()


def test_what_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    thread = OracleThread(SERVE, None, MemoryCellStore())
    monkeypatch.setattr(oracle, "START_SECONDS_MAX", 0)
    monkeypatch.setattr(thread, "_primary", threading.Event())
    with pytest.raises(TimeoutError, match="alone did not come so far within 0 s"):
        thread.await_primary()
    monkeypatch.setattr(oracle, "STOP_SECONDS_MAX", 0)
    with pytest.raises(TimeoutError, match="alone did not end within 0 s"):
        thread.stop()
    monkeypatch.undo()
    thread.stop()


def test_the_page_works_as_it_stands(tmp_path: Path) -> None:
    python = [block.text for block in blocks("docs/testing.md") if block.language == "python"]
    fixtures, first, second = python
    (tmp_path / "conftest.py").write_text(fixtures)
    (tmp_path / "test_page.py").write_text(first + second)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        timeout=PAGE_SECONDS_MAX,
        check=False,
        cwd=ROOT,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "2 passed" in ended.stdout


def test_a_manager_needs_the_installation_to_be_entered() -> None:
    manager: TransactionManager = InProcessInstallation().manager(deadline_ms=100)
    with pytest.raises(NoPrimary):
        manager.transaction()
    manager.close()
