from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.errors import JavaMissing, JavaTooNew, JavaTooOld
from devcluster.java import find_java, major_version

Program = Callable[[str, str], Path]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea" 2025-09-16', 25),
    ],
)
def test_the_major_version_is_read_from_every_form(text: str, version: int) -> None:
    assert major_version(text, Path("java")) == version


def test_no_java_says_what_to_install(programs: Program) -> None:
    del programs
    with pytest.raises(JavaMissing, match="no Java found: install Java 17"):
        find_java()


def test_an_old_java_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devcluster.java.INSTALLED", tmp_path / "none")
    path = install(tmp_path / "all", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(path.parents[1]))
    with pytest.raises(JavaTooOld, match=f"Java 11 found at {path}, but Java 17 or newer is needed; install it"):
        find_java()


def test_a_program_that_is_no_java_is_named(programs: Program) -> None:
    programs("java", "print('hello')")
    with pytest.raises(JavaMissing, match="does not answer like a Java, but says: hello; point JAVA_HOME"):
        find_java()


def test_what_a_java_complains_about_is_shown(programs: Program) -> None:
    programs("java", "sys.exit('Picked up JDK_JAVA_OPTIONS: -XX:Foo\\nUnrecognized VM option')")
    with pytest.raises(JavaMissing, match="says: Picked up JDK_JAVA_OPTIONS: -XX:Foo / Unrecognized VM option; point"):
        find_java()


def test_a_program_that_says_nothing_is_said_to(programs: Program) -> None:
    programs("java", "pass")
    with pytest.raises(JavaMissing, match="says: nothing; point JAVA_HOME"):
        find_java()


def install(folder: Path, version: str) -> Path:
    """Below it, as packages do."""
    java = folder / f"java-{version}" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    return java


def test_java_home_goes_before_path(programs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs("java", """print('openjdk version "8"', file=sys.stderr)""")
    new = install(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(new.parents[1]))
    assert find_java() == new


def test_where_it_is_too_old_one_beside_it_is_named(
    programs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs("java", """print('openjdk version "11.0.2"', file=sys.stderr)""")
    monkeypatch.setattr("devcluster.java.INSTALLED", tmp_path / "packages")
    suits = install(tmp_path / "packages", "17.0.1")
    with pytest.raises(JavaTooOld, match=f"point JAVA_HOME at {suits.parents[1]}, where there is one"):
        find_java()


@pytest.mark.parametrize("is_among_packages", [False, True])
def test_where_it_is_too_new_one_beside_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_among_packages: bool
) -> None:
    packages, elsewhere = tmp_path / "packages", tmp_path / "elsewhere"
    monkeypatch.setattr("devcluster.java.INSTALLED", packages)
    newest = install(elsewhere, "25.0.3")
    monkeypatch.setenv("JAVA_HOME", str(newest.parents[1]))
    install(packages, "11.0.2")
    install(packages, "23")
    no_program = packages / "java-17-lost" / "bin" / "java"
    no_program.parent.mkdir(parents=True)
    no_program.touch()
    with pytest.raises(JavaTooNew, match=f"Java 25 found at {newest}, but HBase runs on Java 17 to 22"):
        find_java()
    suits = install(packages if is_among_packages else elsewhere, "22.0.1")
    assert find_java() == suits


def test_a_wrong_java_home_is_named(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del java
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaMissing, match=r"JAVA_HOME is .*nowhere, but there is no bin/java"):
        find_java()
