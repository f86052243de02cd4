"""What happens where the coordinator lost its data, or came back from an older copy, under a running installation."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence

import pytest

from lease import CoordinatorRefused, Create, FloorRecord, LeaseSettings, Tenure
from lease.floor import FloorKeeper
from lease.memory import MemoryFloor
from lease.records import EpochRecord
from lease.rules import FLOOR_AHEAD_MS_MIN, epoch_after_loss, has_lost_records, raised_floor
from tests.unit.lease.conftest import COUNTER_BITS, DEFAULTS, Client, Installation

LONG = LeaseSettings(lease_ms=5000)
HOUR_MS = 3_600_000
LIMIT_S = 10.0


def lose(site: Installation, *clients: Client) -> None:
    site.tree.lose_everything()
    for client in clients:
        client.expire_session()


def floor_of(site: Installation) -> int:
    return max(site.floor.puts).timestamp


def renew_until_floor(site: Installation, tenure: Tenure, at_least: int) -> None:
    """It is raised in a thread of its own."""
    end_s = time.monotonic() + LIMIT_S
    while floor_of(site) < at_least:
        assert time.monotonic() < end_s, "the floor was not raised"
        assert tenure.renew()
        time.sleep(0.001)


def test_who_held_may_not_have_noticed_and_is_waited_for(site: Installation) -> None:
    (one, _), (two, client) = site.candidate("a"), site.candidate("b")
    held = site.held(one)
    site.waiting(two)
    site.advance(100)
    lose(site, client)
    assert site.waiting(two).wait_ms == DEFAULTS.lease_ms
    assert held.is_held()
    site.advance(DEFAULTS.lease_ms - 1)
    assert site.waiting(two).wait_ms == 1
    site.advance(1)
    assert not held.is_held()
    assert site.held(two).epoch >= held.ceiling


def test_an_epoch_that_was_removed_by_hand_is_founded_anew_above_the_floor(site: Installation) -> None:
    """Once its primary, which keeps its lease for as long as its ceiling need not be moved, has come to its end."""
    (one, _), (two, _) = site.candidate("a"), site.candidate("b")
    held = site.held(one)
    site.waiting(two)
    del site.tree._entries[site.paths.epoch]
    site.advance(DEFAULTS.renewal_interval_ms)
    assert held.renew()
    assert site.waiting(two).wait_ms == DEFAULTS.lease_ms
    while held.renew():
        assert site.waiting(two).primary == held.record
        site.advance(DEFAULTS.renewal_interval_ms)
    site.advance(DEFAULTS.lease_ms)
    assert site.held(two).epoch >= held.ceiling


def test_an_epoch_that_was_removed_is_waited_for_though_the_lease_was_released(site: Installation) -> None:
    """The lease may be a copy, of before somebody took it."""
    (one, _), (two, _) = site.candidate("a"), site.candidate("b")
    held = site.held(one)
    held.release()
    del site.tree._entries[site.paths.epoch]
    assert site.waiting(two).wait_ms == DEFAULTS.lease_ms
    site.advance(DEFAULTS.lease_ms)
    assert site.held(two).epoch >= held.ceiling


def test_a_longer_lease_that_the_founder_never_saw_is_waited_for_by_its_own_length(site: Installation) -> None:
    held = site.held(site.candidate("a", LONG)[0])
    lose(site)
    assert site.waiting(site.candidate("b")[0]).wait_ms == LONG.lease_ms
    assert held.is_held()


def test_a_new_installation_is_not_waited_for(site: Installation) -> None:
    tenure = site.held(site.candidate("a")[0])
    assert tenure.epoch == site.wall_ms << COUNTER_BITS
    assert floor_of(site) == tenure.ceiling, "the floor was there before the ceiling was asked for"


def test_data_from_before_there_were_floors_are_waited_for(site: Installation) -> None:
    site.floor.data = True
    candidate, _ = site.candidate("a")
    assert site.waiting(candidate).wait_ms == DEFAULTS.lease_ms
    site.advance(DEFAULTS.lease_ms)
    assert site.held(candidate).epoch == site.wall_ms << COUNTER_BITS


def test_the_new_epoch_is_above_all_that_was_handed_out_though_the_clock_was_mended(site: Installation) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    site.wall_ms += HOUR_MS
    renew_until_floor(site, tenure, site.wall_ms << COUNTER_BITS)
    assert tenure.renew()
    assert tenure.ceiling >> COUNTER_BITS > site.wall_ms
    site.wall_ms -= HOUR_MS
    lose(site, client)
    assert not tenure.renew()
    site.waiting(candidate)
    site.advance(DEFAULTS.lease_ms)
    assert site.held(candidate).epoch >= tenure.ceiling


def test_the_ceiling_stops_at_the_floor_while_that_cannot_be_raised(
    site: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    tenure = site.held(site.candidate("a")[0])
    floor = floor_of(site)
    site.floor.unreachable = True
    for _ in range(20):
        site.advance(DEFAULTS.renewal_interval_ms)
        assert tenure.renew()
    assert tenure.ceiling == floor
    site.floor.unreachable = False
    renew_until_floor(site, tenure, floor + 1)
    assert tenure.renew()
    assert site.wall_ms << COUNTER_BITS < tenure.ceiling < floor_of(site)
    assert "the floor of timestamps is not raised" in caplog.text


def test_timestamps_far_ahead_of_the_clock_are_told_once(site: Installation, caplog: pytest.LogCaptureFixture) -> None:
    (one, _), (two, _) = site.candidate("a"), site.candidate("b")
    tenure = site.held(one)
    site.waiting(two)
    site.wall_ms += HOUR_MS
    renew_until_floor(site, tenure, site.wall_ms << COUNTER_BITS)
    assert tenure.renew()
    site.waiting(two)
    assert "ahead of this machine's clock" not in caplog.text, "its clock is as fast"
    site.wall_ms -= HOUR_MS
    site.waiting(two)
    site.waiting(two)
    assert caplog.text.count("far ahead of this machine's clock") == 1
    assert str(tenure.ceiling) in caplog.text


def test_who_cannot_ask_for_the_floor_stands_by(site: Installation) -> None:
    site.serve_once()
    candidate, _ = site.candidate("b")
    site.floor.unreachable = True
    assert site.waiting(candidate).problem == "the floor does not answer"
    site.floor.unreachable = False
    site.held(candidate)


def test_the_floor_is_put_twice_a_minute(site: Installation) -> None:
    tenure = site.held(site.candidate("a")[0])
    for _ in range(240 * 10):  # ten minutes
        before, floor = len(site.floor.puts), floor_of(site)
        site.advance(DEFAULTS.renewal_interval_ms)
        assert tenure.renew()
        if raised_floor(floor, tenure.ceiling, FLOOR_AHEAD_MS_MIN << COUNTER_BITS) is not None:
            renew_until_floor(site, tenure, floor + 1)
        assert len(site.floor.puts) <= before + 1
        assert tenure.ceiling <= floor_of(site)
    assert 15 <= len(site.floor.puts) <= 25


def test_an_older_copy_is_noticed_waited_for_and_not_believed(site: Installation) -> None:
    (one, _), (two, client) = site.candidate("a"), site.candidate("b")
    site.held(one).release()
    entries = copy.deepcopy(site.tree._entries)
    held = site.held(two)
    for _ in range(3):
        site.wall_ms += HOUR_MS
        renew_until_floor(site, held, site.wall_ms << COUNTER_BITS)
    assert held.renew()
    site.wall_ms -= 3 * HOUR_MS
    site.tree._entries = entries
    client.expire_session()
    third, _ = site.candidate("c")
    assert site.waiting(third).wait_ms == DEFAULTS.lease_ms, "though the copy says that the lease was released"
    assert held.is_held()
    site.advance(DEFAULTS.lease_ms)
    assert site.held(third).epoch >= held.ceiling


def test_a_holder_whose_own_older_lease_came_back_holds_no_longer(site: Installation) -> None:
    """Whoever saw it come back is counting already."""
    tenure = site.held(site.candidate("a")[0])
    entries = copy.deepcopy(site.tree._entries)
    assert tenure.renew()
    site.tree._entries = entries
    assert not tenure.renew()


def test_a_lease_that_looks_the_same_in_another_session_is_waited_for_anew(site: Installation) -> None:
    (_, _), (two, client) = site.candidate("a"), site.candidate("b")
    site.held(site.candidate("a")[0])
    site.waiting(two)
    site.advance(DEFAULTS.lease_ms - 1)
    client.expire_session()
    assert site.waiting(two).wait_ms == DEFAULTS.lease_ms


def test_a_release_does_not_reach_the_lease_of_another_who_served_since(site: Installation) -> None:
    """Versions are counted anew: by its version the lease there is the one that is to be released."""
    (one, client), (two, _) = site.candidate("a"), site.candidate("b")
    first = site.held(one)
    lose(site, client)
    site.waiting(two)
    site.advance(DEFAULTS.lease_ms)
    second = site.held(two)
    first.release()
    assert site.lease() == second.record


def test_a_hand_over_in_another_session_is_written(site: Installation) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    client.expire_session()
    tenure.release()
    assert site.lease().released


@pytest.mark.parametrize("left", [True, False])
def test_a_tenure_whose_node_was_removed_ends_and_the_next_begins_at_once(site: Installation, left: bool) -> None:
    candidate, _ = site.candidate("a")
    tenure = site.held(candidate)
    site.tree.remove(site.paths.tenure(tenure.record.nonce) if left else site.paths.tenures)
    assert not tenure.renew()
    assert site.held(candidate).epoch >= tenure.ceiling


def test_a_takeover_ends_what_began_before_also_of_a_release_that_knew_no_such_nodes(site: Installation) -> None:
    held = site.held(site.candidate("a")[0])
    old, _ = site.candidate("b")
    site.waiting(old)
    site.advance(DEFAULTS.lease_ms)
    by_old = site.held(old)
    site.tree.remove(site.paths.tenure(by_old.record.nonce))
    site.by_hand.commit([Create(site.paths.tenure(held.record.nonce), b"")], timeout_ms=1)
    new, _ = site.candidate("c")
    site.waiting(new)
    site.advance(DEFAULTS.lease_ms)
    last = site.held(new)
    assert site.by_hand.children(site.paths.tenures, timeout_ms=1) == [last.record.nonce]


def test_records_are_lost_where_there_is_no_epoch_or_one_far_below_the_floor() -> None:
    epoch = EpochRecord(10, 1000, 10)
    assert has_lost_records(None, 1, 500)
    assert not has_lost_records(epoch, 1500, 500)
    assert has_lost_records(epoch, 1501, 500)
    assert not has_lost_records(epoch, 1, 500), "an older release moved the ceiling, and no floor"


def test_an_epoch_without_a_record_begins_above_the_floor_and_the_clock() -> None:
    assert epoch_after_loss(100, 70, 20) == EpochRecord(100, 101, 100)
    assert epoch_after_loss(100, 90, 20) == EpochRecord(100, 110, 100)
    assert epoch_after_loss(100, 170, 20) == EpochRecord(170, 190, 170)


def test_takeovers_in_vain_after_a_loss_leave_the_floor_where_it_was(site: Installation) -> None:
    """As long as nobody may write the nodes, say: else timestamps would run away from the clock meanwhile."""
    held = site.held(site.candidate("a")[0])
    renew_until_floor(site, held, held.ceiling + 1)
    (one, client), (two, other) = site.candidate("b"), site.candidate("c")
    lose(site, client, other)
    floor = floor_of(site)

    def refuse(paths: Sequence[str]) -> None:
        if site.paths.epoch in paths:
            raise CoordinatorRefused("a quota")

    client.before_write = other.before_write = refuse
    site.waiting(one)
    site.waiting(two)
    for _ in range(50):
        site.advance(DEFAULTS.lease_ms)
        for candidate in (one, two):
            with pytest.raises(CoordinatorRefused):
                candidate.attempt()
    assert floor_of(site) <= floor + 2 * 50
    client.before_write = lambda paths: None
    tenure = site.held(one)
    renew_until_floor(site, tenure, tenure.ceiling + 1)
    assert tenure.renew()
    assert tenure.ceiling - tenure.epoch >= DEFAULTS.lease_ms << COUNTER_BITS, "there is room for timestamps again"


def test_who_meets_the_floor_of_one_who_was_faster_does_not_say_that_records_are_lost(
    site: Installation, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a long time without a primary the floor of the next one lies far above what is on record until then."""
    site.held(site.candidate("a")[0])
    (fast, _), (slow, _) = site.candidate("b"), site.candidate("c")
    site.waiting(fast)
    site.waiting(slow)
    site.advance(HOUR_MS)
    read = site.floor.read

    def read_late() -> FloorRecord | None:
        monkeypatch.undo()
        site.held(fast)
        return read()

    monkeypatch.setattr(site.floor, "read", read_late)
    assert site.waiting(slow).primary == site.lease()
    assert site.lease().holder == "b"
    assert "lost its records" not in caplog.text


