"""How a lease is kept, and how it ends, over the twin."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from lease import (
    PrimaryFinder,
    StillHeld,
)
from lease.coordinator import SetData
from lease.errors import CoordinatorRefused, LeaseError
from lease.memory import WriteFault

if TYPE_CHECKING:
    from tests.unit.lease.conftest import Installation

COUNTER_BITS = 18


def test_release_stops_holding_before_it_writes(site: Installation) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    seen: list[bool] = []
    client.before_write = lambda paths: seen.append(tenure.is_held())
    tenure.release()
    assert seen == [False]


@pytest.mark.parametrize("fault", list(WriteFault))
def test_an_ambiguous_release_is_settled(site: Installation, fault: WriteFault) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    client.write_faults = [fault]
    tenure.release()
    client.deliver_late()
    assert site.lease().released


def test_release_gives_up_quietly_when_nobody_answers(site: Installation) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    client.unreachable = True
    tenure.release()
    assert not tenure.is_held()
    assert not site.lease().released


def test_validity_counts_from_before_the_takeover_was_sent(site: Installation) -> None:
    site.serve_once()
    candidate, client = site.candidate("a")
    client.before_write = lambda paths: site.advance(300)
    client.after_write = lambda: site.advance(200)
    tenure = site.held(candidate)
    site.advance(site.settings.validity_ms - 500 - 1)
    assert tenure.is_held()
    site.advance(1)
    assert not tenure.is_held()


def test_validity_counts_from_before_the_renewal_was_sent(site: Installation) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    client.before_write = lambda paths: site.advance(400)
    assert tenure.renew()
    client.before_write = lambda paths: None
    site.advance(site.settings.validity_ms - 400 - 1)
    assert tenure.is_held()
    site.advance(1)
    assert not tenure.is_held()


@pytest.mark.parametrize("fault", list(WriteFault))
def test_an_ambiguous_renewal_is_settled(site: Installation, fault: WriteFault) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    for _ in range(8):
        site.advance(500)
        client.write_faults = [fault]
        assert tenure.renew()
        client.deliver_late()
        assert site.epoch().ceiling == tenure.ceiling
    assert site.epoch().ceiling - (site.wall_ms << COUNTER_BITS) >= (site.settings.lease_ms << COUNTER_BITS)


def test_a_version_that_moved_by_our_own_late_write_is_not_a_loss(site: Installation) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    site.advance(500)
    sent_ms = site.now_ms
    client.write_faults = [WriteFault.LATE] * 3
    assert tenure.renew()
    site.advance(100)
    client.deliver_late()
    assert tenure.renew()
    site.now_ms = sent_ms + site.settings.validity_ms - 1
    assert tenure.is_held()
    site.now_ms += 1
    assert not tenure.is_held(), "counted from the earliest write that may have landed"


def test_while_nobody_answers_the_tenure_lasts_until_its_own_deadline(site: Installation) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    client.unreachable = True
    site.advance(site.settings.validity_ms - 1)
    assert tenure.renew()
    site.advance(1)
    assert not tenure.renew()
    client.unreachable = False
    assert not tenure.renew()


def test_an_answer_after_the_deadline_does_not_revive(site: Installation) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)
    site.advance(500)
    client.after_write = lambda: site.advance(500)
    assert not tenure.renew()
    assert not tenure.is_held()


def test_a_tenure_that_is_held_bars_another_attempt(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    site.held(candidate)
    with pytest.raises(StillHeld):
        candidate.attempt()


def test_the_ceiling_moves_up_with_the_clock_and_with_what_was_reached(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    tenure = site.held(candidate)
    start = tenure.ceiling
    site.advance(500)
    assert tenure.renew()
    assert tenure.ceiling == start
    assert tenure.renew(reached=start - 1)
    assert tenure.ceiling > start
    assert site.epoch().ceiling == tenure.ceiling


def test_a_holder_whose_record_was_overwritten_loses_the_lease(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    tenure = site.held(candidate)
    site.by_hand.commit([SetData(site.paths.lease, b"rubbish", None)], timeout_ms=1000)
    assert not tenure.renew()


def test_a_holder_whose_record_now_names_another_loses_the_lease(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    tenure = site.held(candidate)
    other = dataclasses.replace(tenure.record, nonce="another").encode()
    site.by_hand.commit([SetData(site.paths.lease, other, None)], timeout_ms=1000)
    assert not tenure.renew()


def test_a_lapsed_tenure_writes_no_renewal(site: Installation) -> None:
    """It would only keep the standbys waiting."""
    candidate, _ = site.candidate("a")
    tenure = site.held(candidate)
    before = site.node(site.paths.lease)
    site.advance(site.settings.validity_ms)
    assert not tenure.renew()
    assert site.node(site.paths.lease) == before


def test_a_holder_whose_epoch_was_meddled_with_loses_the_lease(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    tenure = site.held(candidate)
    site.by_hand.commit([SetData(site.paths.epoch, site.epoch().encode(), None)], timeout_ms=1000)
    assert not tenure.renew(reached=tenure.ceiling - 1)


def test_the_finder_sees_the_primary_until_it_is_released(site: Installation) -> None:
    finder = PrimaryFinder(site.by_hand, site.root)
    changed = threading.Event()
    assert finder.current(changed) is None
    candidate, _ = site.candidate("a")
    tenure = site.held(candidate)
    assert changed.is_set()
    assert finder.current() == tenure.record
    tenure.release()
    assert finder.current() is None


def test_a_refusal_of_the_service_ends_nothing_by_itself(site: Installation) -> None:
    candidate, client = site.candidate("a")
    tenure = site.held(candidate)

    def refuse(paths: Sequence[str]) -> None:
        raise CoordinatorRefused("no permission")

    client.before_write = refuse
    assert tenure.renew()
    site.advance(site.settings.validity_ms)
    assert not tenure.renew()
    with pytest.raises(LeaseError, match="no permission"):
        candidate.attempt()
