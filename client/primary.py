"""Where the primary oracle is, as ZooKeeper tells it."""

from __future__ import annotations

import threading

from client.settings import ClientSettings
from lease.primary import PrimaryFinder
from lease.zookeeper import ZooKeeperCoordinator


class PrimaryAddress:
    """Looks the primary up. Connects when it is first asked: tasks that only read and write cells never do."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._coordinator: ZooKeeperCoordinator | None = None
        self._finder: PrimaryFinder | None = None

    def find(self) -> str | None:
        """The primary's ``"host:port"``, or ``None`` where there is none now. Raises ``LeaseError``."""
        record = self._connected().current()
        return None if record is None else record.addresses[0]

    def close(self) -> None:
        """End the session with ZooKeeper."""
        with self._lock:
            coordinator, self._coordinator, self._finder = self._coordinator, None, None
        if coordinator is not None:
            coordinator.close()

    def _connected(self) -> PrimaryFinder:
        with self._lock:
            if self._finder is None:
                timeout_ms = self._settings.request_timeout_ms
                self._coordinator = ZooKeeperCoordinator(self._settings.zookeeper, connect_timeout_ms=timeout_ms)
                self._finder = PrimaryFinder(self._coordinator, self._settings.root, timeout_ms=timeout_ms)
            return self._finder
