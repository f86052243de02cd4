"""Landing the rows of files in a table: all in one transaction, or so many rows in each.

A transaction's rows go the way of a bulk write (``client.bulk``): recorded, written at its start timestamp, made
visible by one commit. How far the import has come is written in the same transaction (``client.tables.record``), so
that running a command again after it was killed lands nothing twice, and sets back nothing that others changed since.

Two rows of one transaction must not have one row key, since it is not defined which would win; of rows in different
transactions the later one does, as with any write.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from client.bulk import AttemptWriter
from client.errors import PythiaError, TransactionTooLarge
from client.manager import TransactionManager
from client.settling import commit_or_settle
from client.spark.codecs import RowEncoder
from client.spark.errors import InvalidData
from client.spark.mapping import TableMapping
from client.tables.casting import cast, check_fits
from client.tables.files import DataFile, digest
from client.tables.record import ImportRecord
from client.tables.supply import Piece, Supply
from store import StoreError
from store.columns import CellColumns

ROWS_PER_TRANSACTION_MAX: Final = 1_000_000
"""An import holds the row keys of one transaction in memory, to refuse one that comes twice: about 100 bytes each."""
PIECE_ROWS: Final = 2_000
"""Rows that are encoded, recorded and written at a time."""

_ROWS_ATTEMPT: Final = (0, 0)
_RECORD_ATTEMPT: Final = (1, 0)

Tell = Callable[[int, bool], None]
"""Told how many rows of the import are written by now, and whether they have all landed."""


class Landed(NamedTuple):
    """What an import did: the rows that had landed before it began, those that it landed, in how many transactions."""

    rows_before: int
    rows: int
    transactions: int


def land(
    manager: TransactionManager,
    mapping: TableMapping,
    files: Sequence[DataFile],
    rows_per_transaction: int | None,
    tell: Tell,
    *,
    again: bool = False,
) -> Landed:
    """Land the rows of files, in their order. ``again``: also those that have landed before.

    ``rows_per_transaction``: ``None`` for all in one transaction. Raises ``UnreadableFile`` and ``InvalidData`` for
    what is wrong with a file, and every error of a transaction; nothing of the transaction that it met has landed then.
    """
    for file in files:
        check_fits(mapping, file.schema(), str(file.path), file.format)
    record = ImportRecord(manager, mapping.table, digest(files))
    recorded = record.read()
    importing = _Import(manager, mapping, record, recorded, tell)
    supply = Supply(itertools.chain.from_iterable(file.pieces() for file in files), PIECE_ROWS)
    rows_before = 0 if again else supply.skip(recorded)
    landed, transactions = rows_before, 0
    while not supply.ended():
        landed += importing.land_next(supply, landed, rows_per_transaction)
        transactions += 1
    return Landed(rows_before, landed - rows_before, transactions)


class _Import:
    """One run of an import, transaction after transaction."""

    def __init__(
        self, manager: TransactionManager, mapping: TableMapping, record: ImportRecord, recorded: int, tell: Tell
    ) -> None:
        self._manager = manager
        self._mapping = mapping
        self._encoder = RowEncoder(mapping)
        self._record = record
        self._recorded = recorded
        self._tell = tell

    def land_next(self, supply: Supply, landed: int, rows_max: int | None) -> int:
        """Land the next rows in one transaction, all of them where ``rows_max`` is ``None``; how many they were."""
        transaction = self._manager.transaction()
        try:
            self._record.require(transaction, self._recorded)
            handle = transaction.handle()
            job = self._manager.open_job(handle)
            writer = self._manager.attempt_writer(
                handle, self._mapping.table, job, partition=_ROWS_ATTEMPT[0], attempt=_ROWS_ATTEMPT[1]
            )
            rows = self._write(writer, supply.take(rows_max or ROWS_PER_TRANSACTION_MAX), landed)
            if rows_max is None and not supply.ended():
                raise _too_many(f"the files hold more than {ROWS_PER_TRANSACTION_MAX:,} rows")
            recorder = self._manager.attempt_writer(
                handle, self._record.table, job, partition=_RECORD_ATTEMPT[0], attempt=_RECORD_ATTEMPT[1]
            )
            recorder.write(CellColumns.of_puts([self._record.put(landed + rows)]))
            self._manager.seal_job(handle, job, [_ROWS_ATTEMPT, _RECORD_ATTEMPT])
        except BaseException:
            with contextlib.suppress(PythiaError, StoreError):  # else it expires; the first error is the one to show
                transaction.rollback()
            raise
        try:
            commit_or_settle(self._manager.resume(handle))
        except TransactionTooLarge as error:
            raise _too_many(str(error)) from error
        self._recorded = landed + rows
        self._tell(landed + rows, True)
        return rows

    def _write(self, writer: AttemptWriter, pieces: Iterator[Piece], landed: int) -> int:
        rows = 0
        keys: set[bytes] = set()
        for piece in pieces:
            cells = self._encoded(piece)
            self._require_new(keys, cells.row_keys(), piece)
            writer.write(cells)
            rows += cells.rows
            self._tell(landed + rows, False)
        return rows

    def _encoded(self, piece: Piece) -> CellColumns:
        batch = cast(self._mapping, piece)
        try:
            return self._encoder.encode(batch)
        except InvalidData as error:
            raise InvalidData(f"{piece.where}: {error}") from error

    def _require_new(self, keys: set[bytes], rows: Sequence[bytes], piece: Piece) -> None:
        """Raise ``InvalidData`` for a row key that an earlier piece of the transaction has."""
        for index, row in enumerate(rows):
            if row in keys:
                raise InvalidData(
                    f"{piece.file}, row {piece.first_row + index:,}: an earlier row of the transaction has the same "
                    f"row key ({', '.join(self._mapping.row_key)}), and which of them would win is not defined"
                )
            keys.add(row)


def _too_many(what: str) -> InvalidData:
    return InvalidData(
        f"{what}; nothing of this transaction has landed: land fewer rows in each, with --rows-per-transaction"
    )
