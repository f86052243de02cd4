"""``pythia table adopt``: what it says, with and without a mapping, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from client import InvalidRequest, TransactionManager
from client.spark import KeyColumn, TableMapping, ValueColumn, adopt_table, table_mapping
from client.spark.errors import InvalidMapping
from store import Family, RowPut
from tests.unit.client_tables.conftest import Run, done, refused

if TYPE_CHECKING:
    from tests.unit.client.conftest import Installation

NOW_MS = 1_700_000_000_000
VISITS = {b"ada": 3, b"b\x00b": -4, "ö".encode(): 2**40}
COLUMNS = ("--column", "who:string", "--column", "visits:bigint", "--column", "name:string", "--row-key", "who")


@pytest.fixture
def plain(installation: Installation) -> TransactionManager:
    """Tables as programs without transactions wrote them: ``old`` of one family, ``wide`` of two."""
    for table, families in (("old", ["d"]), ("wide", ["d", "e"])):
        installation.store.create_table(table, [Family(name) for name in families])
        puts = [
            RowPut(row, {b"d:visits": visits.to_bytes(8, "big", signed=True), b"d:name": row.upper()})
            for row, visits in VISITS.items()
        ]
        installation.store.put(table, puts, NOW_MS)
    return installation.manager()


def test_a_table_is_adopted_as_bytes(plain: TransactionManager, run: Run) -> None:
    adopted = done(run("adopt", "wide", "--json"))
    assert adopted == {"table": "wide", "rows": 3, "plain_through": adopted["plain_through"]}
    assert done(run("adopt", "wide", "--json")) == adopted | {"rows": 0}
    assert plain.snapshot().get("wide", b"ada")[b"d:name"] == b"ADA"
    assert plain.catalog.entry("wide").conflict_level == "row"
    described = done(run("describe", "wide", "--json"))
    assert (described["plain_through"], described["columns"]) == (adopted["plain_through"], None)
    assert "adopted: cells up to timestamp" in run("describe", "wide").output


def test_a_table_is_adopted_for_spark_and_files(plain: TransactionManager, run: Run, tmp_path: object) -> None:
    said = run("adopt", "old", *COLUMNS, "--level", "cell")
    assert said.exit_code == 0
    assert "old: adopted with 3 rows, of cells up to timestamp" in said.stdout
    assert "old: adopted, of cells up to" in run("adopt", "old", *COLUMNS, "--level", "cell").stdout
    mapping = table_mapping(plain, "old")
    assert mapping.key_columns == (KeyColumn("who", "string", plain=True),)
    assert (mapping.families, mapping.conflict_level) == (("d",), "cell")
    file = f"{tmp_path}/now.csv"
    assert done(run("export", "old", file, "--json"))["rows"] == 3
    with open(file, encoding="utf-8") as exported:
        assert '"ö",1099511627776,' in exported.read()
    described = done(run("describe", "old", "--json"))
    assert [column["place"] for column in described["columns"]] == ["row key", "cell d:visits", "cell d:name"]


@pytest.mark.parametrize("table", ["old", "wide"])
def test_the_family_is_said_where_there_are_several(plain: TransactionManager, run: Run, table: str) -> None:
    assert "lacks families of the mapping: f" in refused(run("adopt", table, *COLUMNS, "--family", "f"))
    if table == "wide":
        assert "has the families d, e: say which with --family" in refused(run("adopt", table, *COLUMNS))
    assert done(run("adopt", table, *COLUMNS, "--family", "d", "--json"))["rows"] == 3


def test_columns_lie_in_the_families_that_are_said(plain: TransactionManager, run: Run) -> None:
    assert "'column=family', for instance" in refused(run("adopt", "wide", *COLUMNS, "--family-of", "name"), 2)
    elsewhere = run("adopt", "wide", *COLUMNS, "--family", "d", "--family-of", "name=g")
    assert "lacks families of the mapping: g" in refused(elsewhere)
    assert "give both --column and --row-key" in refused(run("adopt", "wide", "--family-of", "name=d"), 2)
    assert "say which with --family" in refused(run("adopt", "wide", *COLUMNS, "--family-of", "name=d"))
    placed = ["--family-of", "name=d", "--family-of", "visits=e"]
    assert done(run("adopt", "wide", *COLUMNS, *placed, "--json"))["rows"] == 3
    described = done(run("describe", "wide", "--json"))
    assert [column["place"] for column in described["columns"]] == ["row key", "cell e:visits", "cell d:name"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--column", "who:string"), "give both --column and --row-key"),
        (("--row-key", "who"), "give both --column and --row-key"),
        (("--family", "d"), "give both --column and --row-key"),
        (("--column", "who", "--row-key", "who"), "a column is 'name:type'"),
        (("--column", "who:int", "--column", "a:int", "--row-key", "who"), "a plain row key is a string or binary"),
        (("--column", "a:int", "--row-key", "who"), "unknown column 'who'"),
        (("--column", "who:string", "--row-key", "who"), "at least one column that is not part of the row key"),
    ],
)
def test_columns_that_make_no_mapping_are_refused(
    plain: TransactionManager, run: Run, arguments: tuple[str, ...], words: str
) -> None:
    result = run("adopt", "old", *arguments)
    assert (result.exit_code, words in result.output) == (2, True)
    assert not plain.catalog.has_entry("old")


def test_what_cannot_be_adopted_is_refused(plain: TransactionManager, run: Run) -> None:
    assert "there is no table 'none'" in refused(run("adopt", "none"))
    assert "one of this installation's already" in refused(run("adopt", "t", "--level", "cell"))
    packed = TableMapping("old", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "int", "d")), packed=True)
    with pytest.raises(InvalidMapping, match="has cells, and the mapping of 'old' is packed"):
        adopt_table(plain, packed)
    with pytest.raises(InvalidRequest, match="there is no table 'none'"):
        adopt_table(plain, TableMapping("none", ("k",), (KeyColumn("k", "int"), ValueColumn("v", "int"))))


def test_a_table_is_made_with_a_plain_row_key(plain: TransactionManager, run: Run, tmp_path: object) -> None:
    assert run("create", "new", *COLUMNS, "--plain-row-key").exit_code == 0
    file = f"{tmp_path}/rows.csv"
    with open(file, "w", encoding="utf-8") as rows:
        rows.write("who,visits,name\nada,1,A\n")
    assert done(run("import", "new", file, "--json"))["rows"] == 1
    assert [row for row, _ in plain.snapshot().scan("new")] == [b"ada"]
    assert (
        "a plain row key is a string or binary"
        in run("create", "other", "--column", "k:int", "--column", "v:int", "--row-key", "k", "--plain-row-key").output
    )
