"""Vacuum on real HBase: old versions and commit-table rows go, and every snapshot that may be read shows the same."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from client import ClientSettings, InvalidRequest, TransactionManager
from client.cells import encode_value, shadow_column
from client.vacuum import run_vacuum
from commit_table import table_name
from commit_table.layout import OWN_ROW
from commit_table.timestamps import milliseconds_of
from store import KeyRange, RowPut
from store.columns import CellColumns
from tests.horizon import at_once, await_horizon
from tests.integration.oracle_processes import OracleProcess

pytestmark = pytest.mark.integration

A, B = b"f:a", b"f:b"
EVERYTHING = KeyRange(b"", b"")
ROWS = [b"r%03d" % number for number in range(40)]
ROUNDS = 5


def vacuumed_through(manager: TransactionManager, moment: int, *, dry_run: bool = False) -> int:
    """Vacuum once the horizon has passed the millisecond of a moment, a row of the commit table; the horizon."""
    await_horizon(manager, lambda counted: milliseconds_of(counted.outcomes_horizon) > milliseconds_of(moment))
    report = run_vacuum(manager, retain_ms=0, outcomes_retain_ms=0, dry_run=dry_run, wait=at_once)
    assert report.problems == {}
    return report.horizon


def commit_rows(manager: TransactionManager) -> int:
    rows = manager.store.scan(table_name(manager.settings.root), EVERYTHING, [b"c", b"f"])
    return sum(row != OWN_ROW for row, _ in rows)


def test_a_table_is_trimmed_and_reads_the_same(forgetful: TransactionManager) -> None:
    manager, table = forgetful, f"vacuum-{uuid.uuid4().hex[:8]}"
    manager.create_table(table, ["f", "g"])
    try:
        for round_ in range(ROUNDS):
            for row in ROWS:
                with manager.transaction() as transaction:
                    transaction.put(table, row, {A: b"%d" % round_, b"g:a": row})
        with manager.transaction() as last:
            last.delete(table, ROWS[0])
            last.put(table, ROWS[1], {B: b"b"})
        dead = manager.transaction()
        manager.store.put(table, [RowPut(b"dead", {A: b"1"}), RowPut(ROWS[2], {A: b"1"})], dead.start_timestamp)
        with manager.transaction() as late:
            late.put(table, ROWS[3], {A: b"late"})
        want, before = dict(manager.snapshot().scan(table)), commit_rows(manager)
        first = vacuumed_through(manager, late.start_timestamp)
        assert commit_rows(manager) < before
        assert dict(manager.snapshot().scan(table)) == want
        assert dict(manager.snapshot(at=first).scan(table)) == want
        stored = {row: manager.store.versions(table, row, A, limit=100) for row in [*ROWS, b"dead"]}
        assert {row: len(cells) for row, cells in stored.items() if len(cells) != 1} == {
            ROWS[0]: 0,
            ROWS[2]: 2,
            b"dead": 0,
        }
        with TransactionManager.connect(manager.settings) as other, pytest.raises(InvalidRequest, match="vacuumed"):
            other.snapshot(at=first - 1).get(table, ROWS[1])
        with manager.transaction() as again:
            again.put(table, ROWS[0], {A: b"again"})
        assert manager.snapshot().get(table, ROWS[0]) == {A: b"again"}
        vacuumed_through(manager, again.start_timestamp)
        assert dict(manager.snapshot().scan(table)) == want | {ROWS[0]: {A: b"again"}}
        assert commit_rows(manager) <= 1
    finally:
        manager.store.drop_table(table)


def test_a_bulk_write_without_shadow_cells_is_read_by_its_record_until_it_is_written_again(
    forgetful: TransactionManager,
) -> None:
    manager, table = forgetful, f"lasting-{uuid.uuid4().hex[:8]}"
    manager.create_table(table, ["f"])
    settings = replace(manager.settings, bulk_shadow_cells="none")
    try:
        with TransactionManager.connect(settings) as loading, loading.transaction() as bulk:
            job = loading.open_job(bulk.handle())
            writer = loading.attempt_writer(bulk.handle(), table, job, partition=0, attempt=0)
            writer.write(CellColumns.of_puts([RowPut(row, {A: encode_value(row)}) for row in ROWS]))
            loading.seal_job(bulk.handle(), job, [(0, 0)])
        for row in ROWS[:5]:
            with manager.transaction() as transaction:
                transaction.put(table, row, {B: b"b"})
        want = {row: {A: row} for row in ROWS} | {row: {A: row, B: b"b"} for row in ROWS[:5]}
        for _ in range(2):
            vacuumed_through(manager, transaction.start_timestamp)
            assert commit_rows(manager) == 1
            with TransactionManager.connect(manager.settings) as other:
                assert dict(other.snapshot().scan(table)) == want
                assert [cells.rows for cells in other.snapshot().scan_columns(table, [A])] == [len(ROWS)]
            shadowed = [row for row, _ in manager.store.scan(table, EVERYTHING, [shadow_column(b"f")])]
            assert shadowed == ROWS[:5]
        with manager.transaction() as last:
            for row in ROWS:
                last.put(table, row, {A: b"again"})
        vacuumed_through(manager, last.start_timestamp)
        assert commit_rows(manager) <= 1
        assert manager.commit_table.record(bulk.start_timestamp).commit_timestamp is None
        with TransactionManager.connect(manager.settings) as other:
            assert {values[A] for _, values in other.snapshot().scan(table)} == {b"again"}
    finally:
        manager.store.drop_table(table)


def vacuumed_once_held_back_by(manager: TransactionManager, *names: str) -> int:
    """Vacuum when nobody but these named snapshots is in its way; the horizon. Other processes read afterwards."""
    await_horizon(manager, lambda counted: set(counted.held_back_by) == set(names))
    report = run_vacuum(manager, retain_ms=0, outcomes_retain_ms=0, wait=at_once)
    assert (report.problems, list(report.held_back_by)) == ({}, list(names))
    return report.horizon


def test_a_named_snapshot_is_read_after_every_vacuum_and_with_every_oracle_down(
    forgetful: TransactionManager, oracle_of_its_own: tuple[ClientSettings, OracleProcess]
) -> None:
    manager, (settings, serving), table = forgetful, oracle_of_its_own, f"named-{uuid.uuid4().hex[:8]}"
    manager.create_table(table, ["f"])
    try:
        shown: list[dict[bytes, dict[bytes, bytes]]] = []
        early = manager.snapshot().timestamp
        for name in ("monday", "tuesday"):
            for round_ in range(ROUNDS):
                with manager.transaction() as transaction:
                    for row in ROWS:
                        transaction.put(table, row, {A: b"%s %d" % (name.encode(), round_)})
            shown.append(dict(manager.snapshot(manager.create_snapshot(name).name).scan(table)))
        with manager.transaction() as last:
            for row in ROWS:
                last.delete(table, row)
        monday, tuesday = (manager.snapshot(name).timestamp for name in ("monday", "tuesday"))
        assert vacuumed_once_held_back_by(manager, "monday", "tuesday") == monday
        with pytest.raises(InvalidRequest, match="a vacuum drops, or has dropped"):
            manager.create_snapshot("early", early)
        with TransactionManager.connect(settings) as other:
            assert [dict(other.snapshot(name).scan(table)) for name in ("monday", "tuesday")] == shown
            other.drop_snapshot("monday")
        assert vacuumed_once_held_back_by(manager, "tuesday") == tuesday
        with TransactionManager.connect(settings) as another, pytest.raises(InvalidRequest, match="vacuumed below"):
            another.snapshot(monday).get(table, ROWS[0])
        serving.end()
        with TransactionManager.connect(settings) as alone:
            assert dict(alone.snapshot("tuesday").scan(table)) == shown[1]
            assert [(named.name, named.is_finished) for named in alone.snapshots()] == [("tuesday", True)]
            alone.drop_snapshot("tuesday")
    finally:
        manager.store.drop_table(table)
