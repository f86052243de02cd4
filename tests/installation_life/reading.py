"""Reading whatever somebody may still read, in every way there is, and comparing it with the model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from client import InvalidRequest, Snapshot
from client.cells import without_reserved
from client.snapshots.changed_rows import ChangedRow
from client.snapshots.pages import ChangesPage, RowsPage
from commit_table import Committed
from store import StoreUnavailable
from store.columns import CellColumns
from tests.installation_life.by_rest import changes_at, rows_at
from tests.installation_life.model import CLAIMS, Content, rows_of
from tests.installation_life.world import ALL_KEYS, COLUMNS, Differs, World, refuses, same

HELD_MAX, MOMENTS_MAX = 3, 12


class Reading:
    """Keeps snapshots, names moments, and reads."""

    def __init__(self, world: World) -> None:
        self._world = world

    def take_snapshot(self) -> None:
        """Somebody takes a snapshot and keeps it."""
        if len(self._world.held) < HELD_MAX:
            manager = self._world.around.manager()
            snapshot = manager.snapshot()
            self._world.held.append((manager, snapshot))
            self._world.moments.append(snapshot.timestamp)
            del self._world.moments[:-MOMENTS_MAX]
            self._world.tell(f"snapshot at {snapshot.timestamp}")

    def let_go_of_snapshot(self) -> None:
        """Somebody needs it no more."""
        if self._world.held:
            self._world.held.pop(self._world.draw.randrange(len(self._world.held)))

    def name_snapshot(self) -> None:
        """Somebody names a moment."""
        manager, name = self._world.around.manager(), f"n{next(self._world.numbers)}"
        moment = self._world.draw.choice([None, *self._world.moments])
        try:
            named = manager.create_snapshot(name, moment)
        except (InvalidRequest, StoreUnavailable) as error:
            if isinstance(error, InvalidRequest) and (moment is None or moment >= self._world.horizon):
                raise Differs(f"{moment} has to get a name, and was refused: {error}") from error
            with contextlib.suppress(InvalidRequest, StoreUnavailable):
                manager.drop_snapshot(name)
            return
        self._world.names[name] = named.timestamp
        self._world.tell(f"{name} is named, for {self._world.names[name]}")

    def move_name(self) -> None:
        """Somebody follows."""
        if self._world.names:
            name = self._world.draw.choice(list(self._world.names))
            try:
                self._world.names[name] = self._world.around.manager().move_snapshot(name).timestamp
            except StoreUnavailable:
                self._world.names[name] = self._world.around.manager().move_snapshot(name).timestamp
            self._world.tell(f"{name} is moved, to {self._world.names[name]}")

    def drop_name(self) -> None:
        """Somebody needs it no more."""
        if self._world.names:
            name = self._world.draw.choice(list(self._world.names))
            self._world.around.manager().drop_snapshot(name)
            self._world.tell(f"{name} is dropped")
            del self._world.names[name]

    def check(self) -> None:
        """Everybody reads all that there is to be read."""
        manager = self._world.around.manager()
        now = manager.snapshot()
        self._world.tell(f"check, {now.timestamp} is now")
        kept = [(now, True), *((snapshot, True) for _, snapshot in self._world.held)]
        kept += [(manager.snapshot(at=name), True) for name in self._world.names]
        kept += [(manager.snapshot(at=moment), moment >= self._world.horizon) for moment in self._world.moments]
        for table in sorted(self._world.model.tables.keys() - {CLAIMS}):
            for snapshot, surely in self._world.draw.sample(kept, min(len(kept), 6)):
                self._check_table(table, snapshot, surely)
        for one in self._world.open:
            same(f"{one} is open", one.holders[0].is_open(), True)

    def check_one(self) -> None:
        """Somebody reads one table as of what he, or a name, has kept."""
        kept = [snapshot for manager, snapshot in self._world.held if self._world.around.may_use(manager)]
        with contextlib.suppress(StoreUnavailable):
            kept += [self._world.around.manager().snapshot(at=name) for name in self._world.names]
            table = self._world.table()
            if kept and table is not None:
                self._check_table(table, self._world.draw.choice(kept), surely=True)

    def ask_outcomes(self) -> None:
        """Somebody asks what became of others."""
        for start, commit in self._world.draw.sample(
            sorted(self._world.model.committed.items()), min(3, len(self._world.model.committed))
        ):
            if start >= self._world.outcomes_horizon:
                outcome = self._world.around.manager().outcome(start)
                same(
                    f"outcome of {start}",
                    outcome.commit_timestamp if isinstance(outcome, Committed) else outcome,
                    commit,
                )

    def _check_table(self, table: str, snapshot: Snapshot, surely: bool) -> None:
        """Read a table at a snapshot. Not ``surely``: it may be refused."""
        told, at = f"{table} at {snapshot.timestamp}", snapshot.timestamp
        rows = rows_of(self._world.model.seen(table, at))
        if at < self._world.model.dropped.get(table, 0):
            refuses(f"{told}, from before it was dropped, is read", lambda: dict(snapshot.scan(table)))
            return
        if not self._world.is_shown(table, at):
            with contextlib.suppress(InvalidRequest):
                same(f"scan of {told}", dict(snapshot.scan(table)), rows)
            return
        try:
            same(f"scan of {told}", dict(snapshot.scan(table)), rows)
        except InvalidRequest as error:
            if surely:
                raise Differs(f"{told} has to be shown, and was refused: {error}") from error
            return
        backwards = dict(snapshot.scan(table, reverse=True))
        same(f"backwards, {told}", backwards, rows)
        same(f"order backwards, {told}", list(backwards), sorted(rows, reverse=True))
        same(f"rows of {told}", snapshot.get_many(table, ALL_KEYS), rows)
        with_columns = {row: columns for row, columns in rows.items() if columns}
        same(f"columns of {told}", content(snapshot.scan_columns(table, batch_rows=2)), with_columns)
        looked_at = self._world.draw.randint(1, 3)
        pages = _all_pages(partial(snapshot.scan_page, table, rows_max=2, looked_at_max=looked_at))
        same(f"pages of {told}", dict(pages), rows)
        chosen = self._world.draw.sample(COLUMNS, 2)
        some = {
            row: {name: value for name, value in columns.items() if name in chosen} for row, columns in rows.items()
        }
        found = {row: columns for row, columns in snapshot.scan(table, columns=chosen) if columns}
        same(f"{chosen} of {told}", found, {row: columns for row, columns in some.items() if columns})
        if self._world.around.rest is not None:
            reverse = self._world.draw.random() < 0.5
            shown = rows_at(self._world.around.rest.client, at, table, reverse=reverse)
            same(f"{told} by REST", list(shown.items()), sorted(rows.items(), reverse=reverse))
        self._check_changes(table, snapshot, surely)

    def _check_changes(self, table: str, snapshot: Snapshot, surely: bool) -> None:
        """What is different since an earlier moment."""
        at, model = snapshot.timestamp, self._world.model.tables[table]
        earlier = [moment for moment in (*self._world.moments, *self._world.names.values()) if moment <= at]
        if not earlier:
            return
        since = self._world.draw.choice(earlier)
        told = f"changes of {table} from {since} to {at}"
        try:
            changes = list(snapshot.changes(table, since))
        except InvalidRequest as error:
            if surely and since >= self._world.horizon and self._world.is_shown(table, since):
                raise Differs(f"{told} have to be shown, and were refused: {error}") from error
            return
        if not self._world.is_shown(table, since):
            return
        rows = rows_of(model.visible(at))
        must, may = model.changed(since, at)
        found = {each.row: each.values for each in changes}
        same(f"{told}: values", found, {row: rows.get(row) for row in found})
        if not must <= found.keys() <= may:
            raise Differs(f"{told}: {sorted(found)}, which have to be {sorted(must)}, and no others than {sorted(may)}")
        if not all(since < each.commit_timestamp <= at for each in changes):
            raise Differs(f"{told}: {changes}")
        batches = snapshot.changes_columns(table, since, batch_rows=2)
        as_columns = [each for batch in batches for each in batch.by_row()]
        same(f"{told}: columns", list(map(_without_reserved, as_columns)), changes)
        if self._world.around.rest is not None:
            same(f"{told} by REST", changes_at(self._world.around.rest.client, at, table, since), changes)
        rows_max = self._world.draw.randint(1, 3)
        same(f"{told}: pages", _all_pages(partial(snapshot.changes_page, table, since, rows_max=rows_max)), changes)


def _all_pages(page_from: Callable[..., RowsPage | ChangesPage]) -> list[Any]:
    """The rows of all pages, asked for one after the other."""
    rows, start = list[Any](), b""
    while True:
        page = page_from(start=start)
        rows += page.rows
        if page.looked_at_to is None:
            return rows
        start = page.looked_at_to + b"\x00"


def _without_reserved(changed: ChangedRow) -> ChangedRow:
    return changed if changed.values is None else changed._replace(values=without_reserved(changed.values))


def content(batches: Iterable[CellColumns]) -> Content:
    """Rows that come as columns, but for those that have none."""
    rows = ((put.row, without_reserved(put.columns)) for batch in batches for put in batch.puts())
    return {row: columns for row, columns in rows if columns}
