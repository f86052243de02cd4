"""Vacuums under load on real services: open snapshots show what they showed, and one that goes too far is caught."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest

from client.vacuum import VacuumReport, run_vacuum
from client.vacuum.sweep import Sweep
from client.vacuum.swept import Sweeping
from drills import vacuuming
from drills.installation import Plan
from drills.vacuuming import Vacuumed

pytestmark = [pytest.mark.integration, pytest.mark.takes_minutes]

SECONDS = 30.0


class Services(Protocol):
    @property
    def zookeeper(self) -> str: ...

    @property
    def thrift(self) -> str: ...


def vacuumed(services: Services, directory: Path) -> Vacuumed:
    plan = Plan(directory, zookeeper=services.zookeeper, thrift=services.thrift)
    return vacuuming.run(plan, SECONDS, seed=1, pause_ms=20, progress=lambda step: None)


def test_open_snapshots_show_the_same_after_vacuums_under_load(services: Services, tmp_path: Path) -> None:
    found = vacuumed(services, tmp_path)
    assert not any(found.harms.values()), found.harms
    assert found.vacuums >= 1
    assert found.looks >= found.vacuums
    assert found.commits > 100
    assert found.samples[-1].after_vacuum
    assert found.samples[-1].vacuums == found.vacuums


def test_a_vacuum_that_goes_too_far_is_caught(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes every moment for one below which nobody reads."""

    def too_far(manager: Any, **given: Any) -> VacuumReport:
        report = run_vacuum(manager, **given)
        now = manager.snapshot().timestamp
        for table, entry in manager.catalog.tables().items():
            for _ in Sweep(manager.store, manager.commit_table, manager.oracle.abort, now).table(
                table, entry.family_columns, Sweeping(now, entry.plain_through)
            ):
                pass
        return report

    monkeypatch.setattr(vacuuming, "run_vacuum", too_far)
    assert vacuumed(services, tmp_path).changed
