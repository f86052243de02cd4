from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from devcluster.artifacts import Artifact, committed_list, digest, not_matching, parse_list
from devcluster.errors import JarListDamaged

SHA256 = hashlib.sha256(b"jar").hexdigest()


def test_the_committed_list_holds_the_servers_once() -> None:
    names = [artifact.file_name for artifact in committed_list()]
    assert "hbase-server-2.6.1.jar" in names
    assert "hbase-thrift-2.6.1.jar" in names
    assert len(names) == len(set(names))


def test_a_line_becomes_an_artifact_with_or_without_classifier() -> None:
    plain, classified = parse_list(f"# why\n\n{SHA256}  a.b:c-d:1.0\n{SHA256}  a.b:c-d:1.0:linux-x86_64\n")
    assert plain == Artifact("a.b", "c-d", "1.0", "", SHA256)
    assert (plain.file_name, plain.coordinates) == ("c-d-1.0.jar", "a.b:c-d:1.0")
    assert (classified.file_name, classified.coordinates) == (
        "c-d-1.0-linux-x86_64.jar",
        "a.b:c-d:1.0:linux-x86_64",
    )


@pytest.mark.parametrize(
    "line",
    [
        "rubbish",
        f"{SHA256} a:b:1",
        f"{SHA256[:-1]}  a:b:1",
        f"{SHA256}  a:b",
        f"{SHA256}  a:../b:1",
        f"{SHA256}  a:b:1<x>",
        f"{SHA256}  a:b:1:c:d",
    ],
)
def test_a_line_of_another_form_is_named(line: str) -> None:
    with pytest.raises(JarListDamaged, match=r"line 2 of jars\.sha256"):
        parse_list(f"# head\n{line}\n")


def test_an_empty_list_and_a_jar_named_twice_are_refused() -> None:
    with pytest.raises(JarListDamaged, match="names no jar"):
        parse_list("# nothing\n")
    with pytest.raises(JarListDamaged, match=r"b-1\.jar twice"):
        parse_list(f"{SHA256}  a:b:1\n{SHA256}  c:b:1\n")


def test_the_digest_knows_content_and_not_order() -> None:
    one, two = parse_list(f"{SHA256}  a:b:1\n{SHA256}  a:c:1\n")
    assert digest([one, two]) == digest([two, one])
    assert digest([one, two]) != digest([one])


def test_missing_partial_and_damaged_files_do_not_match(tmp_path: Path) -> None:
    artifacts = parse_list("".join(f"{SHA256}  a:{name}:1\n" for name in ("good", "partial", "damaged", "missing")))
    (tmp_path / "good-1.jar").write_bytes(b"jar")
    (tmp_path / "partial-1.jar").write_bytes(b"ja")
    (tmp_path / "damaged-1.jar").write_bytes(b"jxr")
    assert [artifact.name for artifact in not_matching(artifacts, tmp_path)] == ["partial", "damaged", "missing"]
