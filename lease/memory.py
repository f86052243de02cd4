"""A twin of the coordinator in memory: several clients over one shared tree, with switches for what can go wrong.

For tests and the simulator. Like ZooKeeper it applies a multi wholly or not at all, counts versions, fires a watch
once, and drops ephemeral nodes with their session. ``timeout_ms`` is taken and not waited for: no call blocks.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from lease.coordinator import Applied, Check, CompareAndSet, Create, Delete, Node, Operation, Rejected, Unknown
from lease.errors import CoordinatorUnavailable
from lease.floor import FloorRecord
from store.forking import leave_at_fork


class WriteFault(enum.Enum):
    """How a write ends ambiguously: it took place, it never will, or it takes place on ``deliver_late``."""

    APPLIED = "applied, but the answer was lost"
    LOST = "the request was lost"
    LATE = "the request is on its way"


@dataclass(slots=True)
class _Entry:
    data: bytes
    version: int
    session_id: int | None
    watches: set[threading.Event] = field(default_factory=set)


class MemoryTree:
    """The nodes that several ``MemoryCoordinator`` share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {"/": _Entry(b"", 0, None)}
        self._absent_watches: dict[str, set[threading.Event]] = {}
        self._sessions = 0
        leave_at_fork(self)

    def leave_to_parent(self) -> None:
        """See ``Leaving``. The child has a copy of the tree."""
        self._lock = threading.Lock()

    def lose_everything(self) -> None:
        """Come back empty, as a service does that lost its data. Watches fire: the connections were lost as well."""
        with self._lock:
            for entry in self._entries.values():
                _fire(entry.watches)
            self._entries = {"/": _Entry(b"", 0, None)}

    def remove(self, path: str) -> None:
        """Remove a node and all below it, as an operator does by hand."""
        with self._lock:
            for other in [other for other in self._entries if other == path or other.startswith(f"{path}/")]:
                _fire(self._entries.pop(other).watches)

    def open_session(self) -> int:
        """A session id never given before."""
        with self._lock:
            self._sessions += 1
            return self._sessions

    def end_session(self, session_id: int) -> None:
        """Remove the session's ephemeral nodes."""
        with self._lock:
            for path in [path for path, entry in self._entries.items() if entry.session_id == session_id]:
                _fire(self._entries.pop(path).watches)

    def read(self, path: str, changed: threading.Event | None) -> Node | None:
        """The node, watched by ``changed``."""
        with self._lock:
            entry = self._entries.get(path)
            if changed is not None:
                watches = self._absent_watches.setdefault(path, set()) if entry is None else entry.watches
                watches.add(changed)
            return None if entry is None else Node(entry.data, entry.version)

    def children(self, path: str) -> list[str]:
        """The names right below ``path``, sorted."""
        with self._lock:
            return sorted(
                other.rpartition("/")[2] for other in self._entries if _parent(other) == path and other != "/"
            )

    def commit(self, operations: Sequence[Operation], session_id: int) -> CompareAndSet:
        """All operations, or none."""
        with self._lock:
            staged: dict[str, _Entry | None] = {}
            for operation in operations:
                if not self._stage(operation, staged, session_id):
                    return Rejected()
            self._store(staged)
            return Applied()

    def _stage(self, operation: Operation, staged: dict[str, _Entry | None], session_id: int) -> bool:
        """Have ``staged`` as the operation leaves it (``None``: removed); false where the operation does not hold."""
        path = operation.path
        entry = self._staged(staged, path)
        if isinstance(operation, Create):
            parent = self._staged(staged, _parent(path))
            staged[path] = _Entry(operation.data, 0, session_id if operation.ephemeral else None)
            return entry is None and parent is not None and parent.session_id is None
        if entry is None:
            return False
        if isinstance(operation, Check):
            return entry.version == operation.version
        if isinstance(operation, Delete):
            staged[path] = None
            below = {other for other in (*self._entries, *staged) if _parent(other) == path}
            return all(self._staged(staged, other) is None for other in below)
        staged[path] = _Entry(operation.data, entry.version + 1, entry.session_id)
        return operation.version in (None, entry.version)

    def _staged(self, staged: dict[str, _Entry | None], path: str) -> _Entry | None:
        return staged[path] if path in staged else self._entries.get(path)

    def _store(self, staged: dict[str, _Entry | None]) -> None:
        for path, entry in staged.items():
            old = self._entries.pop(path, None)
            if entry is not None:
                self._entries[path] = entry
            _fire(self._absent_watches.pop(path, set()) if old is None else old.watches)


class MemoryFloor:
    """A ``Floor`` without data. ``unreachable``: while true, every call raises. ``puts``: what was put, in order."""

    def __init__(self) -> None:
        self.unreachable = False
        self.puts: list[FloorRecord] = []
        self.data = False

    def read(self) -> FloorRecord | None:
        """See ``Floor``."""
        self._require_answer()
        return max(self.puts, default=None)

    def put(self, record: FloorRecord) -> None:
        """See ``Floor``."""
        self._require_answer()
        self.puts.append(record)

    def has_data(self) -> bool:
        """See ``Floor``. As ``data`` says."""
        self._require_answer()
        return self.data

    def _require_answer(self) -> None:
        if self.unreachable:
            raise CoordinatorUnavailable("the floor does not answer")


class MemoryCoordinator:
    """One client of a ``MemoryTree``, with its own session.

    ``unreachable``: while true, reads raise and writes are lost. ``write_faults``: how the next writes end, in order.
    """

    def __init__(self, tree: MemoryTree) -> None:
        self._tree = tree
        self._session_id: int | None = tree.open_session()
        self._late: list[tuple[tuple[Operation, ...], int]] = []
        self.unreachable = False
        self.write_faults: list[WriteFault] = []

    def read(
        self, path: str, *, timeout_ms: float, synced: bool = False, changed: threading.Event | None = None
    ) -> Node | None:
        """See ``Coordinator.read``."""
        self._require_answer()
        return self._tree.read(path, changed)

    def children(self, path: str, *, timeout_ms: float) -> list[str]:
        """See ``Coordinator.children``."""
        self._require_answer()
        return self._tree.children(path)

    def commit(self, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
        """See ``Coordinator.commit``."""
        if self.unreachable or self._session_id is None:
            return Unknown("the coordinator does not answer")
        if not self.write_faults:
            return self._tree.commit(operations, self._session_id)
        fault = self.write_faults.pop(0)
        if fault is WriteFault.APPLIED:
            self._tree.commit(operations, self._session_id)
        elif fault is WriteFault.LATE:
            self._late.append((tuple(operations), self._session_id))
        return Unknown(fault.value)

    def session_id(self) -> int | None:
        """See ``Coordinator.session_id``."""
        return None if self.unreachable else self._session_id

    def close(self) -> None:
        """See ``Coordinator.close``."""
        if self._session_id is not None:
            self._tree.end_session(self._session_id)
            self._session_id = None

    def expire_session(self) -> None:
        """End the session as the service does with a silent client, and open another."""
        self.close()
        self._session_id = self._tree.open_session()

    def lose_late(self) -> None:
        """Let no write arrive any more that is still on its way."""
        self._late.clear()

    def deliver_late(self) -> None:
        """Let every write arrive that is still on its way."""
        while self._late:
            self._tree.commit(*self._late.pop(0))

    def _require_answer(self) -> None:
        if self.unreachable or self._session_id is None:
            raise CoordinatorUnavailable("the coordinator does not answer")


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _fire(watches: set[threading.Event]) -> None:
    for watch in watches:
        watch.set()
