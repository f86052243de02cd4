"""``pythia backup``: one JSON object or lines, and errors in one line with their code."""

from __future__ import annotations

from pathlib import Path

import pytest

from client import TransactionManager
from client.backups import opening
from client.backups.layout import CONTENTS
from tests.unit.client_backups.conftest import CONTENT, content
from tests.unit.client_tables.conftest import Run, done, refused

CELLS = sum(map(len, CONTENT.values()))


def test_created_checked_and_restored(run: Run, filled: TransactionManager, tmp_path: Path) -> None:
    made = done(run("create", tmp_path / "b", "--json"))
    assert made["tables"] == {
        "t": {"rows": 5, "deleted": 0, "cells": CELLS, "since": 0},
        "typed": {"rows": 0, "deleted": 0, "cells": 0, "since": 0},
    }
    assert made["root"] == filled.settings.root
    assert done(run("check", tmp_path / "b", "--json")) == made
    landed = done(run("restore", tmp_path / "b", "t", "--prefix", "old_", "--rows-per-transaction", 2, "--json"))
    assert landed["tables"] == {"old_t": {"rows_before": 0, "rows": 5, "transactions": 3}}
    assert content(filled, "old_t") == CONTENT


def test_in_words(run: Run, filled: TransactionManager, tmp_path: Path) -> None:
    created = run("create", tmp_path / "b", "t")
    assert created.exit_code == 0
    assert created.stderr == "t: 5 rows\n"
    assert created.stdout.splitlines()[0].split() == ["table", "rows", "deleted", "cells", "bytes", "holds"]
    assert f"{tmp_path / 'b'}: 1 tables of {filled.settings.root} as of " in created.stdout
    checked = run("check", tmp_path / "b")
    assert (checked.stderr, checked.stdout) == ("t: whole\n", created.stdout)
    restored = run("restore", tmp_path / "b", "--prefix", "old_")
    assert (restored.stderr, restored.stdout) == (
        "old_t: 5 rows\n",
        "old_t: 5 rows have landed in 1 transactions\n",
    )
    assert "0 rows have landed in 0 transactions; 5 had landed before" in run(
        "restore", tmp_path / "b", "--prefix", "old_"
    ).stdout  # fmt: skip


def test_of_a_moment_that_has_a_name(run: Run, filled: TransactionManager, tmp_path: Path) -> None:
    filled.create_snapshot("then")
    with filled.transaction() as since:
        since.delete("t", b"wide")
    assert done(run("create", tmp_path / "b", "t", "--as-of", "then", "--json"))["tables"]["t"]["rows"] == 5
    assert done(run("create", tmp_path / "c", "t", "--json"))["tables"]["t"]["rows"] == 4


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["create", "b", "--as-of", "yester day"], 2, "--as-of"),
        (["create", "b", "nowhere"], 1, "Pythia knows no table 'nowhere'"),
        (["check", "nowhere"], 2, "cannot be read, which every backup has"),
        (["restore", "nowhere"], 2, "cannot be read, which every backup has"),
        (["merge", "nowhere", "b"], 2, "cannot be read, which every backup has"),
        (["create", "b", "--since", "nowhere"], 2, "cannot be read, which every backup has"),
        (["create", "b", "--position-snapshot", "1st"], 2, "--position-snapshot"),
        (["restore", "b", "--prefix", "a b"], 2, "it is what a table's name begins with"),
        (["restore", "b", "--prefix", "ns:"], 2, "it is what a table's name begins with"),
        (["restore", "b", "--rows-per-transaction", "0"], 2, "--rows-per-transaction"),
    ],
)
def test_what_cannot_be_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert why in refused(run(*arguments), code)
    assert not list(tmp_path.iterdir())


def test_a_damaged_backup_is_told(
    run: Run, filled: TransactionManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done(run("create", tmp_path / "b", "--json"))
    (tmp_path / "b" / CONTENTS).write_bytes(b"\xff{")
    assert "is no description of a backup" in refused(run("check", tmp_path / "b"), 1)
    monkeypatch.setattr(opening, "CONTENTS_BYTES_MAX", 1)
    assert "has more than 1 bytes" in refused(run("check", tmp_path / "b"), 1)


def test_of_what_changed_with_a_position_and_merged(run: Run, filled: TransactionManager, tmp_path: Path) -> None:
    first = done(run("create", tmp_path / "1", "--position-snapshot", "nightly", "--json"))
    assert [(each.name, each.timestamp) for each in filled.snapshots()] == [("nightly", first["snapshot"])]
    with filled.transaction() as later:
        later.delete("t", b"wide")
        later.put("t", b"new", {b"f:a": b"1"})
    since = ["--since", tmp_path / "1", "--position-snapshot", "nightly"]
    second = done(run("create", tmp_path / "2", *since, "--json"))
    assert second["base"] == {"name": "1", "backup_id": first["backup_id"]}
    assert second["tables"]["t"] == {"rows": 2, "deleted": 1, "cells": 1, "since": first["snapshot"]}
    assert [(each.name, each.timestamp) for each in filled.snapshots()] == [("nightly", second["snapshot"])]
    checked = run("check", tmp_path / "2")
    assert checked.stdout.splitlines()[1].split()[:4] == ["t", "2", "1", "1"]
    assert "what changed" in checked.stdout.splitlines()[1]
    assert ", since 1, 2 rows in " in checked.stdout
    assert "1 more that it is based on, of " in checked.stdout
    merged = run("merge", tmp_path / "2", tmp_path / "whole")
    assert (merged.exit_code, merged.stderr) == (0, "t: 5 rows\ntyped: 0 rows\n")
    assert merged.stdout.splitlines()[1].split()[-1] == "all"
    done(run("restore", tmp_path / "whole", "t", "--prefix", "old_", "--json"))
    assert content(filled, "old_t") == content(filled)
