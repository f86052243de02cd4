"""Every order of the steps that several processes take at one coordinator, over the room's own code.

A step is one request to the coordinator. An order is a list of choices; runs are repeated from the start with other
choices, and a run that comes to where another one has been (by the nodes, and all that each process has seen) is not
followed further.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from lease import Node, Operation
from lease.coordinator import CompareAndSet
from lease.memory import MemoryCoordinator, MemoryTree
from tests.simulation.switching import Stack, leave

RUNS_MAX = 20_000


class SteppedCoordinator(MemoryCoordinator):
    """The twin, each request of it a step of the process that sends it."""

    def __init__(self, tree: MemoryTree, world: World, name: str) -> None:
        super().__init__(tree)
        self._world = world
        self._name = name

    def read(
        self, path: str, *, timeout_ms: float, synced: bool = False, changed: threading.Event | None = None
    ) -> Node | None:
        read = super().read
        node: Node | None = self._world.step(self._name, lambda: read(path, timeout_ms=timeout_ms, synced=synced))
        return node

    def children(self, path: str, *, timeout_ms: float) -> list[str]:
        children = super().children
        names: list[str] = self._world.step(self._name, lambda: children(path, timeout_ms=timeout_ms))
        return names

    def commit(self, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
        commit = super().commit
        result: CompareAndSet = self._world.step(self._name, lambda: commit(operations, timeout_ms=timeout_ms))
        return result


class World:
    """One run: the nodes, and the processes at their next steps."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self._running = False
        self._processes: dict[str, Stack] = {}
        self._seen: dict[str, int] = {}
        """Process → digest of all that it has seen so far, in order."""

    def coordinator(self, name: str) -> SteppedCoordinator:
        return SteppedCoordinator(self.tree, self, name)

    def add(self, name: str, actions: Callable[[], None]) -> None:
        self._processes[name] = Stack(actions)
        self._seen[name] = 0

    def step(self, name: str, effect: Callable[[], Any]) -> Any:
        """Wait until it is this process's turn; before the run has begun it always is."""
        if not self._running:
            return effect()
        leave()
        result = effect()
        self._seen[name] = hash((self._seen[name], repr(result)))
        return result

    def begin(self) -> None:
        """Have every process come to its first step."""
        self._running = True
        for process in self._processes.values():
            process.enter()

    def able(self) -> list[str]:
        """Who can go on."""
        return [name for name, process in self._processes.items() if not process.ended]

    def go_on(self, name: str) -> None:
        self._processes[name].enter()

    def end(self) -> None:
        """Let go of who has not come to an end."""
        for process in self._processes.values():
            process.discard()

    def standing(self) -> int:
        """All that the rest of the run can depend on."""
        nodes = {path: (entry.data, entry.version) for path, entry in self.tree._entries.items()}
        return hash((frozenset(nodes.items()), frozenset(self._seen.items()), tuple(self.able())))


def explore(make: Callable[[], World], check: Callable[[World], None]) -> tuple[int, int]:
    """Try every order; ``check`` is called after each step. How many runs and states that were."""
    waiting: list[list[int]] = [[]]
    known: set[int] = set()
    runs = 0
    while waiting:
        choices = waiting.pop()
        runs += 1
        assert runs <= RUNS_MAX, "the scope is too large"
        world, taken = make(), 0
        world.begin()
        while able := world.able():
            if taken == len(choices):
                standing = world.standing()
                if standing in known:
                    break
                known.add(standing)
                waiting += [[*choices, other] for other in range(1, len(able))]
                choices = [*choices, 0]
            world.go_on(able[choices[taken]])
            taken += 1
            check(world)
        world.end()
    return runs, len(known)
