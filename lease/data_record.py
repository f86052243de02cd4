"""The name of an installation's data as the coordinator has it on record: written once, and read by who comes to them.

What it is for, and what is done where it is not the one that the data bear, is in ``tso.persistence.identity``.
"""

from __future__ import annotations

from lease.coordinator import Coordinator, Create
from lease.paths import ZnodePaths
from lease.records import DataRecord


def read_data(coordinator: Coordinator, paths: ZnodePaths, timeout_ms: float) -> str | None:
    """The name on record. Raises ``CoordinatorUnavailable``, ``CoordinatorRefused``, ``RecordInvalid``."""
    node = coordinator.read(paths.data, timeout_ms=timeout_ms, synced=True)
    return None if node is None else DataRecord.parse(node.data).identity


def put_data(coordinator: Coordinator, paths: ZnodePaths, identity: str, timeout_ms: float) -> None:
    """Put a name on record unless there is one; read which. Raises ``CoordinatorRefused``."""
    coordinator.commit([Create(paths.data, DataRecord(identity).encode())], timeout_ms=timeout_ms)
