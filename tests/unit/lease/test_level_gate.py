"""Who may take part at which level, and what keeps a level from being raised; one process at a time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lease import (
    Check,
    CoordinatorUnavailable,
    Create,
    LeaseRecord,
    LevelRecord,
    LevelRefused,
    Member,
    PrimaryFinder,
    RecordInvalid,
    SetData,
    StandBy,
    Tenure,
    ZnodePaths,
    members,
)
from lease.coordinator import Applied, Rejected
from lease.gate import read_level
from lease.memory import MemoryCoordinator, MemoryTree, WriteFault
from lease.raising import Attendance, NoLevel, attendance, complete, require_level
from tests.unit.lease.conftest import Client
from tests.unit.lease.test_level_races import NEW, OLD, PATHS, candidate
from versions import LevelRange

ROOT = PATHS.root
NEXT = LevelRange(2, 3)


@pytest.fixture
def tree() -> MemoryTree:
    return MemoryTree()


@pytest.fixture
def client(tree: MemoryTree) -> MemoryCoordinator:
    return MemoryCoordinator(tree)


def seen(client: MemoryCoordinator) -> Attendance:
    return attendance(client, ROOT)


def raise_to(client: MemoryCoordinator, level: int) -> None:
    assert require_level(client, ROOT, seen(client), level)
    assert complete(client, ROOT, seen(client), level)


def test_the_first_process_puts_the_level_on_record_and_shows_what_it_works_at(client: MemoryCoordinator) -> None:
    candidate(client, "a", NEW).join("standby")
    assert seen(client).level.record == LevelRecord(1, 1)
    assert members(client, ROOT) == [Member("a", "standby", "a:1", NEW)]


@pytest.mark.parametrize(("levels", "reason"), [(OLD, "upgrade this program"), (NEXT, "it is too new")])
def test_who_does_not_work_at_the_level_neither_joins_nor_serves(
    tree: MemoryTree, client: MemoryCoordinator, levels: LevelRange, reason: str
) -> None:
    candidate(client, "a", NEW).join("standby")
    if levels is OLD:
        raise_to(client, 2)
    refused = candidate(MemoryCoordinator(tree), "refused", levels)
    for act in (lambda: refused.join("standby"), refused.attempt):
        with pytest.raises(LevelRefused, match=reason):
            act()
    assert [member.holder for member in members(client, ROOT)] == ["a"]
    assert tree.read(PATHS.lease, None) is None


def test_who_does_not_know_the_old_level_waits_until_the_new_one_is_complete(
    tree: MemoryTree, client: MemoryCoordinator
) -> None:
    candidate(client, "a", NEW).join("standby")
    assert require_level(client, ROOT, seen(client), 2)
    late = candidate(MemoryCoordinator(tree), "late", NEXT)
    with pytest.raises(LevelRefused, match="level 1"):
        late.join("standby")
    assert complete(client, ROOT, seen(client), 2)
    late.join("standby")


def test_a_level_that_cannot_be_read_is_no_refusal(tree: MemoryTree) -> None:
    client = MemoryCoordinator(tree)
    one = candidate(client, "a", NEW)
    client.unreachable = True
    one.join("standby")
    assert isinstance(one.attempt(), StandBy)
    client.unreachable = False
    assert isinstance(one.attempt(), Tenure)
    assert [member.holder for member in members(client, ROOT)] == ["a"]


def test_a_takeover_is_refused_where_the_level_was_raised_since_it_was_read(tree: MemoryTree) -> None:
    operator = MemoryCoordinator(tree)
    candidate(operator, "new", NEW).join("standby")

    slow = Client(tree)

    def raise_meanwhile(paths: Sequence[str]) -> None:
        if seen(operator).level.record.required == 1:
            raise_to(operator, 2)

    slow.before_write = raise_meanwhile
    old = candidate(slow, "old", OLD)
    assert isinstance(old.attempt(), StandBy)
    assert tree.read(PATHS.lease, None) is None
    with pytest.raises(LevelRefused):
        old.attempt()


def test_a_primary_learns_of_a_raise_by_its_renewal(client: MemoryCoordinator, tree: MemoryTree) -> None:
    one = candidate(client, "a", NEW)
    one.join("standby")
    tenure = one.attempt()
    assert isinstance(tenure, Tenure)
    operator = MemoryCoordinator(tree)
    assert seen(operator).lease == tenure.record
    assert require_level(operator, ROOT, seen(operator), 2)
    assert "has not yet seen that level 2" in (seen(operator).waits_for() or "")
    assert tenure.renew()
    assert tenure.record.level == 2
    assert seen(operator).waits_for() is None
    assert complete(operator, ROOT, seen(operator), 2)
    assert tenure.renew()


@pytest.mark.parametrize("fault", list(WriteFault))
def test_a_renewal_whose_answer_was_lost_survives_a_raise(tree: MemoryTree, fault: WriteFault) -> None:
    client, operator = MemoryCoordinator(tree), MemoryCoordinator(tree)
    tenure = candidate(client, "a", NEW).attempt()
    assert isinstance(tenure, Tenure)
    assert require_level(operator, ROOT, seen(operator), 2)
    client.write_faults = [fault]
    assert tenure.renew()
    client.deliver_late()
    assert tenure.renew()
    assert seen(operator).waits_for() is None


def test_an_older_primary_loses_its_lease_at_the_next_renewal(tree: MemoryTree) -> None:
    old, operator = MemoryCoordinator(tree), MemoryCoordinator(tree)
    tenure = candidate(old, "old", OLD).attempt()  # shows itself nowhere
    assert isinstance(tenure, Tenure)
    assert require_level(operator, ROOT, seen(operator), 2)
    assert not tenure.renew()
    assert seen(operator).waits_for()
    tenure.release()
    assert not seen(operator).waits_for()


def test_the_level_never_goes_down(client: MemoryCoordinator) -> None:
    candidate(client, "a", LevelRange(1, 3)).join("standby")
    raise_to(client, 3)
    assert require_level(client, ROOT, seen(client), 2)
    assert seen(client).level.record == LevelRecord(3, 3)


def test_who_stands_in_the_way_is_named(tree: MemoryTree, client: MemoryCoordinator) -> None:
    candidate(client, "old", OLD).join("standby")
    candidate(MemoryCoordinator(tree), "new", NEW).join("standby")
    found = seen(client)
    assert found.target(NEW) == 1
    assert [member.holder for member in found.cannot(2)] == ["old"]


def test_a_raise_whose_end_is_not_known_is_told_and_can_be_repeated(tree: MemoryTree) -> None:
    client = MemoryCoordinator(tree)
    candidate(client, "a", NEW).join("standby")
    client.write_faults = [WriteFault.APPLIED]
    with pytest.raises(CoordinatorUnavailable, match="is not known"):
        require_level(client, ROOT, seen(client), 2)
    assert seen(client).level.record == LevelRecord(1, 2)


def test_where_there_is_no_installation_there_is_no_level(client: MemoryCoordinator) -> None:
    with pytest.raises(NoLevel, match="no installation"):
        seen(client)


@pytest.mark.parametrize("released", [False, True])
def test_who_looks_for_the_primary_is_told_that_it_is_too_old(client: MemoryCoordinator, released: bool) -> None:
    candidate(client, "a", NEW).join("standby")
    record = LeaseRecord("a", "n", ("a:1",), 5, released, 1000, level=2)
    client.commit([Create(PATHS.lease, record.encode())], timeout_ms=1)
    with pytest.raises(LevelRefused, match=r"requires level 2.*works at level 1"):
        PrimaryFinder(client, ROOT, levels=OLD).current()
    assert PrimaryFinder(client, ROOT, levels=NEW).current() == (None if released else record)


@pytest.mark.parametrize("data", [b"", b'{"format":1,"level":2,"required":1}', b'{"format":1,"level":0,"required":1}'])
def test_a_level_record_that_cannot_be_is_refused(client: MemoryCoordinator, data: bytes) -> None:
    candidate(client, "a", NEW).join("standby")
    client.commit([SetData(PATHS.level, data, None)], timeout_ms=1)
    with pytest.raises(RecordInvalid, match="level record cannot be used"):
        read_level(client, ZnodePaths(ROOT), 1)


def test_a_check_decides_and_changes_nothing(client: MemoryCoordinator) -> None:
    candidate(client, "a", NEW).join("standby")
    data = LevelRecord(1, 1).encode()
    assert client.commit([Check(PATHS.level, 0), SetData(PATHS.level, data, 0)], timeout_ms=1) == Applied()
    assert client.commit([SetData(PATHS.members, b"", None), Check(PATHS.level, 0)], timeout_ms=1) == Rejected()
