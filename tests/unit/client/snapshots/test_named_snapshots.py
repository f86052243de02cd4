"""Snapshots with a name: created once, read by anybody, with every oracle down, and whatever the store answers."""

from __future__ import annotations

import datetime as dt
import json
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from client import InvalidRequest, NamedSnapshot, NoPrimary, TransactionManager
from client.cells import encode_value
from client.connection.primary import Settled
from client.errors import PythiaError
from client.snapshots.commands import snapshot
from client.vacuum.command import HOLDERS_SHOWN_MAX, described
from client.vacuum.report import VacuumReport
from commit_table import system_table
from commit_table.timestamps import compose, wall_time_of
from lease.errors import CoordinatorUnavailable
from store import RowPut, StoreUnavailable
from store.faults import Fault
from tests.recording import record
from tests.unit.client.conftest import COMMITS, SETTINGS, A, Installation
from tests.unit.client.transacting import fail_over, get, open_with, put

TABLE = system_table(SETTINGS.root, "snapshots")
RECORD = b"s:record"
ATTEMPTS = 10
"""After which a write that is not answered is given up."""


def stored(installation: Installation, name: str) -> bytes:
    return installation.store.get(TABLE, name.encode(), [RECORD])[RECORD].value


def names(manager: TransactionManager) -> dict[str, bool]:
    return {named.name: named.is_finished for named in manager.snapshots()}


@pytest.mark.parametrize("at", ["now", "then"])
def test_what_a_named_snapshot_did_not_show_never_comes_to_be(
    manager: TransactionManager, installation: Installation, at: str
) -> None:
    """A deposed oracle still writes; the name knows the epoch in which its moment was found settled."""
    undecided = open_with(manager, b"r", b"late")
    manager.store.put("t", [RowPut(b"r", {A: encode_value(b"late")})], undecided.start_timestamp)
    decided = manager.oracle.begin().first_start_timestamp
    moment = put(manager, b"s", b"1").commit_timestamp
    fail_over(installation)
    installation.manager().create_snapshot("kept", at=moment if at == "then" else None)
    assert installation.manager().snapshot(at="kept").get("t", b"r") == {}
    record(installation.store, COMMITS, {undecided.start_timestamp: decided}, undecided.epoch)
    assert installation.manager().snapshot(at="kept").get("t", b"r") == {}


def test_what_is_committed_by_now_gets_a_name(manager: TransactionManager, installation: Installation) -> None:
    put(manager, b"r", b"1")
    open_with(manager, b"r", b"open")
    named = manager.create_snapshot("before")
    put(manager, b"r", b"2")
    other = installation.manager()
    assert other.snapshot("before").get("t", b"r") == {A: b"1"}
    assert other.snapshot(at="before").timestamp == named.timestamp
    assert other.snapshots() == [named]
    assert get(other, b"r") == b"2"


def test_a_moment_of_the_past_gets_a_name_by_timestamp_time_or_another_name(manager: TransactionManager) -> None:
    first = put(manager, b"r", b"1").commit_timestamp
    second = put(manager, b"r", b"2").commit_timestamp
    at_its_end = wall_time_of(second)
    named = [manager.create_snapshot("a", first), manager.create_snapshot("b", at_its_end)]
    named.append(manager.create_snapshot("c", "a"))
    assert [manager.snapshot(one.name).get("t", b"r")[A] for one in named] == [b"1", b"2", b"1"]
    assert [one.timestamp for one in manager.snapshots()] == [first, named[1].timestamp, first]
    with pytest.raises(InvalidRequest, match="future"):
        manager.create_snapshot("d", dt.datetime(2999, 1, 1, tzinfo=dt.UTC))
    assert list(names(manager)) == ["a", "b", "c"]


def test_a_moment_may_be_a_text_and_is_never_seconds_since_1970(manager: TransactionManager) -> None:
    first = put(manager, b"r", b"1").commit_timestamp
    put(manager, b"r", b"2")
    at_its_end = wall_time_of(first).astimezone(dt.timezone(dt.timedelta(hours=5)))
    for moment in (first, str(first), f" {first} "):
        assert manager.snapshot(moment).timestamp == first
    assert manager.snapshot(at_its_end.isoformat()).timestamp == manager.snapshot(at_its_end).timestamp
    for wrong in (int(time.time()), int(1_000 * time.time()), str(int(time.time()))):
        with pytest.raises(InvalidRequest, match="of the year 1970: seconds or milliseconds"):
            manager.snapshot(wrong)


