"""Rows as a queue, of which a transaction takes so many. Pure.

The invariant: every row is given once, in its order; so what a transaction takes does not depend on how the rows were
cut into parts, be they columns of cells, or pieces of a file that is imported, each of which knows where in which file
it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from client.bulk_writes.batching import rows_of_a_piece


class Part(Protocol):
    """Some rows, one after the other."""

    @property
    def rows(self) -> int:
        """How many."""
        ...

    def cut(self: AnyPart, rows: int) -> tuple[AnyPart, AnyPart]:
        """The first ``rows`` rows, and the others."""
        ...


AnyPart = TypeVar("AnyPart", bound=Part)


class Piece(NamedTuple):
    """Some rows of a file, one after the other; ``first_row`` counts from 1, without the line of column names."""

    file: str
    first_row: int
    batch: pa.RecordBatch

    @property
    def rows(self) -> int:
        """See ``Part``."""
        rows: int = self.batch.num_rows
        return rows

    def cut(self, rows: int) -> tuple[Piece, Piece]:
        """See ``Part``."""
        return self._replace(batch=self.batch.slice(0, rows)), self._replace(
            first_row=self.first_row + rows, batch=self.batch.slice(rows)
        )

    @property
    def where(self) -> str:
        """For an error."""
        return f"{self.file}, rows {self.first_row:,} to {self.first_row + self.rows - 1:,}"


def small_pieces(pieces: Iterable[Piece], rows_max: int) -> Iterator[Piece]:
    """The same rows in pieces of at most ``rows_max`` rows, large rows in pieces of fewer."""
    for piece in pieces:
        rest = piece
        while rest.rows:
            small, rest = rest.cut(rows_of_a_piece(rest.rows, rest.batch.nbytes, rows_max))
            yield small


class Supply(Generic[AnyPart]):
    """Parts, taken a transaction at a time."""

    def __init__(self, parts: Iterable[AnyPart]) -> None:
        self._parts = iter(parts)
        self._rest: AnyPart | None = None

    def skip(self, rows: int) -> int:
        """Leave rows out; how many there were, fewer than ``rows`` at the end of the supply."""
        return sum(part.rows for part in self.take(rows))

    def take(self, rows: int) -> Iterator[AnyPart]:
        """The next ``rows`` rows, or all that are left."""
        while rows and not self.ended():
            assert self._rest is not None
            part, self._rest = self._rest.cut(min(rows, self._rest.rows))
            rows -= part.rows
            yield part

    def ended(self) -> bool:
        """Whether no row is left."""
        while self._rest is None or not self._rest.rows:
            self._rest = next(self._parts, None)
            if self._rest is None:
                return True
        return False
