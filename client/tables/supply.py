"""The rows of an import as a queue of small pieces, each of which knows where in which file it lies. Pure.

The invariant: every row is given once, in the order of the files, and no piece has more rows than what was asked for;
so what a transaction takes does not depend on how a file was cut into batches. Large rows come in pieces of fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from client.bulk_writes.batching import rows_of_a_piece


class Piece(NamedTuple):
    """Some rows of a file, one after the other; ``first_row`` counts from 1, without the line of column names."""

    file: str
    first_row: int
    batch: pa.RecordBatch

    def cut(self, rows: int) -> tuple[Piece, Piece]:
        """The first ``rows`` rows, and the others."""
        return self._replace(batch=self.batch.slice(0, rows)), self._replace(
            first_row=self.first_row + rows, batch=self.batch.slice(rows)
        )

    @property
    def where(self) -> str:
        """For an error."""
        return f"{self.file}, rows {self.first_row:,} to {self.first_row + self.batch.num_rows - 1:,}"


class Supply:
    """Pieces of at most ``piece_rows`` rows, taken a transaction at a time."""

    def __init__(self, pieces: Iterable[Piece], piece_rows: int) -> None:
        self._pieces = iter(pieces)
        self._piece_rows = piece_rows
        self._rest: Piece | None = None

    def skip(self, rows: int) -> int:
        """Leave rows out; how many there were, fewer than ``rows`` at the end of the supply."""
        return sum(piece.batch.num_rows for piece in self._take(rows, rows))

    def take(self, rows: int) -> Iterator[Piece]:
        """The next ``rows`` rows, or all that are left."""
        return self._take(rows, self._piece_rows)

    def ended(self) -> bool:
        """Whether no row is left."""
        while self._rest is None or not self._rest.batch.num_rows:
            self._rest = next(self._pieces, None)
            if self._rest is None:
                return True
        return False

    def _take(self, rows: int, piece_rows: int) -> Iterator[Piece]:
        while rows and not self.ended():
            assert self._rest is not None
            batch = self._rest.batch
            together = rows_of_a_piece(batch.num_rows, batch.nbytes, min(rows, piece_rows))
            piece, self._rest = self._rest.cut(together)
            rows -= piece.batch.num_rows
            yield piece
