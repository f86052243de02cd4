"""Dropping the records of transactions that ended, once every shadow cell of theirs stands.

Call these only after every table was swept without an error at a horizon at or above ``through``: from then on no cell
needs a record below it, but those whose writers the sweep left without a shadow cell. Of a bulk transaction that was
aborted the claim of its end stays: a process that starts over with its handle would find nothing written, and commit
that.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from client.bulk_writes.manifest import END, KEY_COLUMNS, START
from client.manager import TransactionManager
from client.vacuum.report import VacuumReport
from commit_table import Committed, Undecided, layout, system_table
from store import CellStore, KeyRange

KEYS_PER_BATCH_MAX = 1_000
SCAN_BATCH_ROWS = 100
"""Rows of the commit table have many columns, those of the manifest large ones."""


def forget_bulk_writes(manager: TransactionManager, report: VacuumReport, through: int) -> None:
    """Drop the manifest's records of transactions that began at or below ``through``; who is undecided is aborted.

    Raises ``NoPrimary``, ``StoreUnavailable``.
    """
    table = system_table(manager.settings.root, "manifest")
    if table not in manager.store.table_names():
        return
    records: defaultdict[int, list[bytes]] = defaultdict(list)
    below = KeyRange(START.pack(0), START.pack(through + 1))
    for key, _ in manager.store.scan(table, below, KEY_COLUMNS, batch_rows=SCAN_BATCH_ROWS):
        (start_timestamp,) = START.unpack_from(key)
        records[start_timestamp].append(key)
    for start_timestamp, keys in records.items():
        written = [key for key in keys if key[START.size :] != END]
        if _committed(manager, start_timestamp, has_written=bool(written), dry_run=report.dry_run):
            written = keys
        else:
            report.manifest_claims_kept += 1
        report.manifest_records_dropped += len(written)
        if not report.dry_run:
            for first in range(0, len(written), KEYS_PER_BATCH_MAX):
                manager.store.delete(table, written[first : first + KEYS_PER_BATCH_MAX], start_timestamp)


def _committed(manager: TransactionManager, start_timestamp: int, *, has_written: bool, dry_run: bool) -> bool:
    """Whether a transaction is known to have committed; else it is aborted for good, and its end claimed, while it has
    records. Of one that is forgotten these came after its end: a task was still at work.
    """
    outcome = manager.commit_table.outcome(start_timestamp)
    if not isinstance(outcome, Committed) and has_written and not dry_run:
        if isinstance(outcome, Undecided) and start_timestamp >= manager.commit_table.forgotten_below():
            outcome = manager.oracle.abort(start_timestamp)
        if not isinstance(outcome, Committed):
            manager.manifest.claim_end(start_timestamp, uuid.uuid4().hex)
    return isinstance(outcome, Committed)


def drop_commit_rows(
    store: CellStore,
    table: str,
    report: VacuumReport,
    first_block_kept: int,
    epoch: int,
    lasting: Iterable[int] = (),
) -> None:
    """Drop the rows of the milliseconds before ``first_block_kept``, with all that oracles up to ``epoch`` wrote there,
    but for the records of the transactions ``lasting``.

    Raises ``StoreError``.
    """
    staying: defaultdict[bytes, list[int]] = defaultdict(list)
    for start_timestamp in lasting:
        staying[layout.row_key(start_timestamp)].append(start_timestamp)
    for blocks in layout.rows_before(first_block_kept):
        rows = store.scan(table, blocks, [b"c", b"f"], batch_rows=SCAN_BATCH_ROWS)
        parts = ((key, layout.columns_of_others(row, staying[key]) if key in staying else None) for key, row in rows)
        while batch := list(islice(parts, KEYS_PER_BATCH_MAX)):
            whole = [key for key, columns in batch if columns is None]
            report.commit_table_rows_dropped += len(whole)
            report.commit_table_rows_lasting += len(batch) - len(whole)
            if not report.dry_run:
                _delete(store, table, whole, {key: columns for key, columns in batch if columns}, epoch)


def _delete(
    store: CellStore, table: str, whole: Sequence[bytes], partly: Mapping[bytes, Sequence[bytes]], epoch: int
) -> None:
    if whole:
        store.delete(table, whole, epoch)
    if partly:
        store.delete_columns(table, partly, epoch)
