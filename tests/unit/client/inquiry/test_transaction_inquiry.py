"""What is told of a transaction, with everything up, and with hardly anything up."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from client import ClientSettings, Conflict, InvalidRequest, TransactionManager
from client.bulk_writes.manifest_summary import BulkSummary
from client.inquiry import commands as transaction_commands
from client.inquiry.asking import inquire
from client.inquiry.findings import Findings, Primary, State, fields, lines, verdict
from commit_table import FENCE_AT_INFINITY, TransactionRecord
from commit_table.timestamps import compose
from store.memory import MemoryCellStore
from tests.unit.client.conftest import SETTINGS, InstallationDirectory, written_in_bulk
from wire import Life

if TYPE_CHECKING:
    from tests.unit.client.conftest import Installation

NOW_MS = 1_700_000_000_000
START = compose(NOW_MS - 1_000)
LATER = compose(NOW_MS)
NOTHING = TransactionRecord(None)
PRIMARY = Primary(compose(NOW_MS - 5_000), LATER, 0)
OPEN = Findings(START, NOTHING, None, 0, PRIMARY.epoch, PRIMARY, Life.YOUNG, NOW_MS)
BULK = BulkSummary(1, 0, {"t": 3})
UNASKED = replace(OPEN, primary=None, epoch=None, life=None, problem="nobody answers")

CASES: list[tuple[Findings, State, str]] = [
    (replace(OPEN, record=TransactionRecord(LATER)), State.COMMITTED, f"every snapshot from {LATER} on"),
    (replace(OPEN, record=TransactionRecord(LATER), bulk=BULK), State.COMMITTED, "not all shadow cells"),
    (
        replace(OPEN, record=TransactionRecord(LATER, 0, True), bulk=BULK),
        State.COMMITTED,
        "do without shadow cells: this record lasts",
    ),
    (replace(OPEN, record=TransactionRecord(None, FENCE_AT_INFINITY)), State.ABORTED, "fenced for good"),
    (replace(OPEN, record=TransactionRecord(LATER, FENCE_AT_INFINITY)), State.ABORTED, "deposed, does not count"),
    (replace(OPEN, record=TransactionRecord(START + 1, LATER)), State.UNDECIDED, "did not commit below that"),
    (replace(OPEN, life=Life.HEARD_OF), State.RUNNING, "sends heartbeats"),
    (replace(OPEN, life=Life.GIVEN_UP), State.GIVEN_UP, "cannot commit in this epoch"),
    (OPEN, State.UNDECIDED, "may be running"),
    (OPEN, State.UNDECIDED, "met a Conflict"),
    (replace(OPEN, life=Life.GIVEN_UP), State.GIVEN_UP, "met a Conflict"),
    (replace(OPEN, epoch=LATER, primary=replace(PRIMARY, epoch=LATER)), State.UNDECIDED, "older epoch"),
    (replace(OPEN, start_timestamp=LATER + 1), State.NEVER_BEGUN, "has handed out"),
    (replace(UNASKED, start_timestamp=compose(NOW_MS + 7_200_000)), State.NEVER_BEGUN, "has not come"),
    (UNASKED, State.UNDECIDED, "no primary was asked"),
    (replace(OPEN, vacuumed_below=LATER), State.FORGOTTEN, "may have been dropped"),
    (replace(OPEN, vacuumed_below=LATER, bulk=BULK), State.UNDECIDED, "may be running"),
]


@pytest.mark.parametrize(("found", "state", "words"), CASES)
def test_what_is_known_is_said_in_words(found: Findings, state: State, words: str) -> None:
    told = verdict(found)
    assert told.state is state
    assert words in told.means
    assert told.advice
    text = "\n".join(lines(found))
    assert f"{found.start_timestamp}: {state}" in text
    assert ("its epoch is over" in text) == (found.epoch == LATER)
    assert json.loads(json.dumps(fields(found)))["state"] == state.value


def test_a_commit_that_does_not_count_is_never_shown_as_one() -> None:
    for record in (TransactionRecord(START + 1, LATER), TransactionRecord(START + 1, FENCE_AT_INFINITY)):
        found = replace(OPEN, record=record)
        assert fields(found)["commit_timestamp"] is None
        assert not any(line.startswith("  commit ") for line in lines(found))


def test_of_an_older_epoch_nobody_says_that_it_is_young() -> None:
    found = replace(OPEN, epoch=LATER, primary=replace(PRIMARY, epoch=LATER))
    assert "whether it lives is not known" in verdict(found).means
    assert not any("began less than" in line or "within its first" in line for line in lines(found))


def ask(installation: Installation, manager: TransactionManager, start: int) -> Findings:
    [found] = inquire(manager, InstallationDirectory(installation), [start])
    return found


def test_the_life_of_a_transaction_is_followed(installation: Installation, manager: TransactionManager) -> None:
    transaction = manager.transaction()
    start = transaction.start_timestamp
    transaction.put("t", b"r", {b"f:a": b"1"})
    assert verdict(ask(installation, manager, start)).state is State.UNDECIDED
    transaction.commit()
    assert verdict(ask(installation, manager, start)).state is State.COMMITTED
    given_back = manager.transaction()
    given_back.put("t", b"r", {b"f:a": b"2"})
    manager.abort(given_back.start_timestamp)
    assert verdict(ask(installation, manager, given_back.start_timestamp)).state is State.ABORTED
    late, rolled_back = manager.transaction(), manager.transaction()
    with manager.transaction() as first:
        first.put("t", b"r", {b"f:a": b"3"})
    for ended, end in ((late, late.commit), (rolled_back, rolled_back.rollback)):
        ended.put("t", b"r", {b"f:a": b"4"})
        with contextlib.suppress(Conflict):
            end()
        assert "leaves no record" in verdict(ask(installation, manager, ended.start_timestamp)).means
    assert verdict(ask(installation, manager, start + (60_000 << 18))).state is State.NEVER_BEGUN


def test_a_bulk_write_is_told_until_its_shadow_cells_stand(installation: Installation) -> None:
    deferring = installation.manager(settings=replace(SETTINGS, bulk_shadow_cells="deferred"))
    transaction = written_in_bulk(deferring)
    start = transaction.start_timestamp
    assert ask(installation, deferring, start).bulk == BulkSummary(1, 0, {"t": 1})
    job = deferring.open_job(transaction.handle())
    opened = ask(installation, deferring, start).bulk
    assert opened == BulkSummary(2, 1, {"t": 1})
    deferring.seal_job(transaction.handle(), job, [])
    transaction.commit()
    after = ask(installation, deferring, start)
    assert after.bulk is not None
    assert after.bulk.rows == {"t": 1}
    assert "not all shadow cells" in verdict(after).means
    assert deferring.finish_bulk_writes() == 1
    assert ask(installation, deferring, start).bulk is None


def test_with_no_oracle_the_tables_tell_what_they_hold(installation: Installation, manager: TransactionManager) -> None:
    with manager.transaction() as committed:
        committed.put("t", b"r", {b"f:a": b"1"})
    left = manager.transaction()
    installation.find_primary = lambda: None
    hasty = installation.manager(settings=replace(SETTINGS, deadline_ms=50, request_timeout_ms=50))
    done, still_open = inquire(
        hasty, InstallationDirectory(installation), [committed.start_timestamp, left.start_timestamp]
    )
    assert verdict(done).state is State.COMMITTED
    assert (verdict(still_open).state, still_open.life) == (State.UNDECIDED, None)
    assert still_open.epoch is not None
    assert "no primary" in still_open.problem
    [unasked] = inquire(hasty, None, [left.start_timestamp])
    assert unasked.epoch is None
    assert "which epoch serves now is not known" in "\n".join(lines(unasked))


def test_asking_makes_no_table_and_prolongs_no_life(installation: Installation, manager: TransactionManager) -> None:
    before = set(installation.store.table_names())
    started = manager.oracle.begin().first_start_timestamp
    ask(installation, manager, started)
    assert set(installation.store.table_names()) == before
    assert manager.oracle.lives([started]) == [Life.YOUNG]
    empty = TransactionManager(SETTINGS, MemoryCellStore(), InstallationDirectory(installation))
    with pytest.raises(InvalidRequest, match="no installation"):
        inquire(empty, None, [started])
    assert not empty.store.table_names()
    empty.close()


@pytest.fixture
def invoke(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`pythia txn …` on the installation in memory."""
    store = installation.store

    class Store:
        def __new__(cls, *_: Any) -> Any:
            return store

    def connect(settings: ClientSettings) -> TransactionManager:
        return installation.manager()

    monkeypatch.setattr(store, "close", lambda: None, raising=False)
    monkeypatch.setattr(transaction_commands, "HBaseCellStore", Store)
    monkeypatch.setattr(transaction_commands, "_directory", lambda *_: InstallationDirectory(installation))
    monkeypatch.setattr(TransactionManager, "connect", connect)

    def run(*arguments: str, zookeeper: str = "127.0.0.1:1") -> Result:
        where = ["--thrift", "127.0.0.1:1", *(["--zookeeper", zookeeper] if zookeeper else [])]
        return CliRunner().invoke(transaction_commands.txn, [*arguments, *where])

    return run


