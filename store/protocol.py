"""What Pythia asks of a store of cells, as one small Protocol.

The store is plain HBase, seen through its Thrift gateway, or a twin in memory: a table holds rows in the order of
their keys, a row holds columns ``b"family:qualifier"``, a column holds *cells*: values with a 64-bit timestamp, newest
first. Everything above this room names exact timestamps; nothing here knows what a transaction is.

Both adapters pass the tests in ``tests/contract/test_cell_store.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from store.cells import Cell, Family, KeyRange, Row, RowPut
from store.columns import CellColumns, ScannedColumns


@dataclass(frozen=True, slots=True)
class Applied:
    """The compare-and-set took place."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """What the compare-and-set expected was not what is stored.

    Read before you conclude who wrote it: HBase's own client, inside the gateway, may ask twice, and then the caller's
    own first try is what the second one met.
    """


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer came: the compare-and-set may have taken place, may not have, or *may yet*. Read, then decide."""

    reason: str


CompareAndSet = Applied | Rejected | Unknown


class CellStore(Protocol):
    """Tables of cells. Safe to call from several threads at once.

    In every call ``table`` is a name, ``columns`` a non-empty choice of families (``b"f"``) and columns
    (``b"f:qualifier"``; ``b"f:"`` is the column with the empty qualifier), and ``before`` an *exclusive* upper bound on
    cell timestamps (``None``: no bound). A family with few ``versions_max`` may or may not still show a version beyond
    them to a read with a bound: only families with ``ALL_VERSIONS`` have a past to rely on.

    Errors: ``StoreUnavailable`` when the gateway or the store could not be asked within the store's own limits (reads
    and writes have been retried on a fresh connection before it is raised: both are idempotent), ``TableMissing``,
    ``InvalidCell`` for keys, columns and timestamps that the store could not hold (then nothing was asked or written).
    """

    def create_table(self, table: str, families: Sequence[Family], split_keys: Sequence[bytes] = ()) -> None:
        """Make a table. ``TableExists`` when it is there already, be it by an earlier try of this very call.

        ``split_keys``: where its regions begin, all but the first one, in any order; none: it has one region.
        ``CannotPreSplit`` where this store makes none with several.
        """
        ...

    def drop_table(self, table: str) -> None:
        """Remove a table with all its cells. ``TableMissing`` when there is none."""
        ...

    def table_names(self) -> list[str]:
        """Every table of the store, sorted."""
        ...

    def families(self, table: str) -> dict[str, Family]:
        """The families of a table by name."""
        ...

    def regions(self, table: str) -> list[KeyRange]:
        """The table's key space as the ranges in which the store keeps it, each once, in order, without gaps."""
        ...

    def get(self, table: str, row: bytes, columns: Sequence[bytes], *, before: int | None = None) -> Row:
        """The newest cell below ``before`` of each chosen column of one row; empty when there is none."""
        ...

    def get_many(
        self, table: str, rows: Sequence[bytes], columns: Sequence[bytes], *, before: int | None = None
    ) -> dict[bytes, Row]:
        """``get`` for many rows, in as few requests as their size allows; rows without a cell are left out."""
        ...

    def get_columns(
        self,
        table: str,
        rows: Sequence[bytes],
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
    ) -> Iterator[ScannedColumns]:
        """``get_many`` with the rows as columns (``store.columns``), in batches of bounded size, for whoever reads many
        rows. Name each row once. ``known``: as in ``scan_columns``. Bad arguments raise at the call, all else as rows
        are fetched.
        """
        ...

    def versions(self, table: str, row: bytes, column: bytes, *, before: int | None = None, limit: int) -> list[Cell]:
        """Up to ``limit`` cells of one column below ``before``, newest first."""
        ...

    def scan(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, Row]]:
        """Rows of a range in key order (``reverse``: from the last to the first), each with its newest cells.

        Fetched ``batch_rows`` at a time at most. Not a snapshot: rows written meanwhile may or may not be met, each row
        whole. It survives a lost connection by going on after the last row it gave. The connection it uses goes back to
        the pool between batches, so an abandoned iterator holds nothing. Where few cells are below ``before``, the next
        row may be minutes away, and is waited for within the store's own limits. Bad arguments raise at the call, all
        else as rows are fetched.
        """
        ...

    def scan_columns(
        self,
        table: str,
        key_range: KeyRange,
        columns: Sequence[bytes],
        known: Sequence[bytes],
        *,
        before: int | None = None,
        batch_rows: int = 500,
        without_qualifier: bytes | None = None,
    ) -> Iterator[ScannedColumns]:
        """``scan``, with the rows of each batch as columns (``store.columns``), for whoever reads many rows.

        ``known``: the columns that the batches have, each named once, in this order; the cells of others that
        ``columns`` chooses come one by one. No batch is empty, and the bytes of one stay what they are for as long as
        it is held.
        ``without_qualifier``: cells with this one, of any family, stay in the store, and so do rows that have no other.
        """
        ...

    def put_columns(
        self, table: str, cells: CellColumns, timestamp: int, *, before_each: Callable[[], None] = lambda: None
    ) -> None:
        """``put`` of rows that come as columns (``store.columns``), for whoever writes many rows.

        ``before_each`` is called before each request that is sent, a repeated one too; what it raises ends the write,
        of which a part is written then.
        """
        ...

    def put(self, table: str, puts: Sequence[RowPut], timestamp: int) -> None:
        """Write rows, every cell at ``timestamp``. Each row is atomic, the whole is not; repeating it is harmless.

        Name a row once in a call: HBase does not say which of two values for one cell stays.
        """
        ...

    def delete(self, table: str, rows: Sequence[bytes], timestamp: int) -> None:
        """Remove every cell of the rows at or below ``timestamp``; *later* puts at or below it may stay hidden too."""
        ...

    def delete_columns(self, table: str, columns: Mapping[bytes, Sequence[bytes]], timestamp: int) -> None:
        """Remove the cells at or below ``timestamp`` of some columns: row → ``b"f:qualifier"``s. See ``delete``."""
        ...

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        """Put column ``put`` if the newest cell of column ``check`` holds ``expected`` (``None``: has no cell).

        The cell gets the store's own time in milliseconds as its timestamp, or that of the checked cell where that is
        larger: a newer cell of column ``put``, when that is another column, hides it. ``expected`` and ``value`` are
        not empty: HBase cannot tell an empty value from an absent cell. Sent once: an ambiguous end is ``Unknown``.
        Here ``StoreUnavailable`` means that it was not sent at all.
        """
        ...

    def close(self) -> None:
        """Give back connections; later calls raise ``StoreClosed``."""
        ...
