"""What a container image of HBase and of ZooKeeper holds: the listed jars, settings, and how to start each.

Run while the image is built. Servers in a container listen on all its addresses, which are those of its networks; the
rest is what a development cluster is told, from the same place. Invariant: no jar is laid out that was not checked.

python -m devcluster.image <directory>
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from devcluster.configuration import (
    GATEWAY2_HEAP_MEBIBYTES,
    hbase_settings,
    site_file,
    start_command,
    stop_command,
    zookeeper_command,
    zookeeper_settings,
)
from devcluster.errors import DevClusterError
from devcluster.jars import checked_jars
from devcluster.settings import ClusterSettings, Step

DATA = Path("/var/lib/hbase")
"""Where a container keeps what outlives it."""
EVERY_ADDRESS = "0.0.0.0"
HBASE_ZOOKEEPER_PORT = 2182
ZOOKEEPER_PORT = 2181
THRIFT_PORT = 9090
THRIFT2_PORT = 9091


def files(directory: Path) -> dict[str, str]:
    """Everything but the jars: path below ``directory`` → content. Pure."""
    limits = ClusterSettings(DATA)
    java, classes = Path("java"), ["-cp", f"{directory / 'conf'}:{directory / 'jars' / '*'}"]
    hbase = start_command("hbase", java, DATA, limits.hbase_heap_mebibytes, THRIFT_PORT)
    gateway = start_command("gateway", java, DATA, limits.gateway_heap_mebibytes, THRIFT_PORT, EVERY_ADDRESS)
    gateway2 = start_command("gateway2", java, DATA, GATEWAY2_HEAP_MEBIBYTES, THRIFT2_PORT, EVERY_ADDRESS)
    zookeeper = zookeeper_command(
        str(java), [str(directory / "conf"), str(directory / "jars" / "*")], directory / "zoo.cfg"
    )
    return {
        "conf/hbase-site.xml": site_file(hbase_settings(DATA, HBASE_ZOOKEEPER_PORT)).decode(),
        "zoo.cfg": zookeeper_settings(DATA / "data", ZOOKEEPER_PORT, EVERY_ADDRESS),
        "arguments/zookeeper": _arguments([], zookeeper),
        "arguments/hbase": _arguments(classes, hbase),
        "arguments/gateway": _arguments(classes, gateway),
        "arguments/gateway2": _arguments(classes, gateway2),
        "arguments/stop": _arguments(classes, stop_command(java, DATA)),
    }


def _arguments(first: Sequence[str], command: Sequence[str]) -> str:
    """A file for ``java @file``: all that follows ``java``, one a line; nothing here holds a blank."""
    return "".join(f"{argument}\n" for argument in (*first, *command[1:]))


def lay_out(directory: Path, jars: Sequence[Path]) -> None:
    """Write the files, and copy the jars. Raises ``OSError``."""
    (directory / "jars").mkdir(parents=True)
    for jar in jars:
        shutil.copy(jar, directory / "jars")
    for place, content in files(directory).items():
        (directory / place).parent.mkdir(exist_ok=True)
        (directory / place).write_text(content, encoding="utf-8")


def main(directory: Path) -> None:
    """Fetch what is missing, and lay everything out."""

    def tell(step: Step) -> None:
        if step.done == 0:
            click.echo(step.text, err=True)

    # Only who fetches needs a Java: where all jars are there already, the image is built without one.
    java = Path(shutil.which("java") or "java")
    try:
        lay_out(directory, checked_jars(java, ClusterSettings(DATA).fetch_timeout_seconds, tell))
    except DevClusterError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
