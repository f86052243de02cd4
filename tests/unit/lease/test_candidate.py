"""How a process becomes primary, and when it must not, over the twin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from lease import (
    EpochRecord,
    LeaseSettings,
    Member,
    RecordInvalid,
    StandBy,
    Tenure,
    ZnodePaths,
    members,
)
from lease.coordinator import Create, SetData, create_root
from lease.errors import CoordinatorRefused, InvalidLeaseSettings
from lease.memory import MemoryFloor, MemoryTree, WriteFault

if TYPE_CHECKING:
    from tests.unit.lease.conftest import Installation

COUNTER_BITS = 18
LONGER_THAN_A_TEST_MS = 3_600_000
"""Who is not woken sleeps on until pytest ends the test."""


def test_the_first_start_ever_makes_everything(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    tenure = site.held(candidate)
    now = site.wall_ms << COUNTER_BITS
    assert tenure.epoch == now
    assert tenure.ceiling == now + (site.settings.ceiling_ahead_ms << COUNTER_BITS)
    assert site.lease() == tenure.record
    assert site.epoch() == EpochRecord(tenure.epoch, tenure.ceiling, tenure.epoch)


def test_two_first_starts_at_the_same_time_make_one_primary(site: Installation) -> None:
    (one, client), (other, _) = site.candidate("a"), site.candidate("b")
    outcomes: list[Tenure | StandBy] = []

    def meanwhile(paths: Sequence[str]) -> None:
        if site.paths.lease in paths:
            client.before_write = lambda paths: None
            site.floor.puts.clear()  # the other one has looked before it was put
            outcomes.append(other.attempt())

    client.before_write = meanwhile
    standby = site.waiting(one)
    assert [standby.primary] == [tenure.record for tenure in outcomes if isinstance(tenure, Tenure)]
    assert standby.wait_ms == site.settings.lease_ms


def test_a_standby_takes_over_after_a_full_lease_and_not_before(site: Installation) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    first = site.held(one)
    site.advance(300)
    assert site.waiting(other).wait_ms == 1000
    site.advance(999)
    assert not first.is_held()
    assert site.waiting(other).wait_ms == 1
    site.advance(1)
    second = site.held(other)
    assert second.epoch >= first.ceiling
    assert not first.renew()


def test_the_wait_counts_from_after_the_write_was_seen(site: Installation) -> None:
    """The read is sent, then held up; the lease is renewed, and only then read."""
    (one, _), (other, client) = site.candidate("a"), site.candidate("b")
    tenure = site.held(one)

    def slow_read(paths: Sequence[str]) -> None:
        if site.paths.lease in paths:
            client.before_read = lambda paths: None
            site.advance(500)
            assert tenure.renew()

    client.before_read = slow_read
    assert site.waiting(other).wait_ms == 1000


def test_a_renewal_starts_the_standbys_wait_again(site: Installation) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    tenure = site.held(one)
    for _ in range(10):
        site.waiting(other)
        site.advance(500)
        assert tenure.renew()
    assert tenure.is_held()
    assert site.waiting(other).wait_ms == 1000


def test_a_released_lease_is_taken_over_at_once(site: Installation) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    first = site.held(one)
    site.waiting(other)
    first.release()
    assert not first.is_held()
    other.wait(LONGER_THAN_A_TEST_MS)
    assert site.held(other).epoch >= first.ceiling
    assert not first.renew()


def test_a_lease_that_lapsed_while_it_was_taken_is_not_given_out(site: Installation) -> None:
    candidate, client = site.candidate("a")
    client.after_write = lambda: site.advance(site.settings.lease_ms)
    site.waiting(candidate)
    client.after_write = lambda: None
    site.held(candidate)


def test_wall_clock_steps_change_neither_validity_nor_the_wait(site: Installation) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    tenure = site.held(one)
    site.waiting(other)
    for step_ms in (10**9, -2 * 10**9):
        site.wall_ms += step_ms
        assert tenure.is_held()
        assert site.waiting(other).wait_ms == 1000
    site.now_ms += site.settings.lease_ms
    assert not tenure.is_held()
    assert site.held(other).epoch >= tenure.ceiling


@pytest.mark.parametrize("fault", list(WriteFault))
def test_an_ambiguous_takeover_is_settled(site: Installation, fault: WriteFault) -> None:
    site.serve_once()
    candidate, client = site.candidate("a")
    client.write_faults = [fault]
    outcome = candidate.attempt()
    assert isinstance(outcome, Tenure) == (fault is WriteFault.APPLIED)
    client.deliver_late()
    tenure = outcome if isinstance(outcome, Tenure) else site.held(candidate)
    assert site.lease() == tenure.record
    assert site.epoch() == EpochRecord(tenure.epoch, tenure.ceiling, tenure.epoch)
    assert tenure.renew()


def test_a_late_takeover_that_lapsed_is_repeated_at_once(site: Installation) -> None:
    site.serve_once()
    candidate, client = site.candidate("a")
    client.write_faults = [WriteFault.LATE]
    site.waiting(candidate)
    site.advance(site.settings.lease_ms)
    client.deliver_late()
    lapsed = site.lease()
    tenure = site.held(candidate)
    assert tenure.record.nonce != lapsed.nonce
    assert tenure.epoch > lapsed.epoch


def test_a_late_takeover_that_lands_after_another_sent_write_is_recognised(site: Installation) -> None:
    site.serve_once()
    candidate, client = site.candidate("a")
    client.write_faults = [WriteFault.LATE]
    site.waiting(candidate)
    client.before_write = lambda paths: client.deliver_late()
    tenure = site.held(candidate)
    assert site.lease() == tenure.record
    assert tenure.renew()


def test_a_lapsed_lease_that_nobody_took_is_taken_back_at_once_in_a_new_epoch(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    first = site.held(candidate)
    site.advance(site.settings.validity_ms)
    second = site.held(candidate)
    assert second.epoch >= first.ceiling
    assert not first.is_held()


def test_the_holders_lease_counts_not_the_standbys(site: Installation) -> None:
    (one, _), (other, _) = site.candidate("a", LeaseSettings(lease_ms=8000)), site.candidate("b")
    tenure = site.held(one)
    site.waiting(other)
    site.advance(4000)
    assert site.waiting(other).wait_ms == 4000
    assert tenure.is_held()


def test_nobody_answers_at_the_start(site: Installation) -> None:
    candidate, client = site.candidate("a")
    client.unreachable = True
    candidate.join("standby")
    standby = site.waiting(candidate)
    assert standby.problem is not None
    assert standby.wait_ms > 0
    client.unreachable = False
    site.held(candidate)
    assert members(site.by_hand, site.root) == [Member("a", "standby", "a:4000")]


@pytest.mark.parametrize("data", [b"", b"rubbish", b'{"format":2}'])
@pytest.mark.parametrize("name", ["lease", "epoch"])
def test_what_is_not_understood_is_never_taken_over(site: Installation, name: str, data: bytes) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    tenure = site.held(one)
    path = f"{site.root}/{name}"
    site.by_hand.commit([SetData(path, data, None)], timeout_ms=1000)
    site.advance(10 * site.settings.lease_ms)
    with pytest.raises(RecordInvalid, match="cannot be used"):
        other.attempt()
    assert site.node(path).data == data
    assert not tenure.renew()


def test_a_lease_removed_by_hand_is_waited_out(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    create_root(site.by_hand, site.paths, 1000)
    site.by_hand.commit([Create(site.paths.epoch, EpochRecord(1, 2**60, 1).encode())], timeout_ms=1000)
    assert site.waiting(candidate).wait_ms == site.settings.lease_ms
    site.advance(site.settings.lease_ms)
    assert site.held(candidate).epoch == 2**60


@pytest.mark.parametrize("lease_ms", [8000, 500])
def test_a_longer_lease_that_was_removed_by_hand_is_waited_out_by_its_own_length(
    site: Installation, lease_ms: int
) -> None:
    """And a shorter one by the standby's, which costs a moment and no safety."""
    (one, _), (other, _) = site.candidate("a", LeaseSettings(lease_ms=lease_ms)), site.candidate("b")
    tenure = site.held(one)
    site.waiting(other)
    longer_ms = max(lease_ms, site.settings.lease_ms)
    del site.tree._entries[site.paths.lease]
    assert site.waiting(other).wait_ms == longer_ms
    site.advance(longer_ms - 1)
    assert site.waiting(other).wait_ms == 1
    assert not tenure.is_held()
    site.advance(1)
    assert site.held(other).epoch >= tenure.ceiling


