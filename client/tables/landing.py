"""Landing the rows of files in a table: all in one transaction, or so many rows in each (``client.tables.steps``).

Two rows of one transaction must not have one row key, since it is not defined which would win; of rows in different
transactions the later one does, as with any write.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from client.bulk_writes.writing import AttemptWriter
from client.cells import write_set_of_columns
from client.manager import TransactionManager
from client.spark.codecs import RowEncoder
from client.spark.errors import InvalidData
from client.spark.mapping import TableMapping
from client.tables.casting import cast, check_fits
from client.tables.files import DataFile, digest
from client.tables.record import ImportRecord, Progress
from client.tables.row_key_set import RowKeySet
from client.tables.steps import ROWS_PER_TRANSACTION_MAX, Landed, Steps, Tell, too_many
from client.tables.supply import Piece, Supply, small_pieces
from store.columns import CellColumns

PIECE_ROWS: Final = 10_000
"""Rows that are encoded, recorded and written at a time."""


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
    importing = _Import(mapping, Steps(manager, mapping.table, record, recorded, tell), tell)
    supply = Supply(small_pieces(itertools.chain.from_iterable(file.pieces() for file in files), PIECE_ROWS))
    rows_before = 0 if again else supply.skip(recorded.rows)
    if rows_per_transaction is None:
        _require_one_transaction(files, rows_before)
    landed, transactions = rows_before, 0
    while not supply.ended():
        landed = importing.land_next(supply, landed, rows_per_transaction)
        transactions += 1
    return Landed(rows_before, landed - rows_before, transactions)


def _require_one_transaction(files: Sequence[DataFile], rows_before: int) -> None:
    """Raise ``InvalidData`` where the files say that they have too many rows, before so many are written in vain."""
    if sum(file.rows_known() for file in files) - rows_before > ROWS_PER_TRANSACTION_MAX:
        raise _too_many_rows()


def _too_many_rows() -> InvalidData:
    return too_many(f"the files hold more than {ROWS_PER_TRANSACTION_MAX:,} rows")


class _Import:
    """One run of an import, transaction after transaction.

    Hashes of one transaction's row keys are held in memory, to refuse one that comes twice.
    """

    def __init__(self, mapping: TableMapping, steps: Steps, tell: Tell) -> None:
        self._mapping = mapping
        self._encoder = RowEncoder(mapping)
        self._steps = steps
        self._tell = tell

    def land_next(self, supply: Supply[Piece], landed: int, rows_max: int | None) -> int:
        """Land the next rows in one transaction, all of them where ``rows_max`` is ``None``; how many have by then."""

        def write(writer: AttemptWriter) -> Progress:
            rows = self._write(writer, supply.take(rows_max or ROWS_PER_TRANSACTION_MAX), landed)
            if rows_max is None and not supply.ended():
                raise _too_many_rows()
            return Progress(landed + rows)

        return self._steps.land(write).rows

    def _write(self, writer: AttemptWriter, pieces: Iterator[Piece], landed: int) -> int:
        rows = 0
        keys = RowKeySet()
        for piece in pieces:
            cells = self._encoded(piece)
            self._require_new(writer, keys, cells, piece)
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

    def _require_new(self, writer: AttemptWriter, keys: RowKeySet, cells: CellColumns, piece: Piece) -> None:
        """Raise ``InvalidData`` for a row key that an earlier piece of the transaction has."""
        for index in keys.add(write_set_of_columns(self._mapping.table, cells, by_row=True)):
            if writer.has_written(cells.row_key(index)):
                raise InvalidData(
                    f"{piece.file}, row {piece.first_row + index:,}: an earlier row of the transaction has the same "
                    f"row key ({', '.join(self._mapping.row_key)}), and which of them would win is not defined"
                )