def test_a_name_is_given_once_until_it_is_dropped(manager: TransactionManager, installation: Installation) -> None:
    first = put(manager, b"r", b"1").commit_timestamp
    manager.create_snapshot("a", first)
    with pytest.raises(InvalidRequest, match="there is a snapshot 'a' already: drop it first"):
        installation.manager().create_snapshot("a")
    assert manager.snapshot("a").timestamp == first
    manager.drop_snapshot("a")
    for use in (manager.snapshot, manager.drop_snapshot):
        with pytest.raises(InvalidRequest, match="there is no snapshot 'a'"):
            use("a")
    assert manager.create_snapshot("a").timestamp > first


def test_a_name_is_moved_forward_only(manager: TransactionManager, installation: Installation) -> None:
    first = put(manager, b"r", b"1").commit_timestamp
    made = manager.create_snapshot("a", first)
    second = put(manager, b"r", b"2").commit_timestamp
    assert manager.move_snapshot("a", second) == replace(made, timestamp=second)
    assert installation.manager().snapshot("a").get("t", b"r") == {A: b"2"}
    assert manager.move_snapshot("a", second).timestamp == second
    with pytest.raises(
        InvalidRequest, match=rf"the snapshot 'a' is of {second} .* moved forward only, not to {first} "
    ):
        manager.move_snapshot("a", first)
    assert manager.move_snapshot("a").timestamp > second
    with pytest.raises(InvalidRequest, match="future"):
        manager.move_snapshot("a", dt.datetime(2999, 1, 1, tzinfo=dt.UTC))
    manager.drop_snapshot("a")
    with pytest.raises(InvalidRequest, match="there is no snapshot 'a'"):
        manager.move_snapshot("a")


