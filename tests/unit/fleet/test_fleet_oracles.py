"""Who of several is asked to hand over, and of when that is what they told."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from access import Credentials
from fleet import (
    CannotHandOver,
    HandoverUncertain,
    NoAnswer,
    NobodyServes,
    Observed,
    Report,
    Seen,
    hand_over,
    is_one_ready,
    nobody_ready,
    observe,
    oracles,
)
from lease import Member
from lease.memory import MemoryCoordinator, MemoryTree
from wire import DetailsReply, MetricsReply, Role, StatusReply

WAIT_S = 20.0
STANDBY = ("c", Role.STANDBY, 0)


def member(holder: str) -> Member:
    return Member(holder, "standby", f"{holder}:1")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Who was asked to hand over; the answer never comes."""
    addresses: list[str] = []

    def ask(address: str, timeout_ms: float, credentials: Credentials) -> int:
        addresses.append(address)
        raise NoAnswer("it hung up")

    monkeypatch.setattr(oracles, "ask_to_hand_over", ask)
    return addresses


def observed(name: str, hindrance: str = "", **warm: bool) -> Observed:
    """A standby that tells no more of itself than whether it is warm, and what keeps it from taking over; without the
    former, one that knows no such question.
    """
    none = np.zeros(0, np.int64)
    details = DetailsReply(none, none, none, "", **warm) if warm else None
    return Observed(member(name), Report(None, None, details, hindrance), 0)  # type: ignore[arg-type]


def hand_over_among(
    monkeypatch: pytest.MonkeyPatch, *told: tuple[str, Role, int], warmth: Iterable[bool] = (True,)
) -> None:
    """``warmth``: of each standby, at one look after another."""
    seen = [Seen(member(holder), StatusReply(role, holder, f"{holder}:1", "", epoch)) for holder, role, epoch in told]
    warmths = iter(warmth)

    def observe_them(standbys: Sequence[Member], **_: object) -> list[Observed]:
        warm = next(warmths)
        return [observed(standby.holder, warm=warm) for standby in standbys]

    monkeypatch.setattr(oracles, "look", lambda *_, **__: seen)
    monkeypatch.setattr(oracles, "observe", observe_them)
    hand_over(MemoryCoordinator(MemoryTree()), "/pythia", timeout_ms=1_000)


def test_of_two_who_say_that_they_serve_the_newer_epoch_is_asked(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    both = [("a", Role.PRIMARY, 5), ("b", Role.PRIMARY, 6), STANDBY]
    for told in (both, both[::-1]):
        with pytest.raises(HandoverUncertain, match="it hung up"):
            hand_over_among(monkeypatch, *told)
    assert asked == ["b:1", "b:1"]


def test_who_finishes_already_is_not_asked_and_nor_is_who_is_deposed(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    with pytest.raises(CannotHandOver, match="b finishes what is under way already"):
        hand_over_among(monkeypatch, ("a", Role.PRIMARY, 5), ("b", Role.DRAINING, 6), STANDBY)
    with pytest.raises(NobodyServes):
        hand_over_among(monkeypatch, STANDBY)
    assert asked == []


def test_one_warm_standby_is_enough_and_one_that_does_not_tell_counts_as_warm() -> None:
    cold, silent = observed("b", warm=False), Observed(member("c"), None, 0, "it does not answer")
    assert is_one_ready([cold, silent, observed("d", warm=True)])
    assert is_one_ready([cold, observed("d")])
    assert not is_one_ready([cold, silent])
    assert not is_one_ready([observed("d", "it has no way to ZooKeeper", warm=True)])


def test_a_hand_over_waits_until_a_standby_is_ready(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    primary = ("a", Role.PRIMARY, 5)
    with pytest.raises(CannotHandOver, match=r"no standby is ready to take over from a yet \(c\): .* SIGTERM to a"):
        hand_over_among(monkeypatch, primary, STANDBY, warmth=itertools.repeat(False))
    assert asked == [], "its clients would wait for who compiles"
    refusal = str(nobody_ready(Seen(member("a"), None), [observed("b", "no HBase", warm=False), observed("c")], "Wait"))
    assert refusal.startswith("no standby is ready to take over from a yet (b: no HBase, c): wait")
    with pytest.raises(HandoverUncertain, match="it hung up"):
        hand_over_among(monkeypatch, primary, STANDBY, warmth=[False, False, True])
    assert asked == ["a:1"]


def test_a_primary_that_takes_its_lease_back_has_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who upgrades would end it now, and nobody would serve."""

    def ask(address: str, timeout_ms: float, credentials: Credentials) -> StatusReply:
        served = address == "a:1"
        return StatusReply(Role.PRIMARY if served else Role.STANDBY, address[0], address, "", 7 if served else 0)

    monkeypatch.setattr(oracles, "ask_to_hand_over", lambda address, timeout_ms, credentials: 5)
    monkeypatch.setattr(oracles, "ask_status", ask)
    with pytest.raises(HandoverUncertain, match="a gave the lease back, and took it again in epoch 7"):
        hand_over_among(monkeypatch, ("a", Role.PRIMARY, 5), STANDBY)


def test_a_report_is_of_when_it_came_and_not_of_when_the_slowest_was_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock_ms, stamped = [100], threading.Event()

    def ask(address: str, timeout_ms: float, credentials: Credentials) -> Report:
        if address == "slow:1":
            assert stamped.wait(WAIT_S)
            clock_ms[0] = 900
            raise NoAnswer("no answer in time")
        status = StatusReply(Role.PRIMARY, "fast", address, "", 5)
        return Report(status, MetricsReply(Role.PRIMARY, "fast", address, ("up",), np.ones(1)), None)

    def read_clock() -> int:
        now_ms = clock_ms[0]
        stamped.set()
        return now_ms

    monkeypatch.setattr(oracles, "ask_everything", ask)
    monkeypatch.setattr(oracles, "_monotonic_ms", read_clock)
    fast, slow = observe([member("fast"), member("slow")], timeout_ms=1_000)
    assert (fast.at_ms, slow.at_ms) == (100, 900)
    assert (slow.status, slow.problem) == (None, "no answer in time")
