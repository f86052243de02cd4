"""``pythia dev``: the development cluster on the command line.

Invariant: progress goes to standard error and results to standard output; an error is one message and a non-zero exit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from devcluster import cluster
from devcluster.errors import DevClusterError
from devcluster.live_line import live_line
from devcluster.settings import ClusterSettings, Progress, Step


def default_directory() -> Path:
    """``$XDG_DATA_HOME/pythia/cluster``, or ``~/.local/share/pythia/cluster``."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "pythia" / "cluster"


_directory = click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_directory,
    show_default="pythia/cluster in the user's data directory",
    help="Where the cluster keeps its data, settings and logs.",
)


@contextmanager
def _shown() -> Iterator[Progress]:
    """Show steps as a live line on a terminal, as plain lines elsewhere; turn errors of the room into click's."""
    console = Console(stderr=True)
    try:
        with live_line(console) as show:
            told: set[str] = set()

            def tell(step: Step) -> None:
                show(step)
                if step.text not in told and not console.is_terminal:
                    click.echo(step.text, err=True)
                told.add(step.text)

            yield tell
    except DevClusterError as error:
        raise click.ClickException(str(error)) from error


def _addresses(zookeeper: str, thrift: str | None, thrift2: str | None) -> str:
    """As the flags of other commands."""
    return f"--zookeeper {zookeeper} --thrift {thrift}" + (f" --thrift2 {thrift2}" if thrift2 else "")


@click.group()
def dev() -> None:
    """Real ZooKeeper and HBase on this machine, for development."""


@dev.command()
@_directory
@click.option(
    "--zookeeper-port", type=int, default=0, help="Port for ZooKeeper; 0 chooses a free one.", show_default=True
)
@click.option(
    "--thrift-port", type=int, default=0, help="Port for HBase Thrift; 0 chooses a free one.", show_default=True
)
@click.option("--thrift2-port", type=int,
              help="Port for HBase Thrift 2, which makes tables of several regions; 0 chooses a free one. Not given: "
              "there is none.")  # fmt: skip
@click.option(
    "--hbase-heap-mebibytes", type=int, default=1_024, show_default=True, help="Memory of HBase; more for large jobs."
)
@click.option("--fresh", is_flag=True, help="Stop what runs there and delete its data first.")
@click.option("--ready-timeout", "ready_timeout_seconds", type=float, default=120.0, show_default=True, help="Seconds.")
def up(
    directory: Path,
    zookeeper_port: int,
    thrift_port: int,
    thrift2_port: int | None,
    hbase_heap_mebibytes: int,
    fresh: bool,
    ready_timeout_seconds: float,
) -> None:
    """Bring the cluster up, or find it running.

    It runs HBase 2.6.1, or the HBase whose jars lie in the directories that PYTHIA_HBASE_JARS names.
    """
    with _shown() as tell:
        settings = ClusterSettings(
            directory,
            zookeeper_port,
            thrift_port,
            hbase_heap_mebibytes=hbase_heap_mebibytes,
            ready_timeout_seconds=ready_timeout_seconds,
            thrift2_port=thrift2_port,
        )
        if fresh:
            cluster.down(settings.directory, wipe=True, progress=tell)
        running = cluster.up(settings, tell)
    click.echo(f"ZooKeeper and HBase are up, data in {running.directory}")
    click.echo(_addresses(running.zookeeper, running.thrift, running.thrift2))


@dev.command()
@_directory
@click.option("--wipe/--keep", default=False, help="Delete the data, or keep it for the next up (the default).")
def down(directory: Path, wipe: bool) -> None:
    """Take the cluster down."""
    with _shown() as tell:
        stopped = cluster.down(directory, wipe=wipe, progress=tell)
    data = "its data is deleted" if stopped.wiped else "its data is kept"
    click.echo(f"the cluster in {stopped.directory} {'is down' if stopped.was_running else 'was not running'}, {data}")


@dev.command()
@_directory
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def status(directory: Path, as_json: bool) -> None:
    """Tell what runs; exit code 0 when all of it does, 3 otherwise."""
    with _shown():
        found = cluster.status(directory)
    if as_json:
        click.echo(json.dumps(found.to_fields()))
    else:
        click.echo(f"{found.condition}: {found.directory}")
        if found.zookeeper is not None:
            click.echo(_addresses(found.zookeeper, found.thrift, found.thrift2))
            click.echo(f"HBase pid {found.hbase_pid or 'gone'}, gateway pid {found.gateway_pid or 'gone'}")
        for why in found.gone:
            click.echo(why)
        if found.gone:
            click.echo("pythia dev up brings it up again, on the same data")
    if found.condition != "running":
        raise SystemExit(3)
