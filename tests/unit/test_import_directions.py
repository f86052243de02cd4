"""The arrows between the rooms go one way (docs/design/rooms.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.imports import ROOT, defining, imports, taken_from

ALLOWED: dict[str, set[str]] = {
    "access": set(),
    "configuration": set(),
    "kernels": set(),
    "logs": set(),
    "store": {"access", "kernels"},
    "wire": {"kernels", "versions"},
    "devcluster": set(),
    "versions": set(),
    "commit_table": {"kernels", "store", "versions"},
    "lease": {"access", "store", "versions"},
    "fleet": {"access", "lease", "wire"},
    "client": {"access", "commit_table", "configuration", "kernels", "lease", "store", "versions", "wire"},
    "tso": {
        "access",
        "commit_table",
        "configuration",
        "fleet",
        "kernels",
        "lease",
        "logs",
        "store",
        "versions",
        "wire",
    },
    "rest": {"access", "client", "commit_table", "configuration", "fleet", "lease", "logs", "store", "wire"},
    "demo": {"client", "commit_table", "devcluster", "store"},
    "testkit": {"client", "lease", "store", "tso"},
    "drills": {"client", "commit_table", "configuration", "devcluster", "histories", "store"},
    "histories": {"client", "commit_table", "configuration", "store", "versions"},
    "benchmarks": {
        "client",
        "commit_table",
        "configuration",
        "demo",
        "devcluster",
        "drills",
        "fleet",
        "lease",
        "store",
        "tso",
        "wire",
    },
}

WITHOUT_INPUT_OR_OUTPUT = {
    "access": ["exposure", "gate", "roles", "sasl", "server_files", "tokens"],
    "benchmarks": ["comparison", "growth_axes"],
    "benchmarks/peer": ["configuration"],
    "client": ["cells"],
    "client/backups": ["errors", "layers", "layout"],
    "client/bulk_writes": ["manifest_summary"],
    "client/catalog": ["entry", "record_tables"],
    "client/connection": ["exchange", "pauses", "tickets"],
    "client/checkup": ["findings"],
    "client/inquiry": ["findings"],
    "client/snapshots": [
        "all_columns",
        "changed_rows",
        "column_visibility",
        "moments",
        "pages",
        "plain_cells",
        "ranges",
        "record",
        "visibility",
    ],
    "client/transactions": ["claims", "guarded_cells", "status", "write_buffer"],
    "client/asyncio_front": ["fair_line"],
    "client/spark": [
        "byte_columns",
        "change_columns",
        "codecs",
        "column_types",
        "kept_rows",
        "key_codec",
        "key_values",
        "mapping",
        "options",
        "packing",
        "predicates",
        "progress",
        "query_identity",
        "region_keys",
        "salting",
        "splitting",
        "value_codec",
    ],
    "client/tables": ["batches", "casting", "columns", "splits", "supply"],
    "client/vacuum": ["clean_rows", "plan", "report", "swept"],
    "commit_table": ["columns", "layout", "outcomes", "rule", "timestamps"],
    "configuration": ["checking", "defaults", "reasons", "rest_limits", "setting", "showing"],
    "demo": ["kills", "report", "summaries", "tally"],
    "devcluster": ["configuration"],
    "drills": ["findings", "outages", "report", "verdict"],
    "fleet": ["told"],
    "histories": [
        "anomalies",
        "cells",
        "checker",
        "history",
        "json_lines",
        "key_value",
        "parsing",
        "reads",
        "real_time",
        "unsettled",
        "versions",
    ],
    "lease": ["history", "paths", "records", "rules"],
    "rest": ["exposition", "installation", "installation_models", "models", "roles", "texts"],
    "store": ["answer_size", "cells", "columns", "errors", "key_order", "lines", "protocol", "validation"],
    "store/hbase": ["addresses", "answers", "binary_protocol", "column_encoding", "encoding", "framing", "settings"],
    "tso": ["metering"],
    "tso/commands": ["endings"],
    "tso/decisions": [
        "admission",
        "bucket_words",
        "cell_sets",
        "conflict_map",
        "deciding",
        "large_write_sets",
        "lives",
        "oracle",
        "recency_index",
        "recency_kernels",
        "recency_map",
        "timestamp_range",
        "watermark",
    ],
    "versions": ["formats", "levels"],
    "wire": [
        "columns",
        "commits",
        "details",
        "frames",
        "gathering",
        "greeting",
        "hello",
        "message",
        "messages",
        "metric_families",
        "metrics",
        "operating",
        "service",
        "transactions_request",
    ],
}
"""The rules: values and time come in, decisions come out."""

INPUT_OR_OUTPUT = {
    "asyncio",
    "concurrent",
    "happybase",
    "kazoo",
    "os",
    "random",
    "secrets",
    "select",
    "selectors",
    "socket",
    "subprocess",
    "threading",
    "time",
    "uuid",
}

COMPILER = {ROOT / "kernels" / "compiling.py", ROOT / "kernels" / "keeping.py"}
"""It is asked for a rule's machine code at its first use, and changes nothing of what that decides: as numba, which has
files of its own, too, is not looked into."""


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def documentation(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def imported(path: Path) -> Iterator[str]:
    yield from (module for module, _ in imports(path))


def ways_out(path: Path) -> dict[str, str]:
    """What of input and output a module reaches through others of this project, and by which way."""
    reached = {path: path.stem}
    waiting, found = [path], {}
    while waiting:
        here = waiting.pop()
        for module, name in imports(here):
            if module.partition(".")[0] in INPUT_OR_OUTPUT:
                found[module] = reached[here]
            following = defining(module, name) if module.partition(".")[0] in ALLOWED else None
            if following is not None and following not in reached and following not in COMPILER:
                reached[following] = f"{reached[here]} → {'.'.join(following.relative_to(ROOT).with_suffix('').parts)}"
                waiting.append(following)
    return found


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
        assert not ways_out(ROOT / room / f"{name}.py")


def test_whoever_says_to_be_pure_is_held_to_it() -> None:
    listed = {ROOT / room / f"{name}.py" for room, names in WITHOUT_INPUT_OR_OUTPUT.items() for name in names}
    modules = (path for room in ALLOWED for path in files(room) if path.name != "__init__.py")
    assert {path for path in modules if re.search(r"\bPure\b", documentation(path))} <= listed, "add them to the list"


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_the_folders_of_a_room_import_one_another_one_way(room: str) -> None:
    """What lies in the room itself is below or above any of them, as each module says."""
    taken: dict[str, set[str]] = {}
    for path in files(room):
        others = {file.parent for file in taken_from(path) if file.is_relative_to(ROOT / room)}
        folders = {str(folder.relative_to(ROOT)) for folder in others - {path.parent, ROOT / room}}
        if path.parent != ROOT / room:
            taken.setdefault(str(path.parent.relative_to(ROOT)), set()).update(folders)
    TopologicalSorter(taken).prepare()  # it raises CycleError, and names the folders


def test_input_and_output_are_found_behind_other_modules_and_through_a_package() -> None:
    assert ways_out(ROOT / "client" / "connection" / "deadline.py") == {"time": "deadline"}
    behind = ways_out(ROOT / "client" / "transactions" / "commit.py")
    assert behind["time"].startswith("commit → client.")
    assert behind["socket"] == " → ".join(
        ["commit", *(f"client.connection.{name}" for name in ("oracle", "dispatch", "line"))]
    )
    assert defining("store", "Family") == ROOT / "store" / "cells.py"
    assert defining("store", "MemoryCellStore") == ROOT / "store" / "memory.py"


def test_the_drawn_arrows_are_those_that_are_allowed() -> None:
    text = (ROOT / "docs" / "design" / "rooms.md").read_text()
    chart = text[text.index("flowchart LR") : text.index("```", text.index("flowchart LR"))]
    drawn = {
        room: set(targets.split(" & "))
        for rooms, targets in re.findall(r"^ *(.+?) --> (.+)$", chart, re.MULTILINE)
        for room in rooms.split(" & ")
    }
    assert drawn == {room: others for room, others in ALLOWED.items() if others}
