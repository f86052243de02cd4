"""Vacuums under load: what open snapshots show otherwise is told, and so is what grows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from client import TransactionManager
from client.vacuum import HorizonUnknown, VacuumReport, run_vacuum
from drills import vacuuming
from drills.vacuuming import SNAPSHOTS_OPEN_MAX, Sample, Vacuumed, Watch
from drills.verdict import Verdict
from tests.horizon import await_horizon
from tests.unit.client.conftest import A
from tests.unit.client.conftest import empty_installation as empty_installation
from tests.unit.client.conftest import made_anew_at_once as made_anew_at_once
from tests.unit.client.test_vacuum import forgetful as forgetful
from tests.unit.client.test_vacuum import manager as manager
from tests.unit.client.transacting import put

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def watch(manager: TransactionManager) -> Watch:
    for value in (b"1", b"2"):
        put(manager, b"r", value)
    return Watch(manager, ["t"])


def instead(monkeypatch: pytest.MonkeyPatch, vacuum: Callable[[], VacuumReport]) -> None:
    monkeypatch.setattr(vacuuming, "run_vacuum", lambda manager, **given: vacuum())


def test_samples_are_taken_before_and_after_each_vacuum(
    watch: Watch, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuuming, "run_vacuum", partial(run_vacuum, wait=lambda seconds: None))
    last = put(manager, b"r", b"3").commit_timestamp
    await_horizon(manager, lambda counted: counted.outcomes_horizon > last)
    watch.vacuum()
    before, after = watch.samples
    assert (before.after_vacuum, before.vacuums, before.versions, before.versions_most) == (False, 0, 3.0, 3)
    assert (after.after_vacuum, after.vacuums, after.versions, after.versions_most) == (True, 1, 1.0, 1)
    assert 0 < after.commit_rows <= before.commit_rows
    assert (watch.changed, watch.looks, watch.vacuums) == ([], 1, 1)
    assert watch.outcomes_from > last


def test_what_an_open_snapshot_shows_otherwise_is_told(
    watch: Watch, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_far() -> VacuumReport:
        manager.store.delete("t", [b"r"], manager.snapshot().timestamp)
        return VacuumReport(False, 0, 0)

    instead(monkeypatch, too_far)
    watch.vacuum()
    (told,) = watch.changed
    assert told.endswith(f"showed {{{A!r}: b'2'}} in row b'r', and after a vacuum None")


def test_what_could_not_be_vacuumed_is_told(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, lambda: VacuumReport(False, 0, 0, problems={"t": "out of reach"}))
    watch.vacuum()
    assert watch.changed == ["t: out of reach"]


def test_each_snapshot_is_open_across_a_few_vacuums(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    instead(monkeypatch, lambda: VacuumReport(False, 0, 0))
    for _ in range(5):
        watch.vacuum()
    assert watch.looks == sum(min(number, SNAPSHOTS_OPEN_MAX) for number in range(1, 6))


def test_where_the_horizon_is_not_known_it_is_waited(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> VacuumReport:
        raise HorizonUnknown("not yet")

    waited: list[float] = []
    instead(monkeypatch, unknown)
    monkeypatch.setattr("drills.vacuuming.time.sleep", waited.append)
    watch.vacuum()
    assert (watch.vacuums, watch.looks, waited) == (0, 0, [vacuuming.HORIZON_SECONDS])


def found(*commit_rows: int, changed: tuple[str, ...] = ()) -> Vacuumed:
    """Two samples without a vacuum, and one after each."""
    samples = [Sample(0.0, 0, False, 0, 1.0, 2), Sample(10.0, 0, False, 1_000, 11.0, 20)]
    samples += [Sample(20.0 + 10 * number, number, True, rows, 3.0, 4) for number, rows in enumerate(commit_rows, 1)]
    return Vacuumed(
        outages=[],
        verdict=Verdict(),
        transactions=5_000,
        commits=4_000,
        commits_per_second=100.0,
        quiet_gap_ms=10.0,
        samples=samples,
        changed=changed,
        vacuums=len(commit_rows),
        looks=9,
        seconds=80.0,
    )


def test_what_grows_for_good_is_told_and_what_goes_up_and_down_is_not() -> None:
    assert found(100, 150, 100, 120, 180, 140).grew == []
    (told,) = found(100, 150, 300, 400, 500, 600).grew
    assert told == "commit_rows: vacuums left 150.0 at most in the first third, and 600.0 in the last"
    assert found().grew == []


def test_every_harm_counts() -> None:
    harms = found(1, 2, 3, changed=("t: …",)).harms
    assert {name: len(told) for name, told in harms.items() if told} == {"changed_snapshots": 1, "grew": 1}
    assert set(Verdict().harms) < set(harms)