def test_a_loss_is_told_by_whoever_begins_the_next_epoch(site: Installation, caplog: pytest.LogCaptureFixture) -> None:
    site.held(site.candidate("a")[0])
    candidate, client = site.candidate("b")
    lose(site, client)
    site.waiting(candidate)
    site.advance(DEFAULTS.lease_ms)
    site.held(candidate)
    assert caplog.text.count("lost its records: a new epoch begins") == 1
    site.waiting(site.candidate("c")[0])
    assert "ahead of this machine's clock" not in caplog.text, "it is, by a minute or so, and no clock is wrong"


@pytest.mark.parametrize("lease_ms", [100, 2000, 600_000])
def test_a_ceiling_that_is_moved_up_in_time_stays_below_the_floor(lease_ms: int) -> None:
    settings = LeaseSettings(lease_ms=lease_ms)
    up_at_once_ms = settings.ceiling_ahead_ms // 2 + settings.renewal_interval_ms
    assert settings.floor_ahead_ms // 2 >= up_at_once_ms


def test_a_floor_in_use_says_the_longest_lease_that_may_be_held() -> None:
    floor = MemoryFloor()
    floor.put(FloorRecord(1000, 5000, 10))
    keeper = FloorKeeper(floor, 2000, ahead=100, step=10)
    assert keeper.read(founding=False) == FloorRecord(1000, 5000, 10)
    keeper.require(900)
    assert keeper.known == 1000
    assert len(floor.puts) == 1
    keeper.require(1001)
    assert floor.puts[-1] == FloorRecord(1001, 5000, 110)
