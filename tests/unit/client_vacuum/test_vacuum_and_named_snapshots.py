"""Who names a snapshot and who vacuums, call by call against each other: what got a name can be read for good.

A snapshot at ``PAST`` shows what a vacuum at ``HORIZON`` drops. Nobody waits in these tests, so that the calls to the
store are all that keeps the two apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations_with_replacement
from types import SimpleNamespace
from typing import cast

import pytest

from client import ClientSettings, InvalidRequest, NamedSnapshot, TransactionManager
from client.connection.oracle import OracleClient
from client.connection.primary import Settled
from client.snapshots.resolver import OutcomeCache, Resolver, Site
from client.vacuum import VacuumReport, run_vacuum
from commit_table import Aborted, CommitTable, Committed, table_name
from commit_table.layout import commit_column, commit_value, row_key
from commit_table.timestamps import compose
from store import RowPut
from tests.simulation.switching import Stack, leave
from tests.unit.client_vacuum.watching import Killed, WatchedStore

SETTINGS = ClientSettings(zookeeper="127.0.0.1:1", thrift="127.0.0.1:1")
COMMITS = table_name(SETTINGS.root)
BEGIN_MS = 1_700_000_000_000


def at_ms(milliseconds: int) -> int:
    """The first timestamp so long after everything began."""
    return compose(BEGIN_MS + milliseconds)


EPOCH, PAST, MOVED, HORIZON, NOW = at_ms(1), at_ms(4), at_ms(6), at_ms(9), at_ms(20)
COMMIT_MS = {2: 3, 5: 6, 7: 8}
"""When who writes the only cell began, and when it committed."""
CREATE_CALLS = 6
VACUUM_CALLS = 5
"""From the first look at the names to the first mark of a table; what comes then, the other tests go through."""


class SteppingStore(WatchedStore):
    """Lets others go first before each call that is made on a stack of its own."""

    stepping = False

    def _tick(self) -> bool:
        if self.stepping:
            leave()
        return super()._tick()


class NoOracle:
    """Of an installation whose past is settled, as its record says."""

    data = None

    def primary(self, timeout_ms: int) -> str | None:
        return None

    def has_moved(self, address: str, timeout_ms: int) -> bool:
        return False

    def settled(self, timeout_ms: int) -> Settled:
        return Settled(NOW, EPOCH)


class Installation:
    """A table with three versions of one cell, and as many processes as are asked for."""

    def __init__(self) -> None:
        self.store = SteppingStore()
        self.commits = CommitTable(self.store, COMMITS)
        self.commits.create()
        self.process().create_table("t", ["f"])
        self.process().snapshots()
        resolver = Resolver(self.store, self.commits, OutcomeCache(100), heal=True)
        for began_ms, committed_ms in COMMIT_MS.items():
            start, commit = at_ms(began_ms), at_ms(committed_ms)
            self.store.put("t", [RowPut(b"r", {b"f:a": b"%d" % began_ms})], start)
            self.store.put(COMMITS, [RowPut(row_key(start), {commit_column(start): commit_value(commit)})], EPOCH)
            resolver.write_shadows([Site("t", b"r", b"f")], start, commit)

    def process(self) -> TransactionManager:
        manager = TransactionManager(SETTINGS, self.store, NoOracle())
        oracle = SimpleNamespace(
            status=lambda: SimpleNamespace(epoch=EPOCH, horizon=HORIZON),
            begin=lambda: SimpleNamespace(first_start_timestamp=NOW),
            abort=self._abort,
            close=lambda: None,
        )
        manager.oracle = cast(OracleClient, oracle)
        return manager

    def create(self, name: str = "past", at: int = PAST) -> NamedSnapshot:
        return self.process().create_snapshot(name, at)

    def vacuum(self) -> VacuumReport:
        return run_vacuum(self.process(), retain_ms=0, outcomes_retain_ms=0, wait=lambda seconds: None)

    def at(self, call: int, then: Callable[[], object]) -> None:
        """Have something happen at the so-many-eth call from now."""
        self.store.at, self.store.then = self.store.calls + call, then

    def value(self, at: int | str) -> bytes:
        with self.process() as manager:
            return manager.snapshot(at).get("t", b"r")[b"f:a"]

    def _abort(self, start: int) -> Committed | Aborted:
        return self.commits.abort(start)


@pytest.fixture
def few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit table is looked at in one request and not in hundreds, that are of no matter here."""
    monkeypatch.setattr("commit_table.layout.SALTS", 1)


