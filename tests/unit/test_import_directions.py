"""The arrows between the rooms go one way (docs/design/rooms.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ALLOWED: dict[str, set[str]] = {
    "store": set(),
    "wire": set(),
    "devcluster": set(),
    "commit_table": {"store"},
    "lease": {"store"},
    "client": {"commit_table", "lease", "store", "wire"},
    "tso": {"commit_table", "lease", "store", "wire"},
    "demo": {"client", "commit_table", "devcluster", "store"},
    "drills": {"client", "commit_table", "devcluster", "histories", "lease", "store"},
    "histories": {"client", "commit_table", "store"},
    "benchmarks": {"client", "demo", "store"},
}

WITHOUT_INPUT_OR_OUTPUT = {
    "client": ["cells", "ranges", "visibility", "write_buffer"],
    "commit_table": ["layout", "outcomes", "rule", "timestamps"],
    "lease": ["records", "rules"],
    "histories": [
        "anomalies", "cells", "checker", "history", "json_lines", "key_value", "parsing", "reads", "real_time",
        "unsettled", "versions",
    ],
    "client/spark": ["codecs", "column_types", "mapping", "options", "splitting"],
    "tso": ["conflict_map", "oracle", "timestamp_range", "watermark"],
    "wire": ["columns", "frames", "message", "messages", "service"],
}
"""The rules: values and time come in, decisions come out."""

INPUT_OR_OUTPUT = {
    "asyncio",
    "concurrent",
    "happybase",
    "kazoo",
    "os",
    "random",
    "select",
    "selectors",
    "socket",
    "subprocess",
    "threading",
    "time",
}


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.ImportFrom):
            pytest.fail(f"{path.relative_to(ROOT)} imports relatively: name the room")


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_only_the_rooms_it_may(room: str) -> None:
    assert files(room), f"the room {room} is empty"
    for path in files(room):
        others = {name.partition(".")[0] for name in imported(path)} & set(ALLOWED) - {room}
        assert others <= ALLOWED[room], f"{path.relative_to(ROOT)} imports {sorted(others - ALLOWED[room])}"


def test_every_room_is_known_here() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms <= set(ALLOWED), "give the new room its arrows in ALLOWED, and in docs/design/rooms.md"


@pytest.mark.parametrize("room", sorted(WITHOUT_INPUT_OR_OUTPUT))
def test_rules_know_no_input_and_no_output(room: str) -> None:
    for name in WITHOUT_INPUT_OR_OUTPUT[room]:
        path = ROOT / room / f"{name}.py"
        found = {imported_name.partition(".")[0] for imported_name in imported(path)} & INPUT_OR_OUTPUT
        assert not found, f"{path.relative_to(ROOT)} imports {sorted(found)}"
