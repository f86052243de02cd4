"""A process that was stalled goes on after the coordinator has lost its data, and versions are counted anew.

Every order of its requests, of the loss, and of the takeovers that bring the lease, and the epoch with it, back to the
version that the stalled one knows: what it sends then replaces another's lease.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from lease import Candidate, LeaseSettings, Node, Operation, StillHeld, Tenure, ZnodePaths
from lease.coordinator import CompareAndSet
from lease.memory import MemoryCoordinator, MemoryFloor
from tests.unit.lease.conftest import floor_raised_at_once
from tests.unit.lease.stepped import SteppedCoordinator, World, explore

PATHS = ZnodePaths("/pythia")
LEASE = LeaseSettings(lease_ms=1000)
STALLED = "stalled"
OTHERS = "others"


class ElectionCoordinator(SteppedCoordinator):
    """Of whose requests those are steps that the election is about: not those for the level, and for parents."""

    def read(
        self, path: str, *, timeout_ms: float, synced: bool = False, changed: threading.Event | None = None
    ) -> Node | None:
        reads = MemoryCoordinator if path == PATHS.level else SteppedCoordinator
        return reads.read(self, path, timeout_ms=timeout_ms, synced=synced)

    def commit(self, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
        commits = MemoryCoordinator if len(operations) == 1 else SteppedCoordinator
        return commits.commit(self, operations, timeout_ms=timeout_ms)


class LosingWorld(World):
    """One clock for all; who has been given a tenure; and a coordinator that loses what it knows."""

    def __init__(self) -> None:
        super().__init__()
        self.floor = MemoryFloor()
        self.now_ms = 5000.0
        self.wall_ms = 1_700_000_000_000
        self.nonces = 0
        self.tenures: list[Tenure] = []
        self.coordinators: list[ElectionCoordinator] = []

    def candidate(self, process: str, holder: str) -> Candidate:
        coordinator = ElectionCoordinator(self.tree, self, process)
        self.coordinators.append(coordinator)
        return Candidate(
            coordinator,
            LEASE,
            holder,
            [f"{holder}:1"],
            monotonic_ms=lambda: self.now_ms,
            wall_ms=lambda: self.wall_ms + int(self.now_ms),
            timestamp_of_ms=lambda milliseconds: milliseconds << 18,
            new_nonce=self.new_nonce,
            root=PATHS.root,
            floor=self.floor,
        )

    def new_nonce(self) -> str:
        self.nonces += 1
        return f"nonce-{self.nonces}"

    def attempt(self, candidate: Candidate) -> Tenure | None:
        """The tenure that it was given, if it was and holds none."""
        with contextlib.suppress(StillHeld):
            outcome = candidate.attempt()
            if isinstance(outcome, Tenure):
                self.tenures.append(outcome)
                return outcome
        return None

    def lose(self) -> None:
        """As a service does that comes back empty: it knows no session of before."""
        self.tree.lose_everything()
        for coordinator in self.coordinators:
            coordinator.expire_session()

    def others(self, lose: Callable[[], None], *holders: str) -> None:
        """The loss, and then each of ``holders`` serves for as long as it takes the next to succeed it."""
        candidates = [self.candidate(OTHERS, holder) for holder in holders]

        def run() -> None:
            self.step(OTHERS, lose)
            for candidate in candidates:
                self.attempt(candidate)
                self.step(OTHERS, self.pass_lease)
                self.attempt(candidate)

        self.add(OTHERS, run)

    def pass_lease(self) -> float:
        self.now_ms += LEASE.lease_ms
        return self.now_ms

    def standing(self) -> int:
        """The floor is not asked in steps of its own."""
        return hash((super().standing(), tuple(self.floor.puts)))


class Watch:
    """The invariants, looked at after each step. ``served``: who held the lease at any time of any run."""

    def __init__(self) -> None:
        self.served: set[str] = set()

    def __call__(self, world: World) -> None:
        assert isinstance(world, LosingWorld)
        holders = [tenure.record.holder for tenure in world.tenures if tenure.is_held()]
        assert len(holders) <= 1, f"two processes both believe that they hold the lease: {holders}"
        ranges = sorted((tenure.epoch, tenure.ceiling) for tenure in world.tenures)
        for (_, ceiling), (epoch, _) in itertools.pairwise(ranges):
            assert ceiling <= epoch, "two tenures own the same timestamps"
        self.served.update(holders)


Loss = Callable[[LosingWorld], Callable[[], None]]


def lost(world: LosingWorld) -> Callable[[], None]:
    return world.lose


def removed_by_hand(world: LosingWorld) -> Callable[[], None]:
    return lambda: world.tree.remove(PATHS.root)


@pytest.fixture(autouse=True)
def every_thread_is_a_process() -> Iterator[None]:
    with floor_raised_at_once():
        yield


LOSSES = pytest.mark.parametrize("loss", [lost, removed_by_hand])


def served(make: Callable[[], LosingWorld]) -> set[str]:
    """Who held the lease at any time, in any order."""
    watch = Watch()
    explore(make, watch)
    return watch.served


@LOSSES
@pytest.mark.parametrize("says", ["renewal", "move of the ceiling", "release"])
def test_what_a_tenure_says_after_a_loss_does_not_reach_the_lease_of_another(loss: Loss, says: str) -> None:
    def make() -> LosingWorld:
        world = LosingWorld()
        stalled = world.candidate(STALLED, "a")
        tenure = world.attempt(stalled)
        assert tenure is not None
        moves_ms = LEASE.ceiling_ahead_ms if says == "move of the ceiling" else 0
        world.wall_ms += moves_ms
        assert tenure.renew(), "to the version to which the second of the others brings it"
        world.wall_ms += moves_ms

        def run() -> None:
            if says == "release":
                tenure.release()
            else:
                tenure.renew()
            world.attempt(stalled)

        world.add(STALLED, run)
        world.others(loss(world), *others)
        return world

    others = ("b", "c", "d") if says == "release" else ("b", "c")
    assert served(make) >= {*others}


@LOSSES
def test_a_takeover_after_a_loss_does_not_reach_the_lease_of_another(loss: Loss) -> None:
    def make() -> LosingWorld:
        world = LosingWorld()
        assert world.attempt(world.candidate(OTHERS, "a")) is not None
        stalled = world.candidate(STALLED, "s")
        assert world.attempt(stalled) is None
        world.pass_lease()

        def run() -> None:
            for _ in range(2):
                world.attempt(stalled)

        world.add(STALLED, run)
        world.others(loss(world), "b", "c")
        return world

    assert served(make) == {"b", "c", "s"}
