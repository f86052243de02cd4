"""One installation in this process, whose clocks are moved by hand, and whose processes die at calls that are chosen.

What takes time in a real one (the life of a transaction, the wait of a vacuum, the age of what is remembered of a
table) passes at once here: clocks are set forward. Nothing else is stood in for.
"""

from __future__ import annotations

import gc
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import happybase
import pytest

from client import Transaction, TransactionManager
from client.connection.dispatch import COMMIT_CELLS_MAX
from client.snapshots.resolver import Resolver, Site
from commit_table.timestamps import milliseconds_of
from configuration.rest_limits import RestLimits
from lease import clocks
from rest.whereabouts import AlwaysHere
from store import MemoryCellStore, StoreUnavailable
from store.faults import Fault
from store.hbase import HBaseCellStore
from testkit import OracleThread, small_limits
from tests.installation_life.by_rest import RestTransaction
from tests.installation_life.disturbed_store import DisturbedStore
from tests.unit.client.conftest import SETTINGS, Installation
from tests.unit.rest.conftest import RunningRest
from tso.decisions.oracle import Moment

LIFE_MS = 3_600_000
"""Of a transaction: longer than any run takes, and over when the clock is set so."""
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"shadow_cells": "in_background", "bulk_shadow_cells": "deferred"},
    {"heal": False, "bulk_shadow_cells": "none"},
)
"""The settings of the managers."""
SHADOWS_FAIL_ONE_IN = 6
"""Of so many times that shadow cells are written they are not, or only some, once."""
MILLISECOND_SECONDS = 0.0015
"""After so long it is another millisecond: a vacuum goes up to one that is over."""
FEW_CELLS, MANY_CELLS = 64, 50_000
"""That oracles remember: with few they often have to ask the data."""
LARGE_ABOVE_CELLS = 3
"""In half of all lives a commit of more goes to the oracle in parts, as one of very many does in the others."""


