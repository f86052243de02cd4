"""The lease and epoch records, and the nodes of tenures, where they are stored: reading them, and what changes them.

Invariant: every change of the epoch record travels in one multi with a compare-and-set of the lease record, so that
only the holder of the lease can move the ceiling, and a new epoch starts at exactly the moment the lease changes hands.
Both change only at a level that the process was admitted to (``lease.gate``), but for a lease that is given back.

Versions alone do not tell one write from another: they are counted anew where a record was removed, or the coordinator
lost its data or came back from an older copy, and a process that was stalled may yet send what it had made up its mind
to send. So each tenure has a node named by its nonce, which the takeover makes and the next one removes, in the same
multi as the lease: what is written in a tenure is written only while its node stands, and a takeover only while the
nodes stand that were read with the lease. The idea is that of fencing tokens (Kleppmann, 2016), with the token a path.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lease.coordinator import Check, CompareAndSet, Coordinator, Create, Delete, Operation, SetData, create_root
from lease.floor import FloorKeeper
from lease.gate import Gate
from lease.paths import ZnodePaths
from lease.records import EpochRecord, LeaseRecord
from lease.rules import LeaseSettings

TENURES_ENDED_MAX = 100
"""How many tenures a takeover ends: one, but for those whose nodes an older release left behind."""


@dataclass(frozen=True, slots=True)
class StoredLease:
    """A lease record and the version under which it is stored."""

    record: LeaseRecord
    version: int


@dataclass(frozen=True, slots=True)
class StoredEpoch:
    """An epoch record and the version under which it is stored."""

    record: EpochRecord
    version: int


@dataclass(frozen=True, slots=True)
class Registry:
    """Access to one installation's two records, and the clocks by which they are judged.

    ``monotonic_ms`` decides validity; ``now`` gives the wall clock as a timestamp, ``ahead`` is a span of timestamps.
    """

    coordinator: Coordinator
    paths: ZnodePaths
    settings: LeaseSettings
    monotonic_ms: Callable[[], float]
    now: Callable[[], int]
    ahead: int
    gate: Gate
    floor: FloorKeeper

    def read_lease(self, changed: threading.Event | None = None) -> StoredLease | None:
        """The lease record, not older than this call. Raises ``CoordinatorUnavailable``, ``RecordInvalid``."""
        timeout_ms = self.settings.request_timeout_ms
        node = self.coordinator.read(self.paths.lease, timeout_ms=timeout_ms, synced=True, changed=changed)
        return None if node is None else StoredLease(LeaseRecord.parse(node.data), node.version)

    def read_epoch(self) -> StoredEpoch | None:
        """The epoch record, not older than this call. Raises ``CoordinatorUnavailable``, ``RecordInvalid``."""
        node = self.coordinator.read(self.paths.epoch, timeout_ms=self.settings.request_timeout_ms, synced=True)
        return None if node is None else StoredEpoch(EpochRecord.parse(node.data), node.version)

    def begun_tenures(self) -> list[str]:
        """The nonces of the tenures that a takeover is to end. Read them before the lease that it replaces.

        Raises ``CoordinatorUnavailable``, ``CoordinatorRefused``.
        """
        timeout_ms = self.settings.request_timeout_ms
        begun = self.coordinator.children(self.paths.tenures, timeout_ms=timeout_ms)[:TENURES_ENDED_MAX]
        if not begun:
            create_root(self.coordinator, self.paths, timeout_ms)
        return begun

    def begin_tenure(self, nonce: str, begun: Sequence[str]) -> list[Operation]:
        """What has to be in the multi of a takeover, which ends the tenures that had ``begun`` if each still stands."""
        return [*(Delete(self.paths.tenure(other)) for other in begun), Create(self.paths.tenure(nonce), b"")]

    def in_tenure(self, nonce: str) -> Check:
        """What has to be in a multi of a tenure."""
        return Check(self.paths.tenure(nonce), 0)

    def goes_on(self, nonce: str) -> bool:
        """Whether no other tenure has begun since. Raises ``CoordinatorUnavailable``."""
        path, timeout_ms = self.paths.tenure(nonce), self.settings.request_timeout_ms
        return self.coordinator.read(path, timeout_ms=timeout_ms, synced=True) is not None

    def commit(self, operations: Sequence[Operation]) -> CompareAndSet:
        """One multi, sent once."""
        return self.coordinator.commit(operations, timeout_ms=self.settings.request_timeout_ms)

    def put_lease(self, record: LeaseRecord, version: int | None) -> Operation:
        """Replace the lease record at ``version``, or make it (``None``)."""
        return _put(self.paths.lease, record.encode(), version)

    def put_epoch(self, record: EpochRecord, version: int | None) -> Operation:
        """Replace the epoch record at ``version``, or make it (``None``)."""
        return _put(self.paths.epoch, record.encode(), version)


def version_after(version: int | None) -> int:
    """The version a record has after it was put at ``version`` (``None``: made)."""
    return 0 if version is None else version + 1


def _put(path: str, data: bytes, version: int | None) -> Operation:
    return Create(path, data) if version is None else SetData(path, data, version)
