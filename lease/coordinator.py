"""What this room asks of a coordination service, as one small Protocol: versioned nodes and an atomic multi.

ZooKeeper answers it through kazoo, and a twin in memory for tests. A write ends in one of three ways, ``Applied``,
``Rejected`` or ``Unknown`` (the types of the cell store), and is never repeated in here: whoever sent an ambiguous
write reads and compares. Both adapters pass ``tests/contract/test_coordinator.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lease.errors import CoordinatorRefused, CoordinatorUnavailable
from lease.paths import ZnodePaths
from store import Applied, CompareAndSet, Rejected, Unknown

__all__ = [
    "Applied", "Check", "CompareAndSet", "Coordinator", "Create", "Delete", "Node", "Operation", "Rejected", "SetData",
    "Unknown", "create_root",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """What a node held when it was read. ``version`` grows by one with every write and is 0 after its creation."""

    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace the node's data if it stands at ``version`` (``None``: at any, but it must exist)."""

    path: str
    data: bytes
    version: int | None


@dataclass(frozen=True, slots=True)
class Create:
    """Make the node, which must not exist, under a parent that does. ``ephemeral``: it goes when the session ends."""

    path: str
    data: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the node, which must exist and have no children."""

    path: str


@dataclass(frozen=True, slots=True)
class Check:
    """Have the other operations fail unless the node stands at ``version``; changes nothing."""

    path: str
    version: int


Operation = SetData | Create | Delete | Check


class Coordinator(Protocol):
    """A tree of small versioned nodes with sessions. Safe to call from several threads at once.

    Every call ends within ``timeout_ms``, waiting for a connection included. Reads raise ``CoordinatorUnavailable``
    when no answer came; any call raises ``CoordinatorRefused`` where the service refuses the request as such.
    """

    def read(
        self, path: str, *, timeout_ms: float, synced: bool = False, changed: threading.Event | None = None
    ) -> Node | None:
        """The node, or ``None`` when there is none.

        ``synced``: not older than the moment of the call, where a plain read may come from a server that lags behind.
        ``changed`` is set, once, when the node is created, written or removed after this read, or when the service can
        no longer promise to say so; it may also be set for no reason.
        """
        ...

    def children(self, path: str, *, timeout_ms: float) -> list[str]:
        """The names of the node's children, sorted; none where the node does not exist."""
        ...

    def commit(self, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
        """All operations, or none. ``Unknown``: they may have taken place, may not have, or *may yet*."""
        ...

    def session_id(self) -> int | None:
        """Which session ephemeral nodes would belong to now; ``None`` while there is none."""
        ...

    def close(self) -> None:
        """End the session: its ephemeral nodes go. Later reads raise ``CoordinatorUnavailable``."""
        ...


def create_root(coordinator: Coordinator, paths: ZnodePaths, timeout_ms: float) -> None:
    """Make the parent nodes that are missing, whoever else does so too.

    Raises ``CoordinatorUnavailable`` when that stays unknown, ``CoordinatorRefused`` for one that may not be made.
    """
    for path in paths.parents():
        try:
            result = coordinator.commit([Create(path, b"")], timeout_ms=timeout_ms)
        except CoordinatorRefused:
            # ZooKeeper looks at what the parent grants before it looks whether the node is there: an administrator may
            # have made ours in a place where nobody else may make any.
            if not _exists(coordinator, path, timeout_ms):
                raise
        else:
            if isinstance(result, Unknown) and not _exists(coordinator, path, timeout_ms):
                raise CoordinatorUnavailable(f"the znode {path} could not be made: {result.reason}")


def _exists(coordinator: Coordinator, path: str, timeout_ms: float) -> bool:
    try:
        return coordinator.read(path, timeout_ms=timeout_ms, synced=True) is not None
    except CoordinatorRefused:  # one that is missing is told to everybody: it is there, and not for us to read
        return True
