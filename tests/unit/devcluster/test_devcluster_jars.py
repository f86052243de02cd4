from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from devcluster import jars
from devcluster.artifacts import Artifact, parse_list
from devcluster.errors import (
    DiskFull,
    InvalidSettings,
    JarClientMissing,
    JarFetchFailed,
    JarMismatch,
    JarsUnreachable,
)
from devcluster.resolve import IvyClient, explain_failure, find_client, ivy_description, maven_description
from devcluster.settings import Step

Program = Callable[[str, str], Path]

ARTIFACTS = parse_list("".join(f"{hashlib.sha256(name.encode()).hexdigest()}  g:{name}:1\n" for name in ("one", "two")))

# A Maven that "fetches" every listed jar with the right content, and notes that it ran.
MAVEN = """
from xml.etree import ElementTree
here = pathlib.Path.cwd()
count = pathlib.Path(__file__).with_name("runs")
runs = int(count.read_text()) if count.exists() else 0
count.write_text(str(runs + 1))
fresh = any(argument.startswith("-Dmaven.repo.local=") for argument in sys.argv)
for item in ElementTree.parse("pom.xml").iter("artifactItem"):
    name = item.findtext("artifactId")
    content = name if CONDITION else name + " damaged"
    (here / "out" / f"{name}-1.jar").write_text(content)
    print(f"[INFO] Downloaded from mirror: somewhere/g/{name}/1/{name}-1.jar (1 kB at 1 kB/s)")
"""


def ensure(java: Path, progress: Callable[[Step], None] = lambda step: None) -> tuple[Path, ...]:
    return jars.ensure_listed(ARTIFACTS, lambda: find_client(java), java, 60.0, progress)


def maven(programs: Program, condition: str) -> Path:
    return programs("mvn", MAVEN.replace("CONDITION", condition)).with_name("runs")


def test_jars_are_fetched_once_with_progress(programs: Program, java: Path) -> None:
    runs = maven(programs, "True")
    steps: list[Step] = []
    paths = ensure(java, steps.append)
    assert [path.read_text(encoding="utf-8") for path in paths] == ["one", "two"]
    assert steps[-1] == Step("fetching the jars with Maven", 2, 2)
    assert ensure(java) == paths
    assert runs.read_text(encoding="utf-8") == "1"
    assert sorted(path.name for path in paths[0].parent.iterdir()) == ["one-1.jar", "two-1.jar"]


def test_a_damaged_or_partial_jar_is_fetched_again(programs: Program, java: Path) -> None:
    runs = maven(programs, "True")
    paths = ensure(java)
    paths[0].write_text("on", encoding="utf-8")
    paths[1].unlink()
    ensure(java)
    assert [path.read_text(encoding="utf-8") for path in paths] == ["one", "two"]
    assert runs.read_text(encoding="utf-8") == "2"


def test_a_damaged_copy_in_the_clients_own_cache_is_passed_by(programs: Program, java: Path) -> None:
    runs = maven(programs, "fresh or name == 'two'")
    assert [path.read_text(encoding="utf-8") for path in ensure(java)] == ["one", "two"]
    assert runs.read_text(encoding="utf-8") == "2"


def test_a_mismatch_after_a_fresh_fetch_stops_and_names_the_jar(programs: Program, java: Path) -> None:
    maven(programs, "name == 'two'")
    with pytest.raises(JarMismatch, match=r"committed: g:one:1\. Nothing of it is used"):
        ensure(java)
    assert [path.name for path in jars.jar_directory(ARTIFACTS).iterdir()] == ["two-1.jar"]


def test_what_an_interrupted_fetch_left_is_removed(programs: Program, java: Path) -> None:
    maven(programs, "True")
    left = jars.jar_directory(ARTIFACTS) / "fetch-cut"
    left.mkdir(parents=True)
    (left / "one-1.jar").write_text("o", encoding="utf-8")
    ensure(java)
    assert not left.exists()


