"""How clients and standbys find the primary: they read the lease, and are told when it changes.

The lease also says which level its readers have to work at: one that does not is refused here, before it asks anybody.

What it says is a hint. The lease may have lapsed since, or its holder may just be dead; the one who answers there as
primary is right, whatever was read here.
"""

from __future__ import annotations

import threading

from lease.coordinator import Coordinator
from lease.errors import LevelRefused
from lease.paths import ZnodePaths
from lease.records import LeaseRecord
from versions import LevelNotSpoken, LevelRange, spoken

READ_TIMEOUT_MS = 5000


class PrimaryFinder:
    """Reads one installation's lease. Safe to use from several threads. ``levels``: what its user works at."""

    def __init__(
        self,
        coordinator: Coordinator,
        root: str,
        *,
        timeout_ms: float = READ_TIMEOUT_MS,
        levels: LevelRange | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._paths = ZnodePaths(root)
        self._timeout_ms = timeout_ms
        self._levels = levels or spoken()

    def current(self, changed: threading.Event | None = None) -> LeaseRecord | None:
        """The lease record, or ``None`` when there is none or its holder released it.

        ``changed`` is set, once, when the lease changes after this read (a renewal is a change too), or for no reason.
        Raises ``CoordinatorUnavailable`` when no answer came within ``timeout_ms``, ``RecordInvalid`` for rubbish,
        ``LevelRefused`` where the installation is at a level that is not among ``levels``.
        """
        node = self._coordinator.read(self._paths.lease, timeout_ms=self._timeout_ms, changed=changed)
        if node is None:
            return None
        record = LeaseRecord.parse(node.data)
        try:
            self._levels.require(record.level, f"the installation {self._paths.root}")
        except LevelNotSpoken as error:
            raise LevelRefused(str(error)) from None
        return None if record.released else record