def test_the_command_shows_several(manager: TransactionManager, invoke: Callable[..., Result]) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {b"f:a": b"1"})
    young = str(manager.oracle.begin().first_start_timestamp)
    start = str(transaction.start_timestamp)
    told = invoke("show", start, young, start)
    assert told.exit_code == 0, told.output
    assert told.stdout.count("transaction ") == 2
    assert f"transaction {start}: committed" in told.stdout
    assert "horizon not known yet" in told.stdout
    listed = json.loads(invoke("show", start, "--json", zookeeper="").stdout)["transactions"]
    assert [(one["state"], one["epoch"], one["life"]) for one in listed] == [("committed", None, None)]
    assert invoke("show", "0").exit_code == 2
    assert invoke("show", *map(str, range(1, 102))).exit_code == 2


def test_the_command_ends_a_transaction_for_good(manager: TransactionManager, invoke: Callable[..., Result]) -> None:
    left = str(manager.oracle.begin().first_start_timestamp)
    assert "aborted for good" in invoke("abort", left).stdout
    assert "aborted" in invoke("show", left).stdout
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {b"f:a": b"1"})
    refused = invoke("abort", str(transaction.start_timestamp), "--json")
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["state"] == "committed"
    never = invoke("abort", str(transaction.start_timestamp + (60_000 << 18)))
    assert (never.exit_code, "has begun yet" in never.stderr) == (1, True)