def test_a_lease_without_its_epoch_is_refused_where_the_data_do_not_know_more(site: Installation) -> None:
    site.serve_once()
    lease = site.node(site.paths.lease).data
    site.tree, site.floor = MemoryTree(), MemoryFloor()
    site.floor.data = True
    candidate, client = site.candidate("b")
    create_root(client, site.paths, 1000)
    client.commit([Create(site.paths.lease, lease)], timeout_ms=1000)
    with pytest.raises(RecordInvalid, match="is missing though"):
        candidate.attempt()


def test_members_show_role_and_outlive_a_lost_session(site: Installation) -> None:
    (one, client), (other, _) = site.candidate("a"), site.candidate("b")
    one.join("standby")
    other.join("standby")
    tenure = site.held(one)
    one.join("primary")
    expected = [Member("a", "primary", "a:4000"), Member("b", "standby", "b:4000")]
    assert members(site.by_hand, site.root) == expected
    client.expire_session()
    assert members(site.by_hand, site.root) == expected[1:]
    assert tenure.renew()
    assert members(site.by_hand, site.root) == expected


@pytest.mark.parametrize("harm", ["removed", "overwritten"])
def test_a_member_whose_node_is_touched_by_hand_is_seen_again(site: Installation, harm: str) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    other.join("standby")
    tenure = site.held(one)
    one.join("primary")
    expected = members(site.by_hand, site.root)
    nodes = [f"{site.paths.members}/{name}" for name in site.by_hand.children(site.paths.members, timeout_ms=1)]
    for node in nodes:
        if harm == "removed":
            site.tree.remove(node)
        else:
            site.by_hand.commit([SetData(node, b"rubbish", None)], timeout_ms=1)
    for _ in range(2):
        assert tenure.renew()
        site.waiting(other)
        assert members(site.by_hand, site.root) == expected
    versions = [site.node(node).version for node in nodes]
    assert versions == ([0, 0] if harm == "removed" else [2, 2]), "what stands is not written again"


