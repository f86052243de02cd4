"""The shadow cells of bulk writes: in threads, later, by others, and again where a pass broke off."""

from __future__ import annotations

import dataclasses

import pytest

from client import Aborted, Committed, TransactionManager
from client.bulk_writes import shadow_pass
from client.cells import ABORTED_SHADOW
from store import CellStore, StoreUnavailable
from store.faults import Fault
from tests.unit.client.bulk_writing import rows_seen, shadow, write
from tests.unit.client.conftest import SETTINGS, A, Installation


def test_shadow_cells_of_a_large_write_are_written_in_threads(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_pass, "WRITE_ROWS_MAX", 3)
    transaction = manager.transaction()
    handle = transaction.handle()
    rows = [b"%04d" % number for number in range(60)]
    for partition in range(20):
        write(manager, handle, "job", *rows[3 * partition : 3 * partition + 3], partition=partition)
    manager.manifest.seal(handle.start_timestamp, "job", [(partition, 0) for partition in range(20)])
    committed = transaction.commit()
    assert {shadow(manager, row) for row in rows} == {committed.commit_timestamp}
    assert manager.manifest.jobs(handle.start_timestamp) == {}


def test_deferred_shadow_cells_are_finished_by_whoever_comes_by(installation: Installation) -> None:
    deferring = installation.manager(settings=dataclasses.replace(SETTINGS, bulk_shadow_cells="deferred"))
    transaction = deferring.transaction()
    write(deferring, transaction.handle(), "job", b"a", b"b")
    deferring.manifest.seal(transaction.start_timestamp, "job", [(0, 0)])
    committed = transaction.commit()
    another = installation.manager()
    assert rows_seen(another) == [b"a", b"b"]
    assert list(another.manifest.transactions()) == [transaction.start_timestamp]
    assert another.finish_bulk_writes() == 1
    assert shadow(another, b"b") == committed.commit_timestamp
    assert another.finish_bulk_writes() == 0


@pytest.mark.parametrize("dies_before", [None, "let_last", "forget"])
def test_a_bulk_write_may_do_without_shadow_cells(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, dies_before: str | None
) -> None:
    """Whoever comes by tidies up after a process that died, or writes them after all."""
    without = installation.manager(settings=dataclasses.replace(SETTINGS, bulk_shadow_cells="none"))
    transaction = without.transaction()
    write(without, transaction.handle(), "job", b"a", b"b")
    without.manifest.seal(transaction.start_timestamp, "job", [(0, 0)])
    transaction.put("t", b"c", {A: b"1"})
    with monkeypatch.context() as patched:
        if dies_before is not None:
            patched.setattr(without.commit_table if dies_before == "let_last" else without.manifest, dies_before, _lost)
        committed = transaction.commit()
    another = installation.manager()
    for reader in (without, another):
        assert rows_seen(reader) == [b"a", b"b", b"c"]
        assert reader.snapshot().get("t", b"a") == {A: b"1"}
    is_written = dies_before == "let_last"
    assert shadow(another, b"c") == committed.commit_timestamp, "what it wrote itself has its shadow cell"
    assert another.finish_bulk_writes() == int(is_written)
    assert [shadow(another, row) for row in (b"a", b"b")] == [committed.commit_timestamp if is_written else None] * 2
    assert list(another.manifest.transactions()) == []
    outcome = another.outcome(transaction.start_timestamp)
    assert isinstance(outcome, Committed)
    assert outcome.is_lasting is not is_written


def test_who_wrote_nothing_in_bulk_has_no_record_that_lasts(installation: Installation) -> None:
    without = installation.manager(settings=dataclasses.replace(SETTINGS, bulk_shadow_cells="none"))
    transaction = without.transaction()
    transaction.handle()
    transaction.put("t", b"c", {A: b"1"})
    transaction.commit()
    outcome = without.outcome(transaction.start_timestamp)
    assert isinstance(outcome, Committed)
    assert not outcome.is_lasting


