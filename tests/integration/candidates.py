"""Candidates for the lease of a real ZooKeeper, by the machine's own clocks."""

from __future__ import annotations

import uuid

from lease import Candidate, LeaseSettings, monotonic_ms, wall_ms
from lease.floor import Floor
from lease.zookeeper import ZooKeeperCoordinator


def real_candidate(
    holder: str,
    coordinator: ZooKeeperCoordinator,
    settings: LeaseSettings,
    root: str,
    floor: Floor,
    *,
    ahead_ms: int = 0,
) -> Candidate:
    """``ahead_ms``: by how much its clock is fast."""
    return Candidate(
        coordinator,
        settings,
        holder,
        ["127.0.0.1:4000"],
        monotonic_ms=monotonic_ms,
        wall_ms=lambda: wall_ms() + ahead_ms,
        timestamp_of_ms=lambda milliseconds: milliseconds << 18,
        new_nonce=lambda: uuid.uuid4().hex,
        root=root,
        floor=floor,
    )
