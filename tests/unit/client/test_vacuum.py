"""A whole vacuum on an installation: the horizon, the marks, the order, and who comes too late."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from client import (
    Committed,
    InvalidRequest,
    OutcomeUnknown,
    PythiaError,
    Snapshot,
    TableFenced,
    Transaction,
    TransactionAborted,
    TransactionExpired,
    TransactionManager,
)
from client.bulk_writes.manifest import Job
from client.catalog.age import ENTRY_AGE_SECONDS_MAX
from client.cells import decode_shadow, encode_value
from client.connection.tickets import Decision
from client.snapshots.moments import SINCE_THE_BEGINNING
from client.vacuum import HorizonUnknown, TableReport, VacuumReport, run_vacuum
from client.vacuum.command import vacuum
from client.vacuum.parts import Progress
from client.vacuum.run import LASTING_RECORDS_DEFAULT, OUTCOMES_RETAIN_MS_DEFAULT
from commit_table import Outcome, Undecided, system_table
from commit_table.layout import OWN_ROW
from commit_table.level_record import LevelOfData
from commit_table.timestamps import milliseconds_of
from lease import monotonic_ms
from store import Cell, KeyRange, RowPut, StoreUnavailable
from store.columns import CellColumns
from store.faults import Fault
from testkit import small_limits
from tests.horizon import await_horizon
from tests.unit.client.conftest import COMMITS, SETTINGS, A, Installation, written_in_bulk, written_plainly
from tests.unit.client.transacting import fail_over, get, put

LIFE_MS = 100
B = b"f:b"
SHADOW = b"f:\x00"
ROWS = [b"r1", b"r2", b"r3"]
MANIFEST = system_table(SETTINGS.root, "manifest")
EVERYTHING = KeyRange(b"", b"")


@pytest.fixture
def forgetful(empty_installation: Installation) -> Installation:
    """An oracle that gives up soon what it hears nothing of, so that its horizon moves."""
    empty_installation.serve(limits=small_limits(transaction_life_ms=LIFE_MS))
    empty_installation.manager().create_table("t", ["f", "g"])
    return empty_installation


@pytest.fixture
def manager(forgetful: Installation) -> TransactionManager:
    return forgetful.manager()


def at_once(seconds: float) -> None:
    """What tests that read with other managers need not wait for."""


def vacuum_through(
    manager: TransactionManager,
    moment: int,
    wait: Callable[[float], None] = at_once,
    *,
    dry_run: bool = False,
    everything: bool = False,
    outcomes_retain_ms: int = 0,
    lasting_records_max: int = LASTING_RECORDS_DEFAULT,
    progress: Progress = lambda table, report: None,
) -> VacuumReport:
    """Vacuum, once the oracle says that nobody lives who reads or writes in the millisecond of a moment, or before it:
    the commit table has a row for each.
    """
    await_horizon(manager, lambda counted: milliseconds_of(counted.outcomes_horizon) > milliseconds_of(moment))
    return run_vacuum(
        manager,
        retain_ms=0,
        outcomes_retain_ms=outcomes_retain_ms,
        lasting_records_max=lasting_records_max,
        dry_run=dry_run,
        everything=everything,
        progress=progress,
        wait=wait,
    )


def rows(manager: TransactionManager, table: str, families: list[bytes]) -> list[bytes]:
    return [row for row, _ in manager.store.scan(table, EVERYTHING, families)]


def versions(manager: TransactionManager) -> list[Cell]:
    return manager.store.versions("t", b"r", A, limit=100)


def write_three_times(manager: TransactionManager) -> list[int]:
    return [put(manager, b"r", value).commit_timestamp for value in (b"1", b"2", b"3")]


def test_what_nobody_reads_goes_and_the_past_below_is_refused(
    manager: TransactionManager, forgetful: Installation
) -> None:
    first, _, last = write_three_times(manager)
    before = manager.snapshot(at=first)
    report = vacuum_through(manager, last)
    assert [cell.value for cell in versions(manager)] == [b"3"]
    assert rows(manager, COMMITS, [b"c", b"f"]) == [OWN_ROW], "the level stays"
    assert (report.commit_table_rows_dropped > 0, report.problems) == (True, {})
    other = forgetful.manager()
    assert get(other, b"r") == b"3"
    assert other.snapshot(at=report.horizon).get("t", b"r") == {A: b"3"}
    with pytest.raises(InvalidRequest, match="vacuumed below"):
        other.snapshot(at=report.horizon - 1).get("t", b"r")
    with pytest.raises(InvalidRequest, match="vacuumed below"):
        list(other.resume_snapshot(before.handle()).scan("t"))
    with pytest.raises(InvalidRequest, match="longer --retain"):
        other.snapshot(at=first).get("t", b"no such row")


def test_the_marks_stand_and_readers_have_seen_them_before_anything_goes(
    manager: TransactionManager, forgetful: Installation
) -> None:
    first, _, last = write_three_times(manager)
    waited = []

    def look(seconds: float) -> None:
        waited.append(seconds)
        assert len(versions(manager)) == 3
        with pytest.raises(InvalidRequest, match="vacuumed below"):
            forgetful.manager().snapshot(at=first).get("t", b"r")

    vacuum_through(manager, last, look)
    assert [seconds > ENTRY_AGE_SECONDS_MAX for seconds in waited] == [True]
    assert len(versions(manager)) == 1


def test_a_scan_that_a_vacuum_overtakes_fails_rather_than_shows_holes(
    manager: TransactionManager, forgetful: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, last = write_three_times(manager)
    put(manager, b"s", b"1")
    monkeypatch.setattr("client.snapshots.reading.SCAN_BATCH_ROWS", 1)
    monkeypatch.setattr("client.catalog.age.ENTRY_AGE_SECONDS_MAX", 0)
    scan = manager.snapshot(at=first).scan("t")
    assert next(scan) == (b"r", {A: b"1"})
    vacuum_through(forgetful.manager(), last)
    with pytest.raises(InvalidRequest, match="vacuumed below"):
        next(scan)


def test_of_two_marks_the_larger_stands(manager: TransactionManager, forgetful: Installation) -> None:
    manager.catalog.vacuums.mark("t", 2_000)
    manager.catalog.vacuums.mark("t", 1_000)
    assert forgetful.manager().catalog.shown_from("t").vacuumed_below == 2_000


def test_nothing_is_dropped_while_it_is_not_known_who_reads(installation: Installation) -> None:
    manager = installation.manager()
    write_three_times(manager)
    with pytest.raises(HorizonUnknown, match="transaction_life_ms"):
        run_vacuum(manager, retain_ms=0)
    assert manager.catalog.shown_from("t").vacuumed_below == 0
    assert len(versions(manager)) == 3


def test_who_is_retained_stays(manager: TransactionManager) -> None:
    *_, last = write_three_times(manager)
    vacuum_through(manager, last, dry_run=True)
    report = run_vacuum(manager, wait=at_once)
    assert report.horizon < last
    assert len(versions(manager)) == 3
    assert len(rows(manager, COMMITS, [b"c", b"f"])) > 1


@pytest.mark.parametrize("retain_ms", [-1, 1.5, True])
def test_what_is_no_time_is_refused(manager: TransactionManager, retain_ms: int) -> None:
    with pytest.raises(InvalidRequest, match="milliseconds"):
        run_vacuum(manager, retain_ms=retain_ms)


def test_one_that_was_given_up_never_commits_although_a_failover_would_let_it_live(
    manager: TransactionManager, forgetful: Installation, write: Callable[[TransactionManager], Transaction]
) -> None:
    dead = write(manager)
    vacuum_through(manager, dead.start_timestamp, outcomes_retain_ms=OUTCOMES_RETAIN_MS_DEFAULT)
    fail_over(forgetful)
    with pytest.raises(TransactionAborted, match=r"fenced|rolled it back"):
        dead.commit()
    assert get(forgetful.manager(), b"r") is None


def test_one_that_was_given_up_and_forgotten_is_told_that_it_expired_where_it_never_asked_before(
    manager: TransactionManager, forgetful: Installation
) -> None:
    dead = written_plainly(manager)
    vacuum_through(manager, dead.start_timestamp)
    fail_over(forgetful)
    with pytest.raises(TransactionExpired):
        dead.commit()
    assert get(forgetful.manager(), b"r") is None


def test_a_commit_whose_answer_was_lost_and_whose_record_was_dropped_is_told_as_unknown_and_stays(
    manager: TransactionManager, forgetful: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process slept for longer than outcomes are retained."""
    asleep, ask, asked = written_plainly(manager), manager.oracle.commit, list[Decision]()

    def lose_the_first_answer(*arguments: Any, **named: Any) -> Decision:
        asked.append(ask(*arguments, **named))
        if len(asked) > 1:
            return asked[-1]
        vacuum_through(forgetful.manager(), asleep.start_timestamp)
        fail_over(forgetful)
        return ask(*arguments, **named)._replace(after_loss=True)

    monkeypatch.setattr(manager.oracle, "commit", lose_the_first_answer)
    with pytest.raises(OutcomeUnknown):
        asleep.commit()
    assert asked[0].commit_timestamp > 0
    with pytest.raises(InvalidRequest, match="if it committed its cells are visible"):
        asleep.rollback()
    assert get(forgetful.manager(), b"r") == b"late"


