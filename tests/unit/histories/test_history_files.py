"""Histories as text: what is written is read back, and what is not a history is refused with the place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commit_table.timestamps import compose
from histories import History, HistoryError, Operation, OperationKind, Outcome, RealTime, RecordedTransaction, check
from histories.files import load, load_key_value, save, save_key_value
from histories.json_lines import from_lines, to_lines
from histories.key_value import from_key_value, to_key_value
from tests.unit.histories.made_up import aborted, at, committed, guarding, history, reader, unknown
from tests.unit.histories.reference import Engine, random_choices

SOME = history(
    guarding(at(committed(7, 5, 9, "r x -, w x 7 70", "a/0"), 10, 20, 30, 40), "y", "z"),
    at(aborted(11, 9, "w x 11 1", "SnapshotTooOld"), 10, 20, 30, 40),
    at(unknown(12, 9, "w x -"), 10, 20, 30),
    reader(13, 9, "r x 7 70", "b/0"),
)


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([None, "bank"]))
def test_lines_are_read_back(seed: int, ids_are_timestamps: bool, workload: str | None) -> None:
    recorded = replace(
        Engine(lossy=True).run(random_choices(seed, 200)), workload=workload, ids_are_timestamps=ids_are_timestamps
    )
    assert from_lines(to_lines(recorded)) == recorded


def test_a_file_is_read_back(tmp_path: Path) -> None:
    save(SOME, tmp_path / "history")
    assert load(tmp_path / "history") == SOME
    assert (tmp_path / "history").read_text().count("\n") == 5


def test_a_file_of_version_1_knows_no_guards() -> None:
    first, *others = (json.loads(line) for line in to_lines(SOME))
    for each in others:
        del each["guarded"]
    older = [json.dumps(each) for each in (first | {"version": 1}, *others)]
    assert from_lines(older) == history(*(replace(each, guarded=frozenset()) for each in SOME.transactions))


def test_empty_lines_are_passed_over() -> None:
    assert from_lines(["", *to_lines(SOME), "\n", " "]) == SOME


def change(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda described: described.__setitem__(name, value)


BAD_TRANSACTIONS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (change("id", "7"), "id: a whole number is needed, not '7'"),
    (change("id", True), "id: a whole number"),
    (change("id", -1), "not below 0"),
    (change("snapshot", 1.5), "snapshot: a whole number"),
    (change("process", 1), "process: a string"),
    (change("outcome", "lost"), "outcome is one of committed, aborted, unknown"),
    (change("outcome", []), "outcome: a string"),
    (change("outcome", "aborted"), "committed transactions have one, and no others"),
    (change("commit_timestamp", None), "committed transactions have one, and no others"),
    (change("real_time_ns", [1, 2, 3]), "begin sent, begin answered"),
    (change("real_time_ns", [1, None, 3, 4]), "begin answered: a whole number"),
    (change("real_time_ns", [1, 2, 4, 3]), "go back"),
    (change("real_time_ns", [1, 2, None, 3]), "answered that was not sent"),
    (change("operations", {}), "operations: a JSON array"),
    (change("operations", [["r", "x", 1]]), "an operation is"),
    (change("operations", [["x", "x", 1, None]]), "an operation is"),
    (change("operations", [["r", None, 1, None]]), "key: a whole number"),
    (change("operations", [["r", "x", 0, None]]), "above 0"),
    (change("operations", [["r", "x", "1", None]]), "value: a whole number"),
    (change("operations", [["r", "x", None, 1]]), "a payload needs a value"),
    (change("guarded", "x"), "guarded: a JSON array"),
    (change("guarded", [None]), "key: a whole number"),
    (change("more", 1), "unknown more"),
    (lambda described: described.pop("reason"), "reason missing"),
]


@pytest.mark.parametrize(("spoil", "says"), BAD_TRANSACTIONS)
def test_a_bad_transaction_is_refused_with_its_line(spoil: Callable[[dict[str, Any]], object], says: str) -> None:
    lines = list(to_lines(SOME))
    described = json.loads(lines[1])
    spoil(described)
    with pytest.raises(HistoryError, match=r"^line 2: ") as refused:
        from_lines([lines[0], json.dumps(described), *lines[2:]])
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], 'no line with "format": "pythia history"'),
        (["[]"], 'line 1: the first line of a history is an object with "format"'),
        (['{"format": "other"}'], "line 1: the first line"),
        (['{"format": "pythia history", "version": 3, "workload": null, "ids_are_timestamps": true}'], "version 3"),
        (['{"format": "pythia history", "version": 1, "workload": 3, "ids_are_timestamps": true}'], "workload: a str"),
        (['{"format": "pythia history", "version": 1, "workload": null, "ids_are_timestamps": 1}'], "true or false"),
        (['{"format": "pythia history"}'], "line 1: format version None of recorded histories is not known"),
        (["{"], "line 1: not JSON"),
        ([next(to_lines(SOME)), "", '{"process": "a/'], "line 3: not JSON"),
        ([next(to_lines(SOME)), "[" * 100_000], "line 2: not JSON"),
        ([next(to_lines(SOME)), "7"], "line 2: a JSON object is needed here, not 7"),
    ],
)
def test_what_is_no_history_is_refused(lines: list[str], says: str) -> None:
    with pytest.raises(HistoryError) as refused:
        from_lines(lines)
    assert says in str(refused.value)


@pytest.mark.parametrize("read", [load, load_key_value])
def test_files_that_cannot_be_read_are_named(tmp_path: Path, read: Callable[[Path], History]) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "missing", tmp_path, tmp_path / "binary"):
        with pytest.raises(HistoryError) as refused:
            read(path)
        assert str(refused.value).startswith(f"{path}: ")


def test_parts_of_a_run_are_merged() -> None:
    one, other = history(*SOME.transactions[:2]), history(*SOME.transactions[2:])
    assert History.merged([one, other]) == SOME
    with pytest.raises(HistoryError, match="one workload and one form"):
        History.merged([one, replace(other, workload="bank")])


def only_committed(recorded: History) -> list[RecordedTransaction]:
    """What the public form keeps of a history."""
    kept = [each for each in recorded.transactions if each.outcome is Outcome.COMMITTED]
    return [replace(each, real_time=None) for each in sorted(kept, key=lambda each: each.id)]


@given(st.integers(0, 2**32))
def test_the_public_form_is_read_back(seed: int) -> None:
    recorded = Engine().run(random_choices(seed, 300))
    read = from_key_value(to_key_value(recorded))
    assert not read.ids_are_timestamps
    for before, after in zip(only_committed(recorded), read.transactions, strict=True):
        assert (after.id, after.snapshot, after.commit_timestamp) == (
            before.id,
            before.snapshot,
            before.commit_timestamp,
        )
        assert list(after.external_reads()) == sorted(after.external_reads(), key=list(after.external_reads()).index)
        assert [each.value for each in after.last_writes().values()] == [
            each.value for each in before.last_writes().values()
        ]
    assert check(read) == []
    assert from_key_value(to_key_value(read)) == read


def test_the_public_form_by_example() -> None:
    one = RecordedTransaction(
        "b/1",
        compose(1_700_000_000_000, 3),
        compose(1_700_000_000_000, 1),
        Outcome.COMMITTED,
        (Operation(OperationKind.READ, "y", None), Operation(OperationKind.WRITE, "x", 4, 70)),
        compose(1_700_000_000_001),
        real_time=RealTime(1, 2, 3, 4),
    )
    two = reader(one.id + 1, one.snapshot, "r y -, r y -, r x 4", "a/1")
    assert json.loads(to_key_value(history(two, aborted(5, 4, "w z 9"), one))) == [
        {
            "tid": one.id,
            "sid": 1,
            "sts": {"p": 1_700_000_000_000, "l": 1},
            "cts": {"p": 1_700_000_000_001, "l": 0},
            "ops": [{"t": "r", "k": 1, "v": None}, {"t": "w", "k": 0, "v": 4}],
        },
        {
            "tid": two.id,
            "sid": 0,
            "sts": {"p": 1_700_000_000_000, "l": 1},
            "cts": {"p": 1_700_000_000_000, "l": 1},
            "ops": [{"t": "r", "k": 1, "v": None}, {"t": "r", "k": 0, "v": 4}],
        },
    ]


def test_a_repeated_read_that_differs_is_kept_in_the_public_form() -> None:
    written = to_key_value(history(reader(9, 8, "r x -, r x 5, r x 5")))
    assert [each["v"] for each in json.loads(written)[0]["ops"]] == [None, 5]
    assert check(from_key_value(written))


def test_whole_numbers_stay_keys_in_the_public_form() -> None:
    operations = (Operation(OperationKind.READ, 40, None), Operation(OperationKind.READ, 7, None))
    recorded = history(replace(reader(9, 8), operations=operations))
    assert [each["k"] for each in json.loads(to_key_value(recorded))[0]["ops"]] == [40, 7]


def entry(**changes: Any) -> dict[str, Any]:
    good = {"tid": 1, "sid": 1, "sts": {"p": 1, "l": 0}, "cts": {"p": 1, "l": 0}, "ops": [{"t": "r", "k": 1}]}
    return good | changes


def test_other_spellings_of_the_public_form_are_read() -> None:
    operations = [{"t": "WRITE", "k": 1, "v": 3}, {"t": "read", "k": 1, "v": 3}]
    written = json.dumps([entry(tid="one", sid="left", cts={"p": 1, "l": 2**20}, ops=operations, rtts=5), entry()])
    first, second = from_key_value(written).transactions
    assert (first.id, first.process, second.id, second.process) == (1, "left", 2, "1")
    assert [each.kind for each in first.operations] == [OperationKind.WRITE, OperationKind.READ]
    assert first.commit_timestamp is not None
    assert first.snapshot == second.snapshot < first.commit_timestamp < 2**22


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "the public form of a history: a JSON array is needed"),
        ("[", "not JSON"),
        ("[3]", "transaction 0: a JSON object is needed"),
        (json.dumps([entry(), entry(tid=2, sts=3)]), "transaction 1: a JSON object is needed"),
        (json.dumps([entry(cts={"p": 1})]), "transaction 0: l missing"),
        (json.dumps([entry(cts={"p": -1, "l": 0})]), "not below 0"),
        (json.dumps([entry(cts={"p": "1", "l": 0})]), "cts.p: a whole number"),
        (json.dumps([entry(ops=3)]), "ops: a JSON array"),
        (json.dumps([entry(ops=[{"t": "a", "k": 1, "v": 1}])]), "t is one of r, read, w, write, not 'a'"),
        (json.dumps([entry(ops=[{"t": 1, "k": 1, "v": 1}])]), "t is one of"),
        (json.dumps([entry(ops=[{"t": "r", "k": "x", "v": 1}])]), "k: a whole number"),
        (json.dumps([entry(ops=[{"t": "w", "k": 1, "v": 0}])]), "above 0"),
        (json.dumps([entry(ops=[{"t": "w", "k": 1, "v": [1]}])]), "v: a whole number"),
        (json.dumps([{"tid": 1}]), "cts, ops, sid, sts missing"),
    ],
)
def test_what_is_not_the_public_form_is_refused(text: str, says: str) -> None:
    with pytest.raises(HistoryError) as refused:
        from_key_value(text)
    assert says in str(refused.value)


def test_the_public_form_in_files(tmp_path: Path) -> None:
    save_key_value(SOME, tmp_path / "history.json")
    assert [each.id for each in load_key_value(tmp_path / "history.json").transactions] == [7, 13]
    (tmp_path / "other").write_text("{}")
    with pytest.raises(HistoryError, match="other: the public form"):
        load_key_value(tmp_path / "other")
