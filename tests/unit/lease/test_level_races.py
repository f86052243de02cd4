"""The level is raised while an older process joins, takes over, renews, or loses its session: every order of steps."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import pytest

from lease import Candidate, LeaseRecord, LeaseSettings, LevelRecord, LevelRefused, Member, Tenure, ZnodePaths
from lease.coordinator import Coordinator
from lease.memory import MemoryFloor
from lease.raising import attendance, complete, require_level
from tests.unit.lease.stepped import World, explore
from versions import LevelRange

PATHS = ZnodePaths("/pythia")
OLD, NEW = LevelRange(1, 1), LevelRange(1, 2)
TRIES = 2


def candidate(coordinator: Coordinator, name: str, levels: LevelRange) -> Candidate:
    numbers = itertools.count()
    return Candidate(
        coordinator,
        LeaseSettings(lease_ms=1000),
        name,
        [f"{name}:1"],
        monotonic_ms=lambda: 5000.0,  # no lease ends by itself here
        wall_ms=lambda: 1_700_000_000_000,
        timestamp_of_ms=lambda milliseconds: milliseconds << 18,
        new_nonce=lambda: f"{name}-{next(numbers)}",
        root=PATHS.root,
        floor=MemoryFloor(),
        levels=levels,
        first_level=lambda: 1,
    )


def raising(coordinator: Coordinator) -> Callable[[], None]:
    """What `pythia upgrade finish` does at the coordinator, a few times over."""

    def run() -> None:
        for _ in range(TRIES):
            seen = attendance(coordinator, PATHS.root)
            if not seen.cannot(2) and (
                seen.level.record.required == 2 or require_level(coordinator, PATHS.root, seen, 2)
            ):
                break
        for _ in range(TRIES):
            seen = attendance(coordinator, PATHS.root)
            if seen.level.record.required == 2 and not seen.waits_for():
                complete(coordinator, PATHS.root, seen, 2)

    return run


# The same few records are looked at a hundred thousand times.
level_of = lru_cache(LevelRecord.parse)
lease_of = lru_cache(LeaseRecord.parse)
member_of = lru_cache(Member.parse)


class Nodes(NamedTuple):
    level: LevelRecord
    lease: LeaseRecord | None
    lease_version: int
    members: list[Member]


def nodes(world: World) -> Nodes:
    level, lease = world.tree.read(PATHS.level, None), world.tree.read(PATHS.lease, None)
    names = world.tree.children(PATHS.members)
    found = [world.tree.read(f"{PATHS.members}/{name}", None) for name in names]
    assert level is not None
    return Nodes(
        level_of(level.data),
        None if lease is None else lease_of(lease.data),
        -1 if lease is None else lease.version,
        [member_of(node.data) for node in found if node is not None],
    )


class Watch:
    """The invariants, looked at after each step, and what came of the runs."""

    def __init__(self) -> None:
        self.ends: set[tuple[int, str]] = set()
        self.world: World | None = None
        self.lease_when_required = -1

    def __call__(self, world: World) -> None:
        now = nodes(world)
        if world is not self.world:
            self.world, self.lease_when_required = world, -2
        if now.level.required == 2:
            if self.lease_when_required == -2:
                self.lease_when_required = now.lease_version
            assert all(2 in member.levels for member in now.members), "an older process is a member"
            if now.lease is not None and now.lease_version > self.lease_when_required and not now.lease.released:
                assert now.lease.level == 2, "the lease is written by who does not know what is required"
                assert now.lease.holder == "new", "an older process holds the lease"
        if now.level.level == 2:
            done = now.lease is None or now.lease.released or now.lease.level == 2
            assert done, "the new level may be written while an older process serves"
        if not world.able():
            self.ends.add((now.level.level, "none" if now.lease is None else now.lease.holder))


def new_world() -> World:
    """An installation at level 1, with a newer process as a standby."""
    world = World()
    candidate(world.coordinator("new"), "new", NEW).join("standby")
    return world


def joins_and_tries(world: World, *, expiring: bool) -> None:
    coordinator = world.coordinator("old")
    old = candidate(coordinator, "old", OLD)

    def run() -> None:
        with contextlib.suppress(LevelRefused):
            old.join("standby")
            old.attempt()

    world.add("old", run)
    if expiring:
        world.add("expiry", lambda: world.step("expiry", coordinator.expire_session))


@pytest.mark.parametrize("expiring", [False, True])
def test_of_a_join_and_a_raise_one_is_refused(expiring: bool) -> None:
    watch = Watch()

    def make() -> World:
        world = new_world()
        joins_and_tries(world, expiring=expiring)
        world.add("raising", raising(world.coordinator("raising")))
        return world

    runs, states = explore(make, watch)
    assert states > 100, (runs, states)
    assert {(2, "none"), (1, "old")} <= watch.ends, "both ends have to be seen"


def test_an_older_primary_that_is_no_member_loses_the_lease_before_the_level_is_complete() -> None:
    watch = Watch()

    def make() -> World:
        world = new_world()
        coordinator = world.coordinator("old")
        tenure = candidate(coordinator, "old", OLD).attempt()
        assert isinstance(tenure, Tenure)

        def renew() -> None:
            for _ in range(2):
                if not tenure.renew():
                    break
            tenure.release()

        world.add("old", renew)
        world.add("raising", raising(world.coordinator("raising")))
        return world

    explore(make, watch)
    assert {(1, "old"), (2, "old")} <= watch.ends, "released in time, or not"


def test_a_newer_primary_goes_on_and_says_the_new_level() -> None:
    watch = Watch()
    lost: list[bool] = []

    def make() -> World:
        world = World()
        coordinator = world.coordinator("new")
        new = candidate(coordinator, "new", NEW)
        new.join("standby")
        tenure = new.attempt()
        assert isinstance(tenure, Tenure)

        def renew() -> None:
            lost.extend(not tenure.renew() for _ in range(2))

        world.add("new", renew)
        world.add("raising", raising(world.coordinator("raising")))
        return world

    explore(make, watch)
    assert not any(lost), "its lease was lost by the raise"
    assert {level for level, _ in watch.ends} == {1, 2}


def test_two_raises_and_a_newer_process_that_joins_come_to_one_level() -> None:
    watch = Watch()

    def make() -> World:
        world = new_world()
        third = candidate(world.coordinator("third"), "third", NEW)
        world.add("third", lambda: third.join("standby"))
        world.add("raising", raising(world.coordinator("raising")))
        return world

    explore(make, watch)
    assert {level for level, _ in watch.ends} <= {1, 2}
    assert (2, "none") in watch.ends
