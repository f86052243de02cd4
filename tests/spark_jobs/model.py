"""What jobs have to do, on dictionaries: the specification that the data source is held against.

A table is its rows, a row is its cells; a null is a cell that is not there, and a row is there while one cell of it is.
A row of nothing but nulls therefore has a cell of its own, ``EXISTS``. A transaction sees what had committed when it
began and what it wrote itself, and commits unless somebody else has committed to what it wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Key = tuple[Any, ...]
Values = Mapping[str, Any]
"""Column → value, ``None`` for a null; columns that are not named stay as they are."""
Cell = tuple[str, Key, str]
"""Table, row key, column."""
State = Mapping[str, Mapping[Key, Mapping[str, Any]]]
"""Table → row key → column → value."""

EXISTS = ""


class Outcome(Enum):
    """What becomes of a job or a transaction."""

    COMMITTED = "committed"
    CONFLICT = "conflict"
    FAILED = "failed"
    """It never commits, by its own fault or because somebody gave it up."""


@dataclass(frozen=True)
class Table:
    """A table: its columns by name with their types; whether two writers of a row conflict or only of a cell; whether
    all value columns of a row lie in one cell: then rows conflict, and every write has all columns. ``adopted``: its
    first rows are put by a program without transactions; ``plain_key``: its row key is the bytes of its one key;
    ``salt_buckets``: over how many its row keys are spread, 0: none.
    """

    name: str
    keys: Mapping[str, str]
    values: Mapping[str, str]
    by_row: bool
    packed: bool = False
    adopted: bool = False
    plain_key: bool = False
    salt_buckets: int = 0

    def is_within(self, key: Key, prefix: Key) -> bool:
        """Whether a key begins with these values; a plain one with these very bytes, which go on."""
        if self.plain_key and prefix:
            return bool(key[0].startswith(prefix[0]))
        return key[: len(prefix)] == prefix


@dataclass
class Draft:
    """An open transaction."""

    tables: Mapping[str, Table]
    seen: State
    commits_seen: int
    writes: dict[Cell, Any] = field(default_factory=dict)
    failed: bool = False

    def state(self) -> State:
        """What it sees, its own writes included."""
        return applied(self.seen, self.writes)

    def upsert(self, table: str, rows: Mapping[Key, Values]) -> None:
        """Write some columns of rows."""
        for key, values in rows.items():
            for column, value in values.items():
                self.writes[table, key, column] = value
            if all(value is None for value in values.values()):
                self.writes[table, key, EXISTS] = True

    def delete(self, table: str, keys: Iterable[Key]) -> None:
        """Delete rows, whether they are there or not."""
        for key in keys:
            for column in (*self.tables[table].values, EXISTS):
                self.writes[table, key, column] = None

    def overwrite(self, table: str, rows: Mapping[Key, Values], prefix: Key = ()) -> None:
        """Replace the table, or its rows whose keys begin with ``prefix``."""
        here = [key for key in self.state()[table] if self.tables[table].is_within(key, prefix)]
        self.delete(table, [key for key in here if key not in rows])
        self.upsert(table, rows)

    def delete_seen(self, table: str, key: Key) -> None:
        """Delete the cells of a row that are there, as a program without Spark does."""
        for column in self.state()[table].get(key, {}):
            self.writes[table, key, column] = None


class Model:
    """All tables, and what was committed to them in turn."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self.tables = {table.name: table for table in tables}
        self.state: State = {name: {} for name in self.tables}
        self._commits: list[set[Cell]] = []

    def begin(self) -> Draft:
        """A transaction that sees everything committed by now."""
        return Draft(self.tables, self.state, len(self._commits))

    def commit(self, draft: Draft) -> Outcome:
        """Make a transaction's writes visible, or none of them."""
        if draft.failed:
            return Outcome.FAILED
        compared = self._compared(draft.writes)
        if any(compared & other for other in self._commits[draft.commits_seen :]):
            return Outcome.CONFLICT
        self.state = applied(self.state, draft.writes)
        self._commits.append(compared)
        return Outcome.COMMITTED

    def _compared(self, writes: Iterable[Cell]) -> set[Cell]:
        """What two transactions must not both write; for a table by row, its rows."""
        return {(table, key, "" if self.tables[table].by_row else f"c:{column}") for table, key, column in writes}


def applied(state: State, writes: Mapping[Cell, Any]) -> State:
    """Another state: with these cells written."""
    after = {name: {key: dict(row) for key, row in rows.items()} for name, rows in state.items()}
    for (table, key, column), value in writes.items():
        row = after[table].setdefault(key, {})
        if value is None:
            row.pop(column, None)
        else:
            row[column] = value
        if not row:
            del after[table][key]
    return after
