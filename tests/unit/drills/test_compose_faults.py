"""What each fault of a container tells Docker to do, on an engine that only writes down."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import cast

import pytest

from devcluster.guard import Guard
from drills.campaign import mixed
from drills.compose import containers
from drills.compose.containers import NETWORKS, Container, Containers
from drills.compose.engine import CommandFailed, Project
from drills.compose.faults import FAULTS, ContainerFault, upgrade_order
from drills.site import Announced


class MadeUpProject:
    def __init__(self, events: list[str]) -> None:
        self.events = events

    def compose(self, *arguments: str) -> str:
        self.events.append(" ".join(arguments))
        return ""

    def container(self, service: str) -> str:
        return f"{service}-id"

    def network(self, name: str) -> str:
        return f"p_{name}"


class MadeUpFollower:
    def __init__(self, name: str, command: list[str], *others: object, **more: object) -> None:
        assert command[:3] == ["docker", "logs", "--follow"]

    def has_said_all(self) -> bool:
        return True

    def kill(self) -> None:
        return


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    events: list[str] = []
    monkeypatch.setattr(containers, "docker", lambda *arguments: events.append(" ".join(arguments)))
    monkeypatch.setattr(containers, "Child", MadeUpFollower)
    # Whoever is told to listen hears an oracle at once, in an epoch of its own.
    epochs = iter(range(1, 100))
    begin = Announced.begin

    def begin_at_once(announced: Announced) -> object:
        take = begin(announced)
        take("serving on 0.0.0.0:5480 as standby", 0)
        take(f"primary, epoch {next(epochs)}", 0)
        return take

    monkeypatch.setattr(Announced, "begin", begin_at_once)
    return events


def struck(name: str, events: list[str]) -> ContainerFault:
    project = cast(Project, MadeUpProject(events))
    seats = [Container(f"tso-{number}", project, Path(), cast(Guard, None)) for number in (1, 2, 3)]
    for seat in (seats[0], seats[2], seats[1]):
        seat.take_up()
    fault = FAULTS[name](Containers(seats), Random(1))
    assert fault.victim.name == "tso-2"  # of the newest epoch
    fault.inflict()
    events.append("—")
    fault.heal()
    return fault


@pytest.mark.parametrize(
    ("name", "done"),
    [
        ("kill", ["kill tso-2-id", "—", "start tso-2-id"]),
        ("pause", ["pause tso-2-id", "—", "unpause tso-2-id"]),
        ("restart", ["restart tso-2-id", "—"]),
        (
            "cut-zookeeper",
            [
                "network disconnect p_coordination tso-2-id",
                "—",
                "network connect --alias tso-2 p_coordination tso-2-id",
            ],
        ),
        (
            "cut-hbase",
            ["network disconnect p_storage tso-2-id", "—", "network connect --alias tso-2 p_storage tso-2-id"],
        ),
        (
            "rolling-upgrade",
            [
                *(
                    command
                    for name in ("tso-1", "tso-3", "tso-2")
                    for command in (f"rm --stop --force {name}", f"up --detach --no-deps --no-build {name}")
                ),
                "—",
            ],
        ),
    ],
)
def test_a_fault_does_what_it_says(name: str, done: list[str], events: list[str]) -> None:
    struck(name, events)
    assert events == done


def test_cut_from_all_takes_every_network_and_brings_each_back(events: list[str]) -> None:
    struck("cut-all", events)
    cut, mended = events[: len(NETWORKS)], events[len(NETWORKS) + 1 :]
    assert cut == [f"network disconnect p_{network} tso-2-id" for network in NETWORKS]
    assert mended == [f"network connect --alias tso-2 p_{network} tso-2-id" for network in NETWORKS]


def test_a_busy_container_is_paused_at_the_next_try(events: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [CommandFailed("unable to freeze"), CommandFailed("unable to freeze")]

    def docker(*arguments: str) -> None:
        if arguments[0] == "pause" and answers:
            raise answers.pop()
        events.append(" ".join(arguments))

    monkeypatch.setattr(containers, "docker", docker)
    struck("pause", events)
    assert events == ["pause tso-2-id", "—", "unpause tso-2-id"]
    answers += [CommandFailed("no such container")] * containers.PAUSE_TRIES_MAX
    with pytest.raises(CommandFailed, match="no such container"):
        struck("pause", events)


def test_an_upgrade_leaves_the_primary_for_the_end() -> None:
    seats = tuple(Container(name, cast(Project, None), Path(), cast(Guard, None)) for name in "abc")
    assert [seat.name for seat in upgrade_order(seats, seats[0])] == ["b", "c", "a"]


def test_a_container_that_was_started_again_is_not_what_it_was(events: list[str]) -> None:
    fault = struck("kill", events)
    assert [tenure.epoch for tenure in fault.victim.tenures] == [3, 4]
    assert fault.victim.epoch == 4


def test_every_fault_has_a_name_and_a_sentence_and_comes_twice_in_twenty() -> None:
    assert len({fault.sentence for fault in FAULTS.values()}) == len(FAULTS)
    assert all(fault.name == name for name, fault in FAULTS.items())
    plan = [fault.name for fault in mixed(list(FAULTS.values()), 20, Random(3))]
    assert all(plan.count(name) >= 2 for name in FAULTS)
