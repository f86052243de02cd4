"""Omid's tables in HBase: made by its own tool, with the regions that it gives them."""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

from benchmarks.peer.configuration import TOOL_HEAP_MEBIBYTES, Program, Tables
from benchmarks.sides import SideError

TOOL = "org.apache.omid.tools.hbase.OmidTableManager"
TOOL_SECONDS_MAX = 120.0
SHOWN_CHARACTERS_MAX = 2_000
HINT = "see that HBase is up, and that --zookeeper names the ZooKeeper of that very HBase"


def new_names() -> Tables:
    """Names that no other run uses."""
    run = uuid.uuid4().hex[:8]
    return Tables(f"BENCHMARK_PEER_COMMITS_{run}", f"BENCHMARK_PEER_TIMESTAMPS_{run}")


def create(program: Program, settings: Path, tables: Tables) -> None:
    """Make both tables. Raises ``SideError`` with what the tool said."""
    for kind, name in (("commit-table", tables.commits), ("timestamp-table", tables.timestamps)):
        command = program.command(TOOL_HEAP_MEBIBYTES, settings, TOOL, kind, "-tableName", name)
        try:
            answer = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TOOL_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SideError(f"Omid's tool did not make {name} within {TOOL_SECONDS_MAX:.0f} s; {HINT}") from error
        if answer.returncode != 0:
            raise SideError(
                f"Omid's tool could not make {name}; {HINT}. It said:\n{answer.stderr[-SHOWN_CHARACTERS_MAX:]}"
            )
