"""Landing the rows of files in a table: all in one transaction, or so many rows in each (``client.tables.steps``).

Two rows of one transaction must not have one row key, since it is not defined which would win; of rows in different
transactions the later one does, as with any write.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from client.bulk_writes.writing import AttemptWriter
from client.cells import write_set_of_columns
from client.manager import TransactionManager
from client.spark.codecs import RowEncoder
from client.spark.errors import InvalidData
from client.spark.mapping import TableMapping
from client.tables.casting import cast, check_fits
from client.tables.change_files import ChangeEncoder, is_gone
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
    changes: bool = False,
) -> Landed:
    """Land the rows of files, in their order. ``again``: also those that have landed before. ``changes``: the files say
    what has changed, and so which rows are to be put and which to be deleted.

    ``rows_per_transaction``: ``None`` for all in one transaction. Raises ``UnreadableFile`` and ``InvalidData`` for
    what is wrong with a file, and every error of a transaction; nothing of the transaction that it met has landed then.
    """
    for file in files:
        check_fits(mapping, file.schema(), str(file.path), file.format, changes=changes)
    record = ImportRecord(manager, mapping.table, digest(files))
    recorded = record.read()
    steps = Steps(manager, mapping.table, record, recorded, tell)
    importing = _Import(mapping, steps, tell, partial(ChangeEncoder, manager.store, mapping) if changes else None)
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

    def __init__(
        self, mapping: TableMapping, steps: Steps, tell: Tell, changes_of: Callable[[int], ChangeEncoder] | None
    ) -> None:
        """``changes_of``: of files that say what has changed what encodes them, for a transaction's start timestamp."""
        self._mapping = mapping
        self._encoder = RowEncoder(mapping)
        self._steps = steps
        self._tell = tell
        self._changes_of = changes_of

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
        changes = self._changes_of(writer.start_timestamp) if self._changes_of else None
        for piece in pieces:
            for cells in self._encoded(piece, changes):
                self._require_new(writer, keys, cells, piece)
                writer.write(cells)
            rows += piece.rows
            self._tell(landed + rows, False)
        return rows

    def _encoded(self, piece: Piece, changes: ChangeEncoder | None) -> Iterator[CellColumns]:
        rows = cast(self._mapping, piece)
        gone = None if changes is None else is_gone(piece)
        try:
            if changes is None:
                yield self._encoder.encode(rows)
            else:
                yield from changes.pieces(rows, gone)
        except InvalidData as error:
            raise InvalidData(f"{piece.where}: {error}") from error

    def _require_new(self, writer: AttemptWriter, keys: RowKeySet, cells: CellColumns, piece: Piece) -> None:
        """Raise ``InvalidData`` for a row key that was written before in the transaction."""
        for index in keys.add(write_set_of_columns(self._mapping.table, cells, by_row=True)):
            if writer.has_written(cells.row_key(index)):
                raise InvalidData(
                    f"{self._place_of(piece, cells, index)}: an earlier row of the transaction has the same "
                    f"row key ({', '.join(self._mapping.row_key)}), and which of them would win is not defined"
                )

    def _place_of(self, piece: Piece, cells: CellColumns, index: int) -> str:
        """Of one of the rows of a piece, of which there are fewer in ``cells`` where it also deletes."""
        if self._changes_of is None:
            return f"{piece.file}, row {piece.first_row + index:,}"
        return f"{piece.where}, the row with the key {cells.row_key(index)!r}"
