"""What a transaction relies on without writing it: cells that nobody else may have changed when it commits. Pure.

Under snapshot isolation two transactions may both commit of which each read what the other wrote (*write skew*). One
that guards what it read does not: the conflict keys of those cells travel with its commit as guards, which the oracle
compares as it does a write set, and does not enter. So a guard conflicts with whoever has written the cell since the
snapshot, and those who only guard it do not conflict with one another; where the oracle does not remember, the data is
looked at as it is for a write set (``client.transactions.revalidation``).

The invariant: between a transaction's snapshot and its commit nobody has committed a write to a cell that it guards. So
transactions that guard all that they read are serializable, in the order of their commits ("A Critique of Snapshot
Isolation", EuroSys 2012, which judges all reads so, and no writes; FoundationDB has read conflict keys).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from client.cells import validate_column, write_set
from client.errors import InvalidRequest

GUARDED_CELLS_MAX: Final = 10_000
"""In one transaction, a row guarded whole counted as one: the oracle compares all of them in one go."""


class GuardedCells:
    """The rows and columns that one transaction guards, each once."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[bytes, set[bytes]]] = {}
        self._by_row: dict[str, bool] = {}
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._tables)

    @property
    def tables(self) -> Collection[str]:
        """The tables that they are of."""
        return self._tables.keys()

    def by_table(self) -> Mapping[str, Mapping[bytes, Collection[bytes]]]:
        """Table → row → columns; none: the row is guarded whole."""
        return self._tables

    def keys(self) -> set[int]:
        """Their conflict keys."""
        tables = self._tables.items()
        return {key for table, rows in tables for key in write_set(table, rows, by_row=self._by_row[table])}

    def add(self, table: str, rows: Collection[bytes], columns: Collection[bytes] | None, *, by_row: bool) -> None:
        """Guard these columns of each row, or, where the table's conflicts are ``by_row``, each row whole.

        Raises ``InvalidRequest``, and guards nothing of it, for too many and for columns that name no cells.
        """
        guarded = frozenset() if by_row else _named(table, columns)
        standing = self._tables.get(table, {})
        new = {row: guarded - standing[row] if row in standing else guarded for row in rows}
        added = sum(len(cells) if row in standing else max(1, len(cells)) for row, cells in new.items())
        if self._count + added > GUARDED_CELLS_MAX:
            raise InvalidRequest(
                f"a transaction guards {GUARDED_CELLS_MAX:,} cells at most, or rows where conflicts are by row: guard "
                f"one that stands for many, which whoever changes one of those writes, too"
            )
        if new:
            self._by_row[table] = by_row
            kept = self._tables.setdefault(table, standing)
            for row, cells in new.items():
                kept.setdefault(row, set()).update(cells)
            self._count += added


def _named(table: str, columns: Collection[bytes] | None) -> frozenset[bytes]:
    """The columns, each of which names a cell of a row. Raises ``InvalidRequest``."""
    if columns is None:
        raise InvalidRequest(
            f"in table {table!r} conflicts are by cell: name the columns to guard, each b'family:qualifier' (a table "
            f'whose rows are guarded whole is made with conflict_level="row")'
        )
    for column in columns:
        validate_column(column)
    return frozenset(columns)