def calls_of(errand: Callable[[Installation], object], names: dict[str, int] | None = None) -> int:
    installation = Installation()
    for name, at in (names or {}).items():
        installation.create(name, at)
    before = installation.store.calls
    errand(installation)
    return installation.store.calls - before


def check(installation: Installation, *, has_name: bool) -> None:
    """What has a name reads as it did, whatever is vacuumed; what has none holds nothing back."""
    report = installation.vacuum()
    assert report.problems == {}
    assert (report.horizon, report.held_back_by) == ((PAST, {"past": PAST}) if has_name else (HORIZON, {}))
    if has_name:
        assert installation.value("past") == b"2"
        assert installation.value(PAST) == b"2"
    else:
        with pytest.raises(InvalidRequest, match="there is no snapshot 'past'"):
            installation.value("past")
    assert installation.value(HORIZON) == b"7"


def test_the_calls_are_as_many_as_these_tests_go_through() -> None:
    assert calls_of(Installation.create) == CREATE_CALLS
    assert calls_of(Installation.vacuum) > VACUUM_CALLS


def test_a_name_holds_the_vacuum_back_until_it_is_dropped() -> None:
    installation = Installation()
    installation.create()
    check(installation, has_name=True)
    assert len(installation.store.versions("t", b"r", b"f:a", limit=9)) == len(COMMIT_MS)
    assert list(installation.commits.outcomes([at_ms(7)]).values()) == [Committed(at_ms(8))]
    installation.process().drop_snapshot("past")
    check(installation, has_name=False)
    assert len(installation.store.versions("t", b"r", b"f:a", limit=9)) == 1


def test_what_was_vacuumed_is_not_named_and_the_name_is_free() -> None:
    installation = Installation()
    installation.vacuum()
    with pytest.raises(InvalidRequest, match=rf"a vacuum drops, or has dropped, what is only seen below {HORIZON}"):
        installation.create()
    assert installation.process().snapshots() == []
    check(installation, has_name=False)
    assert installation.create(at=HORIZON).timestamp == HORIZON


def test_the_oldest_of_several_names_counts() -> None:
    installation = Installation()
    installation.create("later", at_ms(6))
    installation.create()
    installation.create("above", at_ms(12))
    report = installation.vacuum()
    assert (report.horizon, list(report.held_back_by.items())) == (PAST, [("past", PAST), ("later", at_ms(6))])
    assert report.outcomes_horizon == PAST


def test_a_name_above_what_an_older_one_holds_back_is_not_refused() -> None:
    installation = Installation()
    installation.create()
    installation.vacuum()
    assert installation.create("between", at_ms(6)).is_finished
    installation.process().drop_snapshot("past")
    assert installation.vacuum().horizon == at_ms(6)
    assert installation.value("between") == b"5"


@pytest.mark.parametrize("call", range(1, CREATE_CALLS + 1))
@pytest.mark.usefixtures("few_calls")
def test_a_vacuum_amid_the_creation(call: int) -> None:
    installation = Installation()
    installation.at(call, installation.vacuum)
    check(installation, has_name=_got_its_name(installation))


@pytest.mark.usefixtures("few_calls")
def test_a_creation_amid_the_vacuum() -> None:
    for call in range(1, calls_of(Installation.vacuum) + 1):
        installation, named = Installation(), list[bool]()
        installation.at(call, lambda i=installation, named=named: named.append(_got_its_name(i)))  # type: ignore[misc]
        installation.vacuum()
        check(installation, has_name=named == [True])


@pytest.mark.usefixtures("few_calls")
def test_a_dropped_name_and_later_a_new_one_amid_the_vacuum() -> None:
    """What is found out first must not be forgotten: the announcement reaches no further than the older name."""
    calls = calls_of(Installation.vacuum, {"older": at_ms(3)})
    for first in range(1, calls + 1):
        for later in range(calls - first + 1):
            installation, named = Installation(), list[bool]()
            installation.create("older", at_ms(3))
            installation.at(first, partial(_exchange, installation, later, named))
            installation.vacuum()
            check(installation, has_name=named == [True])


@pytest.mark.parametrize("first", range(VACUUM_CALLS + 2))
@pytest.mark.usefixtures("few_calls")
def test_every_order_of_their_calls(first: int) -> None:
    for later in combinations_with_replacement(range(first, VACUUM_CALLS + 2), CREATE_CALLS - 1):
        installation = Installation()
        check(installation, has_name=_in_this_order(installation, [first, *later]))


