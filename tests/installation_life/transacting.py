"""What transactions do: each step to the real one, and to the model of it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from itertools import starmap
from typing import Any
from unittest.mock import patch

from client import OutcomeUnknown, Transaction, TransactionAborted, TransactionHandle
from client.bulk_writes.writing import AttemptWriter
from client.cells import ROW_MARKER_VALUE, TOMBSTONE, encode_value, is_reserved, row_marker_column
from client.connection.tickets import Decision
from client.transactions.savepoints import OwnWrites
from commit_table import Aborted, Committed
from store import RowPut, StoreUnavailable, TableMissing
from store.columns import CellColumns
from tests.installation_life.model import CLAIMS, OpenTransaction, Place, Row, Table, Verdict, rows_of
from tests.installation_life.reading import content
from tests.installation_life.world import (
    ALL_KEYS,
    AMID_OTHERS,
    COLUMNS,
    ROWS,
    UNREPEATED,
    Differs,
    Open,
    World,
    has_all,
    refuses,
    same,
)
from tests.unit.client_vacuum.watching import Killed
from wire import Reason

KEYS = ["k1", "k2"]
OPEN_MAX, SAVEPOINTS_MAX = 7, 3
OWN_WRITES: list[OwnWrites] = ["all", "all", "none", "before_checkpoint"]


class Transacting:
    """Begins, writes, commits, and dies in the middle of it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.late: list[tuple[AttemptWriter, CellColumns]] = []
        """Tasks that go on although nobody waits for them, and what they write."""

    def begin(self) -> None:
        """Somebody begins."""
        if len(self._world.open) >= OPEN_MAX:
            return
        manager = self._world.around.manager()
        real = self._world.around.begin(manager)
        one = Open(OpenTransaction(real.start_timestamp, real.snapshot_timestamp), [real], [manager])
        self._world.open.append(one)
        self._world.tell(f"begin {one} at {one.model.snapshot}{' by REST' if one.is_by_rest else ''}")

    def write(self) -> None:
        """Somebody puts or deletes."""
        one, table = self._world.one(), self._world.table()
        if one is None or table is None:
            return
        row, real, conflict_free = self._world.draw.choice(ROWS), one.holders[0], self._world.draw.random() < 0.1
        conflict_free = conflict_free and not one.is_by_rest
        kind = self._world.draw.random()
        if kind < 0.7:
            columns = self._world.draw.sample(COLUMNS, self._world.draw.randint(1, 2))
            values = {column: self._world.value() for column in columns}
            self._world.tell(f"{one} puts {table} {row!r} {values} {'conflict-free' if conflict_free else ''}")
            real.put(table, row, values, conflict_free=conflict_free)
            for column, value in values.items():
                one.model.put(table, (row, column), value, conflict_free=conflict_free)
        elif kind < 0.85:
            columns = self._world.draw.sample(COLUMNS, self._world.draw.randint(1, 2))
            self._world.tell(f"{one} deletes {table} {row!r} {columns}")
            real.delete(table, row, columns, conflict_free=conflict_free)
            for column in columns:
                one.model.put(table, (row, column), None, conflict_free=conflict_free)
        elif self._world.is_shown(table, one.model.snapshot):
            self._world.tell(f"{one} deletes {table} {row!r}")
            real.delete(table, row, conflict_free=conflict_free)
            for place in self._world.seen(one, table, "all"):
                if place[0] == row:
                    one.model.put(table, place, None, conflict_free=conflict_free)

    def look(self) -> None:
        """Somebody reads in a transaction."""
        one, table = self._world.one(), self._world.table()
        if one is None or table is None:
            return
        own_writes = "all" if one.is_by_rest else self._world.draw.choice(OWN_WRITES)
        holder = self._world.draw.choice(one.holders) if own_writes == "none" else one.holders[0]
        if not self._world.is_shown(table, one.model.snapshot):
            return
        rows = rows_of(self._world.seen(one, table, own_writes))
        told = f"transaction {one} on {table} ({own_writes})"
        same(f"scan, {told}", dict(holder.scan(table, own_writes=own_writes)), rows)
        with_columns = {row: columns for row, columns in rows.items() if columns}
        by_key = with_columns if one.is_by_rest else rows
        same(f"get_many, {told}", holder.get_many(table, ALL_KEYS, own_writes=own_writes), by_key)
        row, column = self._world.draw.choice(ROWS), self._world.draw.choice(COLUMNS)
        wanted = {name: value for name, value in rows.get(row, {}).items() if name == column}
        same(f"get, {told}", holder.get(table, row, [column], own_writes=own_writes), wanted)
        backwards = list(holder.scan(table, reverse=True, own_writes=own_writes))
        same(f"backwards, {told}", backwards, sorted(rows.items(), reverse=True))
        if isinstance(holder, Transaction):
            page = holder.scan_page(table, rows_max=2, own_writes=own_writes)
            same(f"page, {told}", dict(page.rows), dict(list(rows.items())[: len(page.rows)]))
            batches = holder.scan_columns(table, batch_rows=2, own_writes=own_writes)
            same(f"columns, {told}", content(batches), with_columns)

    def commit(self) -> None:
        """Somebody commits."""
        one = self._world.one(take=True)
        if one is None:
            return
        verdict, tables, amid_others = self._judged(one)
        try:
            committed = one.holders[0].commit()
        except TransactionAborted as error:
            self._world.tell(f"{one} is refused: {error}")
            self._world.counted[type(error).__name__] += 1
            if verdict is Verdict.COMMITS and self._is_undisturbed(amid_others):
                raise Differs(f"{one} has to commit, and was refused: {error}") from error
            self._asked_again(one, Aborted())
        except (StoreUnavailable, OutcomeUnknown) as error:
            self._world.tell(f"{one} does not know: {error}")
            self._world.counted[type(error).__name__] += 1
            outcome = one.managers[0].abort(one.model.start)
            if isinstance(outcome, Committed):
                self._has_committed(one, outcome.commit_timestamp, verdict, tables)
            self._asked_again(one, outcome)
        else:
            self._asked_again(one, committed)
            self._has_committed(one, committed.commit_timestamp, verdict, tables)

    def _asked_again(self, one: Open, outcome: Committed | Aborted) -> None:
        """A server answers the same, however often a commit is asked for."""
        if one.is_by_rest:
            answer: Committed | Aborted = Aborted()
            with contextlib.suppress(TransactionAborted):
                answer = one.holders[0].commit()
            same(f"commit of {one}, asked for again", answer, outcome)

    def _judged(self, one: Open) -> tuple[Verdict, Mapping[str, Table], int]:
        """What has to become of a commit, which tables there are, and how much was done amid others by then."""
        return self._world.model.verdict(one.model), dict(self._world.model.tables), self._world.counted[AMID_OTHERS]

    def _is_undisturbed(self, amid_others: int) -> bool:
        """Whether nothing happened since then for which a commit may be refused that otherwise could not be."""
        return (
            amid_others == self._world.counted[AMID_OTHERS]
            and not self._world.around.is_amid
            and not self._world.around.store.has_failed
        )

    def _has_committed(self, one: Open, commit: int, verdict: Verdict, tables: Mapping[str, Table]) -> None:
        self._world.tell(f"{one} has committed at {commit}")
        self._world.counted["commits"] += 1
        self._world.counted["commits by REST"] += one.is_by_rest
        if verdict is Verdict.ABORTS:
            raise Differs(f"{one} has to be refused, and has committed at {commit}")
        if list(one.model.writes()):
            self._world.model.commit(one.model, commit, tables)

    def roll_back(self) -> None:
        """Somebody changes his mind."""
        one = self._world.one(take=True)
        if one is None:
            return
        self._world.tell(f"{one} rolls back")
        try:
            outcome = self._world.draw.choice(one.holders).rollback()
        except StoreUnavailable:
            outcome = one.managers[0].abort(one.model.start)
        same(f"rollback of {one}", outcome, Aborted())

    def leave(self) -> None:
        """Somebody's process ends with a transaction open."""
        one = self._world.one(take=True, may=has_all)
        if one is not None:
            self._world.tell(f"{one} is left alone")

    def die_amid_commit(self) -> None:
        """Somebody's process is killed as it commits: before the request is sent, or as the answer comes."""
        one = self._world.one(take=True, may=has_all)
        if one is None:
            return
        verdict, tables, amid_others = self._judged(one)
        decided: list[Decision] = []
        before = self._world.draw.random() < 0.5
        oracle = one.managers[0].oracle
        ask = oracle.commit

        def commit(*arguments: Any, **more: Any) -> Decision:
            if before:
                raise Killed
            decision = ask(*arguments, **more)
            if decision.reason is Reason.TOO_OLD:
                return decision
            decided.append(decision)
            raise Killed

        with patch.object(oracle, "commit", commit), contextlib.suppress(Killed, TransactionAborted):
            one.holders[0].commit()
        if decided and decided[0].commit_timestamp:
            self._world.tell(f"{one} dies as it learns that")
            self._has_committed(one, decided[0].commit_timestamp, verdict, tables)
        else:
            self._world.tell(f"{one} dies; it has not committed")
            if decided and verdict is Verdict.COMMITS and self._is_undisturbed(amid_others):
                raise Differs(f"{one} has to commit, and was refused: {decided[0]}")

    def set_savepoint(self) -> None:
        """Somebody makes a savepoint."""
        one = self._world.one()
        if one is not None and len(one.savepoints) < SAVEPOINTS_MAX:
            self._world.tell(f"{one} makes savepoint {len(one.savepoints)}")
            one.savepoints.append((one.holders[0].savepoint(), one.model.state(), one.model.bulk_jobs))

    def go_back(self) -> None:
        """Somebody goes back to one."""
        one = self._world.one(may=lambda one: bool(one.savepoints))
        if one is None:
            return
        number = self._world.draw.randrange(len(one.savepoints))
        savepoint, state, jobs = one.savepoints[number]
        if jobs < one.model.bulk_jobs:
            refuses(f"{one} goes back behind bulk writes", lambda: one.holders[0].rollback_to(savepoint))
            return
        self._world.tell(f"{one} goes back to savepoint {number}")
        one.holders[0].rollback_to(savepoint)
        written = set(one.model.buffered) - {CLAIMS}
        one.model.go_back_to(state)
        del one.savepoints[number + 1 :]
        for table in written & self._world.model.tables.keys():
            if self._world.is_shown(table, one.model.snapshot):
                rows = rows_of(self._world.seen(one, table, "all"))
                same(f"{table} after {one} went back", dict(one.holders[0].scan(table)), rows)

    def release(self) -> None:
        """Somebody does without one."""
        one = self._world.one(may=lambda one: bool(one.savepoints))
        if one is None:
            return
        number = self._world.draw.randrange(len(one.savepoints))
        self._world.tell(f"{one} releases savepoint {number}")
        one.holders[0].release(one.savepoints[number][0])
        del one.savepoints[number:]

    def checkpoint(self) -> None:
        """Somebody sets a checkpoint."""
        one = self._world.one(may=has_all)
        if one is None:
            return
        if one.model.bulk_jobs:
            refuses(f"{one} sets a checkpoint after bulk writes", one.in_process.checkpoint)
            return
        self._world.tell(f"{one} sets a checkpoint")
        one.in_process.checkpoint()
        one.model.checkpoint()

    def guard(self) -> None:
        """Somebody relies on what he reads."""
        one, table = self._world.one(), self._world.table()
        if one is None or table is None or (one.is_by_rest and not self._world.is_shown(table, one.model.snapshot)):
            return
        row, column = self._world.draw.choice(ROWS), self._world.draw.choice(COLUMNS)
        self._world.tell(f"{one} guards {table} {row!r} {column!r}")
        one.holders[0].guard(table, [row], [column])
        one.model.guarded.add((table, row, None if self._world.levels[table] == "row" else column))

    def claim(self) -> None:
        """Somebody claims a key."""
        one, key = self._world.one(), self._world.draw.choice(KEYS)
        if one is None:
            return
        table = self._world.draw.choice([None, None, *sorted(self._world.model.tables.keys() - {CLAIMS})])
        place: Place = ((table or "").encode(), key.encode())
        incarnation = b"" if table is None else b"%d" % self._world.model.tables[table].shown_from
        found = self._world.model.claimed(one.model, place)
        own = one.model.buffered.get(CLAIMS, {}).get(place)
        try:
            won = one.holders[0].claim(key, table=table)
        except StoreUnavailable:
            return
        self._world.tell(f"{one} claims {key} of {table}: {won}")
        same(f"{one} claims {key} of {table}", won, found != incarnation or own is not None)
        if won and found != incarnation:
            one.model.put(CLAIMS, place, incarnation)

    def share(self) -> None:
        """Another process takes part."""
        one = self._world.one(may=has_all)
        if one is None or len(one.holders) > 1:
            return
        handle = TransactionHandle.from_json(one.in_process.handle().to_json())
        one.managers.append(self._world.around.manager())
        one.holders.append(one.managers[-1].resume(handle))
        one.model.shared = True
        self._world.tell(f"{one} is shared")

    def write_in_bulk(self) -> None:
        """Other processes write into somebody's transaction, some of them twice."""
        one, table = self._world.one(may=has_all), self._world.table()
        if one is None or table is None:
            return
        try:
            self._write_in_bulk(one, table)
        except StoreUnavailable:  # he does not know how far it went, and gives it all up
            self._world.open.remove(one)
            same(f"rollback of {one}", one.managers[0].abort(one.model.start), Aborted())

    def _write_in_bulk(self, one: Open, table: str) -> None:
        handle = one.in_process.handle()
        one.model.shared = True
        first, second = self._world.around.manager(), self._world.around.manager()
        job = first.open_job(handle)
        winners, cells = [], dict[Place, bytes | None]()
        for partition, rows in enumerate((ROWS[:2], ROWS[2:])):
            part = self._bulk_cells(rows)
            attempts = self._world.draw.randint(1, 2)
            for attempt in range(attempts):
                written = dict(part)
                if attempt < attempts - 1:
                    written = dict(list(part.items())[: self._world.draw.randint(1, len(part))])
                    if self._world.draw.random() < 0.05:
                        written[UNREPEATED] = b"x"
                        cells[UNREPEATED] = b"x"
                        one.model.has_unrepeated = True
                writer = second.attempt_writer(handle, table, job, partition=partition, attempt=attempt)
                writer.write(CellColumns.of_puts(_puts(written)))
                if self._world.draw.random() < 0.2:
                    late = dict.fromkeys(part, b"late")
                    self.late.append((writer, CellColumns.of_puts(_puts(late))))
            winners.append((partition, attempts - 1))
            cells.update(part)
        self._world.tell(f"{one} has {table} written in bulk: {cells}; {one.model.has_unrepeated=}")
        one.model.bulk_jobs += 1
        first.seal_job(handle, job, winners)
        one.model.put_in_bulk(table, cells)

    def come_late(self) -> None:
        """A task that nobody waited for goes on, although its bulk write has ended."""
        if self.late:
            writer, cells = self.late.pop(self._world.draw.randrange(len(self.late)))
            self._world.tell(f"a task of {writer.start_timestamp} comes late")
            with contextlib.suppress(TransactionAborted, TableMissing):
                refuses(f"a late task of {writer.start_timestamp}", lambda: writer.write(cells))

    def _bulk_cells(self, rows: list[bytes]) -> dict[Place, bytes | None]:
        cells: dict[Place, bytes | None] = {}
        for row in self._world.draw.sample(rows, self._world.draw.randint(1, len(rows))):
            for column in self._world.draw.sample(COLUMNS, self._world.draw.randint(0, 2)):
                cells[row, column] = None if self._world.draw.random() < 0.2 else self._world.value()
            if self._world.draw.random() < 0.3 or not any(place[0] == row for place in cells):
                cells[row, row_marker_column(b"f")] = ROW_MARKER_VALUE
        return cells


def _puts(cells: Mapping[Place, bytes | None]) -> list[RowPut]:
    rows: dict[bytes, Row] = {}
    for (row, column), value in cells.items():
        rows.setdefault(row, {})[column] = (
            TOMBSTONE if value is None else value if is_reserved(column) else encode_value(value)
        )
    return list(starmap(RowPut, rows.items()))
