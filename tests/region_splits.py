"""Splits a region of a table, by a tool of HBase's own: its Thrift gateway cannot."""

from __future__ import annotations

import subprocess
from pathlib import Path

from devcluster.configuration import OPENING_OPTIONS
from tests.hbase_classes import java_with_hbase

SPLITTER = "org.apache.hadoop.hbase.util.RegionSplitter"
TOOL_SECONDS_MAX = 60.0


def split_in_two(zookeeper: str, table: str, directory: Path, between: tuple[str, str] | None = None) -> None:
    """Ask HBase to part a table of one region half way between two rows, or between all that there can be.

    The table has its two regions some moments later. ``directory`` is for the tool's configuration.
    """
    java, environment = java_with_hbase(zookeeper, directory)
    limits = ["--firstrow", between[0], "--lastrow", between[1]] if between else []
    # Risky, it says, since it does not wait until HBase has rewritten the files of the two.
    subprocess.run(
        [
            *(str(java), *OPENING_OPTIONS, "-Djava.net.preferIPv4Stack=true"),
            *(f"-Dpythia.log={directory / 'logs' / 'splitter.log'}", SPLITTER, "-r", "--risky", "-o", "1", *limits),
            *(table, "UniformSplit"),
        ],
        env=environment,
        capture_output=True,
        timeout=TOOL_SECONDS_MAX,
        check=True,
    )