class Surroundings:
    """Managers, of which any may be used, and one primary oracle; over HBase where a gateway is given."""

    def __init__(self, draw: random.Random, patch: pytest.MonkeyPatch, thrift: str | None = None) -> None:
        self.draw = draw
        self._unique = uuid.uuid4().hex[:8]
        self._thrift = thrift
        self.store = DisturbedStore(MemoryCellStore(wall_ms=lambda: 1) if thrift is None else HBaseCellStore(thrift))
        self._settings = replace(SETTINGS, root=f"/life-{self._unique}")
        for place in ("client", "rest"):
            patch.setattr(f"tests.unit.{place}.conftest.SETTINGS", self._settings)
        self._directory = TemporaryDirectory()
        self.directory = Path(self._directory.name)
        """For files."""
        self._installation = Installation(store=self.store)  # type: ignore[arg-type]
        self.busy: TransactionManager | None = None
        """Who does something that others have something happen in the middle of."""
        self.is_amid = False
        self._ahead_ms = 0.0
        self._wall_ahead_ms = 0
        self._limits = small_limits(
            transaction_life_ms=LIFE_MS, conflict_map_entries_max=draw.choice([FEW_CELLS, MANY_CELLS])
        )
        patch.setattr("client.catalog.stored_entries.REMADE_AFTER_SECONDS_MIN", 0.0)
        patch.setattr("client.manager.await_last_looks", lambda: None)
        patch.setattr("client.catalog.age.monotonic_ms", lambda: clocks.monotonic_ms() + self._ahead_ms)
        patch.setattr("tso.process.Moment", self._moment)
        patch.setattr("tso.process.wall_ms", lambda: clocks.wall_ms() + self._wall_ahead_ms)
        patch.setattr("client.connection.oracle.COMMIT_CELLS_MAX", draw.choice([LARGE_ABOVE_CELLS, COMMIT_CELLS_MAX]))
        patch.setattr("client.connection.async_oracle.PART_CELLS_MAX", LARGE_ABOVE_CELLS - 1)
        patch.setattr(Resolver, "write_shadows", self._writes_shadows(Resolver.write_shadows))
        self.managers = [self._manager(way) for way in WAYS]
        self._oracles: list[OracleThread] = []
        self.rest: RunningRest | None = None
        """In half of all lives; the manager by which it does its work takes part like the others."""

    def start(self) -> None:
        """Have a primary oracle, and perhaps a REST server."""
        self._oracles.append(self._installation.oracle(limits=self._limits))
        self._serves()
        if self.draw.random() < 0.5:
            self.rest = self._serve_rest()
            self.managers.append(self.rest.manager)

    def table(self, name: str) -> str:
        """As no other life has it in the same HBase."""
        return f"{name}-{self._unique}" if self._thrift else name

    def compact(self, table: str) -> bool:
        """Have HBase put a table on its disk and forget what was deleted; whether there is anybody who does."""
        if self._thrift is None:
            return False
        host, _, port = self._thrift.partition(":")
        with closing(happybase.Connection(host, int(port))) as connection:
            connection.disable_table(table)  # which writes what is in memory to files: those are what is compacted
            connection.enable_table(table)
            connection.compact_table(table, major=True)
        return True

    def manager(self) -> TransactionManager:
        """Any of them; while one is in the middle of something, that one, and amid that any other."""
        return self.draw.choice([manager for manager in self.managers if self.may_use(manager)])

    def begin(self, manager: TransactionManager) -> Transaction | RestTransaction:
        """A transaction, by the way that a manager's process offers."""
        if self.rest is not None and manager is self.rest.manager:
            return RestTransaction(self.rest.client)
        return manager.transaction()

    def may_use(self, manager: TransactionManager) -> bool:
        """Whether it may do something now."""
        return self.busy is None or (manager is self.busy) is not self.is_amid

    def start_anew(self) -> TransactionManager:
        """One process ends, and another begins in its place, which remembers nothing. Returns the former."""
        place = self.managers.index(self.manager())
        gone = self.managers[place]
        if self.rest is not None and gone is self.rest.manager:
            self.rest.stop()
            self.rest = self._serve_rest()
            self.managers[place] = self.rest.manager
        else:
            gone.close()
            self.managers[place] = self._manager(WAYS[place])
        return gone

    def fail_over(self) -> None:
        """Another oracle becomes primary, which remembers no conflict and no life."""
        self._oracles.append(self._installation.oracle("next", self._limits))
        self._oracles[-2].stop()
        self._serves()

    def pass_seconds(self, seconds: float) -> None:
        """Set the clocks forward by less than the life of a transaction."""
        self._ahead_ms += 1_000 * seconds

    def pass_life(self) -> None:
        """Set the clocks forward until the oracle gives up what nobody speaks for."""
        gc.collect()  # a transaction that somebody still holds is spoken for
        for _ in range(3):
            self.beat()
            self._ahead_ms += 0.55 * LIFE_MS
            self.beat()
            time.sleep(MILLISECOND_SECONDS)
            self.managers[0].oracle.begin()

    def beat(self) -> None:
        """Have every manager speak for what is in use."""
        for manager in self.managers:
            for _ in range(2):  # of what is new the second round speaks
                manager.heartbeats.beat()

    @contextmanager
    def amid(self, calls: int, happens: Callable[[], None]) -> Iterator[None]:
        """Something happens in the middle of one of the next so many calls to the store, if there are as many."""

        def then() -> None:
            self.is_amid = self.busy is not None
            happens()
            self.is_amid = False

        self.store.happens_at(1 + self.draw.randrange(calls), then)
        try:
            yield
        finally:
            self.store.happens_at(0, then)

    @contextmanager
    def failing(self, calls: int) -> Iterator[None]:
        """One of the next so many calls to the store fails, if there are as many."""
        self.store.fails_at(1 + self.draw.randrange(calls), self.draw.choice(list(Fault)))
        try:
            yield
        finally:
            self.store.fails_at(0, Fault.LOST)

    def close(self) -> None:
        """End all of it."""
        self._directory.cleanup()
        if self.rest is not None:
            self.rest.stop()
        self._installation.close()
        for table in self.store.table_names() if self._thrift else ():
            if self._unique in table:
                self.store.drop_table(table)
        self.store.close()

    def _moment(self, wall_ms: int, monotonic_ms: float) -> Moment:
        """The time as oracles have it."""
        return Moment(wall_ms, monotonic_ms + self._ahead_ms)

    def _manager(self, way: dict[str, Any]) -> TransactionManager:
        return self._installation.manager(settings=replace(self._settings, **way))

    def _serve_rest(self) -> RunningRest:
        return RunningRest(
            self._installation, RestLimits(transaction_idle_ms_max=LIFE_MS), AlwaysHere(), self._oracles[-1].address
        )

    def _serves(self) -> None:
        primary = self._oracles[-1]
        primary.await_primary()
        self._installation.find_primary = lambda: primary.address
        epoch = self.managers[0].oracle.status().epoch
        # An epoch begins above all that was handed out before, ahead of the clock: until that has caught up all
        # timestamps are of one millisecond, and a vacuum goes by those.
        self._wall_ahead_ms = max(self._wall_ahead_ms, milliseconds_of(epoch) - clocks.wall_ms())

    def _writes_shadows(self, inner: Callable[[Resolver, Iterable[Site], int, int], None]) -> Callable[..., None]:
        """Which fails at times, with a part of it done: readers find out by themselves."""

        fails = random.Random(self.draw.random())  # also asked by threads of the managers

        def write_shadows(resolver: Resolver, sites: Iterable[Site], writer: int, outcome: int) -> None:
            sites = list(sites)
            if fails.randrange(SHADOWS_FAIL_ONE_IN) == 0:
                inner(resolver, sites[: len(sites) // 2], writer, outcome)
                raise StoreUnavailable("no shadow cells now")
            inner(resolver, sites, writer, outcome)

        return write_shadows
