"""In which order a fault, the flights and the waits come, on an installation and a load that only write down."""

from __future__ import annotations

from random import Random
from typing import cast

import pytest

from drills.campaign import Campaign
from drills.errors import DrillStalled
from drills.fault import Fault, Recovery
from drills.flights import Stage
from drills.installation import Installation
from drills.loads import Loads
from drills.oracles import Seat
from drills.site import Tenure


class MadeUpSeat:
    name, epoch = "tso-1", 7

    def await_ready(self) -> None:
        return


class MadeUpInstallation:
    def __init__(self, events: list[str]) -> None:
        self.events = events
        self.seats = (cast(Seat, MadeUpSeat()),)
        self.begun = [Tenure("tso-1", 7)]

    def tenures(self) -> list[Tenure]:
        return self.begun

    def await_primary(self, above_epoch: int, seconds_max: float) -> Seat:
        del seconds_max
        if above_epoch >= 7:
            self.events.append("takeover")
            self.begun = [*self.begun, Tenure("tso-2", 9)]
        return self.seats[0]

    def describe(self) -> str:
        return "tso-1: standby"


class MadeUpLoads:
    def __init__(self, events: list[str]) -> None:
        self.events = events
        self.stalls = False

    def open(self, fault: int) -> None:
        self.events.append("open")

    def reach(self, fault: int, stage: Stage) -> None:
        if stage.value not in self.events:
            self.events.append(stage.value)

    def land(self, fault: int) -> None:
        self.events.append("land")

    def await_commits(self, since_ns: int, seconds_max: float, explain: str) -> None:
        if self.stalls:
            raise DrillStalled(f"waited for a commit {explain}")
        self.events.append("commits")


def made_up(recovery: Recovery, events: list[str]) -> type[Fault]:
    class MadeUp(Fault):
        name, sentence = "made-up", "nothing happens at all"

        def inflict(self) -> None:
            events.append("inflict")

        def heal(self) -> None:
            events.append("heal")

    MadeUp.recovery = recovery
    return MadeUp


def campaign(events: list[str]) -> tuple[Campaign[Installation], MadeUpLoads]:
    loads = MadeUpLoads(events)
    installation = cast(Installation, MadeUpInstallation(events))
    return Campaign(installation, cast(Loads, loads), Random(1)), loads


@pytest.mark.parametrize(
    ("recovery", "between"),
    [
        (Recovery.BY_FAILOVER, ["takeover", "commits", "served", "heal", "commits"]),
        (Recovery.FOR_SOME, ["takeover", "heal", "commits", "served"]),
        (Recovery.AT_ONCE, ["commits", "served", "heal", "commits"]),
        (Recovery.AFTER_HEALING, ["heal", "commits", "served"]),
    ],
)
def test_a_fault_is_healed_when_its_recovery_says_so(recovery: Recovery, between: list[str]) -> None:
    events: list[str] = []
    told: list[tuple[str, int]] = []
    strikes, _ = campaign(events)
    (struck,) = strikes.run([made_up(recovery, events)], lambda name, done: told.append((name, done)))
    assert events == ["open", "inflict", "struck", *between, "healed", "land"]
    assert told == [("made-up", 0)]
    assert (struck.number, struck.name, struck.victim) == (1, "made-up", "tso-1")
    assert struck.failovers == ("takeover" in between)
    assert struck.window.inflicted_ns <= struck.window.settled_ns


def test_a_drill_that_does_not_go_on_says_at_which_fault_and_how_things_are() -> None:
    strikes, loads = campaign([])
    loads.stalls = True
    told = "fault 1, made-up: waited for a commit after the fault was healed\ntso-1: standby"
    with pytest.raises(DrillStalled, match=told):
        list(strikes.run([made_up(Recovery.AFTER_HEALING, [])], lambda name, done: None))
