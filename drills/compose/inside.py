"""The part of a drill that needs the oracles, run where their names are known: in the clients' container.

It is told what to do as one JSON object on its standard input, and answers with one as its last line of output.

python -m drills.compose.inside prepare | judge
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from client import ClientSettings, TransactionManager
from drills.evidence import gather
from drills.findings import findings
from drills.load import LoadSettings
from drills.loads import create_tables
from drills.outages import Window


def prepare(settings: LoadSettings) -> dict[str, Any]:
    """Make the tables of the load, and a place for its histories."""
    Path(settings.directory).mkdir(parents=True, exist_ok=True)
    with TransactionManager.connect(ClientSettings.from_json(settings.client)) as manager:
        create_tables(manager, settings.tables)
    return {}


def judge(loads: list[LoadSettings], quiet: Window, faults: list[Window], tenures: list[int]) -> dict[str, Any]:
    """Read what the load left, and judge it; see ``Findings.to_pipe``."""
    with TransactionManager.connect(ClientSettings.from_json(loads[0].client)) as manager:
        return findings(gather(manager, loads, faults, tenures), quiet).to_pipe()


def main(what: str, told: dict[str, Any]) -> dict[str, Any]:
    """Do one of the two."""
    loads = [LoadSettings.from_json(each) for each in told["loads"]]
    if what == "prepare":
        return prepare(loads[0])
    return judge(loads, Window(*told["quiet"]), [Window(*each) for each in told["faults"]], told["tenures"])


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.load(sys.stdin))))
