"""`pythia tso history`: who served when, why it changed, and for how long nobody did."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from configuration.connection_flags import root_flag, zookeeper_flag
from lease import Coordinator, History, LeaseError, PastTenure, read_history
from lease.zookeeper import ZooKeeperCoordinator
from tso.commands.printing import print_table


@click.command()
@zookeeper_flag("where the history is kept.")
@root_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an object with `tenures`, the oldest first.")
def history(zookeeper: str, root: str, as_json: bool) -> None:
    """Show the last tenures, at most 64: who served since when, why, and for how long nobody did before."""
    try:
        with contextlib.closing(ZooKeeperCoordinator(zookeeper)) as coordinator:
            found = read_history(coordinator, root)
    except (LeaseError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps({"tenures": as_objects(found.tenures)}, indent=2))
    elif found.tenures:
        print_tenures(found.tenures)
    else:
        click.echo(f"No tenure is recorded under {root} yet.")


def last_tenures(coordinator: Coordinator, root: str, count: int) -> tuple[PastTenure, ...]:
    """The last ``count``; none where they cannot be read, which is told on standard error: it is only a display."""
    try:
        return read_history(coordinator, root).tenures[-count:]
    except LeaseError as error:
        click.echo(f"the history cannot be read: {error}", err=True)
        return History().tenures


def as_objects(tenures: Sequence[PastTenure]) -> list[dict[str, Any]]:
    """As JSON has them."""
    return [asdict(tenure) for tenure in tenures]


def print_tenures(tenures: Sequence[PastTenure]) -> None:
    """A line each, the latest first."""
    print_table(("since (UTC)", "process", "address", "epoch", "cause", "outage"), map(_row, reversed(tenures)))


def _row(one: PastTenure) -> tuple[str, ...]:
    moment = datetime.datetime.fromtimestamp(one.since_ms / 1000, datetime.UTC)
    since = moment.strftime("%Y-%m-%d %H:%M:%S")
    return since, one.holder, one.address, str(one.epoch), one.cause, _outage(one)


def _outage(tenure: PastTenure) -> str:
    if tenure.outage_ms is None:
        return ""
    return f"{'at least ' if tenure.at_least else ''}{tenure.outage_ms:,} ms"
