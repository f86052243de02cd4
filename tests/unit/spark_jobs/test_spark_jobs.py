"""The judges of random Spark jobs: the model, the stories, and what readers may find after a kill."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal

import pytest

from client.cells import TOMBSTONE
from tests.spark_jobs.deck import Deck
from tests.spark_jobs.inventing import in_order, invent, passes
from tests.spark_jobs.jobs import reason_of
from tests.spark_jobs.model import EXISTS, Model, Outcome, Table
from tests.spark_jobs.pairs import Result, value_of, violations
from tests.spark_jobs.steps import Adopt, Condition, Fault, Finish, How, Plain, Read, Vacuum, Write
from tests.spark_jobs.values import VALUE_TYPES, cell_bytes, comparable

ROWS = Table("rows", {"k": "int"}, {"a": "int", "b": "int"}, by_row=True)
CELLS = Table("cells", {"k": "int", "m": "int"}, {"a": "int", "b": "int"}, by_row=False)


def committed(model: Model, table: str, rows: dict[tuple[int, ...], dict[str, int | None]]) -> None:
    draft = model.begin()
    draft.upsert(table, rows)
    assert model.commit(draft) is Outcome.COMMITTED


def test_a_null_takes_the_value_away_and_leaves_the_row() -> None:
    model = Model([ROWS])
    committed(model, "rows", {(1,): {"a": 1, "b": 2}})
    committed(model, "rows", {(1,): {"a": None}})
    assert model.state["rows"] == {(1,): {"b": 2, EXISTS: True}}
    committed(model, "rows", {(1,): {"b": None}})
    assert list(model.state["rows"]) == [(1,)]
    draft = model.begin()
    draft.delete("rows", [(1,)])
    assert model.commit(draft) is Outcome.COMMITTED
    assert model.state["rows"] == {}


def test_an_overwrite_keeps_its_rows_and_those_beside_its_prefix() -> None:
    model = Model([CELLS])
    committed(model, "cells", {(6, 1): {"a": 1}, (7, 1): {"a": 1}, (7, 2): {"a": 1}})
    draft = model.begin()
    draft.overwrite("cells", {(7, 2): {"a": 5, "b": None}}, (7,))
    assert draft.state()["cells"] == {(6, 1): {"a": 1}, (7, 2): {"a": 5}}
    assert model.state["cells"] != draft.state()["cells"]
    assert model.commit(draft) is Outcome.COMMITTED


def test_an_overwrite_of_plain_keys_replaces_what_begins_so() -> None:
    model = Model([Table("plain", {"k": "string"}, {"a": "int"}, by_row=True, adopted=True, plain_key=True)])
    draft = model.begin()
    draft.upsert("plain", {(key,): {"a": 1} for key in ("a", "ab", "b")})
    draft.overwrite("plain", {("ac",): {"a": 2}}, ("a",))
    assert draft.state()["plain"] == {("ac",): {"a": 2}, ("b",): {"a": 1}}


@pytest.mark.parametrize(("table", "key", "outcome"), [
    (ROWS, (1,), Outcome.CONFLICT), (CELLS, (1, 1), Outcome.COMMITTED),
])  # fmt: skip
def test_writers_of_two_columns_conflict_by_row_only(table: Table, key: tuple[int, ...], outcome: Outcome) -> None:
    model = Model([table])
    first, second = model.begin(), model.begin()
    first.upsert(table.name, {key: {"a": 1}})
    second.upsert(table.name, {key: {"b": 1}})
    assert model.commit(first) is Outcome.COMMITTED
    assert model.commit(second) is outcome


def test_a_transaction_sees_what_had_committed_when_it_began() -> None:
    model = Model([ROWS])
    draft = model.begin()
    committed(model, "rows", {(1,): {"a": 1}})
    assert draft.state()["rows"] == {}
    draft.failed = True
    assert model.commit(draft) is Outcome.FAILED


def test_a_seed_is_a_story_and_the_stories_have_everything() -> None:
    assert repr(invent(7)) == repr(invent(7))
    steps = [step for seed in range(60) for step in invent(seed).steps]
    writes = [step for step in steps if isinstance(step, Write)]
    assert {(step.how, step.fault) for step in writes} == {(how, fault) for how in How for fault in Fault}
    assert {bool(step.prefix) for step in writes} == {bool(step.transaction) for step in writes} == {False, True}
    assert {(bool(step.claim), step.has_landed) for step in writes} == {(False, False), (True, False), (True, True)}
    assert {step.expected for step in writes if step.has_landed} == {Outcome.COMMITTED, Outcome.FAILED}
    assert {step.expected for step in steps if isinstance(step, Finish)} == set(Outcome)
    assert {step.values is None for step in steps if isinstance(step, Plain)} == {False, True}
    assert all(any(isinstance(step, kind) for step in steps) for kind in (Adopt, Vacuum))
    assert {table.plain_key for seed in range(60) for table in invent(seed).tables if table.adopted} == {False, True}
    assert {
        (bool(table.salt_buckets), table.packed, table.by_row) for seed in range(60) for table in invent(seed).tables
    } == {
        (salted, packed, by_row)
        for salted in (False, True)
        for packed, by_row in ((True, True), (False, True), (False, False))
    }
    reads = [step for step in steps if isinstance(step, Read)]
    assert {(bool(step.point), step.pushed, bool(step.conditions)) for step in reads if not step.transaction} == {
        (past, pushed, narrowed) for past in (False, True) for pushed in (False, True) for narrowed in (False, True)
    }
    assert {kind for seed in range(60) for table in invent(seed).tables for kind in table.values.values()} == set(
        VALUE_TYPES
    )


def test_a_deck_deals_all_of_its_cards_before_any_again() -> None:
    deck = Deck(random.Random(1), [1, 2, 2, 3])
    rounds = [[deck.deal() for _ in range(4)] for _ in range(20)]
    assert {tuple(sorted(each)) for each in rounds} == {(1, 2, 2, 3)}
    assert len(set(map(tuple, rounds))) > 1


def test_the_first_stories_have_what_the_broken_rules_are_about() -> None:
    stories = [invent(seed) for seed in range(1, 8)]
    deleted = [
        row
        for story in stories
        for before, after in itertools.pairwise(story.points.values())
        for table in story.tables
        if not table.packed  # which has no markers
        for key, row in before[table.name].items()
        if key not in after[table.name]
    ]
    assert {EXISTS} in map(set, deleted), "a row that has nothing but its marker is deleted"
    assert any(
        isinstance(step, Write) and step.has_landed and step.rows for story in stories for step in story.steps
    ), "a job is started again with its key"
    assert any(
        step.pushed and condition.operator == "<=" and _column(step, condition.column) & {comparable(condition.operand)}
        for story in stories
        for step in story.steps
        if isinstance(step, Read)
        for condition in step.conditions
    ), "a row has the value that a filter has at most"
    stored = [
        cell_bytes(kind, row[column])
        for story in stories
        for step in story.steps
        if isinstance(step, Write)
        for table in story.tables
        if table.name == step.table and not table.packed
        for row in step.rows.values()
        for column, kind in table.values.items()
        if row.get(column) is not None
    ]
    assert any(each.startswith(TOMBSTONE) for each in stored)


def _column(read: Read, column: str) -> set[object]:
    place = list(read.columns).index(column)
    return {row[place] for row in read.expected}


def test_equal_rows_are_equal_whatever_their_order() -> None:
    assert in_order([(math.nan, 1), (-0.0, 2)]) == in_order([(-0.0, 2), (math.nan, 1)])
    assert in_order([(0.0,)]) != in_order([(-0.0,)])


def test_filters_in_the_model() -> None:
    assert passes(3, Condition("k", "<=", 3))
    assert not passes(3, Condition("k", "<", 3))
    assert passes(None, Condition("a", "null"))
    assert passes("abc", Condition("k", "starts", "ab"))
    assert not passes(4, Condition("k", "in", (1, 3)))


def test_the_bytes_of_cells() -> None:
    assert cell_bytes("decimal(10,2)", Decimal("-0.01")) == b"\xff" * 16
    assert cell_bytes("decimal(38,18)", Decimal("1")) == (10**18).to_bytes(16, "big")
    assert cell_bytes("boolean", True) == b"\xff"


# --- kills


def test_rows_of_one_job_have_one_value_and_are_all_there() -> None:
    assert value_of([], 3) is None
    assert value_of([5, 5, 5], 3) == 5
    for torn in ([5, 5], [5, 5, 6]):
        with pytest.raises(ValueError, match="of 3 rows"):
            value_of(torn, 3)


OLD, NEW = (1, 1), (2, 2)


@pytest.mark.parametrize(("after", "seen", "result", "must"), [
    (OLD, [OLD], Result.COMMITTED, None),
    (NEW, [OLD, NEW], Result.REFUSED, None),
    (NEW, [OLD, (2, 1), NEW], Result.COMMITTED, None),
    (NEW, [NEW, OLD], Result.COMMITTED, None),
    (OLD, [OLD, NEW], Result.FAILED, None),
    ((1, 2), [OLD], Result.FAILED, None),
    (OLD, [OLD], Result.DIED, True),
    (NEW, [OLD], Result.DIED, False),
])  # fmt: skip
def test_what_must_not_be_is_a_violation(
    after: tuple[int, int], seen: list[tuple[int, int]], result: Result, must: bool | None
) -> None:
    assert violations(OLD, NEW, after, seen, result, must=must)


@pytest.mark.parametrize(("after", "seen", "result", "must"), [
    (NEW, [OLD, NEW], Result.COMMITTED, None),
    (OLD, [OLD], Result.REFUSED, None),
    (NEW, [OLD], Result.FAILED, None),
    (OLD, [], Result.FAILED, None),
    (NEW, [OLD, NEW], Result.DIED, True),
])  # fmt: skip
def test_what_may_be_is_none(
    after: tuple[int, int], seen: list[tuple[int, int]], result: Result, must: bool | None
) -> None:
    assert violations(OLD, NEW, after, seen, result, must=must) == []


def test_an_error_of_sparks_is_told_by_what_we_said_in_it() -> None:
    text = "Job aborted:\n  File x\nclient.errors.NoPrimary: no primary oracle answered within 30000 ms: y\nat java"
    assert reason_of(text) == "NoPrimary: no primary oracle answered within … ms: y"
    assert reason_of("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)").startswith("Spark")
    assert reason_of("java.io.IOException") == "unexplained"
