"""A process that was stalled goes on after the coordinator has lost its data, and versions are counted anew.

Every order of its requests, of the loss, and of the takeovers that bring the lease, and the epoch with it, back to the
version that the stalled one knows: what it sends then replaces another's lease.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from lease import Candidate, LeaseSettings, Node, Operation, Tenure, ZnodePaths
from lease.coordinator import CompareAndSet
from lease.memory import MemoryCoordinator, MemoryFloor
from tests.unit.lease.conftest import floor_raised_at_once
from tests.unit.lease.stepped import SteppedCoordinator, World, explore

PATHS = ZnodePaths("/pythia")
LEASE = LeaseSettings(lease_ms=1000)
STALLED = "stalled"
OTHERS = "others"
RENEWALS = 1


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
        if any(tenure.is_held() and tenure is candidate._tenure for tenure in self.tenures):
            return None
        outcome = candidate.attempt()
        if not isinstance(outcome, Tenure):
            return None
        self.tenures.append(outcome)
        return outcome

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


@LOSSES
@pytest.mark.parametrize("moves_ceiling", [False, True])
def test_who_renews_after_a_loss_does_not_take_what_another_holds(loss: Loss, moves_ceiling: bool) -> None:
    def make() -> World:
        world = LosingWorld()
        stalled = world.candidate(STALLED, "a")
        tenure = world.attempt(stalled)
        assert tenure is not None
        for _ in range(RENEWALS):
            world.wall_ms += moves_ceiling * LEASE.ceiling_ahead_ms
            assert tenure.renew()
        world.wall_ms += moves_ceiling * LEASE.ceiling_ahead_ms

        def run() -> None:
            tenure.renew()
            for _ in range(2):
                world.attempt(stalled)

        world.add(STALLED, run)
        world.others(loss(world), "b", "c")
        return world

    watch = Watch()
    explore(make, watch)
    assert watch.served == {"a", "b", "c"}


@LOSSES
def test_who_takes_over_after_a_loss_does_not_take_what_another_holds(loss: Loss) -> None:
    def make() -> World:
        world = LosingWorld()
        assert world.attempt(world.candidate(OTHERS, "a")) is not None
        stalled = world.candidate(STALLED, "s")
        assert world.attempt(stalled) is None
        world.pass_lease()

        def run() -> None:
            for _ in range(3):
                world.attempt(stalled)

        world.add(STALLED, run)
        world.others(loss(world), "b", "c")
        return world

    watch = Watch()
    explore(make, watch)
    assert watch.served == {"b", "c", "s"}
