"""One installation over the twin, with clocks that stand still unless told otherwise."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from unittest import mock

import pytest

from lease import (
    Candidate,
    EpochRecord,
    LeaseRecord,
    LeaseSettings,
    Node,
    Operation,
    StandBy,
    Tenure,
    ZnodePaths,
    floor,
)
from lease.coordinator import CompareAndSet
from lease.memory import MemoryCoordinator, MemoryFloor, MemoryTree

COUNTER_BITS = 18
DEFAULTS = LeaseSettings(lease_ms=1000)
ROOT = "/team/pythia"

Hook = Callable[[Sequence[str]], None]


class InlineThread(threading.Thread):
    """Does all at its start."""

    def start(self) -> None:
        self.run()


@contextlib.contextmanager
def floor_raised_at_once() -> Iterator[None]:
    """The floor is raised within the renewal, so that the same steps have the same end."""
    with mock.patch.object(floor, "threading", SimpleNamespace(Thread=InlineThread, Lock=threading.Lock)):
        yield


class Client(MemoryCoordinator):
    """The twin with hooks right before a request for some paths takes place, and before a write's answer comes back."""

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.before_read: Hook = lambda paths: None
        self.before_write: Hook = lambda paths: None
        self.after_write: Callable[[], None] = lambda: None

    def read(
        self, path: str, *, timeout_ms: float, synced: bool = False, changed: threading.Event | None = None
    ) -> Node | None:
        self.before_read([path])
        return super().read(path, timeout_ms=timeout_ms, synced=synced, changed=changed)

    def commit(self, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
        self.before_write([operation.path for operation in operations])
        result = super().commit(operations, timeout_ms=timeout_ms)
        self.after_write()
        return result


class Installation:
    """One tree, one monotonic clock for all, and a wall clock that may say anything."""

    def __init__(self) -> None:
        self.settings = DEFAULTS
        self.root = ROOT
        self.paths = ZnodePaths(ROOT)
        self.tree = MemoryTree()
        self.floor = MemoryFloor()
        self.by_hand = MemoryCoordinator(self.tree)
        self.now_ms = 5000.0
        self.wall_ms = 1_700_000_000_000
        self.nonces = itertools.count()

    def candidate(self, holder: str, settings: LeaseSettings = DEFAULTS) -> tuple[Candidate, Client]:
        client = Client(self.tree)
        return Candidate(
            client,
            settings,
            holder,
            [f"{holder}:4000"],
            monotonic_ms=lambda: self.now_ms,
            wall_ms=lambda: self.wall_ms,
            timestamp_of_ms=lambda milliseconds: milliseconds << COUNTER_BITS,
            new_nonce=lambda: f"nonce-{next(self.nonces)}",
            root=ROOT,
            floor=self.floor,
        ), client

    def advance(self, milliseconds: float) -> None:
        self.now_ms += milliseconds
        self.wall_ms += int(milliseconds)

    def node(self, path: str) -> Node:
        node = self.by_hand.read(path, timeout_ms=1000)
        assert node is not None
        return node

    def lease(self) -> LeaseRecord:
        return LeaseRecord.parse(self.node(self.paths.lease).data)

    def epoch(self) -> EpochRecord:
        return EpochRecord.parse(self.node(self.paths.epoch).data)

    def serve_once(self) -> None:
        """There was a primary, and it released."""
        self.held(self.candidate("old")[0]).release()

    def held(self, candidate: Candidate) -> Tenure:
        outcome = candidate.attempt()
        assert isinstance(outcome, Tenure)
        assert outcome.is_held()
        return outcome

    def waiting(self, candidate: Candidate) -> StandBy:
        outcome = candidate.attempt()
        assert isinstance(outcome, StandBy)
        return outcome


@pytest.fixture
def site() -> Installation:
    return Installation()
