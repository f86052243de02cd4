"""Rows of files landing: whole transactions only, nothing twice, nothing beside what the record says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from client import Conflict, InvalidRequest, OutcomeUnknown, TransactionManager, TransactionTooLarge
from client.key_hashing import Hashes
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, row_key
from client.spark.errors import InvalidData
from client.tables import landing, steps
from client.tables.files import DataFile
from client.tables.landing import land
from client.tables.steps import Landed
from client.transactions.settling import commit_or_settle
from client.transactions.transaction import Transaction
from store import StoreUnavailable
from store.columns import CellColumns
from store.faults import Fault
from tests.unit.client.conftest import Installation
from tso.settings import Limits

MAPPING = TableMapping("points", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "string")))

Lines = list[tuple[Any, Any]]


@pytest.fixture
def points(manager: TransactionManager) -> TransactionManager:
    create_table(manager, MAPPING)
    return manager


def csv(path: Path, lines: Lines) -> DataFile:
    path.write_text("k,v\n" + "".join(f"{key},{value}\n" for key, value in lines))
    return DataFile(path, "csv")


def seen(manager: TransactionManager) -> dict[int, str]:
    """What a reader finds, without the library for tables."""
    return {
        int.from_bytes(key, "big") - 2**31: values[b"f:v"].decode() for key, values in manager.snapshot().scan("points")
    }


def ignore(rows: int, landed: bool) -> None:
    """No progress is shown."""


def by(rows: int | None, **options: bool) -> Callable[[TransactionManager, DataFile], Landed]:
    return lambda manager, *files: land(manager, MAPPING, files, rows, ignore, **options)


def numbered(count: int) -> Lines:
    return [(number, f"v{number}") for number in range(count)]


@pytest.mark.parametrize(("rows", "transactions"), [(None, 1), (1, 7), (3, 3), (7, 1), (100, 1)])
def test_every_row_lands_once(points: TransactionManager, tmp_path: Path, rows: int | None, transactions: int) -> None:
    commits: list[int] = []
    file = csv(tmp_path / "f.csv", numbered(7))
    landed = land(points, MAPPING, [file], rows, lambda number, landed: commits.append(number) if landed else None)
    assert landed == Landed(0, 7, transactions)
    assert commits == sorted({*range(rows or 7, 7, rows or 7), 7})
    assert seen(points) == {number: f"v{number}" for number in range(7)}


def test_the_rows_of_several_files_land_in_their_order(points: TransactionManager, tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"v": ["c", "b"], "k": pa.array([3, 2], pa.int8())}), tmp_path / "f.parquet")
    files = [csv(tmp_path / "f.csv", [(1, "a"), (3, "a")]), DataFile(tmp_path / "f.parquet", "parquet")]
    assert land(points, MAPPING, files, 2, ignore) == Landed(0, 4, 2)
    with pytest.raises(InvalidData, match=r"f\.csv, row 2: .*same row key \(k\)"):
        land(points, MAPPING, list(reversed(files)) + files, None, ignore)
    assert seen(points) == {1: "a", 2: "b", 3: "c"}


def test_one_transaction_is_seen_whole_or_not_at_all(
    points: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "PIECE_ROWS", 2_000)
    views: list[int] = []
    monitor = land(
        points, MAPPING, [csv(tmp_path / "f.csv", numbered(5_000))], None, lambda *told: views.append(len(seen(points)))
    )
    assert monitor.transactions == 1
    assert views == [0, 0, 0, 5_000]


def test_a_row_that_does_not_fit_lands_nothing_of_its_transaction(points: TransactionManager, tmp_path: Path) -> None:
    file = csv(tmp_path / "f.csv", [*numbered(5), ("x", "bad"), (9, "after")])
    with pytest.raises(InvalidData, match=r"f\.csv, row 6, column 'k': 'x' is no int"):
        by(None)(points, file)
    assert seen(points) == {}
    assert list(points.manifest.transactions()) == [], "it was not rolled back"
    with pytest.raises(InvalidData, match=r"row 6"):
        by(4)(points, file)
    assert seen(points) == {number: f"v{number}" for number in range(4)}


@pytest.mark.parametrize("piece_rows", [1, 100])
def test_a_row_key_that_occurs_twice_in_a_transaction_is_refused(
    points: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece_rows: int
) -> None:
    monkeypatch.setattr(landing, "PIECE_ROWS", piece_rows)
    file = csv(tmp_path / "f.csv", [(1, "a"), (2, "b"), (1, "c")])
    with pytest.raises(InvalidData, match=r"f\.csv, rows? (3|1 to 3).*row key"):
        by(None)(points, file)
    assert seen(points) == {}
    by(2)(points, file)
    assert seen(points) == {1: "c", 2: "b"}


def test_row_keys_that_only_share_a_hash_all_land(
    points: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alike(table: str, cells: CellColumns, *, by_row: bool) -> Hashes:
        return np.full(cells.rows, 7, np.uint64)

    monkeypatch.setattr(landing, "write_set_of_columns", alike)
    monkeypatch.setattr(landing, "PIECE_ROWS", 2)
    assert by(None)(points, csv(tmp_path / "f.csv", numbered(7))) == Landed(0, 7, 1)
    assert seen(points) == {number: f"v{number}" for number in range(7)}
    with pytest.raises(InvalidData, match=r"g\.csv, row 4: .*same row key"):
        by(None)(points, csv(tmp_path / "g.csv", [(9, "a"), (8, "b"), (7, "c"), (9, "d")]))


def test_a_row_that_was_there_before_the_transaction_is_no_repetition(
    points: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by(None)(points, csv(tmp_path / "f.csv", numbered(3)))
    monkeypatch.setattr(landing, "write_set_of_columns", lambda table, cells, by_row: np.zeros(cells.rows, np.uint64))
    monkeypatch.setattr(landing, "PIECE_ROWS", 1)
    assert by(None)(points, csv(tmp_path / "g.csv", [(0, "new"), (1, "new")])) == Landed(0, 2, 1)
    assert seen(points) == {0: "new", 1: "new", 2: "v2"}


def test_a_file_that_does_not_fit_is_refused_before_anything_of_another_lands(
    points: TransactionManager, tmp_path: Path
) -> None:
    (tmp_path / "g.csv").write_text("k,w\n1,2\n")
    files = [csv(tmp_path / "f.csv", numbered(2)), DataFile(tmp_path / "g.csv", "csv")]
    with pytest.raises(InvalidData, match=r"g\.csv does not fit.*'w' is not in the table; column 'v' .* is missing"):
        land(points, MAPPING, files, 1, ignore)
    assert seen(points) == {}


def test_an_import_goes_on_where_it_stopped_and_sets_nothing_back(
    points: TransactionManager, installation: Installation, tmp_path: Path
) -> None:
    file = csv(tmp_path / "f.csv", numbered(7))

    def stop(rows: int, landed: bool) -> None:
        if rows == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        land(points, MAPPING, [file], 2, stop)
    assert seen(points) == {number: f"v{number}" for number in range(4)}
    with points.transaction() as transaction:
        transaction.put("points", row_key(MAPPING, 0), {b"f:v": b"changed"})
    assert by(3)(installation.manager(), file) == Landed(4, 3, 1)
    assert seen(points) == {number: f"v{number}" for number in range(7)} | {0: "changed"}


def test_an_import_that_has_landed_is_not_landed_again_unless_asked_for(
    points: TransactionManager, tmp_path: Path
) -> None:
    file = csv(tmp_path / "f.csv", numbered(4))
    assert by(2)(points, file) == Landed(0, 4, 2)
    with points.transaction() as transaction:
        transaction.put("points", row_key(MAPPING, 0), {b"f:v": b"changed"})
    assert by(None)(points, file) == Landed(4, 0, 0)
    assert seen(points)[0] == "changed"
    assert by(3, again=True)(points, file) == Landed(0, 4, 2)
    assert seen(points)[0] == "v0"
    assert by(3)(points, file) == Landed(4, 0, 0)


def test_a_copy_is_the_same_import_and_a_file_with_other_rows_another(
    points: TransactionManager, tmp_path: Path
) -> None:
    by(None)(points, csv(tmp_path / "f.csv", numbered(2)))
    assert by(None)(points, csv(tmp_path / "copy.csv", numbered(2))).rows == 0
    assert by(None)(points, csv(tmp_path / "f.csv", [(0, "new"), (1, "v1")])).rows == 2
    assert seen(points)[0] == "new"


def test_a_table_that_was_made_anew_is_filled_anew(points: TransactionManager, tmp_path: Path) -> None:
    file = csv(tmp_path / "f.csv", numbered(2))
    by(None)(points, file)
    points.drop_table("points")
    create_table(points, MAPPING)
    assert by(None)(points, file) == Landed(0, 2, 1)


def test_two_processes_do_not_both_land_the_same_rows(
    points: TransactionManager, installation: Installation, tmp_path: Path
) -> None:
    file, other = csv(tmp_path / "f.csv", numbered(4)), installation.manager()
    overtaken: list[Landed] = []

    def overtake(rows: int, landed: bool) -> None:
        if not overtaken and rows == 3:
            overtaken.append(by(None)(other, file))

    with pytest.raises(Conflict):
        land(points, MAPPING, [file], 3, overtake)
    assert overtaken == [Landed(0, 4, 1)]
    assert by(3)(points, file) == Landed(4, 0, 0)


def test_who_was_overtaken_between_two_transactions_is_told_so(
    points: TransactionManager, installation: Installation, tmp_path: Path
) -> None:
    file, other = csv(tmp_path / "f.csv", numbered(4)), installation.manager()

    def overtake(rows: int, landed: bool) -> None:
        if landed and rows == 2:
            assert by(None)(other, file) == Landed(2, 2, 1)

    with pytest.raises(InvalidRequest, match="another process lands the same: it has landed 4 rows"):
        land(points, MAPPING, [file], 2, overtake)


def test_the_table_of_records_may_be_made_by_another_process(
    points: TransactionManager, installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by(None)(installation.manager(), csv(tmp_path / "f.csv", numbered(2)))
    answers = iter([False, True])
    monkeypatch.setattr(points.catalog, "has_entry", lambda table: next(answers))
    assert by(None)(points, csv(tmp_path / "g.csv", numbered(3))) == Landed(0, 3, 1)


def test_a_store_that_fails_in_the_middle_leaves_whole_transactions(
    points: TransactionManager, installation: Installation, tmp_path: Path
) -> None:
    file = csv(tmp_path / "f.csv", numbered(6))

    def fail(rows: int, landed: bool) -> None:
        if landed and rows == 2:
            installation.store.plan("put", None, None, Fault.DONE)  # announced, recorded; then the rows

    with pytest.raises(StoreUnavailable):
        land(points, MAPPING, [file], 2, fail)
    assert seen(points) == {0: "v0", 1: "v1"}
    assert by(2)(points, file) == Landed(2, 4, 2)
    assert seen(points) == {number: f"v{number}" for number in range(6)}


def test_a_commit_whose_answer_was_lost_is_found_on_record(
    points: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = csv(tmp_path / "f.csv", numbered(4))

    def lose_the_answer(transaction: Transaction) -> None:
        commit_or_settle(transaction)
        raise OutcomeUnknown(transaction.start_timestamp, 1)

    monkeypatch.setattr(steps, "commit_or_settle", lose_the_answer)
    with pytest.raises(OutcomeUnknown):
        by(2)(points, file)
    monkeypatch.undo()
    assert by(2)(points, file) == Landed(2, 2, 1)


def test_more_rows_than_one_transaction_may_have_are_refused_with_the_way_out(
    points: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "ROWS_PER_TRANSACTION_MAX", 3)
    with pytest.raises(InvalidData, match=r"more than 3 rows; nothing .* --rows-per-transaction"):
        by(None)(points, csv(tmp_path / "f.csv", numbered(4)))
    assert seen(points) == {}
    assert by(None)(points, csv(tmp_path / "f.csv", numbered(3))) == Landed(0, 3, 1)


def test_a_file_that_says_how_many_rows_it_has_is_refused_before_any_is_written(
    points: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "ROWS_PER_TRANSACTION_MAX", 3)
    pa.parquet.write_table(pa.table({"k": pa.array(range(4), pa.int32()), "v": list("abcd")}), tmp_path / "f")
    file, told = DataFile(tmp_path / "f", "parquet"), list[int]()
    with pytest.raises(InvalidData, match=r"more than 3 rows; nothing .* --rows-per-transaction"):
        land(points, MAPPING, [file], None, lambda rows, landed: told.append(rows))
    assert told == []
    assert by(2)(points, file) == Landed(0, 4, 2)
    pa.parquet.write_table(pa.table({"k": pa.array(range(5), pa.int32()), "v": list("abcde")}), tmp_path / "g")
    other = DataFile(tmp_path / "g", "parquet")

    def stop(rows: int, landed: bool) -> None:
        if landed:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        land(points, MAPPING, [other], 2, stop)
    assert by(None)(points, other) == Landed(2, 3, 1), "what has landed does not count"


def test_more_than_the_oracle_takes_is_told_with_the_way_out(empty_installation: Installation, tmp_path: Path) -> None:
    empty_installation.serve(limits=Limits(conflict_map_entries_max=1_000, large_commit_cells_max=100))
    manager = empty_installation.manager()
    create_table(manager, MAPPING)
    with pytest.raises(InvalidData, match="--rows-per-transaction") as refusal:
        by(None)(manager, csv(tmp_path / "f.csv", numbered(2_000)))
    assert isinstance(refusal.value.__cause__, TransactionTooLarge)
    assert seen(manager) == {}


def test_a_file_without_rows_lands_nothing(points: TransactionManager, tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"k": pa.array([], pa.int32()), "v": pa.array([], pa.string())}), tmp_path / "p")
    assert by(None)(points, csv(tmp_path / "f.csv", [])) == Landed(0, 0, 0)
    assert by(None)(points, DataFile(tmp_path / "p", "parquet")) == Landed(0, 0, 0)


def changes(path: Path, lines: list[tuple[Any, Any, str]]) -> DataFile:
    path.write_text(
        "_change_type,k,v,_commit_timestamp\n" + "".join(f"{what},{key},{value},7\n" for key, value, what in lines)
    )
    return DataFile(path, "csv")


@pytest.mark.parametrize("rows", [None, 2])
def test_a_file_that_says_what_changed_puts_and_deletes(
    points: TransactionManager, tmp_path: Path, rows: int | None
) -> None:
    land(points, MAPPING, [csv(tmp_path / "f.csv", numbered(5))], None, ignore)
    with points.transaction() as transaction:
        transaction.put("points", row_key(MAPPING, 3), {b"f:other": b"goes, too"})
    lines = [(1, "", "delete"), (2, "changed", "upsert"), (3, "", "delete"), (7, "new", "upsert"), (9, "", "delete")]
    file = changes(tmp_path / "c.csv", lines)
    assert by(rows, changes=True)(points, file) == Landed(0, 5, 1 if rows is None else 3)
    assert seen(points) == {0: "v0", 2: "changed", 4: "v4", 7: "new"}
    assert by(rows, changes=True)(points, file) == Landed(5, 0, 0), "it has landed"


@pytest.mark.parametrize("piece_rows", [1, 100])
def test_a_row_of_which_two_things_are_said_is_refused(
    points: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece_rows: int
) -> None:
    monkeypatch.setattr(landing, "PIECE_ROWS", piece_rows)
    file = changes(tmp_path / "c.csv", [(1, "", "delete"), (1, "a", "upsert")])
    with pytest.raises(InvalidData, match=r"c\.csv, rows .*, the row with the key .*same row key \(k\)"):
        land(points, MAPPING, [file], None, ignore, changes=True)
    assert seen(points) == {}


@pytest.mark.parametrize("said", ["", "Delete", "update_preimage"])
def test_a_row_that_does_not_say_what_is_to_be_done_with_it_is_refused(
    points: TransactionManager, tmp_path: Path, said: str
) -> None:
    file = changes(tmp_path / "c.csv", [(1, "a", "upsert"), (2, "b", said)])
    with pytest.raises(InvalidData, match=r"c\.csv, row 2, column '_change_type': it says 'upsert' or 'delete', not "):
        land(points, MAPPING, [file], None, ignore, changes=True)
    assert seen(points) == {}


def test_a_file_is_read_as_what_changed_only_where_it_is_asked_for_and_says_so(
    points: TransactionManager, tmp_path: Path
) -> None:
    with pytest.raises(InvalidData, match=r"column '_change_type' is not in the table; .*: import it with --changes"):
        land(points, MAPPING, [changes(tmp_path / "c.csv", [(1, "a", "upsert")])], None, ignore)
    with pytest.raises(InvalidData, match=r"'_change_type', which says .* is missing, or no text"):
        land(points, MAPPING, [csv(tmp_path / "f.csv", numbered(1))], None, ignore, changes=True)


def test_a_table_with_a_column_of_that_name_takes_no_files_of_what_changed(
    points: TransactionManager, tmp_path: Path
) -> None:
    taken = TableMapping("taken", ("k",), (*MAPPING.columns, ValueColumn("_Change_Type", "string", "d", "t")), "row")
    create_table(points, taken)
    with pytest.raises(InvalidData, match=r"the table has a column '_Change_Type' of its own, .* by a program"):
        land(points, taken, [changes(tmp_path / "c.csv", [(1, "a", "upsert")])], None, ignore, changes=True)