@pytest.mark.parametrize("meanwhile", ["moved", "dropped", "made anew"])
def test_who_moves_a_name_that_is_not_what_it_was_is_told(
    manager: TransactionManager, installation: Installation, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    moment = put(manager, b"r", b"1").commit_timestamp
    manager.create_snapshot("a", moment)
    mover, other = installation.manager(), installation.manager()
    later = mover.snapshot().timestamp

    def interrupted() -> None:
        monkeypatch.undo()
        if meanwhile == "moved":
            other.move_snapshot("a", later + 1)
        else:
            other.drop_snapshot("a")
        if meanwhile == "made anew":
            other.create_snapshot("a", moment)

    put(manager, b"r", b"2")
    manager.snapshot()
    monkeypatch.setattr(mover.catalog, "require_level", interrupted)
    with pytest.raises(InvalidRequest, match="somebody else has moved or dropped the snapshot 'a' meanwhile"):
        mover.move_snapshot("a", later)
    found = {each.name: each.timestamp for each in manager.snapshots()}
    assert found == {"moved": {"a": later + 1}, "dropped": {}, "made anew": {"a": moment}}[meanwhile]


@pytest.mark.parametrize("name", ["", "1st", "-a", "a b", "a\n", "é", "2013-07-04", "a" * 101, "a/b", 7, None, b"a"])
def test_what_cannot_be_a_name_is_refused(manager: TransactionManager, name: str) -> None:
    for use in (manager.create_snapshot, manager.move_snapshot, manager.drop_snapshot):
        with pytest.raises(InvalidRequest, match="a snapshot's name is a letter"):
            use(name)


def test_the_table_of_names_is_no_table_for_transactions(manager: TransactionManager) -> None:
    manager.create_snapshot("a")
    with pytest.raises(InvalidRequest, match="Pythia's own"), manager.transaction() as transaction:
        transaction.put(TABLE, b"a", {RECORD: b"mine"})


class Unreachable:
    """Neither ZooKeeper nor an oracle answers."""

    data = None

    def primary(self, timeout_ms: int) -> str | None:
        raise CoordinatorUnavailable("nobody is there")

    def has_moved(self, address: str, timeout_ms: int) -> bool:
        return False

    def settled(self, timeout_ms: int) -> Settled | None:
        raise CoordinatorUnavailable("nobody is there")


def test_with_every_oracle_and_zookeeper_down_it_is_read_listed_and_dropped(
    manager: TransactionManager, installation: Installation
) -> None:
    put(manager, b"r", b"1")
    lost = manager.transaction()
    installation.store.put("t", [RowPut(b"r", {A: b"never committed"})], lost.start_timestamp)
    fail_over(installation)
    named = installation.manager().create_snapshot("a")
    installation._oracles.pop().stop()
    settings = replace(SETTINGS, deadline_ms=200, request_timeout_ms=100)
    alone = TransactionManager(settings, installation.store, Unreachable())
    assert alone.snapshot("a").get("t", b"r") == {A: b"1"}
    assert dict(alone.snapshot("a").scan("t")) == {b"r": {A: b"1"}}
    assert alone.snapshots() == [named]
    alone.create_snapshot("b", "a")
    alone.drop_snapshot("a")
    assert names(alone) == {"b": True}
    with pytest.raises(NoPrimary):
        alone.create_snapshot("c")
    alone.close()


@pytest.mark.parametrize("faults", [[Fault.LOST], [Fault.DONE], [None, Fault.LOST], [None, Fault.DONE]])
def test_an_answer_that_is_lost_is_found_out(
    manager: TransactionManager, installation: Installation, faults: list[Fault | None]
) -> None:
    installation.store.plan("compare_and_set", *faults)
    assert manager.create_snapshot("a").is_finished
    assert names(manager) == {"a": True}
    installation.store.plan("compare_and_set", faults[-1])
    manager.drop_snapshot("a")
    assert names(manager) == {}


def test_writes_that_arrive_late_neither_bring_a_name_back_nor_take_another_away(
    manager: TransactionManager, installation: Installation
) -> None:
    manager.create_snapshot("a")
    installation.store.plan("compare_and_set", Fault.LATE)
    manager.drop_snapshot("a")
    installation.store.plan("compare_and_set", Fault.LATE, None, Fault.LATE)
    again = manager.create_snapshot("a")
    installation.store.deliver_late()
    assert manager.snapshots() == [again]
    manager.drop_snapshot("a")
    installation.store.plan("compare_and_set", Fault.LATE, None, Fault.LATE)
    manager.create_snapshot("a")
    manager.drop_snapshot("a")
    installation.store.deliver_late()
    assert manager.snapshots() == []


def test_a_creation_that_arrives_after_it_was_given_up_is_not_finished(
    manager: TransactionManager, installation: Installation
) -> None:
    put(manager, b"r", b"1")
    installation.store.plan("compare_and_set", *[Fault.LATE] * ATTEMPTS)
    with pytest.raises(StoreUnavailable, match="repeat it"):
        manager.create_snapshot("a")
    installation.store.deliver_late()
    assert names(manager) == {"a": False}
    with pytest.raises(InvalidRequest, match="failed halfway: repeat it"):
        manager.snapshot("a")
    assert manager.create_snapshot("a").is_finished
    assert manager.snapshot("a").get("t", b"r") == {A: b"1"}


def test_of_two_creators_one_wins_and_the_other_is_told(
    manager: TransactionManager, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(manager, b"r", b"1").commit_timestamp
    won = []

    def look_after_another_was_faster() -> int:
        won.append(installation.manager().create_snapshot("a"))
        return 0

    monkeypatch.setattr(manager.catalog.vacuums, "below_anywhere", look_after_another_was_faster)
    with pytest.raises(InvalidRequest, match="somebody else has created or dropped a snapshot 'a' meanwhile"):
        manager.create_snapshot("a", first)
    assert manager.snapshots() == won
    assert won[0].timestamp > first


def test_one_that_is_dropped_while_it_is_created_does_not_come_back(
    manager: TransactionManager, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_after_it_was_dropped() -> int:
        installation.manager().drop_snapshot("a")
        return 0

    monkeypatch.setattr(manager.catalog.vacuums, "below_anywhere", look_after_it_was_dropped)
    with pytest.raises(InvalidRequest, match="meanwhile"):
        manager.create_snapshot("a")
    assert manager.snapshots() == []


def test_a_drop_takes_one_that_is_finished_meanwhile_and_no_other_of_its_name(
    manager: TransactionManager, installation: Installation
) -> None:
    old = manager.create_snapshot("a")
    installation.store.put(TABLE, [RowPut(b"a", {RECORD: replace(old, is_finished=False).encode()})], 2**50)
    installation.store.plan("compare_and_set", Fault.DONE)
    manager.drop_snapshot("a")
    assert manager.snapshots() == []
    new = replace(old, made="anew")
    read = installation.store.get_many
    looks = []

    def meanwhile(*arguments: object, **options: object) -> object:
        looks.append(1)
        if len(looks) == 2:  # between its look and its write
            installation.store.put(TABLE, [RowPut(b"a", {RECORD: new.encode()})], 2**51)
        return read(*arguments, **options)  # type: ignore[arg-type]

    installation.store.put(TABLE, [RowPut(b"a", {RECORD: old.encode()})], 2**50 + 1)
    installation.store.get_many = meanwhile  # type: ignore[assignment,method-assign]
    manager.drop_snapshot("a")
    assert manager.snapshots() == [new]


def test_a_record_of_a_newer_version_is_refused_and_not_ignored(
    manager: TransactionManager, installation: Installation
) -> None:
    manager.create_snapshot("a")
    fields = json.loads(stored(installation, "a")) | {"format": 2}
    installation.store.put(TABLE, [RowPut(b"a", {RECORD: json.dumps(fields).encode()})], 2**50)
    for use in (manager.snapshots, lambda: manager.snapshot("a")):
        with pytest.raises(InvalidRequest, match="upgrade this program"):
            use()


def test_a_record_is_read_as_it_was_written() -> None:
    named = NamedSnapshot("a", 7, 5, is_finished=False, made="m")
    assert NamedSnapshot.parse("a", named.encode()) == named
    assert NamedSnapshot.parse("a", named.encode_dropped()) is None
    assert NamedSnapshot.parse("a", None) is None


def test_the_commands(manager: TransactionManager, installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    first = put(manager, b"r", b"1").commit_timestamp
    put(manager, b"r", b"2")
    monkeypatch.setattr(TransactionManager, "connect", lambda settings: installation.manager(settings=settings))
    assert "No snapshot has a name yet" in told("list").stdout
    assert told("create", "a", "--at", str(first)).stdout.startswith(f"a: {first}, 20")
    made = json.loads(told("create", "b", "--json").stdout)
    assert (made["name"], made["finished"], made["time"][:2]) == ("b", True, "20")
    assert manager.snapshot("b").timestamp == made["timestamp"]
    assert manager.snapshot("a").get("t", b"r") == {A: b"1"}
    listed = json.loads(told("list", "--json").stdout)["snapshots"]
    assert [(one["name"], one["timestamp"]) for one in listed] == [("a", first), ("b", made["timestamp"])]
    assert [line.split()[:2] for line in told("list").stdout.splitlines()[1:]] == [
        ["a", str(first)],
        ["b", str(made["timestamp"])],
    ]
    assert told("move", "a", "--at", "b").stdout.startswith(f"a: {made['timestamp']}, 20")
    assert json.loads(told("move", "a", "--json").stdout)["timestamp"] > made["timestamp"]
    assert json.loads(told("drop", "a", "--json").stdout) == {"dropped": "a"}
    assert told("drop", "b").stdout == "b: dropped\n"
    assert manager.snapshots() == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["create", "a", "--at", "yesterday"], "there is no snapshot 'yesterday'"),
        (["drop", "a"], "there is no snapshot 'a' to drop"),
        (["move", "a"], "there is no snapshot 'a': "),
    ],
)
def test_a_command_that_cannot_be_served_says_why_in_a_line(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str
) -> None:
    monkeypatch.setattr(TransactionManager, "connect", lambda settings: installation.manager(settings=settings))
    refused = told(*arguments, code=1)
    assert refused.stderr.startswith("Error: ")
    assert text in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["create", "1st"], "'NAME': a snapshot's name is a letter"),
        (["create", "a", "--at", "12:00"], "'--at': a moment is a timestamp of Pythia's, the name of a snapshot, or a"),
    ],
)
def test_a_name_or_a_moment_that_cannot_be_is_wrong_use(arguments: list[str], text: str) -> None:
    assert text in told(*arguments, code=2).stderr


