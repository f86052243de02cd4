"""Looking after one service after the other: with the settings, connections and rights that a program would have.

Invariant: nothing is changed by looking. No table is made and no cell written; one transaction is begun, which writes
nothing, and ends at once. And one thing that fails keeps nothing else from being looked at but what needs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import Final

from client.checkup.findings import Finding, State, of_clock
from client.connection.services import store_of, zookeeper_of
from client.errors import PythiaError
from client.manager import TransactionManager
from client.settings import ClientSettings
from commit_table.identity import IdentityOfData
from commit_table.timestamps import milliseconds_of
from lease import LeaseError, PrimaryFinder, ZnodePaths
from lease.data_record import read_data
from lease.protection import Holder, judge
from lease.zookeeper import ZooKeeperCoordinator
from store import StoreError
from store.hbase.addresses import parse_addresses

CLOCK_OFF_MS_MAX: Final = 1_000.0
"""From where on a difference between clocks is a warning."""
_PROBE_ROW: Final = b"\x00pythia-check"
_PROBE_QUALIFIER: Final = b":pythia-check"


class _Wrong(Exception):
    """What is found to be wrong, and what to do."""


class CheckUp:
    """One look at all that ``settings`` name, and at ``tables`` of data."""

    def __init__(self, settings: ClientSettings, tables: Sequence[str]) -> None:
        self._settings = settings
        self._tables = tables
        self._data: str | None = None
        self._has_oracle = bool(settings.oracle)
        """Whether there is one to ask."""
        self._reached = ""
        """The first gateway that answers; empty: none."""
        self._tables_there: frozenset[str] = frozenset()

    def findings(self) -> Iterator[Finding]:
        """Each as soon as it is known. Raises ``InvalidSettings`` for what no connection can be made with."""
        if self._settings.zookeeper:
            yield from self._of_zookeeper()
        yield from self._of_gateways()
        with TransactionManager.connect(self._settings) as manager:
            if self._reached:
                yield self._of_own_tables(manager)
            yield from self._of_oracle(manager)
            yield from (self._of_table(manager, table) for table in self._tables)

    def _of_zookeeper(self) -> Iterator[Finding]:
        with ExitStack() as stack:
            opened: list[ZooKeeperCoordinator] = []

            def connect() -> str:
                opened.append(stack.enter_context(zookeeper_of(self._settings, self._settings.request_timeout_ms)))
                known = opened[0].known
                return self._settings.zookeeper if known is None else f"{self._settings.zookeeper}, as {known.words}"

            yield _tried("ZooKeeper", connect)
            if not opened:
                yield from (Finding(each, State.NOT_TRIED, "it is in ZooKeeper") for each in ("znodes", "primary"))
                return
            yield self._of_znodes(opened[0])
            yield _tried("primary", lambda: self._find_primary(opened[0]))

    def _of_znodes(self, coordinator: ZooKeeperCoordinator) -> Finding:
        root, limit_ms = self._settings.root, self._settings.request_timeout_ms
        grants: list[Holder | None] = []

        def look() -> str:
            found = coordinator.grants(ZnodePaths(root).root, timeout_ms=limit_ms)
            grants.append(None if found is None else judge(found, may_grant=False))
            if found is None:
                raise _Wrong(f"there is no {root}: no oracle was ever started there; look at root")
            return f"nobody but the oracles of {root} may change them"

        finding = _tried("znodes", look)
        if grants == [Holder.ANYBODY]:
            words = f"anybody may change those of {root}: give its oracles credentials, or Kerberos"
            return replace(finding, state=State.WARNING, words=words)
        return finding

    def _find_primary(self, coordinator: ZooKeeperCoordinator) -> str:
        root, limit_ms = self._settings.root, self._settings.request_timeout_ms
        self._data = read_data(coordinator, ZnodePaths(root), limit_ms)
        lease = PrimaryFinder(coordinator, root, timeout_ms=limit_ms).current()
        if lease is None:
            raise _Wrong("no oracle is primary now: look at `pythia tso status`")
        self._has_oracle = True
        return f"{lease.holder} at {lease.addresses[0]}, epoch {lease.epoch}"

    def _of_gateways(self) -> Iterator[Finding]:
        for what, addresses, ask in (
            ("gateway", self._settings.thrift, self._ask_gateway),
            ("Thrift 2 gateway", self._settings.thrift2, self._ask_thrift2),
        ):
            for address in map(str, parse_addresses(addresses) if addresses else ()):
                yield _tried(f"{what} {address}", partial(ask, address))

    def _ask_gateway(self, address: str) -> str:
        with closing(store_of(replace(self._settings, thrift=address))) as store:
            tables = frozenset(store.table_names())
            identity = IdentityOfData(store, self._settings.root)
            if self._data is not None and (otherwise := identity.otherwise(self._data)):
                raise _Wrong(f"it {otherwise}")
        if not self._reached:
            self._reached, self._tables_there = address, tables
        return f"HBase with {len(tables)} tables"

    def _ask_thrift2(self, address: str) -> str:
        with closing(store_of(replace(self._settings, thrift2=address))) as store:
            store.require_thrift2()
        return "it makes tables of several regions, in the same HBase"

    def _of_own_tables(self, manager: TransactionManager) -> Finding:
        own = manager.catalog.tables_of_nobody
        missing = sorted(own - self._tables_there)

        def look() -> str:
            manager.catalog.require_level()
            if missing:
                return f"made when they are first needed, or by `pythia table prepare`: {', '.join(missing)}"
            return f"all {len(own)} are there, at a level that this library works at"

        return _tried("Pythia's own tables", look)

    def _of_oracle(self, manager: TransactionManager) -> Iterator[Finding]:
        began: list[tuple[float, int]] = []

        def begin() -> str:
            with manager.transaction() as transaction:
                began.append((time.time() * 1_000, transaction.start_timestamp))
            return "a transaction begins and ends"

        finding = Finding("oracle", State.NOT_TRIED, "nobody is known to be primary")
        if self._has_oracle:
            finding = _tried("oracle", begin)
        yield finding
        if began and finding.took_ms is not None:
            at_ms, timestamp = began[0]
            yield of_clock(milliseconds_of(timestamp) - at_ms, finding.took_ms, CLOCK_OFF_MS_MAX)
        else:
            yield Finding("clock", State.NOT_TRIED, "it is compared with the oracle's timestamps")

    def _of_table(self, manager: TransactionManager, table: str) -> Finding:
        subject = f"table {table}"
        if not self._reached:
            return Finding(subject, State.NOT_TRIED, "no gateway answers that leads to it")
        if table not in self._tables_there:
            words = "HBase has no such table, or shows none to whoever this is: look at `pythia table list`"
            return Finding(subject, State.FAILED, words)

        def read() -> str:
            if not manager.catalog.has_entry(table):
                raise _Wrong("it is a plain table of HBase, which no transaction has used: adopt or copy it")
            entry = manager.catalog.fresh_entry(table)
            columns = [family.encode() + _PROBE_QUALIFIER for family in entry.families]
            manager.store.get(table, _PROBE_ROW, columns)
            return f"read; two transactions conflict when they write the same {entry.conflict_level}"

        return _tried(subject, read)


def _tried(subject: str, step: Callable[[], str]) -> Finding:
    began_s = time.perf_counter()
    try:
        state, words = State.FINE, step()
    except (_Wrong, PythiaError, StoreError, LeaseError) as error:
        state, words = State.FAILED, str(error)
    return Finding(subject, state, words, 1_000 * (time.perf_counter() - began_s))