def test_what_does_without_shadow_cells_and_does_not_commit_is_marked(installation: Installation) -> None:
    without = installation.manager(settings=dataclasses.replace(SETTINGS, bulk_shadow_cells="none"))
    transaction = without.transaction()
    write(without, transaction.handle(), "job", b"a")
    transaction.rollback()
    assert shadow(without, b"a") == ABORTED_SHADOW
    assert without.outcome(transaction.start_timestamp) == Aborted()


def _lost(*_: object) -> None:
    raise StoreUnavailable("nobody answers")


def test_a_shadow_pass_that_broke_off_is_taken_up_again(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_pass, "WRITE_ROWS_MAX", 1)
    transaction = manager.transaction()
    handle = transaction.handle()
    for partition in range(3):
        write(manager, handle, "job", b"%d" % partition, partition=partition)
    manager.manifest.seal(handle.start_timestamp, "job", [(partition, 0) for partition in range(3)])
    installation.store.plan("put", None, Fault.LOST)
    committed = transaction.commit()
    assert {shadow(manager, b"%d" % partition) for partition in range(3)} > {committed.commit_timestamp}
    assert manager.finish_bulk_writes() == 1
    assert {shadow(manager, b"%d" % partition) for partition in range(3)} == {committed.commit_timestamp}


def test_an_open_bulk_write_is_left_alone(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    write(manager, transaction.handle(), "job", b"a")
    assert manager.finish_bulk_writes() == 0
    assert list(manager.manifest.transactions()) == [transaction.start_timestamp]


def test_the_shadow_cells_of_a_table_that_was_dropped_are_no_longer_owed(installation: Installation) -> None:
    deferring = installation.manager(settings=dataclasses.replace(SETTINGS, bulk_shadow_cells="deferred"))
    deferring.create_table("gone", ["f"])
    transaction = deferring.transaction()
    write(deferring, transaction.handle(), "job", b"a")
    write(deferring, transaction.handle(), "job", b"b", table="gone", partition=1)
    deferring.manifest.seal(transaction.start_timestamp, "job", [(0, 0), (1, 0)])
    committed = transaction.commit()
    deferring.drop_table("gone")
    assert deferring.finish_bulk_writes() == 1
    assert shadow(deferring, b"a") == committed.commit_timestamp
    assert list(deferring.manifest.transactions()) == []


@pytest.mark.parametrize("together_bytes_max", [shadow_pass.TOGETHER_BYTES_MAX, 1])
def test_pieces_go_together_in_the_order_of_their_rows_as_far_as_the_limits_let_them(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, together_bytes_max: int
) -> None:
    monkeypatch.setattr(shadow_pass, "TOGETHER_BYTES_MAX", together_bytes_max)
    monkeypatch.setattr(shadow_pass, "WRITE_ROWS_MAX", 3)
    manager = installation.manager(settings=dataclasses.replace(SETTINGS, shadow_writers_max=1))
    manager.create_table("other", ["f"])
    transaction = manager.transaction()
    handle = transaction.handle()
    write(manager, handle, "job", b"d", b"a", partition=0)
    write(manager, handle, "job", b"c", b"b", partition=1)
    write(manager, handle, "job", b"y", b"x", table="other", partition=2)
    manager.manifest.seal(handle.start_timestamp, "job", [(partition, 0) for partition in range(3)])
    written: list[tuple[str, list[bytes]]] = []

    def note(store: CellStore, start_timestamp: int, shadows: shadow_pass.Shadows) -> None:
        written.append((shadows.table, shadows.cells.row_keys()))
        write_shadows(store, start_timestamp, shadows)

    write_shadows = shadow_pass._write
    monkeypatch.setattr(shadow_pass, "_write", note)
    committed = transaction.commit()
    apart = [("t", [b"a", b"d"]), ("t", [b"b", b"c"]), ("other", [b"x", b"y"])]
    together = [("t", [b"a", b"b", b"c"]), ("t", [b"d"]), ("other", [b"x", b"y"])]
    assert written == (apart if together_bytes_max == 1 else together)
    assert {shadow(manager, row) for row in (b"a", b"b", b"c", b"d")} == {committed.commit_timestamp}
