"""The coordinator as each simulated process sees it: the twin's tree, over a network, with sessions that expire.

Reads that are not synced may be old, as from a ZooKeeper server that lags; a session never sees the past of what it has
seen. Watches fire late, or for no reason when the connection was lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lease import LeaseRecord, Node, Operation, ZnodePaths
from lease.coordinator import CompareAndSet, Create, SetData, Unknown
from lease.errors import CoordinatorUnavailable
from lease.memory import MemoryTree
from tests.simulation.kernel import Kernel
from tests.simulation.processes import Process
from tests.simulation.services import Fate, NoAnswer, Service

CHANGE_FATES = (Fate.LOST, Fate.ANSWER_LOST, Fate.LATE)
LAG_US_MAX = 300_000
PAST_NODES_MAX = 30
SESSION_US = 1_000_000
"""How long the session of a dead client outlives it."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """The moment at which an epoch began."""

    moment: int
    epoch: int
    holder: str


@dataclass(slots=True)
class Ensemble:
    """The one coordinator of the room, and what its lease went through."""

    kernel: Kernel
    service: Service
    root: str
    tree: MemoryTree = field(default_factory=MemoryTree)
    takeovers: list[Takeover] = field(default_factory=list)
    past: defaultdict[str, list[tuple[int, Node]]] = field(default_factory=lambda: defaultdict(list))
    relays: int = 0
    first_session_id: int = 0

    def lose_everything(self) -> None:
        """Come back empty. What was asked in an older session and is still under way is not done any more."""
        self.tree.lose_everything()
        self.past.clear()
        self.first_session_id = self.tree.open_session()

    def commit(self, operations: Sequence[Operation], session_id: int) -> CompareAndSet:
        """Apply a multi, and keep what it made of the nodes."""
        if session_id < self.first_session_id:
            return Unknown("the session is over")
        answer = self.tree.commit(operations, session_id)
        for operation in operations:
            if isinstance(operation, SetData | Create):
                self._keep(operation.path)
        return answer

    def recent(self, path: str, age_us: int) -> Node | None:
        """What a server that lags by so much says; ``None``: nothing is known of the past."""
        known = [node for written_us, node in self.past[path] if written_us <= self.kernel.now_us - age_us]
        return known[-1] if known else None

    def _keep(self, path: str) -> None:
        node, past = self.tree.read(path, None), self.past[path]
        if node is None or (past and past[-1][1] == node):
            return
        past.append((self.kernel.now_us, node))
        del past[:-PAST_NODES_MAX]
        if path == ZnodePaths(self.root).lease:
            self._note_takeover(LeaseRecord.parse(node.data))

    def _note_takeover(self, record: LeaseRecord) -> None:
        if not self.takeovers or self.takeovers[-1].epoch != record.epoch:
            self.takeovers.append(Takeover(self.kernel.moment(), record.epoch, record.holder))
            self.kernel.tell_of(self.service.name, f"EPOCH {record.epoch} begins, holder {record.holder}")
        elif record.released:
            self.kernel.tell_of(self.service.name, f"epoch {record.epoch} is released by {record.holder}")


class _Relay:
    """What the tree holds as a watch: tells the process, when the network lets it. Hashed by its number."""

    def __init__(self, number: int, fire: Callable[[], None]) -> None:
        self._number = number
        self.set = fire

    def __hash__(self) -> int:
        return self._number


class SimulatedCoordinator:
    """A ``Coordinator`` of one process."""

    def __init__(self, ensemble: Ensemble, process: Process) -> None:
        self._ensemble = ensemble
        self._kernel = ensemble.kernel
        self._process = process
        self._session_id: int | None = ensemble.tree.open_session()
        self._seen: dict[str, int] = {}
        self._watches: list[Any] = []
        process.at_death.append(self._die)

    def read(self, path: str, *, timeout_ms: float, synced: bool = False, changed: Any = None) -> Node | None:
        """See ``Coordinator.read``."""
        watch = None if changed is None else self._watch(changed)
        steps = [lambda: self._look(path, synced, watch)]
        node: Node | None = self._call("read", steps, timeout_ms)[0]
        if node is not None:
            self._seen[path] = max(self._seen.get(path, 0), node.version)
        return node

    def children(self, path: str, *, timeout_ms: float) -> list[str]:
        """See ``Coordinator.children``."""
        names: list[str] = self._call("children", [lambda: self._ensemble.tree.children(path)], timeout_ms)[0]
        return names

    def commit(self, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
        """See ``Coordinator.commit``."""
        session_id = self._session_id
        if session_id is None:
            return Unknown("the session is closed")
        steps = [lambda: self._ensemble.commit(operations, session_id)]
        try:
            answer: CompareAndSet = self._request("commit", steps, timeout_ms, CHANGE_FATES)[0]
        except NoAnswer as error:
            return Unknown(str(error))
        return answer

    def session_id(self) -> int | None:
        """See ``Coordinator.session_id``."""
        return self._session_id if self._ensemble.service.links.is_open("coordinator", self._process.name) else None

    def close(self) -> None:
        """See ``Coordinator.close``."""
        if self._session_id is not None:
            self._ensemble.tree.end_session(self._session_id)
            self._session_id = None

    def expire_session(self) -> None:
        """End the session as the service does with a silent client. Whoever watched is told for safety."""
        self.close()
        self._session_id = self._ensemble.tree.open_session()
        self.lose_watches()

    def lose_watches(self) -> None:
        """The connection was lost: watches are gone with it, so everybody who watches is told."""
        watches, self._watches = self._watches, []
        for changed in watches:
            changed.set()

    def _look(self, path: str, synced: bool, watch: Any) -> Node | None:
        node = self._ensemble.tree.read(path, watch)
        if synced or self._kernel.random.random() < 0.7:
            return node
        old = self._ensemble.recent(path, self._kernel.random.randrange(LAG_US_MAX))
        return old if old is not None and old.version >= self._seen.get(path, 0) else node

    def _watch(self, changed: Any) -> _Relay:
        """A watch that arrives some time later, by the network; set in the process's own event."""
        links, process = self._ensemble.service.links, self._process
        if changed not in self._watches:
            self._watches.append(changed)

        def fire() -> None:
            delay_us = links.travel_us()
            self._kernel.after(delay_us, lambda: links.when_open("coordinator", process.name, changed.set))

        self._ensemble.relays += 1
        return _Relay(self._ensemble.relays, fire)

    def _call(self, label: str, steps: Sequence[Callable[[], Any]], timeout_ms: float) -> list[Any]:
        if self._session_id is None:
            raise CoordinatorUnavailable("the session is closed")
        try:
            return self._request(label, steps, timeout_ms, (Fate.LOST,))
        except NoAnswer as error:
            raise CoordinatorUnavailable(str(error)) from error

    def _request(
        self, label: str, steps: Sequence[Callable[[], Any]], timeout_ms: float, fates: Sequence[Fate]
    ) -> list[Any]:
        timeout_us = int(timeout_ms * 1000)
        service = self._ensemble.service
        return service.call(self._process, f"coordinator: {label}", steps, timeout_us=timeout_us, fates=fates)

    def _die(self, vanishes: bool) -> None:
        """The service ends the session of a dead client, some time later."""
        if self._session_id is not None:
            self._kernel.after(SESSION_US, partial(self._ensemble.tree.end_session, self._session_id))