def test_two_fetches_at_once_take_turns(programs: Program, java: Path) -> None:
    runs = maven(programs, "True")
    results: list[tuple[Path, ...]] = []
    threads = [threading.Thread(target=lambda: results.append(ensure(java))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(results) == 2
    assert runs.read_text(encoding="utf-8") == "1"


def test_no_network_is_told_as_such(programs: Program, java: Path) -> None:
    programs("mvn", "print('[ERROR] Could not transfer artifact g:one: mirror.example: Unknown host'); sys.exit(1)")
    with pytest.raises(JarsUnreachable, match=r"check the network, or name your mirror in ~/\.m2/settings\.xml"):
        ensure(java)


def test_another_failure_shows_what_the_client_said(programs: Program, java: Path) -> None:
    programs("mvn", "print('[ERROR] Could not find artifact g:one:jar:1'); sys.exit(1)")
    with pytest.raises(JarFetchFailed, match="Could not find artifact g:one"):
        ensure(java)


def test_a_client_that_hangs_is_ended(programs: Program, java: Path) -> None:
    programs("mvn", "import time\nprint('begun', flush=True)\ntime.sleep(600)")
    with pytest.raises(JarFetchFailed, match="stopped after 1 s"):
        jars.ensure_listed(ARTIFACTS, lambda: find_client(java), java, 1.0, lambda step: None)


def test_an_interrupt_ends_the_client(programs: Program, java: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    programs(
        "mvn",
        f"import os, time\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "print('Downloaded from mirror: far/away/one-1.jar', flush=True)\ntime.sleep(600)",
    )

    def interrupt(step: Step) -> None:
        if pid.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure(java, interrupt)
    assert not Path(f"/proc/{pid.read_text(encoding='utf-8')}").exists()
    assert list(jars.jar_directory(ARTIFACTS).iterdir()) == []


def test_a_full_disk_is_told_ahead_and_afterwards(
    programs: Program, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs("mvn", "print('[ERROR] one-1.jar: No space left on device'); sys.exit(1)")
    with pytest.raises(DiskFull, match="make room"):
        ensure(java)
    monkeypatch.setattr(jars, "FETCH_FREE_MEBIBYTES", 2**40)
    with pytest.raises(DiskFull, match="MiB needed"):
        ensure(java)


def test_without_maven_the_ivy_of_pyspark_is_taken(programs: Program, java: Path, tmp_path: Path) -> None:
    del programs
    client = find_client(java)
    assert isinstance(client, IvyClient)
    command = client.command(ARTIFACTS, tmp_path, fresh=True)
    assert command[:2] == [str(java), "-cp"]
    assert command[command.index("-cache") + 1] == "cache"
    assert "-settings" not in command


def test_ivy_takes_the_users_settings_where_there_are_any(programs: Program, java: Path, tmp_path: Path) -> None:
    del programs
    settings = tmp_path / "home" / ".ivy2" / "ivysettings.xml"
    settings.parent.mkdir(parents=True)
    settings.touch()
    command = IvyClient(java, tmp_path).command(ARTIFACTS, tmp_path, fresh=False)
    assert command[command.index("-settings") + 1] == str(settings)
    assert "-cache" not in command


def test_without_any_client_it_says_what_to_install(
    programs: Program, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del programs
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(JarClientMissing, match=r"install Maven .*, or pyspark"):
        find_client(java)


def test_descriptions_name_exactly_the_artifacts() -> None:
    classified = Artifact("g", "three", "2", "linux", ARTIFACTS[0].sha256)
    pom = ElementTree.fromstring(maven_description([*ARTIFACTS, classified]))
    items = [(item.findtext("artifactId"), item.findtext("classifier")) for item in pom.iter("artifactItem")]
    assert items == [("one", None), ("two", None), ("three", "linux")]
    module = ElementTree.fromstring(ivy_description([*ARTIFACTS, classified]))
    dependencies = list(module.iter("dependency"))
    assert [dependency.get("name") for dependency in dependencies] == ["one", "two", "three"]
    assert {dependency.get("transitive") for dependency in dependencies} == {"false"}
    artifact = dependencies[2].find("artifact")
    assert artifact is not None
    assert artifact.get("{http://ant.apache.org/ivy/maven}classifier") == "linux"


def test_ivys_words_for_no_network_are_known() -> None:
    client = IvyClient(Path("java"), Path("jars"))
    lines = ["WARN: Host mirror.example not found. url=…", "WARN: UNRESOLVED DEPENDENCIES"]
    assert isinstance(explain_failure(client, lines), JarsUnreachable)
    assert isinstance(explain_failure(client, lines[1:]), JarFetchFailed)


def others(monkeypatch: pytest.MonkeyPatch, *directories: Path) -> None:
    monkeypatch.setenv(jars.OTHER_JARS, ":".join(map(str, directories)))


def test_the_jars_of_another_hbase_are_taken_as_they_are(
    programs: Program, java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = maven(programs, "True")
    names = ("hbase-server-2.4.17.jar", "hbase-thrift-2.4.17.jar", "reload4j.jar", "third/zookeeper-3.5.7.jar")
    (tmp_path / "third").mkdir()
    for name in (*names, "LICENSE"):
        (tmp_path / name).touch()
    others(monkeypatch, tmp_path, tmp_path / "third")
    assert jars.ensure_jars(java, 60.0, lambda step: None) == tuple(tmp_path / name for name in names)
    assert not runs.exists()


def test_jars_that_make_no_cluster_are_told_before_anything_is_started(
    tmp_path: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others(monkeypatch, tmp_path / "none")
    with pytest.raises(InvalidSettings, match=r"PYTHIA_HBASE_JARS: there is no jar in '.*/none'; name the directories"):
        jars.ensure_jars(java, 60.0, lambda step: None)
    for name in ("hbase-server-2.4.17.jar", "zookeeper-jute-3.5.7.jar"):
        (tmp_path / name).touch()
    others(monkeypatch, tmp_path)
    with pytest.raises(InvalidSettings, match=r"no jar of hbase-thrift, zookeeper among the 2 in .*; a cluster runs"):
        jars.ensure_jars(java, 60.0, lambda step: None)


def test_a_variable_that_names_nothing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(jars.OTHER_JARS, "")
    assert jars.other_jars() is None
