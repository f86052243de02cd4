"""A snapshot: everything that had committed at one moment, and nothing else, for as long as it is read.

It needs no oracle once it is begun, and it can be handed to other processes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Sequence
from typing import Final

from client.cells import require_list, validate_choice, validate_column, validate_row, without_reserved
from client.errors import InvalidRequest
from client.handles import SnapshotHandle, StaysInItsProcess
from client.snapshots.changed_rows import ChangedColumns, ChangedRow, check_since
from client.snapshots.changes import ChangesReader
from client.snapshots.pages import BYTES_MAX, LOOKED_AT_MAX, ROWS_MAX, ChangesPage, PageLimits, RowsPage
from client.snapshots.ranges import key_range
from client.snapshots.stored_cells import SCAN_BATCH_ROWS
from store.columns import CellColumns

_log = logging.getLogger(__name__)

BATCH_ROWS_MAX: Final = 2**31 - 1


class Snapshot(StaysInItsProcess):
    """Reads at one timestamp. Safe to share between threads."""

    what_travels = "send its handle(), and resume_snapshot that there"

    def __init__(self, handle: SnapshotHandle, reader: ChangesReader) -> None:
        self._handle = handle
        self._reader = reader

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.timestamp}>"

    @property
    def timestamp(self) -> int:
        """What is seen: every commit at or below it."""
        return self._handle.timestamp

    @property
    def snapshot_timestamp(self) -> int:
        """The same, by the name that it has in a transaction."""
        return self._handle.timestamp

    @property
    def start_timestamp(self) -> int:
        """The id of the begin that gave it, by which the oracle knows that it is in use; 0 for a past moment."""
        return self._handle.begun

    def is_open(self) -> bool:
        """A snapshot has no end but that nobody holds it any more. The oracle knows nothing of a past moment."""
        return self._handle.begun > 0

    def give_up(self) -> None:
        """Learn from the oracle that it was not heard of for too long: versions that it reads may be vacuumed."""
        _log.warning("the oracle gave the snapshot at %d up: take a new one", self.timestamp)

    @property
    def epoch(self) -> int:
        """The first timestamp of the epoch in which the snapshot was taken."""
        return self._handle.epoch

    def handle(self) -> SnapshotHandle:
        """The snapshot as a value, for ``manager.resume_snapshot`` in another process."""
        return self._handle

    def get(self, table: str, row: bytes, columns: Sequence[bytes] | None = None) -> dict[bytes, bytes]:
        """One row: column ``b"family:qualifier"`` → value; empty where the snapshot sees none.

        ``columns``: families ``b"f"`` and columns ``b"f:q"`` to read; all of them by default. Raises
        ``InvalidRequest``, ``StoreUnavailable``.
        """
        check_read(row, columns)
        return without_reserved(self._reader.row(table, row, columns) or {})

    def get_many(
        self, table: str, rows: Collection[bytes], columns: Sequence[bytes] | None = None
    ) -> dict[bytes, dict[bytes, bytes]]:
        """Rows by their keys, in as few requests as their size allows: key → what ``get`` gives, in their order.

        Of the rows that there are: the others are left out. See ``get``.
        """
        check_reads(rows, columns)
        return {row: without_reserved(values) for row, values in self._reader.rows(table, rows, columns).items()}

    def scan(
        self,
        table: str,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        reverse: bool = False,
    ) -> Generator[tuple[bytes, dict[bytes, bytes]], None, None]:
        """Rows in key order, each (key, column → value): from ``start`` up to ``stop``, or with a ``prefix``.

        ``reverse``: the same rows from the last to the first. Rows of which nothing chosen is visible are left out,
        except those that a bulk writer marked as existing.
        """
        chosen = key_range(start, stop, prefix)
        check_scan(columns, reverse)
        for row, values in self._reader.scan(table, chosen, columns, reverse=reverse):
            yield row, without_reserved(values)

    def scan_page(
        self,
        table: str,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        columns: Sequence[bytes] | None = None,
        reverse: bool = False,
        rows_max: int = ROWS_MAX,
        bytes_max: int = BYTES_MAX,
        looked_at_max: int = LOOKED_AT_MAX,
    ) -> RowsPage:
        """The first rows of ``scan``, for as much work as is asked for: whoever has only so long goes on page by page.

        A page ends with ``rows_max`` rows, or once they have more than ``bytes_max`` bytes, or where at least
        ``looked_at_max`` rows were looked at, however few of them are visible: deleted ones cost as much, up to the
        next vacuum. So it may be empty and not be the last one, which has ``looked_at_to`` ``None``. The next one has
        the ``start`` ``page.looked_at_to + b"\x00"``, or in ``reverse`` the ``stop`` ``page.looked_at_to``, at a
        snapshot of the same ``timestamp``, in any process. Raises ``InvalidRequest``, ``StoreUnavailable``.
        """
        chosen = key_range(start, stop, b"")
        check_scan(columns, reverse)
        limits = PageLimits.checked(rows_max=rows_max, bytes_max=bytes_max, looked_at_max=looked_at_max)
        return self._reader.scan_page(table, chosen, columns, limits, reserved=False, reverse=reverse)

    def scan_columns(
        self,
        table: str,
        known: Sequence[bytes] | None = None,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Generator[CellColumns, None, None]:
        """``scan`` for many rows: batches of up to ``batch_rows``, with the values of the columns ``known`` as columns.

        ``known``: by default whatever columns the rows have, of each batch its own. ``columns`` decide, as in ``scan``,
        which rows there are; of a row that has none of ``known`` the key comes. Several times as fast as ``scan``,
        since no object is made of a cell (``store.columns``).
        """
        chosen = key_range(start, stop, prefix)
        check_columns_to_scan(known, columns, batch_rows)
        yield from self._reader.scan_columns(table, chosen, columns, known, batch_rows)

    def changes(
        self,
        table: str,
        since: int,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
    ) -> Generator[ChangedRow, None, None]:
        """The rows that are different from what a snapshot at ``since`` sees, in key order, each as it is now.

        ``since``: the ``timestamp`` of an earlier snapshot, or 0 for the beginning: then all rows come that there are.
        What was written several times in between comes once. A row that was written with the values it had comes, too;
        one that was written and deleted in between comes as deleted. ``columns``: what counts and is read, by default
        all; a row of which nothing chosen is visible any more has been deleted.

        All of the range is read, whatever has changed. Raises ``InvalidRequest`` for a ``since`` that is later than
        this snapshot or so early that a vacuum may have dropped what it saw, ``StoreUnavailable``.
        """
        chosen = key_range(start, stop, prefix)
        check_choice(columns)
        check_since(since, self.timestamp)
        yield from self._reader.scan_changes(table, chosen, columns, since)

    def changes_columns(
        self,
        table: str,
        since: int,
        known: Sequence[bytes] | None = None,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        prefix: bytes = b"",
        columns: Sequence[bytes] | None = None,
        batch_rows: int = SCAN_BATCH_ROWS,
    ) -> Generator[ChangedColumns, None, None]:
        """``changes`` for many rows, with the values of the columns ``known`` as columns; see ``scan_columns``.

        By default whatever columns the rows have.
        """
        chosen = key_range(start, stop, prefix)
        check_columns_to_scan(known, columns, batch_rows)
        check_since(since, self.timestamp)
        yield from self._reader.scan_changed_columns(table, chosen, columns, known, since, batch_rows)

    def changes_page(
        self,
        table: str,
        since: int,
        *,
        start: bytes = b"",
        stop: bytes = b"",
        columns: Sequence[bytes] | None = None,
        rows_max: int = ROWS_MAX,
        bytes_max: int = BYTES_MAX,
        looked_at_max: int = LOOKED_AT_MAX,
    ) -> ChangesPage:
        """The first of ``changes``, in key order, for as much work as is asked for.

        See ``scan_page``, and ``changes`` for ``since``. A page ends where so many rows were looked at, however few of
        them changed.
        """
        chosen = key_range(start, stop, b"")
        check_choice(columns)
        check_since(since, self.timestamp)
        limits = PageLimits.checked(rows_max=rows_max, bytes_max=bytes_max, looked_at_max=looked_at_max)
        return self._reader.changes_page(table, chosen, columns, since, limits)


def check_columns_to_scan(known: Sequence[bytes] | None, columns: Sequence[bytes] | None, batch_rows: int) -> None:
    """Raise ``InvalidRequest`` for columns that a scan cannot show, a choice that cannot be read, no such batches."""
    check_choice(columns)
    if type(batch_rows) is not int or not 1 <= batch_rows <= BATCH_ROWS_MAX:
        raise InvalidRequest(f"batch_rows is a whole number from 1 to {BATCH_ROWS_MAX:,}, not {batch_rows!r}")
    if known is None:
        return
    require_list(known)
    if not known:
        raise InvalidRequest("known names nothing: name at least one column, or leave it out to have all")
    for column in known:
        validate_column(column)
    if len(set(known)) < len(known):
        raise InvalidRequest("known names a column twice: name each once, its values are then in one place")


def check_read(row: bytes, columns: Sequence[bytes] | None) -> None:
    """Raise ``InvalidRequest`` for a row or a choice of columns that cannot be read."""
    validate_row(row)
    check_choice(columns)


def check_reads(rows: object, columns: Sequence[bytes] | None) -> None:
    """Raise ``InvalidRequest`` for rows that are no list of keys, or as ``check_read`` does; no rows are no mistake."""
    if isinstance(rows, (bytes, str)) or not isinstance(rows, Collection):
        raise InvalidRequest(f"rows are a list of keys, not {rows!r}: write [key], or list(…)")
    for row in rows:
        validate_row(row)
    check_choice(columns)


def check_scan(columns: Sequence[bytes] | None, reverse: object) -> None:
    """Raise ``InvalidRequest`` for a choice of columns that cannot be read, and for a ``reverse`` that says neither yes
    nor no: the text "false" would be taken for a yes.
    """
    check_choice(columns)
    if type(reverse) is not bool:
        raise InvalidRequest(f"reverse is True or False, not {reverse!r}")


def check_choice(columns: Sequence[bytes] | None) -> None:
    """Raise ``InvalidRequest`` for a choice of columns that cannot be read; an empty one means neither all nor none."""
    if columns is None:
        return
    require_list(columns)
    if not columns:
        raise InvalidRequest("columns names nothing: name at least one column or family, or leave it out to read all")
    for column in columns:
        validate_choice(column)
