"""A whole installation in one process: a store and a coordinator in memory, and a real oracle in a thread.

Both twins pass the contract tests of the real HBase and ZooKeeper. So what a program does with a manager here it does
there, conflicts and hand-overs included; what needs other processes, Spark above all, has no place here.
"""

from __future__ import annotations

from typing import Any, Final, Self

from client import ClientMetrics, ClientSettings, TransactionHooks, TransactionManager
from client.connection.primary import ZooKeeperDirectory
from lease.memory import MemoryCoordinator, MemoryTree
from store import MemoryCellStore
from testkit.limits import small_limits
from testkit.oracle import OracleThread
from tso.settings import Limits, ServeSettings

_NOWHERE: Final = "127.0.0.1:1"
"""In place of services that nobody connects to: of an address only the form is looked at."""


class InProcessInstallation:
    """An installation without services, to be used in a ``with`` statement; each has a store of its own.

    ``limits``: of its oracles; by default small ones. Raises what keeps its oracle from starting.
    """

    def __init__(self, *, limits: Limits | None = None) -> None:
        self.store = MemoryCellStore()
        self._tree = MemoryTree()
        self._limits = limits or small_limits()
        self._managers: list[TransactionManager] = []
        self._oracles: list[OracleThread] = []

    def __enter__(self) -> Self:
        self._start_oracle().await_primary()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def manager(
        self, *, hooks: TransactionHooks | None = None, metrics: ClientMetrics | None = None, **settings: Any
    ) -> TransactionManager:
        """A manager, as a process of its own would have it; closed together with the installation.

        ``settings``: fields of ``ClientSettings``, such as ``deadline_ms``. Raises ``InvalidSettings``.
        """
        chosen = ClientSettings(zookeeper=_NOWHERE, thrift=_NOWHERE, **settings)
        directory = ZooKeeperDirectory(chosen, connect=lambda timeout_ms: MemoryCoordinator(self._tree))
        manager = TransactionManager(chosen, self.store, directory, hooks=hooks, metrics=metrics, close=directory.close)
        self._managers.append(manager)
        return manager

    def hand_over(self) -> None:
        """Have another oracle take over, and end the one before. Returns once it serves.

        As at every failover a new epoch begins, and the new oracle remembers no conflict from before; transactions
        that are under way go on.
        """
        before = self._oracles[-1]
        after = self._start_oracle()
        before.stop()
        after.await_primary()

    def close(self) -> None:
        """End all of it."""
        while self._managers:
            self._managers.pop().close()
        while self._oracles:
            self._oracles.pop().stop()

    def _start_oracle(self) -> OracleThread:
        settings = ServeSettings(
            f"oracle-{len(self._oracles) + 1}", zookeeper=_NOWHERE, thrift=_NOWHERE, listen_port=0, limits=self._limits
        )
        oracle = OracleThread(settings, MemoryCoordinator(self._tree), self.store)
        self._oracles.append(oracle)
        return oracle