def test_members_are_seen_again_after_every_znode_was_removed(site: Installation) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    other.join("standby")
    tenure = site.held(one)
    one.join("primary")
    expected = members(site.by_hand, site.root)
    site.tree.remove(site.root)
    assert not tenure.renew()
    for candidate in (one, other):
        site.waiting(candidate)
    assert members(site.by_hand, site.root) == expected


def test_members_are_seen_again_after_their_parent_was_removed_and_the_level_was_left(site: Installation) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    other.join("standby")
    tenure = site.held(one)
    one.join("primary")
    expected = members(site.by_hand, site.root)
    site.tree.remove(site.paths.members)
    assert tenure.renew()
    site.waiting(other)
    assert members(site.by_hand, site.root) == expected


def test_a_member_that_may_not_be_shown_serves_and_says_once_why(
    site: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    candidate, client = site.candidate("a")
    refusing = True

    def refuse(paths: Sequence[str]) -> None:
        if refusing and any(path.startswith(site.paths.members) for path in paths):
            raise CoordinatorRefused("no permission for members")

    client.before_write = refuse
    create_root(site.by_hand, site.paths, 1000)
    candidate.join("standby")
    tenure = site.held(candidate)
    assert tenure.renew()
    assert caplog.messages == [
        "not shown among the members, so it cannot be handed over to or drained: no permission for members"
    ]
    refusing = False
    assert tenure.renew()
    assert members(site.by_hand, site.root) == [Member("a", "standby", "a:4000")]


def test_a_root_in_a_place_where_nobody_may_make_nodes_is_used(site: Installation) -> None:
    """ZooKeeper looks at what the parent grants first, and says so rather than that the node is there."""
    candidate, client = site.candidate("a")
    top, _, _ = site.root.rpartition("/")

    def locked(paths: Sequence[str]) -> None:
        if paths[0] in (top, site.root):
            raise CoordinatorRefused(f"no permission to make {paths[0]}")

    client.before_write = locked
    candidate.join("standby")
    with pytest.raises(CoordinatorRefused, match=f"no permission to make {top}$"):
        candidate.attempt()
    for path in (top, site.root):
        site.by_hand.commit([Create(path, b"")], timeout_ms=1000)

    def hidden(paths: Sequence[str]) -> None:
        if paths == [top]:
            raise CoordinatorRefused(f"no permission to read {top}")

    client.before_read = hidden
    assert site.held(candidate).renew()


def test_a_member_that_is_not_understood_is_named(site: Installation) -> None:
    site.candidate("a")[0].join("standby")
    site.by_hand.commit([Create(f"{site.paths.members}/foreign", b"rubbish")], timeout_ms=1)
    with pytest.raises(RecordInvalid, match=r"/team/pythia/members/foreign: .* remove that znode"):
        members(site.by_hand, site.root)


def test_wake_ends_a_wait(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    candidate.wake()
    candidate.wait(LONGER_THAN_A_TEST_MS)


@pytest.mark.parametrize("holder", ["", "a/b", "a b", "x" * 101])
def test_a_holder_name_that_fits_no_path_is_refused(site: Installation, holder: str) -> None:
    with pytest.raises(RecordInvalid, match="holder"):
        site.candidate(holder)


@pytest.mark.parametrize(
    "root", ["", "/", "pythia", "/pythia/", "//x", "/a b", "/..", "/a.b", "/a/-b", "/-", "/a\n", "/é", "/" + "x" * 100]
)
def test_a_root_that_is_no_path_is_refused(root: str) -> None:
    with pytest.raises(InvalidLeaseSettings, match="znode root"):
        ZnodePaths(root)


@pytest.mark.parametrize("root", ["/pythia", "/team/pythia-2", "/_/0", "/" + "x" * 99])
def test_roots_that_tables_can_be_named_after(root: str) -> None:
    assert ZnodePaths(root).lease == f"{root}/lease"
