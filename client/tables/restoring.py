"""Tables put back to what one moment shows, all of them in one transaction.

What differs between then and now is written the way of a bulk write (``client.bulk_writes.writing``), so that its size
is no matter; what does not differ is left alone. Nobody sees a half: readers see the tables as they were before the
commit, or as they were at the moment. A row that somebody changed while this ran is a conflict, and then nothing was
restored.

A table that shows no row at the moment, and has some now, is refused unless that is said to be meant: it was made, or
dropped and made anew, after the moment, and what it had then is not there any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from client.bulk_writes.batching import ScannedRow
from client.cells import ROW_MARKER_VALUE, TOMBSTONE, encode_value, row_marker_column
from client.errors import InvalidRequest, PythiaError
from client.manager import TransactionManager
from client.snapshots.snapshot import Snapshot
from client.tables.batches import BATCH_ROWS_MAX, in_batches
from client.transactions.settling import commit_or_settle
from client.transactions.transaction import Transaction
from store import RowPut, StoreError
from store.columns import CellColumns

Values = Mapping[bytes, bytes]
Tell = Callable[[str, int], None]
"""Told of a table, and how many of its rows were gone through."""


@dataclass(slots=True)
class Restored:
    """What was, or would be, done to one table. ``rows``: that it has then."""

    rows: int = 0
    put_back: int = 0
    """Rows that were deleted or changed since."""
    removed: int = 0
    """Rows that came since."""

    def to_fields(self) -> dict[str, Any]:
        """For ``json.dumps``."""
        return asdict(self)


def restore(
    manager: TransactionManager,
    past: Snapshot,
    tables: Sequence[str],
    tell: Tell,
    *,
    even_if_empty: bool = False,
    dry_run: bool = False,
) -> dict[str, Restored]:
    """Put tables back to ``past``. ``dry_run``: only count.

    Raises ``InvalidRequest``, ``Conflict``, ``StoreUnavailable`` …; then nothing of it is or will be visible.
    """
    for table in tables:
        if table in manager.catalog.record_tables:
            raise InvalidRequest(
                f"table {table!r} is Pythia's record of what landed in other tables, and is not put back: a batch of a "
                f"stream, or rows of an import, would land twice; to import a file once more, say --again"
            )
        manager.catalog.fresh_entry(table)
    transaction = manager.transaction(read_only=dry_run)
    restored = {table: Restored() for table in tables}
    try:
        if dry_run:
            for table, done in restored.items():
                for _ in _changes(manager, table, past, transaction, done, tell):
                    pass
                _require_rows(table, done, even_if_empty)
            transaction.commit()
            return restored
        handle = transaction.handle()
        job = manager.open_job(handle)
        for number, (table, done) in enumerate(restored.items()):
            writer = manager.attempt_writer(handle, table, job, partition=number, attempt=0)
            for cells in in_batches(_changes(manager, table, past, transaction, done, tell)):
                writer.write(cells)
            _require_rows(table, done, even_if_empty)
        manager.seal_job(handle, job, [(number, 0) for number in range(len(tables))])
    except BaseException:
        with contextlib.suppress(PythiaError, StoreError):  # else it expires; the first error is the one to show
            transaction.rollback()
        raise
    commit_or_settle(manager.resume(handle))
    return restored


def _require_rows(table: str, done: Restored, even_if_empty: bool) -> None:
    if not done.rows and done.removed and not even_if_empty:
        raise InvalidRequest(
            f"table {table!r} shows no row at that moment, and has {done.removed:,} now: it was made, or dropped and "
            f"made anew, since. Nothing was restored; say --even-if-empty if all its rows shall go, or import a file "
            f"that was exported then"
        )


def _changes(
    manager: TransactionManager, table: str, past: Snapshot, present: Transaction, done: Restored, tell: Tell
) -> Iterator[ScannedRow]:
    """What has to be written into one table."""
    markers = [row_marker_column(family) for family in manager.catalog.entry(table).family_columns]
    rows = _side_by_side(
        _rows(past.scan_columns(table, batch_rows=BATCH_ROWS_MAX)),
        _rows(present.scan_columns(table, batch_rows=BATCH_ROWS_MAX, own_writes="none")),
    )
    for seen, (row, then, now) in enumerate(rows, 1):
        done.rows += then is not None
        if then is None:
            done.removed += 1
            yield row, dict.fromkeys([*(now or ()), *markers], TOMBSTONE)
        elif now is None or then != now:
            done.put_back += 1
            gone = dict.fromkeys((now or {}).keys() - then.keys(), TOMBSTONE)
            marker = {} if then else {markers[0]: ROW_MARKER_VALUE}
            yield row, {**gone, **marker, **{column: encode_value(value) for column, value in then.items()}}
        if seen % BATCH_ROWS_MAX == 0:
            tell(table, seen)


def _rows(batches: Iterable[CellColumns]) -> Iterator[RowPut]:
    return chain.from_iterable(cells.puts() for cells in batches)


def _side_by_side(
    past: Iterator[tuple[bytes, Values]], present: Iterator[tuple[bytes, Values]]
) -> Iterator[tuple[bytes, Values | None, Values | None]]:
    """The rows of two scans in the order of their keys, each with what it was in either."""
    then, now = next(past, None), next(present, None)
    while then is not None or now is not None:
        if now is None or (then is not None and then[0] < now[0]):
            assert then is not None
            yield then[0], then[1], None
            then = next(past, None)
        elif then is None or now[0] < then[0]:
            yield now[0], None, now[1]
            now = next(present, None)
        else:
            yield then[0], then[1], now[1]
            then, now = next(past, None), next(present, None)
