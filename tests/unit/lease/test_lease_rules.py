"""The pure rules: settings, validity against waiting, epochs and ceilings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lease.errors import InvalidLeaseSettings, RecordInvalid
from lease.records import TIMESTAMP_MAX, EpochRecord, LeaseRecord
from lease.rules import (
    LeaseSettings,
    Sighting,
    absence_wait_ms,
    next_epoch,
    raised_ceiling,
    sighted,
    takeover_wait_ms,
    valid_until_ms,
)

TIMESTAMPS = st.integers(1, 2**60)
SPANS = st.integers(2, 2**50)


def record(*, released: bool = False, lease_ms: int = 2000) -> LeaseRecord:
    return LeaseRecord(holder="a", nonce="n", addresses=("h:1",), epoch=1, released=released, lease_ms=lease_ms)


def test_what_is_not_given_follows_from_the_lease() -> None:
    settings = LeaseSettings(lease_ms=600)
    assert (settings.safety_margin_ms, settings.request_timeout_ms, settings.ceiling_ahead_ms) == (75, 150, 1200)
    assert settings.validity_ms == 525
    assert settings.renewal_interval_ms == 150


@given(st.integers(100, 600_000))
def test_every_length_of_lease_has_working_defaults(lease_ms: int) -> None:
    settings = LeaseSettings(lease_ms=lease_ms)
    assert settings.renewal_interval_ms + settings.request_timeout_ms <= settings.validity_ms < lease_ms


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"lease_ms": 99}, "ordinary pause"),
        ({"lease_ms": 600_001}, "nobody serves"),
        ({"lease_ms": -1}, "whole number"),
        ({"lease_ms": 2000.0}, "whole number"),
        ({"lease_ms": True}, "whole number"),
        ({"safety_margin_ms": 19}, "different rates"),
        ({"safety_margin_ms": 2000}, "only valid for"),
        ({"renewals_per_lease": 1}, "renewals_per_lease"),
        ({"renewals_per_lease": 21}, "renewals_per_lease"),
        ({"lease_ms": 400, "request_timeout_ms": 500}, "a renewal starts after 100 ms and may take 500 ms"),
        ({"ceiling_ahead_ms": 3999}, "run out while the lease is held"),
        ({"ceiling_ahead_ms": 3_600_001}, "hours ahead"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_the_reason(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidLeaseSettings, match=reason):
        LeaseSettings(**arguments)


@given(
    sent_ms=st.floats(0, 1e9),
    until_seen_ms=st.floats(0, 1e6),
    holder_rate=st.floats(0.95, 1.05),
    standby_rate=st.floats(0.95, 1.05),
)
def test_the_holder_stops_before_a_standby_may_start(
    sent_ms: float, until_seen_ms: float, holder_rate: float, standby_rate: float
) -> None:
    """In true time, with clocks whose rates differ by less than the margin, and the write seen at any later moment."""
    settings = LeaseSettings()
    holder_stops = (valid_until_ms(sent_ms, settings) - sent_ms) / holder_rate
    sighting = sighted(None, 7, "n", until_seen_ms * standby_rate)
    wait_ms = takeover_wait_ms(record(lease_ms=settings.lease_ms), sighting, until_seen_ms * standby_rate)
    assert holder_stops < until_seen_ms + wait_ms / standby_rate


def test_a_sighting_lasts_while_the_same_write_is_seen() -> None:
    first = sighted(None, 3, "n", 100.0)
    assert sighted(first, 3, "n", 900.0) is first
    assert sighted(first, 4, "n", 900.0) == Sighting(4, "n", 900.0)
    assert sighted(first, 3, "other", 900.0) == Sighting(3, "other", 900.0)


def test_the_wait_is_the_rest_of_the_holders_own_lease() -> None:
    sighting = Sighting(3, "n", 100.0)
    assert takeover_wait_ms(record(lease_ms=5000), sighting, 600.0) == 4500.0
    assert takeover_wait_ms(record(lease_ms=5000), sighting, 5100.0) == 0.0
    assert takeover_wait_ms(record(released=True), sighting, 100.0) == 0.0


def test_an_absent_lease_is_free_only_where_nobody_ever_served() -> None:
    sighting = Sighting(None, None, 100.0)
    assert absence_wait_ms(None, sighting, 2000, 100.0) == 0.0
    assert absence_wait_ms(EpochRecord(1, 2, 1), sighting, 2000, 100.0) == 2000.0


@given(st.lists(st.tuples(TIMESTAMPS, st.lists(st.tuples(TIMESTAMPS, SPANS), max_size=4)), max_size=8), SPANS)
def test_epochs_are_disjoint_and_increase_whatever_the_clock_says(
    tenures: list[tuple[int, list[tuple[int, int]]]], ahead: int
) -> None:
    """Each tenure starts at any time of the clock, and raises its ceiling at any times, having reached anything."""
    last: EpochRecord | None = None
    for now, raises in tenures:
        epoch = next_epoch(last, now, ahead)
        assert epoch.epoch < epoch.ceiling
        assert epoch.epoch >= max(now, 1 if last is None else last.ceiling)
        ceiling = epoch.ceiling
        for later, used in raises:
            raised = raised_ceiling(ceiling, later, min(epoch.epoch + used, ceiling - 1), ahead)
            assert raised is None or raised > ceiling
            ceiling = raised or ceiling
        last = EpochRecord(epoch.epoch, ceiling, epoch.epoch)


@given(TIMESTAMPS, TIMESTAMPS, TIMESTAMPS, SPANS)
def test_half_is_always_left_after_a_renewal(ceiling: int, now: int, reached: int, ahead: int) -> None:
    assume(reached < ceiling)
    after = raised_ceiling(ceiling, now, reached, ahead) or ceiling
    assert after - max(now, reached) >= ahead // 2


def test_a_ceiling_with_half_left_stays() -> None:
    assert raised_ceiling(1000, 950, 0, 100) is None
    assert raised_ceiling(1000, 951, 0, 100) == 1051
    assert raised_ceiling(1000, 0, 951, 100) == 1001


@given(st.integers(1, 30), SPANS)
def test_a_row_of_failovers_does_not_run_ahead_of_the_clock(failovers: int, half: int) -> None:
    """A failover takes at least a lease, that is half of ``ahead``: the ceiling stays within ``ahead`` of the clock."""
    ahead, now = 2 * half, 1
    epoch = next_epoch(None, now, ahead)
    for _ in range(failovers):
        now += half
        epoch = next_epoch(epoch, now, ahead)
        assert epoch.ceiling - now <= ahead


def test_a_clock_beyond_all_timestamps_is_refused() -> None:
    with pytest.raises(RecordInvalid, match="ceiling"):
        next_epoch(None, TIMESTAMP_MAX, 100)
