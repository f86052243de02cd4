"""Where the primary oracle is, as ZooKeeper tells it."""

from __future__ import annotations

import threading

from client.deadline import Deadline
from client.settings import ClientSettings
from lease.errors import CoordinatorUnavailable
from lease.primary import PrimaryFinder
from lease.zookeeper import ZooKeeperCoordinator


class PrimaryAddress:
    """Looks the primary up. Connects when it is first asked: tasks that only read and write cells never do."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._coordinator: ZooKeeperCoordinator | None = None

    def find(self, timeout_ms: int) -> str | None:
        """The primary's ``"host:port"``, or ``None`` where there is none now. Raises ``LeaseError`` after that time."""
        deadline = Deadline(timeout_ms)
        coordinator = self._connected(deadline)
        remaining_ms = 1000 * deadline.remaining_seconds()
        record = PrimaryFinder(coordinator, self._settings.root, timeout_ms=remaining_ms).current()
        return None if record is None else record.addresses[0]

    def close(self) -> None:
        """End the session with ZooKeeper."""
        with self._lock:
            coordinator, self._coordinator = self._coordinator, None
        if coordinator is not None:
            coordinator.close()

    def _connected(self, deadline: Deadline) -> ZooKeeperCoordinator:
        """One caller connects; the others wait for it, none for longer than it may."""
        if not self._lock.acquire(timeout=deadline.remaining_seconds()):
            raise CoordinatorUnavailable(f"another call is still connecting to ZooKeeper at {self._settings.zookeeper}")
        try:
            if self._coordinator is None:
                self._coordinator = ZooKeeperCoordinator(
                    self._settings.zookeeper, connect_timeout_ms=int(1000 * deadline.remaining_seconds())
                )
            return self._coordinator
        finally:
            self._lock.release()
