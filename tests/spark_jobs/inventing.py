"""A story from a seed: random jobs, and what the model says has to come of each. Pure.

Chance alone writes to rows that are not there, and asks for values that no row has: so each story begins with tables
that are mostly full, and what is deleted, replaced or asked for is chosen among what is there. Nor may a kind of step,
of value or of filter be missing from many stories: they are dealt from decks.
Invariant: the same seed gives the same story; the model alone decides what is expected.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from client.settings import BULK_SHADOW_CELLS
from client.spark.column_types import TEXTS
from tests.spark_jobs.deck import Deck
from tests.spark_jobs.model import Draft, Key, Model, Outcome, State, Table, Values
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
from tests.spark_jobs.values import KEY_TYPES, VALUE_TYPES, comparable, values_of

KEYS_MAX: Final = 14
"""Different row keys of one table in a story: few, so that jobs meet in them."""
ROWS_MAX: Final = 8
TABLES: Final = 2
WIDTHS: Final = (1, 4, 6, 8)
"""Columns of values."""
ACTS: Final = 6
READ_AGAIN_MAX: Final = 2
READS: Final = 2
"""After each act."""
FILLED: Final = 0.7
"""Of a table's keys, the part that has rows in the beginning."""
MET: Final = 0.8
"""How often a key is chosen among those that have rows, where it may be."""
PUSHED: Final = 0.8
"""How often a read leaves its filters to the data source."""


def invent(seed: int, acts: int = ACTS) -> Story:
    """A story of so many acts: jobs of their own, transactions of several, and two of them side by side."""
    return _Inventor(seed).story(acts)


