"""``pythia table``: what the commands do, print and refuse."""

from __future__ import annotations

import csv
import datetime
import errno
import os
import re
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from client import TransactionAborted, TransactionManager
from client.spark import row_key, table_mapping
from client.tables import commands, exporting
from store import Family
from tests.imports import ROOT
from tests.unit.client.conftest import Installation
from tests.unit.client_tables.conftest import Run, done, refused

POINTS = ["--column", "k:int", "--column", "v:string", "--row-key", "k"]
EVERY_TYPE = pa.table(
    {
        "k": pa.array([1, 2, 3], pa.int64()),
        "text": ['a,"b"\nc', "", None],
        "raw": [b"\x00\xff", b"", None],
        "yes": [True, False, None],
        "tiny": pa.array([-1, 0, None], pa.int8()),
        "small": pa.array([-1, 0, None], pa.int16()),
        "whole": pa.array([-1, 0, None], pa.int32()),
        "single": pa.array([0.1, float("-inf"), None], pa.float32()),
        "real": [0.1, 1e300, None],
        "day": [datetime.date(2026, 11, 21), datetime.date(1900, 1, 1), None],
        "at": pa.array([1, -1, None], pa.timestamp("us", "UTC")),
        "local": pa.array([1, -1, None], pa.timestamp("us")),
        "price": pa.array([Decimal("1.25"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
    }
)


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    (tmp_path / "flat.csv").write_text("k,v\n1,a\n2,b\n3,\n")
    return tmp_path / "flat.csv"


def rows(path: Path) -> Any:
    return pa.parquet.read_table(path).to_pylist()


def test_the_commands_of_the_documentation_work(
    run: Run, installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    installation.store.create_table("old", [Family("d", versions_max=1)])
    installation.store.create_table("users", [Family("d")])
    Path("monday.csv").write_text("id,origin,price\n" + "".join(f"{number},JFK,9.99\n" for number in range(50)))
    tuesday = {"price": pa.array([Decimal("1.5")], pa.decimal128(3, 1)), "id": [50], "origin": ["LGA"]}
    pa.parquet.write_table(pa.table(tuesday), "tuesday.parquet")
    text = (ROOT / "docs" / "tables.md").read_text()
    ran = []
    for line in re.findall(r"^pythia table .*$|(?<=`)pythia table \w+ [^`]*", text, re.MULTILINE):
        _, _, *arguments = shlex.split(line)
        result = run(*arguments)
        assert result.exit_code == 0, f"{line}: {result.output}"
        ran.append(arguments[0])
    assert ran[:9] == ["create", "import", "describe", "export", "list", "create", "create", "adopt", "copy"]
    assert ran[9:] == ["create", "export", "import", "export", "import", "splits"]
    assert len(installation.store.regions("departures")) == 8
    assert len(rows(Path("now.parquet"))) == 51


def test_a_table_is_made_and_described(run: Run) -> None:
    made = done(run("create", "points", *POINTS, "--family", "g", "--level", "cell", "--json"))
    assert done(run("describe", "points", "--json")) == made
    assert made == {
        "table": "points",
        "conflict_level": "cell",
        "row_key": ["k"],
        "salt_buckets": 0,
        "columns": [
            {"name": "k", "type": "int", "place": "row key"},
            {"name": "v", "type": "string", "place": "cell g:v"},
        ],
        "families": [{"name": "g", "versions_max": 2**31 - 1, "all_versions": True}],
        "regions": [{"start": "", "stop": ""}],
        "fenced_at": None,
        "plain_through": None,
        "shadow_family": "_",
    }


def test_a_description_is_in_words(run: Run, manager: TransactionManager) -> None:
    run("create", "points", *POINTS)
    fence = manager.fence("points")
    text = run("describe", "points").output
    for words in (
        "rows are sorted by k",
        "v: string, cell f:v",
        "when they write the same row",
        "family f: keeps all versions of a cell, as snapshots need",
        "1 region\n",
        f"fenced last at {fence.timestamp} (20",
    ):
        assert words in text
    assert "no mapping" in run("describe", "t").output
    assert "never fenced" in run("describe", "t").output


def test_a_family_that_drops_versions_is_told(
    run: Run, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation.store, "families", lambda name: {"f": Family("f", 3)})
    assert "keeps only 3 versions of a cell, and snapshots need them all" in run("describe", "t").output
    assert done(run("describe", "t", "--json"))["families"][0]["all_versions"] is False


def test_the_list_shows_tables_and_not_pythias_own(run: Run, flat: Path) -> None:
    run("create", "points", *POINTS)
    done(run("import", "points", flat, "--json"))
    assert [one["table"] for one in done(run("list", "--json"))["tables"]] == ["points", "t"]
    assert "points" in run("list").output
    assert "no mapping" in run("list").output


def test_a_table_like_a_file(run: Run, manager: TransactionManager, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("id;when;what\n7;2026-11-21;NA\n8;NA;x\n")
    done(
        run(
            "create", "c", "--like", tmp_path / "f.csv", "--delimiter", ";", "--null", "NA", "--row-key", "id", "--json"
        )
    )
    assert [(column.name, column.type) for column in table_mapping(manager, "c").columns] == [
        ("id", "bigint"),
        ("when", "date"),
        ("what", "string"),
    ]
    pa.parquet.write_table(EVERY_TYPE, tmp_path / "f.parquet")
    made = done(run("create", "p", "--like", tmp_path / "f.parquet", "--row-key", "text, k", "--json"))
    assert made["row_key"] == ["text", "k"]
    assert [column["type"] for column in made["columns"]][-3:] == ["timestamp", "timestamp_ntz", "decimal(10,2)"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_was_imported_is_exported(run: Run, tmp_path: Path, ending: str) -> None:
    pa.parquet.write_table(EVERY_TYPE, tmp_path / "in.parquet")
    done(run("create", "first", "--like", tmp_path / "in.parquet", "--row-key", "k", "--json"))
    assert done(run("import", "first", tmp_path / "in.parquet", "--json")) == {
        "table": "first", "rows_before": 0, "rows": 3, "transactions": 1,
    }  # fmt: skip
    exported = done(run("export", "first", tmp_path / f"out.{ending}", "--json"))
    assert exported["rows"] == 3
    done(run("create", "second", "--like", tmp_path / "in.parquet", "--row-key", "k", "--json"))
    assert done(run("import", "second", tmp_path / f"out.{ending}", "--json"))["rows"] == 3
    done(run("export", "second", tmp_path / "again.parquet", "--json"))
    assert rows(tmp_path / "again.parquet") == EVERY_TYPE.to_pylist()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.parquet", f"out.{ending}", "again.parquet"])


SECOND = 1_000_000
LAST_SECOND = 253_402_300_799
FIRST_SECOND = -62_135_596_800


@pytest.mark.parametrize(
    ("kind", "inside", "outside", "shown"),
    [
        (pa.date32(), [-719_162, 2_932_896], 2_932_897, "10000-01-01"),
        (pa.date32(), [], -719_163, "0000-12-31"),
        (pa.date32(), [], 2**31 - 1, "<value out of range: 2147483647>"),
        (pa.timestamp("us"), [FIRST_SECOND * SECOND], (LAST_SECOND + 1) * SECOND, "10000-01-01 00:00:00.000000"),
        (pa.timestamp("us", "UTC"), [(LAST_SECOND + 1) * SECOND - 1], FIRST_SECOND * SECOND - 1, "0000-12-31 23:59:59"),
    ],
)
def test_a_day_that_csv_cannot_hold_is_exported_to_parquet_only(
    run: Run, tmp_path: Path, kind: pa.DataType, inside: list[int], outside: int, shown: str
) -> None:
    whole = pa.int32() if kind == pa.date32() else pa.int64()

    def table_of(values: list[int]) -> pa.Table:
        keys = pa.array(range(len(values)), pa.int32())
        return pa.table({"k": keys, "at": pa.array(values, whole).view(kind)})

    pa.parquet.write_table(table_of([0, *inside]), tmp_path / "inside.parquet")
    pa.parquet.write_table(table_of([0, *inside, outside]), tmp_path / "outside.parquet")
    done(run("create", "points", "--like", tmp_path / "inside.parquet", "--row-key", "k", "--json"))
    done(run("import", "points", tmp_path / "inside.parquet", "--json"))
    done(run("export", "points", tmp_path / "inside.csv", "--json"))
    done(run("create", "again", "--like", tmp_path / "inside.parquet", "--row-key", "k", "--json"))
    assert done(run("import", "again", tmp_path / "inside.csv", "--json"))["rows"] == 1 + len(inside)
    done(run("import", "points", tmp_path / "outside.parquet", "--json"))
    error = refused(run("export", "points", tmp_path / "outside.csv"))
    assert f"row {2 + len(inside)}, column 'at': {shown}" in error
    assert "export to Parquet" in error
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("outside.csv")]
    done(run("export", "points", tmp_path / "all.parquet", "--json"))
    assert pa.parquet.read_table(tmp_path / "all.parquet")["at"].equals(table_of([0, *inside, outside])["at"])


def test_an_export_is_one_moment(run: Run, manager: TransactionManager, flat: Path, tmp_path: Path) -> None:
    run("create", "points", *POINTS)
    run("import", "points", flat)
    moment = manager.create_snapshot("before").timestamp
    with manager.transaction() as transaction:
        transaction.put("points", row_key(table_mapping(manager, "points"), 1), {b"f:v": b"later"})
    named = done(run("export", "points", tmp_path / "named.parquet", "--as-of", "before", "--json"))
    assert (named["snapshot"], rows(tmp_path / "named.parquet")[0]["v"]) == (moment, "a")
    past = done(run("export", "points", tmp_path / "past.parquet", "--as-of", moment, "--columns", "V", "--json"))
    assert past["snapshot"] == moment
    assert rows(tmp_path / "past.parquet") == [{"v": "a"}, {"v": "b"}, {"v": None}]
    assert "3 rows of points" in run("export", "points", tmp_path / "now.csv").output
    assert (tmp_path / "now.csv").read_text() == '"k","v"\n1,"later"\n2,"b"\n3,\n'
    soon = datetime.datetime.now(datetime.UTC).isoformat()
    done(run("export", "points", tmp_path / "soon.parquet", "--as-of", soon, "--json"))
    assert rows(tmp_path / "soon.parquet")[0] == {"k": 1, "v": "later"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_may_be_of_what_has_changed(
    run: Run, manager: TransactionManager, flat: Path, tmp_path: Path, ending: str
) -> None:
    run("create", "points", *POINTS)
    run("import", "points", flat)
    everything = done(run("export", "points", tmp_path / f"0.{ending}", "--changed-since", "0", "--json"))
    assert everything["rows"] == 3
    change_points(manager)
    then = everything["snapshot"]
    since = done(run("export", "points", tmp_path / f"1.{ending}", "--changed-since", then, "--json"))["snapshot"]
    read = rows(tmp_path / "1.parquet") if ending == "parquet" else rows_of_csv(tmp_path / "1.csv")
    assert [(row["k"], row["v"] or None, row["_change_type"]) for row in read] == [
        (1, "later", "upsert"),
        (3, None, "delete"),
    ]
    assert all(int(row["_commit_timestamp"]) <= since for row in read)
    assert done(run("export", "points", tmp_path / "none.csv", "--changed-since", since, "--json"))["rows"] == 0
    assert "take the moments in their order" in refused(
        run("export", "points", tmp_path / "no.csv", "--changed-since", since, "--as-of", since - 1)
    )
    assert "is of the year 1970" in refused(run("export", "points", tmp_path / "no.csv", "--changed-since", "7"))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_one_table_is_told_of_another_keeps_it_the_same(
    run: Run, manager: TransactionManager, flat: Path, tmp_path: Path, ending: str
) -> None:
    for table in ("points", "copy"):
        run("create", table, *POINTS)
    run("import", "points", flat)
    since = "0"
    for number in range(3):
        file = tmp_path / f"{number}.{ending}"
        since = done(run("export", "points", file, "--changed-since", since, "--json"))["snapshot"]
        done(run("import", "copy", file, "--changes", "--json"))
        assert list(manager.snapshot().scan("copy")) == list(manager.snapshot().scan("points"))
        change_points(manager)


def change_points(manager: TransactionManager) -> None:
    mapping = table_mapping(manager, "points")
    with manager.transaction() as transaction:
        transaction.put("points", row_key(mapping, 1), {b"f:v": b"later"})
        transaction.delete("points", row_key(mapping, 3))


def rows_of_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as lines:
        return [{**row, "k": int(row["k"])} for row in csv.DictReader(lines)]


def test_an_export_that_fails_leaves_no_file(
    run: Run, flat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("create", "points", *POINTS)
    run("import", "points", flat)
    during: list[list[str]] = []

    def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
        during.append(sorted(path.name for path in tmp_path.iterdir() if path != flat))
        raise OSError("no space left on device")

    monkeypatch.setattr(exporting, "_as_text", fail)
    assert "out.csv cannot be written: no space left" in refused(run("export", "points", tmp_path / "out.csv"), 2)
    assert [path.name for path in tmp_path.iterdir()] == [flat.name]
    ((unfinished,),) = during
    assert unfinished.startswith("out.csv.")
    assert unfinished.endswith(".unfinished")


@pytest.fixture(params=["with hard links", "without hard links"])
def _links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if request.param == "without hard links":
        monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("_links")
def test_a_file_that_appears_during_an_export_stays(
    run: Run, flat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("create", "points", *POINTS)
    run("import", "points", flat)
    done(run("export", "points", tmp_path / "first.csv", "--json"))
    as_text = exporting._as_text

    def interfere(batch: pa.RecordBatch) -> pa.RecordBatch:
        (tmp_path / "out.csv").write_text("somebody else's")
        return as_text(batch)

    monkeypatch.setattr(exporting, "_as_text", interfere)
    assert "out.csv cannot be written: [Errno 17] File exists" in refused(
        run("export", "points", tmp_path / "out.csv"), 2
    )
    assert (tmp_path / "out.csv").read_text() == "somebody else's"
    assert (tmp_path / "first.csv").read_text() == '"k","v"\n1,"a"\n2,"b"\n3,\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.csv", flat.name, "out.csv"]


def test_a_file_that_is_there_is_not_written_over(run: Run, flat: Path) -> None:
    run("create", "points", *POINTS)
    before = flat.read_bytes()
    assert "exists already" in refused(run("export", "points", flat), 2)
    assert flat.read_bytes() == before


def test_an_import_says_what_it_did(run: Run, flat: Path) -> None:
    run("create", "points", *POINTS)
    first = run("import", "points", flat, "--rows-per-transaction", 2)
    assert first.stdout == "points: 3 rows have landed in 2 transactions\n"
    assert first.stderr.splitlines() == ["2 rows have landed", "3 rows have landed"]
    assert run("import", "points", flat).stdout == "points: 0 rows have landed in 0 transactions; 3 had landed before\n"
    assert run("import", "points", flat, "--again").stdout == "points: 3 rows have landed in 1 transactions\n"


def test_a_null_text_is_a_null_unless_it_is_quoted(run: Run, tmp_path: Path) -> None:
    run("create", "points", *POINTS)
    (tmp_path / "f.csv").write_text('k,v\n1,NA\n2,"NA"\n3,""\n')
    done(run("import", "points", tmp_path / "f.csv", "--null", "NA", "--json"))
    done(run("export", "points", tmp_path / "f.parquet", "--json"))
    assert [row["v"] for row in rows(tmp_path / "f.parquet")] == [None, "NA", ""]


def test_text_of_a_parquet_file_is_not_decoded_to_binary(run: Run, tmp_path: Path) -> None:
    run("create", "points", "--column", "k:int", "--column", "v:binary", "--row-key", "k")
    texts = pa.table({"k": pa.array([1], pa.int32()), "v": ["cafe"]})
    pa.parquet.write_table(texts, tmp_path / "text.parquet")
    for command in (["import", "points"], ["splits", "points", "--regions", "2"]):
        error = refused(run(*command[:2], tmp_path / "text.parquet", *command[2:]))
        assert "column 'v' is string, which cannot become the table's binary exactly: hexadecimal digits" in error
    (tmp_path / "text.csv").write_text("k,v\n1,cafe\n")
    done(run("import", "points", tmp_path / "text.csv", "--json"))
    done(run("export", "points", tmp_path / "out.parquet", "--json"))
    assert rows(tmp_path / "out.parquet") == [{"k": 1, "v": b"\xca\xfe"}]


def test_a_table_begins_with_the_regions_that_its_rows_want(run: Run, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("k,v\n" + "".join(f"{number},x\n" for number in range(9_000)))
    bounds = [("", "80000bb8"), ("80000bb8", "80001770"), ("80001770", "")]
    regions = [{"start": start, "stop": stop} for start, stop in bounds]
    by_sample = run("create", "points", *POINTS, "--regions", 3, "--sample", tmp_path / "f.csv", "--json")
    assert done(by_sample)["regions"] == regions
    like = ["--like", tmp_path / "f.csv", "--row-key", "k"]
    assert len(done(run("create", "like", *like, "--regions", 3, "--json"))["regions"]) == 3
    assert len(done(run("create", "one", *like, "--json"))["regions"]) == 1
    done(run("import", "points", tmp_path / "f.csv", "--json"))
    done(run("export", "points", tmp_path / "out.parquet", "--json"))
    assert [row["k"] for row in rows(tmp_path / "out.parquet")] == list(range(9_000))


def test_columns_may_lie_in_families_of_their_own(run: Run, tmp_path: Path) -> None:
    columns = [
        "--column",
        "k:int",
        "--column",
        "v:string",
        "--column",
        "w x:int",
        "--column",
        "y:int",
        "--row-key",
        "k",
    ]
    made = done(run("create", "wide", *columns, "--family-of", "v=g", "--family-of", "w x=h", "--json"))
    assert [column["place"] for column in made["columns"]] == ["row key", "cell g:v", "cell h:w x", "cell f:y"]
    assert [family["name"] for family in made["families"]] == ["f", "g", "h"]
    (tmp_path / "f.csv").write_text("k,v,w x,y\n1,a,2,3\n")
    done(run("import", "wide", tmp_path / "f.csv", "--json"))
    done(run("export", "wide", tmp_path / "out.parquet", "--columns", "k,w x", "--json"))
    assert rows(tmp_path / "out.parquet") == [{"k": 1, "w x": 2}]
    for wrong, words in (
        ("v", "'column=family', for instance"),
        ("v=", "'column=family', for instance"),
        ("z=g", "unknown column 'z'"),
        ("k=g", "part of the row key"),
        ("v=g:h", "column 'v': a column family's name"),
    ):
        assert words in refused(run("create", "other", *columns, "--family-of", wrong), 2)
    assert "one family, not" in refused(run("create", "other", *columns, "--packed", "--family-of", "v=g"), 2)


def test_a_salted_table_has_regions_without_a_sample(run: Run, tmp_path: Path) -> None:
    """And is filled, and read, as any other."""
    made = done(run("create", "points", *POINTS, "--salt-buckets", 6, "--regions", 3, "--json"))
    assert (made["salt_buckets"], [each["start"] for each in made["regions"]]) == (6, ["", "02", "04"])
    assert "  rows are sorted by k, in each of 6 salt buckets\n" in run("describe", "points").output
    (tmp_path / "f.csv").write_text("k,v\n" + "".join(f"{number},x{number}\n" for number in range(500)))
    assert done(run("import", "points", tmp_path / "f.csv", "--rows-per-transaction", 100, "--json"))["rows"] == 500
    done(run("export", "points", tmp_path / "out.parquet", "--json"))
    expected = [{"k": number, "v": f"x{number}"} for number in range(500)]
    assert sorted(rows(tmp_path / "out.parquet"), key=lambda row: row["k"]) == expected
    like = ["--like", tmp_path / "f.csv", "--row-key", "k", "--salt-buckets", 4]
    assert len(done(run("create", "like", *like, "--regions", 4, "--json"))["regions"]) == 4
    assert "needs rows by which to part them" in refused(
        run("create", "x", *POINTS, "--salt-buckets", 2, "--regions", 3), 2
    )
    by_sample = ["--sample", tmp_path / "f.csv", "--regions", 9, "--json"]
    assert len(done(run("create", "many", *POINTS, "--salt-buckets", 2, *by_sample))["regions"]) == 9


def test_a_sample_with_few_keys_makes_few_regions_and_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("k,v\n1,x\n2,x\n")
    few = run("create", "points", *POINTS, "--regions", 3, "--sample", tmp_path / "two.csv", "--json")
    assert len(done(few)["regions"]) == 2
    assert few.stderr == "the file has row keys for 2 regions only\n"


def test_regions_need_rows_to_part_them_by(run: Run, tmp_path: Path) -> None:
    assert "give a file of such with --sample" in refused(run("create", "points", *POINTS, "--regions", 3), 2)
    (tmp_path / "bad.csv").write_text("k,v\nx,1\n")
    bad = run("create", "points", *POINTS, "--regions", 3, "--sample", tmp_path / "bad.csv")
    assert "bad.csv" in refused(bad, bad.exit_code)
    assert "Pythia knows no table" in refused(run("describe", "points"))


def test_splits_are_printed_for_the_shell(run: Run, tmp_path: Path) -> None:
    run("create", "points", *POINTS)
    (tmp_path / "f.csv").write_text("k,v\n" + "".join(f"{number},x\n" for number in range(9_000)))
    printed = run("splits", "points", tmp_path / "f.csv", "--regions", 3)
    assert printed.output.splitlines() == [
        "split 'points', \"\\x80\\x00\\x0B\\xB8\"",
        "split 'points', \"\\x80\\x00\\x17\\x70\"",
    ]
    (tmp_path / "two.csv").write_text("k,v\n1,x\n2,x\n")
    few = run("splits", "points", tmp_path / "two.csv", "--regions", 3, "--json")
    assert done(few)["split_keys"] == ["80000002"]
    assert few.stderr == "the file has row keys for 2 regions only\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "Empty CSV file"),
        (b"k,v\n1,2,3\n", "Expected 2 columns, got 3"),
        (b"k,v\n1,\xff\n", "invalid UTF8"),
        (None, "cannot be read as csv: No such file"),
    ],
)
def test_a_file_that_is_no_csv_file_is_refused(run: Run, tmp_path: Path, content: bytes | None, words: str) -> None:
    run("create", "points", *POINTS)
    if content is not None:
        (tmp_path / "f.csv").write_bytes(content)
    error = refused(run("import", "points", tmp_path / "f.csv"), 2)
    assert "f.csv cannot be read as csv" in error
    assert words in error


def test_a_file_that_is_no_parquet_file_is_refused(run: Run, flat: Path) -> None:
    run("create", "points", *POINTS)
    assert "cannot be read as parquet" in refused(run("import", "points", flat, "--format", "parquet"), 2)
    assert "say --format" in refused(run("import", "points", flat.with_suffix(".txt")), 2)


def test_a_row_that_does_not_fit_is_refused(run: Run, tmp_path: Path) -> None:
    run("create", "points", *POINTS)
    (tmp_path / "f.csv").write_text("k,v\n1,a\none,b\n")
    assert "f.csv, row 2, column 'k': 'one' is no int" in refused(run("import", "points", tmp_path / "f.csv"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["describe", "none"], "no table 'none'"),
        (
            ["import", "none", "f.csv"],
            "there is no table 'none': create it with manager.create_table, or pythia table create",
        ),
        (["import", "t", "f.csv"], "'t' has no Spark mapping"),
        (["export", "t", "new.csv"], "or pythia table create"),
        (["export", "points", "new.csv", "--columns", "x"], "has no column x"),
        (["export", "points", "new.csv", "--columns", "k,"], "commas between"),
        (["export", "points", "new.csv", "--as-of", "12:00"], "a moment is"),
        (
            ["export", "points", "new.csv", "--as-of", "yesterday"],
            "there is no snapshot 'yesterday': manager.snapshots(), or pythia snapshot list",
        ),
        (["export", "points", "new.csv", "--as-of", "2026-11-21T12:00:00"], "a time with its zone such as"),
        (["create", "points", *POINTS], "'points' exists already"),
        (["create", "t", *POINTS], "'t' exists already"),
        (["import", "points", "f.csv", "--delimiter", "||"], "--delimiter is one ASCII character"),
        (["import", "points", "f.csv", "--delimiter", "é"], "--delimiter is one ASCII character"),
        (["import", "points", "f.csv", "--delimiter", "\0"], "--delimiter is one ASCII character"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(run: Run, arguments: list[str], words: str) -> None:
    run("create", "points", *POINTS)
    error = refused(run(*arguments))
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "p", "--row-key", "k"],
        ["create", "p", *POINTS, "--like", "f.csv"],
        ["import", "points"],
        ["import", "points", "f.csv", "--rows-per-transaction", "0"],
        ["splits", "points", "f.csv", "--regions", "1"],
    ],
)
def test_a_command_line_that_says_nothing_or_two_things_is_refused(run: Run, arguments: list[str]) -> None:
    assert "Usage" in refused(run(*arguments), 2)


def test_an_import_that_did_not_commit_says_how_to_go_on(run: Run, flat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("create", "points", *POINTS)

    def abort(*given: object, **options: object) -> None:
        raise TransactionAborted(7, "a reason")

    monkeypatch.setattr(commands, "land", abort)
    error = refused(run("import", "points", flat))
    assert "transaction 7 was aborted: a reason" in error
    assert "Run the same command again" in error


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--column", "id", "--row-key", "id"), "a column is 'name:type'"),
        (("--column", "id:blob", "--row-key", "id"), "blob"),
        (("--column", "id:int", "--column", "v:int", "--row-key", "x"), "unknown column 'x'"),
        (("--column", "k:double", "--column", "v:int", "--row-key", "k"), "cannot be part of a row key"),
        (("--column", "id:int", "--column", "v:int", "--row-key", "id,"), "commas between"),
    ],
)
def test_columns_that_cannot_be_are_wrong_use(run: Run, arguments: tuple[str, ...], told: str) -> None:
    assert told in refused(run("create", "points", *arguments), 2)


def test_what_needs_no_oracle_asks_for_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("create", "points", *POINTS)
    monkeypatch.delenv("PYTHIA_ZOOKEEPER")
    assert done(run("list", "--json"))["tables"][0]["table"] == "points"
    assert done(run("describe", "points", "--json"))["table"] == "points"
    assert "give --zookeeper, or --oracle" in refused(run("create", "more", *POINTS), 2)
    assert "not both" in refused(run("list", "--zookeeper", "h:1", "--oracle", "h:2"), 2)
