from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.errors import JavaMissing, JavaTooOld
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


def test_an_old_java_is_named_with_its_version(programs: Program) -> None:
    path = programs("java", """print('openjdk version "11.0.2"', file=sys.stderr)""")
    with pytest.raises(JavaTooOld, match=f"Java 11 found at {path}, but Java 17"):
        find_java()


def test_a_program_that_is_no_java_is_named(programs: Program) -> None:
    programs("java", "print('hello')")
    with pytest.raises(JavaMissing, match="does not answer like a Java"):
        find_java()


def test_java_home_goes_before_path(programs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = programs("java", """print('openjdk version "8"', file=sys.stderr)""")
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    new = home / "bin" / "java"
    new.write_text(old.read_text(encoding="utf-8").replace('"8"', '"17.0.1"'), encoding="utf-8")
    new.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == new


def test_a_wrong_java_home_is_named(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del java
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaMissing, match=r"JAVA_HOME is .*nowhere, but there is no bin/java"):
        find_java()