def shown(table: Table, state: State, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of a table as a read shows them, without an order: sorted as text."""
    names = list(table.keys)
    rows = [{**dict(zip(names, key, strict=True)), **row} for key, row in state[table.name].items()]
    return in_order([tuple(row.get(column) for column in columns) for row in rows])


def in_order(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows that are equal exactly when these are; their order says nothing."""
    return sorted((tuple(map(comparable, row)) for row in rows), key=repr)


def passes(value: Any, condition: Condition) -> bool:
    """Whether a row with this value in the condition's column is shown."""
    operand = condition.operand
    match condition.operator:
        case "null" | "not null":
            return (value is None) == (condition.operator == "null")
        case "=":
            return bool(value == operand)
        case "<" | "<=":
            return bool(value < operand or (condition.operator == "<=" and value == operand))
        case ">" | ">=":
            return bool(value > operand or (condition.operator == ">=" and value == operand))
        case "in":
            return value in operand
    return bool(value.startswith(operand))


class _Inventor:
    def __init__(self, seed: int) -> None:
        self._choice = choice = random.Random(seed)
        self._acts = Deck(choice, [self._alone, self._alone, self._together, self._side_by_side])
        self._conflicts = Deck(choice, ["by cell", "by row", "packed", "by cell, adopted", "by row, adopted"])
        self._plain_keys = Deck(choice, [False, True])
        self._salts = Deck(choice, [0, 3, 0, 16])
        self._after_acts = Deck(choice, [self._nothing, self._nothing, self._write_shadows, self._vacuum])
        self._widths = Deck(choice, WIDTHS)
        self._value_types = Deck(choice, VALUE_TYPES)
        self._value_decks = {type_name: Deck(choice, values_of(type_name)) for type_name in VALUE_TYPES}
        self._hows = Deck(choice, [How.UPSERT, How.UPSERT, How.DELETE, How.OVERWRITE])
        self._overwrites_a_part = Deck(choice, [False, True])
        self._faults = Deck(choice, [Fault.NONE, Fault.NONE, Fault.ONCE, Fault.ALWAYS])
        self._nulls = Deck(choice, [0.0, 0.3, 0.3, 1.0])
        self._starts = Deck(choice, [1, 1, 2, 3])
        self._operators = Deck(choice, ["=", "<", "<=", ">", ">=", "in", "starts", "null", "not null"])
        tables = [self._table(f"t{number}") for number in range(TABLES)]
        self._story = Story(seed, tables)
        self._landed = set[tuple[str, str]]()
        """Tables, and keys of theirs."""
        self._model = Model(tables)
        self._keys = {table.name: self._some_keys(table) for table in tables}
        self._transactions = self._looks = 0

    def story(self, acts: int) -> Story:
        for table in self._story.tables:
            self._fill(table)
        for _ in range(acts):
            self._acts.deal()()
            self._after_acts.deal()()
            self._look()
            for _ in range(READS):
                self._read()
        again = min(READ_AGAIN_MAX, len(self._story.points))
        self._story.read_again = self._choice.sample(list(self._story.points), again)
        return self._story

    def _fill(self, table: Table) -> None:
        """Most rows of a table, in one job."""
        columns, keys = list(table.values), self._keys[table.name]
        rows = {key: self._values(table, columns) for key in self._choice.sample(keys, int(len(keys) * FILLED))}
        draft = self._model.begin()
        if table.adopted:  # whoever puts cells without transactions has no nulls
            there = {
                key: {name: value for name, value in row.items() if value is not None} for key, row in rows.items()
            }
            rows = {key: row for key, row in there.items() if row}
        draft.upsert(table.name, rows)
        outcome = self._model.commit(draft)
        if table.adopted:
            self._add(Adopt(table.name, rows, self._choice.sample(keys, len(keys) // 3)))
        else:
            self._add(Write(table.name, "", How.UPSERT, rows, columns, outcome, partitions=2))

    # --- acts

    def _alone(self) -> None:
        """A job with a transaction of its own; some are started more than once, with other rows, and land once."""
        table, starts = self._choice.choice(self._story.tables), self._starts.deal()
        claim = f"key {len(self._landed)}" if starts > 1 else ""
        for _ in range(starts):
            self._write(table, "", self._model.begin(), fault=self._faults.deal(), claim=claim)

    def _together(self) -> None:
        """Several jobs and plain writes in one transaction, with reads of it."""
        name, draft = self._begin()
        self._jobs(name, draft)
        self._finish(name, draft)

    def _side_by_side(self) -> None:
        """Two transactions, which conflict where they write the same."""
        (first, one), (second, other) = self._begin(), self._begin()
        self._jobs(first, one, jobs_max=1)
        self._jobs(second, other, jobs_max=1)
        self._finish(first, one)
        self._look()
        self._finish(second, other)

    def _begin(self) -> tuple[str, Draft]:
        self._transactions += 1
        name = f"x{self._transactions}"
        self._add(Begin(name))
        return name, self._model.begin()

    def _jobs(self, name: str, draft: Draft, jobs_max: int = 3) -> None:
        for number in range(self._choice.randint(1, jobs_max)):
            last = self._choice.random() < 0.1
            fault = Fault.ALWAYS if last else self._choice.choice([Fault.NONE, Fault.NONE, Fault.ONCE])
            if number == 0 and self._choice.random() < 0.3:
                self._read_own(name, draft)
            self._write(self._choice.choice(self._story.tables), name, draft, fault=fault)
            if last:
                return
        if self._choice.random() < 0.5:
            self._read_own(name, draft)
        # What the driver itself writes is laid over what jobs wrote, at the commit: so it comes after them.
        for _ in range(self._choice.choice([0, 0, 1, 3])):
            self._plain(name, draft)

    def _finish(self, name: str, draft: Draft) -> None:
        commit = self._choice.random() < 0.85
        before = self._model.state
        outcome = self._model.commit(draft) if commit else Outcome.FAILED
        self._add(Finish(name, commit, outcome))
        if outcome is Outcome.COMMITTED:
            self._story.points[f"before {name}"] = before
            self._story.points[f"at {name}"] = self._model.state

    def _nothing(self) -> None:
        """Between two acts."""

    def _write_shadows(self) -> None:
        self._add(WriteShadows())

    def _vacuum(self) -> None:
        self._add(Vacuum(self._choice.choice([0, 1, 1_000]), self._choice.random() < 0.3))
        self._story.points.clear()

    def _look(self) -> None:
        self._looks += 1
        name = f"s{self._looks}"
        self._add(Look(name))
        self._story.points[name] = self._model.state

    # --- writes

    def _write(self, table: Table, transaction: str, draft: Draft, *, fault: Fault, claim: str = "") -> None:
        how = self._hows.deal()
        prefix: Key = ()
        state = draft.state()
        if how is How.OVERWRITE and self._overwrites_a_part.deal():
            prefix = self._choice.choice(self._met(table, state))[: self._choice.randint(1, len(table.keys))]
        columns = self._columns(table, how)
        among = self._met(table, state) if how is How.DELETE else self._keys[table.name]
        keys = [key for key in among if table.is_within(key, prefix)]
        rows_min = int(how is How.DELETE or fault is not Fault.NONE)
        chosen = self._choice.sample(keys, self._choice.randint(rows_min, min(ROWS_MAX, len(keys))))
        rows = {key: self._values(table, columns) for key in chosen}
        has_landed = (table.name, claim) in self._landed
        if fault is Fault.ALWAYS:
            draft.failed = True
        elif not has_landed:
            _apply(draft, table.name, how, rows, prefix)
        outcome = Outcome.FAILED if draft.failed else Outcome.COMMITTED
        if not transaction:
            outcome = self._model.commit(draft)
            if claim and outcome is Outcome.COMMITTED:
                self._landed.add((table.name, claim))
        self._add(
            Write(
                table.name,
                transaction,
                how,
                rows,
                columns,
                outcome,
                prefix,
                fault,
                partitions=self._choice.randint(1, 2),
                batch_rows=self._choice.choice([1, 3, 2_000]),
                shadow_cells=self._choice.choice(BULK_SHADOW_CELLS),
                claim=claim,
                has_landed=has_landed,
            )
        )

    def _columns(self, table: Table, how: How) -> list[str]:
        names = list(table.values)
        if how is How.DELETE:
            return []
        if table.packed or how is How.OVERWRITE or self._choice.random() < 0.5:
            return names
        return self._choice.sample(names, self._choice.randint(1, len(names)))

    def _values(self, table: Table, columns: Sequence[str]) -> dict[str, Any]:
        nulls = self._nulls.deal()
        return {column: None if self._choice.random() < nulls else self._value(table, column) for column in columns}

    def _value(self, table: Table, column: str) -> Any:
        return self._value_decks[table.values[column]].deal()

    def _plain(self, transaction: str, draft: Draft) -> None:
        table = self._choice.choice(self._story.tables)
        rows = draft.state()[table.name]
        if rows and self._choice.random() < 0.4:
            key = self._choice.choice(list(rows))
            draft.delete_seen(table.name, key)
            self._add(Plain(table.name, transaction, key, None))
            return
        if table.packed:  # programs without Spark put no rows there
            return
        key = self._choice.choice(self._keys[table.name])
        columns = self._choice.sample(list(table.values), self._choice.randint(1, len(table.values)))
        values = {column: self._value(table, column) for column in columns}
        draft.upsert(table.name, {key: values})
        self._add(Plain(table.name, transaction, key, values))

    # --- reads

    def _read_own(self, transaction: str, draft: Draft) -> None:
        table = self._choice.choice(self._story.tables)
        columns = [*table.keys, *table.values]
        self._add(Read(table.name, columns, shown(table, draft.state(), columns), transaction=transaction))

    def _read(self) -> None:
        """The newest, or some moment of the past, whole or in part."""
        table = self._choice.choice(self._story.tables)
        point = self._choice.choice(["", *self._story.points])
        state = self._story.points[point] if point else self._model.state
        conditions = [self._condition(table, state) for _ in range(self._choice.choice([0, 1, 1, 2]))]
        names = [*table.keys, *table.values]
        columns = [name for name in names if self._choice.random() < 0.6] or names
        state = {table.name: _narrowed(table, state, conditions)}
        # Spark filters what it was given: a column with a condition has to be among those that are asked for.
        columns = [name for name in names if name in {*columns, *(each.column for each in conditions)}]
        self._add(
            Read(
                table.name,
                columns,
                shown(table, state, columns),
                point=point,
                conditions=conditions,
                pushed=self._choice.random() < PUSHED,
                by_schema=self._choice.random() < 0.5,
                by_handle=self._choice.random() < 0.5,
            )
        )

    def _condition(self, table: Table, state: State) -> Condition:
        operator = self._operators.deal()
        if operator in ("null", "not null"):
            return Condition(self._choice.choice(list(table.values)), operator)
        positions: Sequence[int] = range(len(table.keys))
        if operator == "starts":
            positions = [each for each, type_name in enumerate(table.keys.values()) if type_name == "string"]
            if not positions:
                return self._condition(table, state)
        position = self._choice.choice([positions[0], positions[0], *positions])
        column = list(table.keys)[position]
        keys = self._met(table, state)
        if operator == "in":
            several = self._choice.sample(keys, min(3, len(keys)))
            return Condition(column, operator, tuple(dict.fromkeys(key[position] for key in several)))
        return Condition(column, operator, self._choice.choice(keys)[position])

    def _met(self, table: Table, state: State) -> list[Key]:
        """Keys to choose among: as a rule those that have rows."""
        there = [key for key in self._keys[table.name] if key in state[table.name]]
        return there if there and self._choice.random() < MET else self._keys[table.name]

    # --- tables

    def _table(self, name: str) -> Table:
        conflicts = self._conflicts.deal()
        adopted = conflicts.endswith("adopted")
        plain_key = adopted and self._plain_keys.deal()
        types = self._choice.sample(TEXTS if plain_key else KEY_TYPES, 1 if plain_key else self._choice.randint(1, 3))
        keys = {f"k{number}": type_name for number, type_name in enumerate(types)}
        values = {f"v{number}": self._value_types.deal() for number in range(self._widths.deal())}
        by_row = not conflicts.startswith("by cell")
        salt_buckets = 0 if adopted else self._salts.deal()
        return Table(name, keys, values, by_row, conflicts == "packed", adopted, plain_key, salt_buckets)

    def _some_keys(self, table: Table) -> list[Key]:
        drawn = [tuple(self._choice.choice(values_of(each)) for each in table.keys.values()) for _ in range(KEYS_MAX)]
        return [key for key in dict.fromkeys(drawn) if key[0] or not table.plain_key]

    def _add(self, step: Step) -> None:
        self._story.steps.append(step)


def _apply(draft: Draft, table: str, how: How, rows: Mapping[Key, Values], prefix: Key) -> None:
    if how is How.UPSERT:
        draft.upsert(table, rows)
    elif how is How.DELETE:
        draft.delete(table, rows)
    else:
        draft.overwrite(table, rows, prefix)


def _narrowed(table: Table, state: State, conditions: Sequence[Condition]) -> Mapping[Key, Mapping[str, Any]]:
    names = list(table.keys)
    return {
        key: row
        for key, row in state[table.name].items()
        if all(passes({**dict(zip(names, key, strict=True)), **row}.get(each.column), each) for each in conditions)
    }
