"""``pythia table`` as processes on real services: made, filled, killed in the middle, filled to the end, exported."""

from __future__ import annotations

import datetime
import signal
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from client import ClientSettings, TransactionManager
from client.spark import row_key, table_mapping
from store import Family, KeyRange, RowPut
from store.hbase import HBaseCellStore
from tests.integration.command_processes import Command

pytestmark = pytest.mark.integration

ROWS = 600
ROWS_EACH = 5


@pytest.fixture
def command(oracle: ClientSettings) -> Command:
    return Command(oracle, "table")


@pytest.fixture
def name() -> str:
    return f"tables_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """Rows whose values nobody would guess, in the order of their row keys."""
    numbers = range(-ROWS // 2, ROWS // 2)
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": [None if number % 7 == 0 else f"ä\n{number}" for number in numbers],
            "real": [number / 3 for number in numbers],
            "at": [datetime.datetime.fromtimestamp(number * 1e5, datetime.UTC) for number in numbers],
        },
        schema=pa.schema(
            [("id", pa.int64()), ("text", pa.string()), ("real", pa.float64()), ("at", pa.timestamp("us", "UTC"))]
        ),
    )
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def rows(path: Path) -> Any:
    return pa.parquet.read_table(path).to_pylist()


def test_a_file_goes_through_a_table_and_comes_out_the_same(
    command: Command, name: str, parquet: Path, tmp_path: Path
) -> None:
    made = command.done("create", name, "--like", parquet, "--row-key", "id")
    assert command.done("describe", name) == made
    assert made["families"] == [{"name": "f", "versions_max": 2**31 - 1, "all_versions": True}]
    assert name in [one["table"] for one in command.done("list")["tables"]]
    assert command.done("import", name, parquet)["rows"] == ROWS
    exported = command.done("export", name, tmp_path / "rows.csv")
    assert exported["rows"] == ROWS

    other = f"{name}_csv"
    command.done(
        "create", other, "--column", "id:bigint", "--column", "text:string", "--column", "real:double",
        "--column", "at:timestamp", "--row-key", "id",
    )  # fmt: skip
    assert command.done("import", other, tmp_path / "rows.csv", "--rows-per-transaction", ROWS_EACH) == {
        "table": other, "rows_before": 0, "rows": ROWS, "transactions": ROWS // ROWS_EACH,
    }  # fmt: skip
    command.done("export", other, tmp_path / "again.parquet")
    assert rows(tmp_path / "again.parquet") == rows(parquet)
    assert len(command.done("splits", name, parquet, "--regions", 4)["split_keys"]) == 3


def test_a_table_of_several_regions_is_made_filled_and_copied(
    command: Command, manager: TransactionManager, name: str, parquet: Path, tmp_path: Path, thrift2: str
) -> None:
    there = ["--thrift2", thrift2]
    made = command.done("create", name, "--like", parquet, "--row-key", "id", "--regions", 4, *there)
    mapping = table_mapping(manager, name)
    keys = [row_key(mapping, number) for number in (-ROWS // 4, 0, ROWS // 4)]
    assert [region["start"] for region in made["regions"]] == ["", *(key.hex() for key in keys)]
    command.done("import", name, parquet, "--rows-per-transaction", ROWS // 3)
    command.done("export", name, tmp_path / "out.parquet")
    assert rows(tmp_path / "out.parquet") == rows(parquet)
    one = command.refused("create", f"{name}_one", "--like", parquet, "--row-key", "id", "--regions", 4)
    assert "hbase thrift2 start" in one

    with closing(HBaseCellStore(manager.settings.thrift, thrift2=thrift2)) as store:
        store.create_table(f"{name}_plain", [Family("f")], [b"m"])
    manager.store.put(f"{name}_plain", [RowPut(row, {b"f:a": row}) for row in (b"a", b"z")], 5)
    command.done("copy", f"{name}_plain", f"{name}_copy", *there)
    assert [region.start for region in manager.store.regions(f"{name}_copy")] == [b"", b"m"]
    assert [row for row, _ in manager.snapshot().scan(f"{name}_copy")] == [b"a", b"z"]


def test_an_import_that_is_killed_lands_whole_transactions_and_goes_on(
    command: Command, manager: TransactionManager, name: str, parquet: Path, tmp_path: Path
) -> None:
    command.done("create", name, "--like", parquet, "--row-key", "id")
    importing = ["import", name, parquet, "--rows-per-transaction", ROWS_EACH]
    command.killed_once_it_said(f"{ROWS_EACH} rows have landed", *importing)
    landed = len(list(manager.snapshot().scan(name)))
    assert landed % ROWS_EACH == 0
    assert ROWS_EACH <= landed < ROWS

    with manager.transaction() as transaction:  # what somebody changes meanwhile is not set back
        transaction.put(name, row_key(table_mapping(manager, name), -ROWS // 2), {b"f:text": b"changed"})
    before = manager.snapshot()
    assert command.done(*importing) == {
        "table": name, "rows_before": landed, "rows": ROWS - landed, "transactions": (ROWS - landed) // ROWS_EACH,
    }  # fmt: skip
    assert command.done(*importing)["rows"] == 0

    command.done("export", name, tmp_path / "all.parquet")
    expected = rows(parquet)
    expected[0]["text"] = "changed"
    assert rows(tmp_path / "all.parquet") == expected
    assert command.done("export", name, tmp_path / "then.csv", "--as-of", before.timestamp)["rows"] == landed


def test_an_import_in_one_transaction_that_is_killed_lands_nothing(
    command: Command, manager: TransactionManager, name: str, tmp_path: Path
) -> None:
    """Killed as soon as its first rows are in the store."""
    command.done("create", name, "--column", "k:int", "--column", "v:string", "--row-key", "k")
    file = tmp_path / "f.csv"
    file.write_text("k,v\n" + "".join(f"{number},x\n" for number in range(200_000)))
    process = command.start("import", name, file)
    with process:
        while next(manager.store.scan(name, KeyRange(b"", b""), [b"f"], batch_rows=1), None) is None:
            assert process.poll() is None, process.communicate()
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert next(manager.snapshot().scan(name), None) is None
    file.write_text("k,v\n1,a\n")
    assert command.done("import", name, file)["rows"] == 1
    assert [values for _, values in manager.snapshot().scan(name)] == [{b"f:v": b"a"}]


def test_a_plain_table_is_copied_also_by_a_command_that_was_killed(
    command: Command, manager: TransactionManager, name: str
) -> None:
    plain = f"{name}_plain"
    content = {b"%06d" % number: {b"d:a": b"\xc1%d" % number, b"e:": b""} for number in range(ROWS)}
    manager.store.create_table(plain, [Family("d", versions_max=1), Family("e", versions_max=3)])
    for value in (dict.fromkeys((b"d:a", b"e:"), b"older"), None):
        puts = [RowPut(row, value or values) for row, values in content.items()]
        manager.store.put(plain, puts, 1_700_000_000_000 + (value is None))
    copying = ["copy", plain, name, "--rows-per-transaction", ROWS_EACH]
    command.killed_once_it_said(f"{ROWS_EACH} rows have landed", *copying)
    landed = len(list(manager.snapshot().scan(name)))
    assert ROWS_EACH <= landed < ROWS
    assert command.done(*copying)["rows"] == ROWS - landed
    assert dict(manager.snapshot().scan(name)) == content
    assert "is one of Pythia's" in command.refused("copy", name, plain)


def test_a_plain_table_is_adopted_where_it_is(command: Command, manager: TransactionManager, name: str) -> None:
    content = {b"%06d" % number: {b"d:a": b"\xc1%d" % number} for number in range(ROWS)}
    for table, family in ((name, Family("d")), (f"{name}_narrow", Family("d", versions_max=1))):
        manager.store.create_table(table, [family])
        manager.store.put(table, [RowPut(row, values) for row, values in content.items()], 1_700_000_000_000)
    assert "alter the family to VERSIONS => 2147483647" in command.refused("adopt", f"{name}_narrow")
    columns = ["--column", "k:string", "--column", "a:binary", "--row-key", "k"]
    adopted = command.done("adopt", name, *columns)
    assert adopted["rows"] == ROWS
    assert command.done("adopt", name, *columns) == adopted | {"rows": 0}
    assert dict(manager.snapshot().scan(name)) == content
    assert command.done("describe", name)["plain_through"] == adopted["plain_through"]


def test_what_is_wrong_is_said_and_lands_nothing(
    command: Command, manager: TransactionManager, name: str, tmp_path: Path
) -> None:
    columns = ["--column", "k:int", "--column", "v:string", "--row-key", "k"]
    file = tmp_path / "f.csv"
    file.write_text("k,v\n1,a\n")
    assert f"there is no table '{name}'" in command.refused("import", name, file)
    command.done("create", name, *columns)
    assert "exists already" in command.refused("create", name, *columns)
    for content, words, code in (
        ("k\n1\n", "column 'v' (string) is missing", 1),
        ("k,v\n1,a\nx,b\n", "row 2, column 'k': 'x' is no int", 1),
        ("", "Empty CSV file", 2),
    ):
        file.write_text(content)
        assert words in command.refused("import", name, file, code=code)
    assert "No such file" in command.refused("import", name, tmp_path / "none.csv", code=2)
    assert "cannot be read as parquet" in command.refused("import", name, file, "--format", "parquet", code=2)
    assert list(manager.snapshot().scan(name)) == []
