"""Where the primary oracle is, and how far the past is settled, as ZooKeeper tells it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

from client.connection.deadline import Deadline
from client.connection.services import zookeeper_of
from client.settings import ClientSettings
from lease.coordinator import Coordinator
from lease.data_record import read_data
from lease.errors import CoordinatorUnavailable, LeaseError, LevelRefused
from lease.paths import ZnodePaths
from lease.primary import PrimaryFinder
from lease.records import EpochRecord, LeaseRecord
from lease.solo import SoloRegistry
from store.forking import leave_at_fork


class Settled(NamedTuple):
    """Every commit at or below ``timestamp`` is recorded; ``epoch`` was the newest one then."""

    timestamp: int
    epoch: int


class Directory(Protocol):
    """What a manager has to know of its installation. Every call ends within ``timeout_ms``; thread-safe."""

    def primary(self, timeout_ms: int) -> str | None:
        """The primary's ``"host:port"``, or ``None`` where there is none now. Raises ``LeaseError``."""
        ...

    def has_moved(self, address: str, timeout_ms: int) -> bool:
        """Whether somebody else than ``address`` is known to be primary now. Asked often: cheap where nothing changed.

        False also where that cannot be found out; true where this library is told that it cannot take part any more.
        Raises nothing.
        """
        ...

    @property
    def data(self) -> str | None:
        """The name of the data that the installation's oracles write to; ``None`` where it is not known here yet."""
        ...

    def settled(self, timeout_ms: int) -> Settled | None:
        """Up to where the past may be read without an oracle; ``None`` before the first epoch.

        Raises ``LeaseError``.
        """
        ...


class SoloDirectory:
    """The ``Directory`` of an oracle that is alone: its address is given, and its epoch is kept in the store.

    Without ``registry`` nothing is known to be settled.
    """

    def __init__(self, address: str, registry: SoloRegistry | None = None) -> None:
        self._address = address
        self._registry = registry

    def primary(self, timeout_ms: int) -> str | None:
        """See ``Directory``."""
        return self._address

    def has_moved(self, address: str, timeout_ms: int) -> bool:
        """See ``Directory``. There is nowhere to move to."""
        return False

    @property
    def data(self) -> str | None:
        """See ``Directory``. Who is alone puts no name on record."""
        return None

    def settled(self, timeout_ms: int) -> Settled | None:
        """See ``Directory``. The store has limits of its own."""
        record = None if self._registry is None else self._registry.read()
        return None if record is None else Settled(record.epoch.durable, record.epoch.epoch)


class ZooKeeperDirectory:
    """The ``Directory`` of a real installation. Connects when first asked: tasks that only read cells never do.

    Once it is closed it stays so: what is asked of it raises ``CoordinatorUnavailable``.
    """

    def __init__(self, settings: ClientSettings, connect: Callable[[int], Coordinator] | None = None) -> None:
        """``connect`` gives, within so many milliseconds, another coordinator than the ZooKeeper of ``settings``."""
        self._settings = settings
        self._connect = connect or self._connect_to_zookeeper
        self._coordinator: Coordinator | None = None
        self._last_seen: str | None = None
        self._data: str | None = None
        self._closed = False
        self._start()
        leave_at_fork(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._changed.set()

    def leave_to_parent(self) -> None:
        """See ``Leaving``. The coordinator opens a session of its own, without the watch of the parent's."""
        self._start()

    def primary(self, timeout_ms: int) -> str | None:
        """See ``Directory``."""
        deadline = Deadline(timeout_ms)
        coordinator = self._connected(deadline)
        record = self._lease(coordinator, deadline)
        if record is not None and self._data is None:
            self._data = self._recorded_data(coordinator, deadline)
        return None if record is None else record.addresses[0]

    @property
    def data(self) -> str | None:
        """See ``Directory``. Known once the primary has been looked for."""
        return self._data

    def has_moved(self, address: str, timeout_ms: int) -> bool:
        """See ``Directory``. The lease is read only when it was written since: a renewal is that, too."""
        coordinator = self._coordinator
        if coordinator is not None and self._changed.is_set():
            try:
                self._lease(coordinator, Deadline(timeout_ms))
            except LevelRefused:  # whoever looks for the primary is told why
                return True
            except LeaseError:
                pass
        return self._last_seen not in (None, address)

    def settled(self, timeout_ms: int) -> Settled | None:
        """See ``Directory``."""
        deadline = Deadline(timeout_ms)
        coordinator, path = self._connected(deadline), ZnodePaths(self._settings.root).epoch
        node = coordinator.read(path, timeout_ms=1000 * deadline.remaining_seconds(), synced=True)
        if node is None:
            return None
        record = EpochRecord.parse(node.data)
        return Settled(record.durable, record.epoch)

    def close(self) -> None:
        """End the session with ZooKeeper. Waits for a call that is connecting, for as long as that may take."""
        with self._lock:
            self._closed = True
            coordinator, self._coordinator = self._coordinator, None
        if coordinator is not None:
            coordinator.close()

    def _lease(self, coordinator: Coordinator, deadline: Deadline) -> LeaseRecord | None:
        self._changed.clear()
        try:
            remaining_ms = 1000 * deadline.remaining_seconds()
            finder = PrimaryFinder(coordinator, self._settings.root, timeout_ms=remaining_ms)
            record = finder.current(self._changed)
            self._last_seen = None if record is None else record.addresses[0]
            return record
        except BaseException:
            self._changed.set()
            raise

    def _recorded_data(self, coordinator: Coordinator, deadline: Deadline) -> str | None:
        """A record that cannot be read keeps nobody from the primary: it is asked for again with the next look."""
        try:
            return read_data(coordinator, ZnodePaths(self._settings.root), 1000 * deadline.remaining_seconds())
        except LeaseError:
            return None

    def _connect_to_zookeeper(self, timeout_ms: int) -> Coordinator:
        return zookeeper_of(self._settings, timeout_ms)

    def _connected(self, deadline: Deadline) -> Coordinator:
        """One caller connects; the others wait for it, none for longer than it may."""
        if not self._lock.acquire(timeout=deadline.remaining_seconds()):
            raise CoordinatorUnavailable(f"another call is still connecting to ZooKeeper at {self._settings.zookeeper}")
        try:
            if self._closed:
                raise CoordinatorUnavailable("this client is closed, and with it its session with ZooKeeper")
            if self._coordinator is None:
                self._coordinator = self._connect(int(1000 * deadline.remaining_seconds()))
            return self._coordinator
        finally:
            self._lock.release()
