"""The record of tenures: bounded, each once, in order; and how a tenure is said to have come about."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from lease import History, PastTenure, RecordInvalid, Succession
from lease.history import TENURES_MAX

if TYPE_CHECKING:
    from tests.unit.lease.conftest import Installation

TENURE = PastTenure(5, "a", "a:4000", "a:4001", 1_700_000_000_000, "lease ran out", 2_031, at_least=False)


def of_epoch(epoch: int) -> PastTenure:
    return dataclasses.replace(TENURE, epoch=epoch)


def test_what_is_stored_is_read_again() -> None:
    history = History((TENURE, PastTenure(6, "b", "b:1", "", 0, "first start", None, at_least=True)))
    assert History.parse(history.encode()) == history
    assert History.parse(History().encode()) == History()


def test_a_tenure_is_there_once_and_in_its_place_whoever_wrote_first() -> None:
    history = History().with_tenure(of_epoch(7)).with_tenure(of_epoch(5)).with_tenure(of_epoch(6))
    assert [tenure.epoch for tenure in history.tenures] == [5, 6, 7]
    assert history.with_tenure(of_epoch(6)) is history


def test_the_oldest_go_first_beyond_the_limit() -> None:
    history = History()
    for epoch in range(1, TENURES_MAX + 3):
        history = history.with_tenure(of_epoch(epoch))
    assert [tenure.epoch for tenure in history.tenures] == list(range(3, TENURES_MAX + 3))
    assert History.parse(history.encode()) == history
    assert history.with_tenure(of_epoch(1)).tenures == history.tenures


def test_a_full_history_of_the_longest_names_is_a_record_that_a_coordinator_takes() -> None:
    longest = dataclasses.replace(TENURE, holder="h" * 100, address=f"{'x' * 253}:65535", rest=f"{'y' * 253}:65535")
    history = History()
    for epoch in range(2**63 - 1 - TENURES_MAX, 2**63 - 1):
        history = history.with_tenure(dataclasses.replace(longest, epoch=epoch))
    assert len(history.encode()) < 100_000
    assert History.parse(history.encode()) == history


FIELDS = json.loads(History((TENURE,)).encode())
(TENURE_FIELDS,) = FIELDS["tenures"]


@pytest.mark.parametrize(
    "stored",
    [
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        *(
            json.dumps(wrong).encode()
            for wrong in (
                {**FIELDS, "format": 2},
                {**FIELDS, "format": True},
                {**FIELDS, "tenures": [TENURE_FIELDS, TENURE_FIELDS]},
                {**FIELDS, "tenures": [{**TENURE_FIELDS, "epoch": epoch} for epoch in range(1, TENURES_MAX + 2)]},
                {**FIELDS, "tenures": 5},
                *(
                    {**FIELDS, "tenures": [{**TENURE_FIELDS, name: value}]}
                    for name, value in {
                        "epoch": 0,
                        "holder": "a b",
                        "address": "a",
                        "rest": "x",
                        "since_ms": -1,
                        "cause": "boredom",
                        "outage_ms": 0.5,
                        "at_least": None,
                        "colour": "red",
                    }.items()
                ),
            )
        ),
    ],
)
def test_what_is_not_understood_is_refused_with_what_to_do(stored: bytes) -> None:
    with pytest.raises(RecordInvalid, match="upgrade this program if another wrote it, or remove the znode"):
        History.parse(stored)


def test_the_first_start_says_so(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    assert candidate.succession is None
    site.held(candidate)
    assert candidate.succession == Succession("first start", site.now_ms, seen=False)


def test_a_lease_that_ran_out_counts_from_the_last_renewal_that_was_seen(site: Installation) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    tenure = site.held(one)
    site.waiting(other)
    site.advance(300)
    assert tenure.renew()
    site.waiting(other)
    renewed_ms = site.now_ms
    site.advance(400)
    site.waiting(other)
    site.advance(600)
    site.held(other)
    assert other.succession == Succession("lease ran out", renewed_ms, seen=True)


def test_who_came_after_the_last_renewal_says_at_least(site: Installation) -> None:
    (one, _), (late, _) = site.candidate("a"), site.candidate("b")
    site.held(one)
    site.advance(900)
    site.waiting(late)
    came_ms = site.now_ms
    site.advance(1000)
    site.held(late)
    assert late.succession == Succession("lease ran out", came_ms, seen=False)


def test_a_lease_given_back_counts_from_the_release(site: Installation) -> None:
    (one, _), (other, _) = site.candidate("a"), site.candidate("b")
    tenure = site.held(one)
    site.waiting(other)
    site.advance(300)
    tenure.release()
    site.held(other)
    assert other.succession == Succession("handed over", site.now_ms, seen=True)
    late, _ = site.candidate("c")
    other._tenure.release()  # type: ignore[union-attr]
    site.advance(5000)
    site.held(late)
    assert late.succession == Succession("handed over", site.now_ms, seen=False)


def test_a_lease_of_ones_own_that_ran_out_before_it_was_released_ran_out(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    tenure = site.held(candidate)
    runs_out_ms = site.now_ms + site.settings.validity_ms
    site.advance(3000)
    tenure.release()
    assert site.lease().released
    site.held(candidate)
    assert candidate.succession == Succession("lease ran out", runs_out_ms, seen=True)


def test_a_lease_of_ones_own_counts_from_its_end(site: Installation) -> None:
    candidate, _ = site.candidate("a")
    site.held(candidate)
    runs_out_ms = site.now_ms + site.settings.validity_ms
    site.advance(3000)
    second = site.held(candidate)
    assert candidate.succession == Succession("lease ran out", runs_out_ms, seen=True)
    site.advance(100)
    second.release()
    given_back_ms = site.now_ms
    site.advance(2000)
    site.held(candidate)
    assert candidate.succession == Succession("handed over", given_back_ms, seen=True)


def test_an_outage_lasts_from_what_was_seen_and_there_is_none_before_the_first_start() -> None:
    assert Succession("handed over", 100.0, seen=True).outage_ms(350.0) == 250.0
    assert Succession("lease ran out", 100.0, seen=False).outage_ms(90.0) == 0.0
    assert Succession("first start", 100.0, seen=False).outage_ms(350.0) is None
