"""What one oracle process tells an operator beyond its status: read when somebody asks, kept by nobody."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wire import DetailsReply
from wire.columns import TIMESTAMP
from wire.details import OPEN_TRANSACTIONS_MAX, UNKNOWN_MS

if TYPE_CHECKING:
    from tso.serving.server import Server


@dataclass(slots=True)
class Own:
    """What a process knows of itself that its server does not need. Written by the lease's thread, a field at a time.

    ``seen_lease_ms``: of the lease that it looks at as a standby, last seen renewed at ``lease_seen_ms``, on the
    monotonic clock.
    """

    lease_ms: int = UNKNOWN_MS
    rest_address: str = ""
    warm: bool = False
    hindrance: str = ""
    """What keeps it from becoming primary; empty: nothing that is known."""
    seen_lease_ms: int = UNKNOWN_MS
    lease_seen_ms: float = 0.0

    def saw_lease(self, lease_ms: int, seen_ms: float | None) -> None:
        """Another's lease stands as it does since ``seen_ms``; ``None``: it is not known how long it has."""
        if seen_ms is None:
            self.seen_lease_ms = UNKNOWN_MS
        else:
            self.lease_seen_ms = seen_ms
            self.seen_lease_ms = lease_ms


def details(server: Server) -> DetailsReply:
    """This process as it is now."""
    pipeline, own, now_ms = server.pipeline, server.own, 1000 * server.metering.clock_s()
    if pipeline is None or pipeline.ended:
        none = np.zeros(0, TIMESTAMP)
        lease_ms, left_ms = own.seen_lease_ms, UNKNOWN_MS
        if lease_ms != UNKNOWN_MS:
            left_ms = max(0, int(lease_ms + own.lease_seen_ms - now_ms))
        return DetailsReply(none, none, none, own.rest_address, own.warm, lease_ms, left_ms)
    oldest = pipeline.oracle.lives.oldest_beating(OPEN_TRANSACTIONS_MAX, now_ms)
    starts, snapshots, silent_ms = np.array(oldest, TIMESTAMP).reshape(len(oldest), 3).T
    remaining_ms = pipeline.lease_remaining_ms()
    elected = math.isfinite(remaining_ms)
    return DetailsReply(
        starts,
        snapshots,
        silent_ms,
        own.rest_address,
        warm=True,
        lease_ms=own.lease_ms if elected else UNKNOWN_MS,
        lease_remaining_ms=int(remaining_ms) if elected else UNKNOWN_MS,
        transaction_life_ms=int(server.limits.transaction_life_ms),
    )