def moved(installation: Installation) -> None:
    installation.process().move_snapshot("past", MOVED)


def check_moved(installation: Installation) -> None:
    """It reads as it has to where it was moved to, whatever is vacuumed, and holds back no more than that."""
    report = installation.vacuum()
    assert (report.problems, report.horizon) == ({}, MOVED)
    assert installation.value("past") == b"5"


@pytest.mark.usefixtures("few_calls")
def test_a_vacuum_amid_the_move_of_a_name() -> None:
    for call in range(1, calls_of(moved, {"past": PAST}) + 1):
        installation = Installation()
        installation.create()
        installation.at(call, installation.vacuum)
        moved(installation)
        check_moved(installation)


@pytest.mark.usefixtures("few_calls")
def test_the_move_of_a_name_amid_the_vacuum() -> None:
    for call in range(1, calls_of(Installation.vacuum, {"past": PAST}) + 1):
        installation = Installation()
        installation.create()
        installation.at(call, partial(moved, installation))
        installation.vacuum()
        check_moved(installation)


@pytest.mark.usefixtures("few_calls")
def test_a_mover_that_is_killed_leaves_the_name_where_it_was_or_was_to_go() -> None:
    for call in range(1, calls_of(moved, {"past": PAST}) + 1):
        installation = Installation()
        installation.create()
        installation.at(call, _die)
        with pytest.raises(Killed):
            moved(installation)
        installation.vacuum()
        assert installation.value("past") in (b"2", b"5")
        moved(installation)
        check_moved(installation)


@pytest.mark.parametrize("call", range(1, CREATE_CALLS + 1))
@pytest.mark.usefixtures("few_calls")
def test_a_creator_that_is_killed_leaves_nothing_that_cannot_be_repeated_or_dropped(call: int) -> None:
    installation = Installation()
    installation.at(call, _die)
    with pytest.raises(Killed):
        installation.create()
    for name in (snapshot.name for snapshot in installation.process().snapshots()):
        with pytest.raises(InvalidRequest, match="under way, or failed halfway"):
            installation.value(name)
    stands = call > 3
    assert list(installation.vacuum().held_back_by) == ["past"] * stands
    assert _got_its_name(installation) is stands
    if stands:
        check(installation, has_name=True)
        installation.process().drop_snapshot("past")
    check(installation, has_name=False)


@pytest.mark.usefixtures("few_calls")
def test_a_vacuum_that_is_killed_hurts_no_name_afterwards() -> None:
    for call in range(1, calls_of(Installation.vacuum) + 1):
        installation = Installation()
        installation.at(call, _die)
        with pytest.raises(Killed):
            installation.vacuum()
        check(installation, has_name=_got_its_name(installation))


def test_a_dry_run_tells_who_holds_it_back_and_announces_nothing() -> None:
    installation = Installation()
    installation.create()
    report = run_vacuum(installation.process(), retain_ms=0, outcomes_retain_ms=0, dry_run=True)
    assert (report.horizon, report.held_back_by) == (PAST, {"past": PAST})
    assert installation.process().catalog.vacuums.below_anywhere() == 0


def _exchange(installation: Installation, later: int, named: list[bool]) -> None:
    """Drop the older name now, and create another one so many calls later."""
    installation.process().drop_snapshot("older")
    if later:
        installation.at(later, lambda: named.append(_got_its_name(installation)))
    else:
        named.append(_got_its_name(installation))


def _got_its_name(installation: Installation) -> bool:
    try:
        return installation.create().is_finished
    except InvalidRequest as error:
        return "a vacuum drops, or has dropped" not in str(error)


def _die() -> None:
    raise Killed


def _in_this_order(installation: Installation, before: Sequence[int]) -> bool:
    """Create and vacuum, each call of the creation before the vacuum's call of this number; whether it got its name."""
    named: list[bool] = []
    creation = Stack(lambda: named.append(_got_its_name(installation)))
    vacuuming = Stack(lambda: _ignored(installation.vacuum()))
    installation.store.stepping = True
    for stack in (creation, vacuuming):
        stack.enter()
    turns: Iterator[int] = iter(sorted(before))
    turn = next(turns)
    for call in range(VACUUM_CALLS + 1):
        while turn == call:
            creation.enter()
            turn = next(turns, -1)
        vacuuming.enter()
    for stack in (vacuuming, creation):
        while not stack.ended:
            stack.enter()
    installation.store.stepping = False
    return named == [True]


def _ignored(value: object) -> None:
    """A stack's function returns nothing."""