def test_who_claimed_its_end_and_was_forgotten_does_not_commit_without_its_bulk_writes(
    manager: TransactionManager, forgetful: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process slept between the claim and the look at what was written, which a vacuum has dropped since."""
    asleep, read = written_in_bulk(manager), manager.manifest.jobs

    def sleep_first(start_timestamp: int) -> dict[str, Job]:
        vacuum_through(forgetful.manager(), start_timestamp)
        fail_over(forgetful)
        return read(start_timestamp)

    monkeypatch.setattr(manager.manifest, "jobs", sleep_first)
    with pytest.raises(OutcomeUnknown):
        asleep.commit()
    assert get(forgetful.manager(), b"r") is None


def test_cells_of_one_that_was_given_up_go_or_stay_under_a_zero(
    manager: TransactionManager, forgetful: Installation
) -> None:
    put(manager, b"r", b"1")
    dead = manager.transaction()
    for row in (b"r", b"only"):
        manager.store.put("t", [RowPut(row, {A: b"dead"})], dead.start_timestamp)
    report = vacuum_through(manager, dead.start_timestamp)
    assert (report.tables["t"].transactions_aborted, report.tables["t"].aborted_cells_kept) == (1, 1)
    assert [cell.value for cell in versions(manager)] == [b"dead", b"1"]
    assert rows(manager, "t", [b"f"]) == [b"r"]
    [shadow, _] = manager.store.versions("t", b"r", b"f:\x00", limit=9)
    assert (shadow.timestamp, decode_shadow(shadow.value)) == (dead.start_timestamp, 0)
    assert get(forgetful.manager(), b"r") == b"1"


def test_a_fence_goes_only_under_the_mark_that_stands_for_it(manager: TransactionManager) -> None:
    fenced_at = manager.fence("t").timestamp
    vacuum_through(manager, fenced_at)
    columns = dict(manager.store.scan(manager.catalog.own_table, EVERYTHING, [b"f"]))[b"t"]
    assert [column for column in columns if b":fence" in column] == []
    assert [column for column in columns if b":vacuumed-" in column] != []
    late = manager.transaction()
    late.put("t", b"r", {A: b"late"})
    assert manager.fence("t").timestamp > fenced_at
    with pytest.raises(TableFenced):
        late.commit()


def test_the_fences_of_a_table_that_was_dropped_stay_since_no_mark_stands_for_them(
    manager: TransactionManager, forgetful: Installation
) -> None:
    dead = written_plainly(manager)
    manager.drop_table("t")
    manager.create_table("u", ["f"])
    vacuum_through(
        manager,
        put(manager, b"r", b"1", table="u").commit_timestamp,
        outcomes_retain_ms=OUTCOMES_RETAIN_MS_DEFAULT,
    )
    manager.create_table("t", ["f", "g"])
    fail_over(forgetful)
    with pytest.raises(TableFenced):
        dead.commit()
    assert get(forgetful.manager(), b"r") is None


def test_marks_do_not_pile_up(manager: TransactionManager) -> None:
    for _ in range(3):
        vacuum_through(manager, put(manager, b"r", b"1").commit_timestamp)
    columns = dict(manager.store.scan(manager.catalog.own_table, EVERYTHING, [b"f"]))[b"t"]
    assert len([column for column in columns if b":vacuumed-" in column]) <= 2


def test_a_table_that_cannot_be_read_keeps_the_commit_table(
    manager: TransactionManager, forgetful: Installation
) -> None:
    *_, last = write_three_times(manager)
    manager.create_table("u", ["f"])
    put(manager, b"r", b"1", table="u")
    recorded = rows(manager, COMMITS, [b"c"])
    report = vacuum_through(manager, last, lambda seconds: forgetful.store.plan("scan", Fault.LOST))
    assert list(report.problems) == ["t"]
    assert report.tables["u"].rows == 1
    assert rows(manager, COMMITS, [b"c"]) == recorded
    assert len(versions(manager)) == 3


def test_records_of_bulk_writes_that_cannot_be_dropped_keep_the_commit_table(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads them later still finds out whether they committed."""
    *_, last = write_three_times(manager)
    recorded = rows(manager, COMMITS, [b"c"])

    def refuse(*arguments: object) -> None:
        raise StoreUnavailable("the manifest cannot be read")

    monkeypatch.setattr("client.vacuum.run.forget_bulk_writes", refuse)
    assert list(vacuum_through(manager, last).problems) == ["manifest"]
    assert rows(manager, COMMITS, [b"c"]) == recorded


def test_how_far_records_go_is_on_record_before_the_first_goes(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten = list[int]()
    monkeypatch.setattr(
        "client.vacuum.run.drop_commit_rows",
        lambda *arguments: forgotten.append(manager.commit_table.forgotten_below()),
    )
    *_, last = write_three_times(manager)
    vacuum_through(manager, last)
    assert forgotten[-1] > last


def test_a_table_that_is_dropped_meanwhile_is_no_problem(manager: TransactionManager) -> None:
    *_, last = write_three_times(manager)
    report = vacuum_through(manager, last, lambda seconds: manager.drop_table("t"))
    assert report.problems == {}
    assert report.commit_table_rows_dropped > 0


def test_a_row_that_nobody_wrote_since_a_vacuum_is_passed_over_by_the_next(
    manager: TransactionManager, forgetful: Installation
) -> None:
    write_three_times(manager)
    first = vacuum_through(manager, put(manager, b"s", b"1").commit_timestamp)
    assert (first.tables["t"].rows, first.tables["t"].rows_passed_over) == (2, 0)
    written = put(manager, b"r", b"4").commit_timestamp
    counted = vacuum_through(manager, written, dry_run=True).tables["t"]
    again = vacuum_through(manager, written).tables["t"]
    assert (again.rows, again.rows_passed_over, again.columns_trimmed, again.versions_kept) == (2, 1, 1, 2)
    assert counted == again
    assert [cell.value for cell in versions(manager)] == [b"4"]
    assert vacuum_through(manager, written).tables["t"].rows_passed_over == 2
    assert vacuum_through(manager, written, everything=True).tables["t"].rows_passed_over == 0
    other = forgetful.manager()
    assert [get(other, row) for row in (b"r", b"s")] == [b"4", b"1"]


def test_after_a_vacuum_that_failed_every_row_is_looked_at(
    manager: TransactionManager, forgetful: Installation
) -> None:
    """And after one that was killed or only counted: neither says anything of what it left."""
    last = put(manager, b"r", b"1").commit_timestamp
    assert vacuum_through(manager, last, lambda seconds: forgetful.store.plan("scan", Fault.LOST)).problems
    vacuum_through(manager, last, dry_run=True)
    assert manager.catalog.vacuums.swept() == {}
    assert vacuum_through(manager, last).tables["t"].rows_passed_over == 0
    assert list(manager.catalog.vacuums.swept()) == ["t"]


def test_what_a_newer_release_left_on_record_is_no_reason_to_pass_over_a_row(manager: TransactionManager) -> None:
    last = put(manager, b"r", b"1").commit_timestamp
    vacuum_through(manager, last)
    manager.catalog.vacuums.put_swept("t", last + 2**40, b'{"format": 99, "somewhere": "else"}')
    report = vacuum_through(manager, last)
    assert (report.problems, report.tables["t"].rows_passed_over) == ({}, 0)


def test_a_table_that_is_made_anew_is_not_the_one_that_was_vacuumed(manager: TransactionManager) -> None:
    vacuum_through(manager, put(manager, b"r", b"1").commit_timestamp)
    manager.drop_table("t")
    manager.create_table("t", ["f", "g"])
    last = put(manager, b"r", b"2").commit_timestamp
    assert vacuum_through(manager, last).tables["t"].rows_passed_over == 0
    assert vacuum_through(manager, last).tables["t"].rows_passed_over == 1


def test_what_was_left_cannot_be_put_on_record(manager: TransactionManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, and nothing is lost: the commit table waits for the next vacuum."""

    def refuse(*arguments: object) -> None:
        raise StoreUnavailable("the catalog cannot be written")

    last = put(manager, b"r", b"1").commit_timestamp
    monkeypatch.setattr(manager.catalog.vacuums, "put_swept", refuse)
    report = vacuum_through(manager, last)
    assert report.problems == {"t": "the catalog cannot be written"}
    assert report.commit_table_rows_dropped == 0


def test_a_failover_before_the_marks_stood_ends_the_vacuum(
    manager: TransactionManager, forgetful: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, last = write_three_times(manager)
    vacuum_through(manager, last, dry_run=True)
    monkeypatch.setattr(manager.catalog.vacuums, "mark", lambda table, below: fail_over(forgetful))
    with pytest.raises(HorizonUnknown, match="another oracle"):
        run_vacuum(manager, retain_ms=0, outcomes_retain_ms=0, wait=at_once)
    assert len(versions(manager)) == 3


def test_records_of_bulk_writes_go_when_they_committed_and_a_claim_stays_of_those_that_did_not(
    manager: TransactionManager, write: Callable[[TransactionManager], Transaction]
) -> None:
    committed, dead = write(manager), manager.transaction()
    committed.commit()
    manager.open_job(dead.handle())
    manager.manifest.open(committed.start_timestamp, "job that nobody forgot")
    vacuum_through(manager, dead.start_timestamp)
    assert rows(manager, MANIFEST, [b"m"]) == [dead.start_timestamp.to_bytes(8) + b"\0"]
    assert get(manager, b"r") == b"late"


def test_who_does_without_shadow_cells_is_read_after_a_vacuum_by_its_record(
    forgetful: Installation, manager: TransactionManager
) -> None:
    """Until nothing of it is left, or it is one of too many; what others of its time left goes."""
    without = forgetful.manager(settings=replace(SETTINGS, bulk_shadow_cells="none"))
    first = put(manager, b"r", b"0")
    transaction = written_in_bulk(without)
    committed = transaction.commit()
    later = put(manager, b"r2", b"1")
    report = vacuum_through(manager, later.commit_timestamp)
    assert (report.commit_table_rows_lasting, report.tables["t"].shadow_cells_left_out) == (1, 1)
    assert report.tables["t"].shadow_cells_written == 0
    assert manager.outcome(first.commit_timestamp) == Undecided()
    assert manager.store.versions("t", b"r", SHADOW, limit=1) == []
    assert [cell.value for cell in versions(manager)] == [b"late"]
    other = forgetful.manager()
    assert get(other, b"r") == b"late"
    assert other.outcome(transaction.start_timestamp) == committed
    again = vacuum_through(other, later.commit_timestamp)
    assert (again.commit_table_rows_lasting, again.commit_table_rows_left_max > 1) == (1, True)
    last = put(manager, b"r", b"2")
    gone = vacuum_through(manager, last.commit_timestamp)
    assert (gone.commit_table_rows_lasting, gone.tables["t"].shadow_cells_left_out) == (0, 0)
    assert rows(manager, COMMITS, [b"c", b"f"]) == [OWN_ROW]
    assert get(forgetful.manager(), b"r") == b"2"


def test_those_that_do_without_shadow_cells_get_them_where_they_are_too_many(
    forgetful: Installation, manager: TransactionManager
) -> None:
    without = forgetful.manager(settings=replace(SETTINGS, bulk_shadow_cells="none"))
    transaction = written_in_bulk(without)
    committed = transaction.commit()
    report = vacuum_through(manager, committed.commit_timestamp, lasting_records_max=0)
    assert (report.commit_table_rows_lasting, report.tables["t"].shadow_cells_written) == (0, 1)
    assert rows(manager, COMMITS, [b"c", b"f"]) == [OWN_ROW]
    assert get(forgetful.manager(), b"r") == b"late"


def test_a_dry_run_ends_no_transaction(manager: TransactionManager) -> None:
    dead = manager.transaction()
    manager.open_job(dead.handle())
    report = vacuum_through(manager, dead.start_timestamp, dry_run=True)
    assert report.manifest_records_dropped == 1
    assert manager.outcome(dead.start_timestamp) == Undecided()
    assert not manager.manifest.is_end_claimed(dead.start_timestamp)


def test_what_a_forgotten_transaction_wrote_late_is_seen_by_nobody_and_goes_with_the_next_vacuum(
    manager: TransactionManager, forgetful: Installation
) -> None:
    dead = manager.transaction()
    vacuum_through(manager, dead.start_timestamp)
    manager.store.put("t", [RowPut(b"late", {A: b"1"})], dead.start_timestamp)
    manager.manifest.open(dead.start_timestamp, "late")
    assert get(forgetful.manager(), b"late") is None
    report = vacuum_through(manager, dead.start_timestamp)
    assert (report.problems, report.manifest_records_dropped) == ({}, 1)
    assert rows(manager, "t", [b"f"]) == []


@pytest.mark.parametrize("has_written", [False, True])
def test_a_late_task_of_a_transaction_that_committed_and_is_forgotten_writes_nothing(
    manager: TransactionManager, has_written: bool
) -> None:
    """What it wrote was deleted since: HBase forgets the deletes as it compacts, and then it would be back."""
    cells = CellColumns.of_puts([RowPut(b"r", {A: encode_value(b"late"), B: encode_value(b"late")})])
    transaction = manager.transaction()
    handle = transaction.handle()
    job = manager.open_job(handle)
    late, winner = (manager.attempt_writer(handle, "t", job, partition=0, attempt=attempt) for attempt in (0, 1))
    for writer in (late, winner) if has_written else (winner,):
        writer.write(cells)
    manager.seal_job(handle, job, [(0, 1)])
    transaction.commit()
    with manager.transaction() as later:
        later.delete("t", b"r")
    vacuum_through(manager, later.start_timestamp)
    with pytest.raises(InvalidRequest, match="a vacuum has dropped"):
        late.write(cells)
    with pytest.raises(InvalidRequest, match="a vacuum has dropped"):
        manager.open_job(handle)
    assert versions(manager) == []
    vacuum_through(manager, later.start_timestamp)  # it may have put its rows on record
    assert rows(manager, MANIFEST, [b"m"]) == []


def test_the_command(manager: TransactionManager, forgetful: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    *_, last = write_three_times(manager)
    vacuum_through(manager, last, dry_run=True)
    monkeypatch.setattr(TransactionManager, "connect", lambda settings: forgetful.manager(settings=settings))
    monkeypatch.setattr("client.vacuum.run.MARK_AGE_SECONDS", 0.0)
    arguments = [
        "--zookeeper",
        SETTINGS.zookeeper,
        "--thrift",
        SETTINGS.thrift,
        "--retain",
        "0s",
        "--retain-outcomes",
        "0s",
    ]
    counted = CliRunner().invoke(vacuum, [*arguments, "--dry-run", "--json"])
    assert (counted.exit_code, json.loads(counted.stdout)["tables"]["t"]["columns_trimmed"]) == (0, 1)
    assert len(versions(manager)) == 3
    told = CliRunner().invoke(vacuum, arguments)
    assert (told.exit_code, "1 cells lost old versions" in told.stdout) == (0, True)
    assert re.search(r"commit table: \d+ rows dropped; those of transactions begun since .* UTC stay\n", told.stdout)
    assert len(versions(manager)) == 1
    # The names twice, the tables, what was left of them, and then one of them.
    forgetful.store.plan("scan", *[None] * 4, Fault.LOST)
    failed = CliRunner().invoke(vacuum, arguments)
    assert (failed.exit_code, "left alone" in failed.stdout) == (1, True)


@pytest.mark.parametrize("retain", ["1", "h", "-1h", "1.5h", "99999d"])
def test_a_duration_has_a_unit(retain: str) -> None:
    told = CliRunner().invoke(vacuum, ["--thrift", "h:1", "--oracle", "h:1", "--retain", retain])
    assert told.exit_code == 2


def test_without_services_the_command_says_so_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(settings: object) -> TransactionManager:
        raise PythiaError("nobody is there")

    monkeypatch.setattr(TransactionManager, "connect", connect)
    told = CliRunner().invoke(vacuum, ["--thrift", "h:1", "--oracle", "h:1"])
    assert (told.exit_code, told.stderr) == (1, "Error: nobody is there\n")


def test_who_was_rolled_back_never_commits_though_the_commit_table_forgot_it(
    manager: TransactionManager, forgetful: Installation
) -> None:
    transaction = written_in_bulk(manager)
    handle = transaction.handle()
    transaction.rollback()
    vacuum_through(manager, handle.start_timestamp)
    assert manager.outcome(handle.start_timestamp) == Undecided()
    fail_over(forgetful)
    with pytest.raises(InvalidRequest, match="is being ended"):
        forgetful.manager().resume(handle).commit()


def test_a_vacuum_ends_where_the_level_is_raised(manager: TransactionManager, monkeypatch: pytest.MonkeyPatch) -> None:
    manager.create_table("u", ["f"])
    last = write_three_times(manager)[-1]

    def raise_level(table: str, report: TableReport) -> None:
        LevelOfData(manager.store, SETTINGS.root).raise_to(2)
        later = monotonic_ms() + 1_000 * (ENTRY_AGE_SECONDS_MAX + 1)
        monkeypatch.setattr("client.catalog.age.monotonic_ms", lambda: later)

    report = vacuum_through(manager, last, progress=raise_level)
    assert report.tables["t"].columns_trimmed > 0
    assert all("requires level 2" in report.problems[table] for table in ("t", "u"))
    assert report.commit_table_rows_dropped == 0


def _rows_of(snapshot: Snapshot) -> dict[bytes, dict[bytes, bytes]]:
    return dict(snapshot.scan("t"))


def _columns_of(snapshot: Snapshot) -> dict[bytes, dict[bytes, bytes]]:
    return {put.row: dict(put.columns) for batch in snapshot.scan_columns("t", [A, B]) for put in batch.puts()}


def _changes_of(snapshot: Snapshot) -> dict[bytes, dict[bytes, bytes]]:
    return {row: values or {} for row, values, _ in snapshot.changes("t", SINCE_THE_BEGINNING)}


def _changed_columns_of(snapshot: Snapshot) -> dict[bytes, dict[bytes, bytes]]:
    batches = snapshot.changes_columns("t", SINCE_THE_BEGINNING, [A, B])
    return {put.row: dict(put.columns) for batch in batches for put in batch.cells.puts()}


def _each_of(snapshot: Snapshot) -> dict[bytes, dict[bytes, bytes]]:
    return {row: values for row in ROWS if (values := snapshot.get("t", row))}


@pytest.mark.parametrize("read", [_rows_of, _columns_of, _changes_of, _changed_columns_of, _each_of])
@pytest.mark.parametrize("question", [1, 2, 3])
def test_a_vacuum_that_ends_in_the_middle_of_a_read_changes_nothing_of_it(
    manager: TransactionManager,
    forgetful: Installation,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Snapshot], dict[bytes, dict[bytes, bytes]]],
    question: int,
) -> None:
    """Of a writer the vacuum removes what deleted a row, with its shadow cell there, and then the record."""
    for row in ROWS:
        put(manager, row, b"old")
    with manager.transaction() as writer:
        writer.delete("t", ROWS[0], [A])
        writer.put("t", ROWS[1], {A: b"new"})
        writer.delete("t", ROWS[2], [A])
    time.sleep(0.01)  # the commit table is dropped by milliseconds, and the snapshot is as of the next one's commit
    with manager.transaction() as later:
        for row in ROWS:
            later.put("t", row, {B: b"x"})
    manager.create_snapshot("kept")
    monkeypatch.setattr("client.catalog.age.ENTRY_AGE_SECONDS_MAX", 0.0)  # as if the vacuum waited for its marks
    reader = forgetful.manager()
    ask, asked = reader.commit_table.outcomes, list[int]()

    def vacuum_first(start_timestamps: Sequence[int]) -> dict[int, Outcome]:
        asked.append(len(asked) + 1)
        if asked[-1] == question:
            report = vacuum_through(manager, writer.start_timestamp)
            assert (report.problems, report.commit_table_rows_dropped > 0) == ({}, True)
        return ask(start_timestamps)

    monkeypatch.setattr(reader.commit_table, "outcomes", vacuum_first)
    expected = {ROWS[0]: {B: b"x"}, ROWS[1]: {A: b"new", B: b"x"}, ROWS[2]: {B: b"x"}}
    assert read(reader.snapshot(at="kept")) == expected
    assert read(forgetful.manager().snapshot(at="kept")) == expected


def test_who_is_forgotten_is_aborted_by_nobody(manager: TransactionManager, forgetful: Installation) -> None:
    with manager.transaction() as writer:
        handle = writer.handle()
        writer.put("t", b"r", {A: b"1"})
    vacuum_through(manager, writer.start_timestamp)
    fail_over(forgetful)
    late = forgetful.manager()
    with pytest.raises(InvalidRequest, match="cannot be aborted any more: a vacuum has dropped"):
        late.abort(writer.start_timestamp)
    with pytest.raises(InvalidRequest, match="cannot be aborted any more"):
        late.resume(handle).rollback()
    assert get(late, b"r") == b"1"
    with late.transaction() as other:
        other.handle()
    assert isinstance(late.abort(other.start_timestamp), Committed)
