"""The lease and epoch records where they are stored: reading, parsing, and the operations that change them.

Invariant: every change of the epoch record travels in one multi with a compare-and-set of the lease record, so that
only the holder of the lease can move the ceiling, and a new epoch starts at exactly the moment the lease changes hands.
Both change only at a level that the process was admitted to (``lease.gate``), but for a lease that is given back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lease.coordinator import CompareAndSet, Coordinator, Create, Operation, SetData
from lease.floor import FloorKeeper
from lease.gate import Gate
from lease.paths import ZnodePaths
from lease.records import EpochRecord, LeaseRecord
from lease.rules import LeaseSettings


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