def test_what_needs_no_oracle_asks_for_none(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransactionManager, "connect", lambda settings: installation.manager(settings=settings))
    for variable in ("PYTHIA_ZOOKEEPER", "PYTHIA_ORACLE"):
        monkeypatch.delenv(variable, raising=False)
    listed = CliRunner().invoke(snapshot, ["list", "--thrift", SETTINGS.thrift, "--json"])
    assert (listed.exit_code, json.loads(listed.stdout)) == (0, {"snapshots": []})
    made = CliRunner().invoke(snapshot, ["create", "a", "--thrift", SETTINGS.thrift])
    assert made.exit_code == 2
    assert "give --zookeeper, or --oracle" in made.stderr


def test_without_services_a_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(settings: object) -> TransactionManager:
        raise PythiaError("nobody is there")

    monkeypatch.setattr(TransactionManager, "connect", connect)
    assert told("list", code=1).stderr == "Error: nobody is there\n"


def test_the_report_of_a_vacuum_names_who_holds_it_back() -> None:
    holders = {f"s{number}": compose(1_700_000_000_000 + number) for number in range(HOLDERS_SHOWN_MAX + 2)}
    report = VacuumReport(False, compose(1_700_000_000_000), 1, holders)
    [line] = [line for line in described(report) if "held back" in line]
    assert line.startswith("held back by the named snapshots s0 (2023-11-14 22:13:20 UTC), s1 (")
    assert line.endswith("and 2 more")
    assert report.as_json()["held_back_by"] == holders
    assert not any("held back" in line for line in described(VacuumReport(False, 1, 1)))


def told(*arguments: str, code: int = 0) -> Result:
    connection = ["--zookeeper", SETTINGS.zookeeper, "--thrift", SETTINGS.thrift]
    result = CliRunner().invoke(snapshot, [arguments[0], *connection, *arguments[1:]])
    assert result.exit_code == code, result.output
    return result
