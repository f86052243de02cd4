"""A story on real Spark and real HBase: each step done, and what comes of it compared with what the model says.

Only what users have is used: DataFrames, options and the transaction manager. Rows travel as Arrow both ways, so that
no time zone of the session and no conversion of Python's comes between a value and itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

from client import Conflict, SnapshotHandle, Transaction, TransactionAborted, TransactionManager
from client.catalog.entry import ConflictLevel
from client.spark import KeyColumn, TableMapping, ValueColumn, adopt_table, create_table, register, row_key
from client.spark.byte_columns import ByteColumn
from client.spark.change_columns import CHANGE_TYPE, DELETE
from client.spark.packing import unpack
from client.vacuum.sweep import Sweep
from client.vacuum.swept import NOT_SWEPT, Sweeping, Swept
from lease.clocks import wall_ms
from store import Family, RowPut
from store.columns import ABSENT
from tests.spark_jobs.faults import WANTED, with_fault
from tests.spark_jobs.inventing import in_order, shown
from tests.spark_jobs.model import Key, Outcome, Table, Values
from tests.spark_jobs.steps import (
    Adopt,
    Begin,
    Condition,
    Fault,
    Finish,
    How,
    Look,
    Plain,
    Read,
    Step,
    Story,
    Vacuum,
    Write,
    WriteShadows,
)
from tests.spark_jobs.values import ARROW, as_json, cell_bytes

FORMAT: Final = "pythia"
CHANGED: Final = ", by what has changed since an earlier one"


class Difference(AssertionError):
    """Spark and the model do not agree; the text says in which step, and in what."""


class StoryRun:
    """One story on tables whose names begin with ``prefix``.

    ``done`` counts the steps that were done, by kind; ``reached`` is the last one that was begun.
    """

    def __init__(self, spark: SparkSession, manager: TransactionManager, story: Story, prefix: str) -> None:
        self.done: Counter[str] = Counter()
        self.reached = 0
        self._spark = spark
        self._manager = manager
        self._story = story
        self._tables = {table.name: table for table in story.tables}
        self._mappings = {table.name: _mapping(table, f"{prefix}_{table.name}") for table in story.tables}
        self._open: dict[str, Transaction] = {}
        self._snapshots: dict[str, SnapshotHandle] = {}
        self._timestamps: dict[str, int] = {}
        self._swept: dict[str, Swept] = {}

    def run(self) -> None:
        """Do all steps, and read every moment once more at the end. Raises ``Difference``."""
        register(self._spark)
        for name, mapping in self._mappings.items():
            if not self._tables[name].adopted:
                create_table(self._manager, mapping)
        try:
            for number, step in enumerate(self._story.steps, 1):
                self.reached = number
                self._in_step(number, step)
            self._all_points()
        finally:
            for transaction in self._open.values():
                transaction.rollback()

    def drop(self) -> None:
        """Leave no table behind."""
        for mapping in self._mappings.values():
            self._manager.drop_table(mapping.table)

    def _in_step(self, number: int, step: Step) -> None:
        try:
            self._do(step)
        except Difference as difference:
            raise Difference(f"step {number} of seed {self._story.seed}, {step}:\n{difference}") from difference
        except Exception as error:
            unexpected = f"nobody expected {type(error).__name__}: {error}"
            raise Difference(f"step {number} of seed {self._story.seed}, {step}:\n{unexpected}") from error

    def _do(self, step: Step) -> None:
        match step:
            case Adopt():
                self._adopt(step)
                self.done["adopted" + ", plain row key" * self._tables[step.table].plain_key] += 1
            case Vacuum():
                self._vacuum(step)
                self.done["vacuum"] += 1
            case Begin():
                self._open[step.transaction] = self._manager.transaction()
            case Write():
                self._agree("the job", self._write(step), step.expected)
                self.done[f"{step.how.value}, {step.fault.value}, {step.expected.value}"] += 1
                if step.claim:
                    self.done["claimed, which had landed" if step.has_landed else "claimed"] += 1
            case Plain():
                self._plain(step)
                self.done["plain put" if step.values else "plain delete"] += 1
            case Finish():
                self._agree("the transaction", self._finish(step), step.expected)
                self.done[f"{'commit' if step.commit else 'rollback'}, {step.expected.value}"] += 1
            case Look():
                snapshot = self._manager.snapshot()
                self._snapshots[step.point] = snapshot.handle()
                self._timestamps[step.point] = snapshot.timestamp
            case WriteShadows():
                self._manager.finish_bulk_writes()
                self.done["shadow cells written"] += 1
            case Read():
                self._agree("the rows read", self._read(step), list(step.expected))
                self.done["read" + " of the past" * bool(step.point) + ", filters pushed" * step.pushed] += 1

    def _agree(self, what: str, found: Any, expected: Any) -> None:
        if found != expected:
            raise Difference(f"{what}: {found}\nthe model:  {expected}")

    # --- tables

    def _adopt(self, step: Adopt) -> None:
        """Put the rows as any program does, twice, with HBase's milliseconds for timestamps."""
        mapping, store = self._mappings[step.table], self._manager.store
        store.create_table(mapping.table, [Family(name) for name in mapping.families])
        rows = self._cells_of(step.table, step.rows)
        now_ms = wall_ms()
        store.put(mapping.table, [RowPut(row, dict.fromkeys(cells, b"older")) for row, cells in rows.items()], 7)
        store.put(mapping.table, [RowPut(row, cells) for row, cells in rows.items()], now_ms)
        adopted = adopt_table(self._manager, mapping)
        self._agree("the rows of the table that is adopted", adopted.rows, len(rows))
        cell = mapping.value_columns[0].cell
        strays = [RowPut(row_key(mapping, *key), {cell: b"stray"}) for key in step.strays]
        store.put(mapping.table, strays, adopted.plain_through + 1)

    def _vacuum(self, step: Vacuum) -> None:
        """Sweep the tables as a vacuum does. No other ones: records are not dropped, which are those of all tests."""
        manager, horizon = self._manager, self._manager.snapshot().timestamp
        sweep = Sweep(
            manager.store, manager.commit_table, manager.oracle.abort, horizon, lasting_records_max=step.lasting
        )
        for name, mapping in self._mappings.items():
            entry = manager.catalog.fresh_entry(mapping.table)
            before = NOT_SWEPT if step.everything else self._swept.get(name, NOT_SWEPT)
            sweeping = Sweeping(horizon, entry.plain_through, before)
            for _ in sweep.table(mapping.table, entry.family_columns, sweeping):
                self.done["batches swept"] += 1
            self._swept[name] = sweeping.swept()

    def _cells_of(self, name: str, rows: Mapping[Key, Values]) -> dict[bytes, dict[bytes, bytes]]:
        mapping, types = self._mappings[name], self._tables[name].values
        cells = {column.name: column.cell for column in mapping.value_columns}
        return {
            row_key(mapping, *key): {
                cells[column]: cell_bytes(types[column], value) for column, value in row.items() if column in cells
            }
            for key, row in rows.items()
        }

    # --- writes

    def _write(self, step: Write) -> Outcome:
        frame = with_fault(self._frame(step).repartition(step.partitions), step.fault)
        options = {"table": self._mappings[step.table].table, "batch_rows": str(step.batch_rows)}
        if step.transaction:
            options["transaction"] = self._open[step.transaction].handle().to_json()
        else:
            options["shadow_cells"] = step.shadow_cells
        if step.claim:
            options["claim"] = step.claim
        if step.how is How.DELETE:
            options["operation"] = "delete"
        if step.prefix:
            options["overwrite_prefix"] = json.dumps([as_json(value) for value in step.prefix])
        mode = "overwrite" if step.how is How.OVERWRITE else "append"
        try:
            frame.write.format(FORMAT).mode(mode).options(**options).save()
        except PySparkException as error:
            if step.fault is Fault.ALWAYS and WANTED in str(error):
                return Outcome.FAILED
            raise
        return Outcome.COMMITTED

    def _frame(self, step: Write) -> DataFrame:
        table = self._tables[step.table]
        keys = zip(*step.rows, strict=True) if step.rows else ((),) * len(table.keys)
        columns = dict(zip(table.keys, map(list, keys), strict=True))
        columns |= {column: [values[column] for values in step.rows.values()] for column in step.columns}
        types = {**table.keys, **table.values}
        arrays = {name: pa.array(values, ARROW[types[name]]) for name, values in columns.items()}
        schema = self._mappings[step.table].to_struct(list(columns))
        return self._spark.createDataFrame(pa.table(arrays).select(schema.names), schema)

    def _plain(self, step: Plain) -> None:
        mapping, transaction = self._mappings[step.table], self._open[step.transaction]
        row = row_key(mapping, *step.key)
        if step.values is None:
            transaction.delete(mapping.table, row)
            return
        types = self._tables[step.table].values
        cells = {column.name: column.cell for column in mapping.value_columns}
        put = {cells[name]: cell_bytes(types[name], value) for name, value in step.values.items()}
        transaction.put(mapping.table, row, put)

    def _finish(self, step: Finish) -> Outcome:
        transaction = self._open.pop(step.transaction)
        if not step.commit:
            transaction.rollback()
            return Outcome.FAILED
        try:
            timestamp = transaction.commit().commit_timestamp
        except Conflict:
            return Outcome.CONFLICT
        except TransactionAborted:
            return Outcome.FAILED
        self._timestamps |= {f"at {step.transaction}": timestamp, f"before {step.transaction}": timestamp - 1}
        return Outcome.COMMITTED

    # --- reads

    def _read(self, step: Read) -> list[tuple[Any, ...]]:
        options = {"push_filters": str(step.pushed).lower()}
        if step.transaction:
            options["transaction"] = self._open[step.transaction].handle().to_json()
        elif step.point:
            options |= self._view(step)
        schema = self._mappings[step.table].to_struct(step.columns) if step.by_schema else None
        if schema is None:
            options["columns"] = ",".join(step.columns)
        frame = self._load(step.table, options, schema)
        for condition in step.conditions:
            frame = frame.where(_filter(frame[condition.column], condition, self._type(step.table, condition.column)))
        return in_order(_rows(frame.select(*step.columns)))

    def _view(self, step: Read) -> dict[str, str]:
        if step.by_handle and step.point in self._snapshots:
            return {"snapshot": self._snapshots[step.point].to_json()}
        return {"as_of": str(self._timestamps[step.point])}

    def _load(self, table: str, options: dict[str, str], schema: Any = None) -> DataFrame:
        reader = self._spark.read.format(FORMAT).options(table=self._mappings[table].table, **options)
        return (reader if schema is None else reader.schema(schema)).load()

    def _all_points(self) -> None:
        """Every moment that has a name, of every table: by the driver alone, and some of them by Spark as well."""
        for name, table in self._tables.items():
            for point in self._story.points:
                self._agree_at(name, point, "", self._cells_at(name, point), self._expected_cells(name, point))
            columns = [*table.keys, *table.values]
            for point, found in self._read_at(name, self._story.read_again, columns):
                self._agree_at(name, point, ", read by Spark", found, shown(table, self._story.points[point], columns))
            self._agree_on_changes(name, columns)

    def _agree_at(self, name: str, point: str, how: str, found: Any, expected: Any) -> None:
        if found != expected:
            raise Difference(
                f"seed {self._story.seed}, in the end, table {name} as of {point!r} ({self._timestamps[point]}){how}: "
                f"{found}\nthe model:  {expected}"
            )
        self.done[f"moments read again{how}"] += 1

    def _agree_on_changes(self, name: str, columns: Sequence[str]) -> None:
        """What changed from each moment to the next, by the driver; between two of them, by Spark."""
        in_turn = sorted(self._story.points, key=self._timestamps.__getitem__)
        for earlier, later in pairwise(in_turn):
            cells = self._changed_cells(name, earlier, later)
            self._agree_at(name, later, CHANGED, cells, self._expected_cells(name, later))
        again = [point for point in in_turn if point in self._story.read_again]
        if len(again) > 1:
            earlier, *_, later = again
            rows = self._changed_rows(name, earlier, later, columns)
            expected = shown(self._tables[name], self._story.points[later], columns)
            self._agree_at(name, later, f"{CHANGED}, read by Spark", rows, expected)

    def _read_at(self, name: str, points: Sequence[str], columns: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """In one query."""
        parts = [
            self._load(name, {"as_of": str(self._timestamps[point]), "min_partitions": "1"}).select(
                F.lit(point).alias("point"), *columns
            )
            for point in points
        ]
        found = _rows(reduce(DataFrame.unionAll, parts))
        for point in points:
            yield point, in_order([row[1:] for row in found if row[0] == point])

    def _cells_at(self, name: str, point: str) -> dict[bytes, dict[bytes, bytes]]:
        mapping = self._mappings[name]
        snapshot = self._manager.snapshot(at=self._timestamps[point])
        return {row: _mapped(mapping, cells) for row, cells in snapshot.scan(mapping.table)}

    def _changed_cells(self, name: str, earlier: str, later: str) -> dict[bytes, dict[bytes, bytes]]:
        """What the model says of the earlier moment, and what has changed since on top of it."""
        mapping = self._mappings[name]
        snapshot = self._manager.snapshot(at=self._timestamps[later])
        rows = self._expected_cells(name, earlier)
        for row, cells, _ in snapshot.changes(mapping.table, self._timestamps[earlier]):
            rows.pop(row, None)
            if cells is not None:
                rows[row] = _mapped(mapping, cells)
        return rows

    def _changed_rows(self, name: str, earlier: str, later: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """The same, of rows as Spark reads them."""
        table = self._tables[name]
        moments = {"changed_since": str(self._timestamps[earlier]), "as_of": str(self._timestamps[later])}
        found = in_order(_rows(self._load(name, moments).select(CHANGE_TYPE, *columns)))
        key = slice(0, len(table.keys))
        rows = {row[key]: row for row in shown(table, self._story.points[earlier], columns)}
        delete = in_order([[DELETE]])[0][0]
        for kind, *values in found:
            row = tuple(values)
            rows[row[key]] = row
            if kind == delete:
                del rows[row[key]]
        return sorted(rows.values(), key=repr)

    def _expected_cells(self, name: str, point: str) -> dict[bytes, dict[bytes, bytes]]:
        return self._cells_of(name, self._story.points[point][name])

    def _type(self, table: str, column: str) -> str:
        return {**self._tables[table].keys, **self._tables[table].values}[column]


def _mapping(table: Table, name: str) -> TableMapping:
    values = [
        ValueColumn(column, type_name, family="f" if table.packed else "fg"[number % 2])
        for number, (column, type_name) in enumerate(table.values.items())
    ]
    keys = [KeyColumn(column, type_name, table.plain_key) for column, type_name in table.keys.items()]
    level: ConflictLevel = "row" if table.by_row else "cell"
    return TableMapping(name, tuple(table.keys), (*keys, *values), level, table.packed, table.salt_buckets)


def _mapped(mapping: TableMapping, cells: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The cells of a row that the mapping knows; of a packed one those that its columns would have else."""
    if not mapping.packed:
        known = {column.cell for column in mapping.value_columns}
        return {cell: value for cell, value in cells.items() if cell in known}
    data = np.frombuffer(cells[mapping.cells[0]], np.uint8)
    one = ByteColumn(data, np.zeros(1, np.int64), np.array([len(data)], np.int64))
    places = unpack(mapping.value_columns, one)
    return {
        column.cell: place.data[place.starts[0] :][: place.lengths[0]].tobytes()
        for column, place in zip(mapping.value_columns, places, strict=True)
        if place.lengths[0] != ABSENT
    }


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """As Arrow; points in time as UTC, for Spark shows them in the session's zone, which has hours twice."""
    table = frame.toArrow()
    columns = [
        column.cast(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(column.type) and column.type.tz else column
        for column in table.columns
    ]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def _filter(column: Column, condition: Condition, type_name: str) -> Column:
    operand = condition.operand
    match condition.operator:
        case "null":
            return column.isNull()
        case "not null":
            return column.isNotNull()
        case "in":
            return column.isin(*(_literal(value, type_name) for value in operand))
        case "starts":
            return column.startswith(operand)
    literal = _literal(operand, type_name)
    comparisons = {"=": column == literal, "<": column < literal, "<=": column <= literal}
    comparisons |= {">": column > literal, ">=": column >= literal}
    return comparisons[condition.operator]


def _literal(value: Any, type_name: str) -> Column:
    """A constant of the column's very type; Spark works the cast out before it plans the read."""
    plain = isinstance(value, str | bytes | bool | int)
    return F.lit(value if plain else value.isoformat(sep=" ") if hasattr(value, "hour") else str(value)).cast(type_name)
