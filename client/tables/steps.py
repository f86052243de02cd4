"""One transaction after the other, each of which lands rows in a table and how far that is.

A transaction's rows go the way of a bulk write (``client.bulk_writes.writing``): recorded, written at its start
timestamp, made visible by one commit. How far it all has come is written in the same transaction
(``client.tables.record``), so that running a command again after it was killed lands nothing twice, and sets back
nothing that others changed since.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from client.bulk_writes.writing import AttemptWriter
from client.errors import PythiaError, TransactionTooLarge
from client.manager import TransactionManager
from client.spark.errors import InvalidData
from client.tables.record import ImportRecord, Progress
from client.tables.supply import Supply
from client.transactions.settling import commit_or_settle
from store import StoreError
from store.columns import CellColumns

ROWS_PER_TRANSACTION_MAX: Final = 15_000_000
"""Below the 16 million conflict keys that an oracle takes of one commit, unless its operator says otherwise: how far it
all has come is a row of the transaction, too."""

_ROWS_ATTEMPT: Final = (0, 0)
_RECORD_ATTEMPT: Final = (1, 0)

Tell = Callable[[int, bool], None]
"""Told how many rows are written by now, and whether they have all landed."""


class Landed(NamedTuple):
    """What was done: the rows that had landed before it began, those that it landed, in how many transactions."""

    rows_before: int
    rows: int
    transactions: int


class Steps:
    """The transactions of one run. ``recorded``: what is on record as it begins."""

    def __init__(
        self, manager: TransactionManager, table: str, record: ImportRecord, recorded: Progress, tell: Tell
    ) -> None:
        self._manager = manager
        self._table = table
        self._record = record
        self._recorded = recorded
        self._tell = tell

    def land(self, write: Callable[[AttemptWriter], Progress]) -> Progress:
        """One transaction: ``write`` writes its rows, and says how far it all has come with them.

        Raises what ``write`` raises, ``InvalidData`` where there were too many rows, and every error of a transaction;
        nothing of the transaction has landed then.
        """
        transaction = self._manager.transaction()
        try:
            self._record.require(transaction, self._recorded)
            handle = transaction.handle()
            job = self._manager.open_job(handle)
            progress = write(
                self._manager.attempt_writer(
                    handle, self._table, job, partition=_ROWS_ATTEMPT[0], attempt=_ROWS_ATTEMPT[1]
                )
            )
            recorder = self._manager.attempt_writer(
                handle, self._record.table, job, partition=_RECORD_ATTEMPT[0], attempt=_RECORD_ATTEMPT[1]
            )
            recorder.write(CellColumns.of_puts([self._record.put(progress)]))
            self._manager.seal_job(handle, job, [_ROWS_ATTEMPT, _RECORD_ATTEMPT])
        except BaseException:
            with contextlib.suppress(PythiaError, StoreError):  # else it expires; the first error is the one to show
                transaction.rollback()
            raise
        try:
            commit_or_settle(self._manager.resume(handle))
        except TransactionTooLarge as error:
            raise too_many(str(error)) from error
        self._recorded = progress
        self._tell(progress.rows, True)
        return progress

    def land_all(self, batches: Iterable[CellColumns], rows_per_transaction: int, landed: Progress) -> Landed:
        """Land rows of stored values, which come in the order of their keys, so many of them in a transaction.

        ``landed``: how far it had come before the first of them; from then on the last row key says it. Raises as
        ``land``, and what ``batches`` raise.
        """
        before, transactions, supply = landed.rows, 0, Supply(batches)
        while not supply.ended():
            landed = self.land(partial(self._write, supply.take(rows_per_transaction), landed))
            transactions += 1
        return Landed(before, landed.rows - before, transactions)

    def _write(self, batches: Iterable[CellColumns], landed: Progress, writer: AttemptWriter) -> Progress:
        """The rows of one transaction; ``landed``: how far it all has come before it."""
        for cells in batches:
            writer.write(cells)
            landed = Progress(landed.rows + cells.rows, cells.row_key(-1))
            self._tell(landed.rows, False)
        return landed


def too_many(what: str) -> InvalidData:
    """An error that says what to do where a transaction is to land too many rows."""
    return InvalidData(
        f"{what}; nothing of this transaction has landed: land fewer rows in each, with --rows-per-transaction"
    )
