"""What operators do, and what is done to tables."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path

from client import InvalidRequest, OutcomeUnknown, TransactionAborted
from client.backups.creating import create
from client.cells import ROW_MARKER_VALUE, decode_value, is_reserved, is_shadow, row_marker_column
from client.snapshots.plain_cells import TRANSACTIONS_FROM
from client.tables.restoring import restore
from client.vacuum import HorizonUnknown, run_vacuum
from store import ALL_ROWS, Family, RowPut, StoreError, StoreUnavailable
from tests.installation_life.by_rest import ask
from tests.installation_life.model import CLAIMS, Place, Row, Version, rows_of
from tests.installation_life.world import COLUMNS, ROWS, Differs, World, refuses, same
from tests.unit.client_backups.conftest import nothing_told
from tests.unit.client_backups.test_backup_creating import saved
from tests.unit.client_vacuum.watching import Killed

MARKERS = [row_marker_column(b"f"), row_marker_column(b"g")]
VERSIONS_MAX = 100
VACUUM_CALLS = 150
"""A vacuum of such an installation makes about as many calls to the store, or more."""
FORGOTTEN_SECONDS = 20.0
"""After so long nobody believes any more in a table that was dropped."""


class Operating:
    """Makes, drops, vacuums, fails over."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._backups: dict[Path, int] = {}
        """Each with the moment that it shows."""

    def make_table(self) -> None:
        """Somebody makes a table, or adopts one."""
        missing = self._world.levels.keys() - self._world.model.tables.keys()
        if not missing:
            return
        table, manager = self._world.draw.choice(sorted(missing)), self._world.around.manager()
        self._world.around.pass_seconds(FORGOTTEN_SECONDS)  # nobody believes in the one before it any more
        plain: dict[Place, bytes] = {}
        if table == self._world.adopted:
            self._world.around.store.create_table(table, [Family("f"), Family("g")])
            for timestamp in range(1_000, 1_000 + self._world.draw.randint(1, 6)):
                place, value = (self._world.draw.choice(ROWS), self._world.draw.choice(COLUMNS)), self._world.value()
                plain[place] = value
                self._world.around.store.put(table, [RowPut(place[0], {place[1]: value})], timestamp)
            manager.adopt_table(table, conflict_level="row")
        else:
            manager.create_table(table, ["f", "g"], conflict_level=self._world.levels[table])
        now = manager.oracle.begin().first_start_timestamp
        self._world.tell(f"{table} is made at {now}, with {plain}")
        self._world.model.make(table, by_row=self._world.levels[table] == "row", shown_from=now, plain=plain)

    def drop_table(self) -> None:
        """Somebody drops one."""
        table = self._world.table()
        if table is not None:
            manager = self._world.around.manager()
            manager.drop_table(table)
            self._world.model.drop(table, manager.oracle.begin().first_start_timestamp)
            self._world.around.pass_seconds(FORGOTTEN_SECONDS)
            self._world.tell(f"{table} is dropped")

    def fence(self) -> None:
        """Somebody fences one."""
        table = self._world.table()
        if table is not None:
            try:
                fenced = self._world.around.manager().fence(table)
            except (StoreUnavailable, TransactionAborted, OutcomeUnknown) as error:
                now = self._world.around.managers[0].oracle.begin().first_start_timestamp
                self._world.tell(f"{table} may be fenced, by {now}: {error}")
                self._world.model.tables[table].fenced_perhaps.append(now)
                return
            self._world.tell(f"{table} is fenced at {fenced.timestamp}")
            self._world.model.tables[table].fences.append(fenced.timestamp)

    def put_back(self) -> None:
        """Somebody puts tables back to what they were."""
        tables = [table for table in self._world.model.tables if table != CLAIMS and self._world.draw.random() < 0.7]
        manager = self._world.around.manager()
        kept = [*(each for _, each in self._world.held), *(manager.snapshot(at=name) for name in self._world.names)]
        past = self._world.draw.choice(kept) if kept else None
        if past is None or not tables or not all(self._world.is_shown(table, past.timestamp) for table in tables):
            return
        before = manager.oracle.begin().first_start_timestamp
        self._world.tell(f"{tables} are put back to {past.timestamp} at {before}")
        restore(manager, past, tables, lambda table, rows: None, even_if_empty=True)
        for name in tables:
            table = self._world.model.tables[name]
            then, now = table.visible(past.timestamp), table.visible(before)
            rows_then, rows_now = rows_of(then), rows_of(now)
            for row in rows_then.keys() | rows_now.keys():
                for column, value in _put_back(rows_then.get(row), rows_now.get(row)).items():
                    table.versions[row, column].append(Version(before, before, value))

    def back_up(self) -> None:
        """Somebody makes a backup of everything, or of what has changed since an earlier one."""
        manager, world = self._world.around.manager(), self._world
        snapshot, directory = manager.snapshot(), world.around.directory / f"{next(world.numbers)}"
        since, moment = world.draw.choice([(None, 0), *self._backups.items()])
        world.tell(f"backup {directory.name} at {snapshot.timestamp} since {moment}")
        try:
            create(manager, snapshot, [], directory, nothing_told, since=since)
        except InvalidRequest as error:
            if moment >= world.horizon:
                raise Differs(f"a backup since {moment} has to be made, and was refused: {error}") from error
            return
        self._backups[directory] = snapshot.timestamp
        tables = world.model.tables.keys() - {CLAIMS}
        wanted = {table: rows_of(world.model.seen(table, snapshot.timestamp)) for table in tables}
        same(f"backup {directory.name}", saved(directory), wanted)

    def vacuum(self) -> None:
        """Somebody vacuums."""
        if self._world.draw.random() < 0.7:
            self._world.around.pass_life()
        self.run_vacuum(everything=self._world.draw.random() < 0.2)

    def kill_vacuum(self) -> None:
        """Somebody's vacuum is killed."""
        if self._world.draw.random() < 0.7:
            self._world.around.pass_life()
        with contextlib.suppress(Killed), self._world.around.amid(VACUUM_CALLS, self._die):
            self.run_vacuum(everything=self._world.draw.random() < 0.2)

    def _die(self) -> None:
        self._world.counted["vacuums killed"] += 1
        raise Killed

    def finish_bulk_writes(self) -> None:
        """Somebody writes the shadow cells that are owed."""
        with contextlib.suppress(StoreError):
            self._world.around.manager().finish_bulk_writes()

    def deliver_late(self) -> None:
        """What went out long ago arrives."""
        self._world.around.store.deliver_late()

    def compact(self) -> None:
        """HBase forgets what was deleted."""
        table = self._world.table()
        if table is not None and self._world.around.compact(table):
            self._world.tell(f"{table} is compacted")
            self._world.counted["compactions"] += 1

    def fail_over(self) -> None:
        """The primary ends."""
        self._world.tell("failover")
        self._world.counted["failovers"] += 1
        self._world.around.fail_over()

    def start_anew(self) -> None:
        """A process ends, and what it held is left alone."""
        self._world.tell("a process starts anew")
        gone = self._world.around.start_anew()
        lost = [one for one in self._world.open if gone in one.managers]
        self._world.open = [one for one in self._world.open if one not in lost]
        for one in lost:
            if self._world.around.rest is not None and one.is_by_rest:
                commit = partial(ask, self._world.around.rest.client, "POST", f"/v1/transactions/{one}/commit")
                refuses(f"{one}, which was lost, commits", commit, by=TransactionAborted)
        self._world.held = [(manager, snapshot) for manager, snapshot in self._world.held if manager is not gone]

    def run_vacuum(self, *, everything: bool) -> None:
        """Vacuum, as of now."""
        manager, lowest = self._world.around.manager(), self._world.lowest()
        # Before it drops anything it says how far it goes, and that holds if it is killed then.
        self._world.horizon = max(self._world.horizon, lowest)
        self._world.outcomes_horizon = max(self._world.outcomes_horizon, manager.oracle.begin().first_start_timestamp)
        try:
            report = run_vacuum(
                manager,
                retain_ms=0,
                outcomes_retain_ms=0,
                lasting_records_max=self._world.draw.choice([0, 1_000]),
                everything=everything,
                wait=self._world.around.pass_seconds,
            )
        except (HorizonUnknown, StoreUnavailable) as error:
            self._world.tell(f"no vacuum: {error}")
            return
        self._world.tell(f"vacuum up to {report.horizon}, problems {report.problems}")
        self._world.counted["vacuums"] += 1
        if not self._world.around.store.has_failed:
            same("problems of a vacuum", report.problems, {})
        if report.horizon > lowest:
            raise Differs(f"the horizon {report.horizon} is above {lowest}, which somebody reads")

    def require_nothing_left(self) -> None:
        """After the last vacuum each cell has the version that is seen, nothing below it, and else there is none.

        Above it may be those of who never committed: no delete hits them alone (``TableReport.aborted_cells_kept``).
        """
        manager = self._world.around.managers[0]
        now = manager.snapshot().timestamp
        recorded = self._world.model.committed.keys() & set(manager.manifest.transactions())
        same("bulk writes that have committed and are still on record", recorded, set())
        for table in self._world.model.tables.keys() - {CLAIMS}:
            seen = self._world.model.seen(table, now)
            stays = {
                (row, column): self._lowest_version(table, row, column)
                for row, cells in self._world.around.store.scan(table, ALL_ROWS, [b"f", b"g"])
                for column in cells
                if not is_shadow(column)
            }
            same(f"what stays of {table}", stays, seen)
            shown = manager.store.scan(table, ALL_ROWS, [b"f", b"g"])
            marked = {(row, column[:1]) for row, cells in shown for column in cells if is_shadow(column)}
            same(f"shadow cells of nothing in {table}", marked - {(row, column[:1]) for row, column in stays}, set())

    def _lowest_version(self, table: str, row: bytes, column: bytes) -> bytes | None:
        """Of what lay there when the table was adopted the newest counts, and what is below that is left alone."""
        versions = self._world.around.store.versions(table, row, column, limit=VERSIONS_MAX)
        plain = [cell for cell in versions if cell.timestamp < TRANSACTIONS_FROM]
        if plain:
            return plain[0].value
        return versions[-1].value if is_reserved(column) else decode_value(versions[-1].value)


def _put_back(then: Row | None, now: Row | None) -> dict[bytes, bytes | None]:
    """What is written to have a row as it was."""
    if then is None:
        return dict.fromkeys([*(now or ()), *MARKERS])
    if then == now:
        return {}
    marker = {} if then else {MARKERS[0]: ROW_MARKER_VALUE}
    return {**dict.fromkeys((now or {}).keys() - then.keys()), **marker, **then}
