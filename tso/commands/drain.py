"""`pythia tso drain`: take one oracle process out without anybody losing anything."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict

import click

from access import Credentials
from configuration.connection_flags import root_flag, zookeeper_flag
from fleet import ASKED_MS_MAX, CannotHandOver
from lease import LeaseError
from lease.zookeeper import ZooKeeperCoordinator
from tso.commands.credential_flags import credential_flags
from tso.draining import drain


@click.command("drain")
@click.argument("address", required=False, default="", metavar="[ADDRESS]")
@zookeeper_flag("where lease and members are kept.")
@root_flag
@click.option("--timeout-ms", default=30_000, show_default=True, type=click.IntRange(1, ASKED_MS_MAX),
              help="How long what is under way may take, in milliseconds; then the process serves on.")  # fmt: skip
@click.option("--even-if-last", is_flag=True, help="Also where nobody is left who could serve.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@credential_flags
def drain_command(
    address: str,
    zookeeper: str,
    root: str,
    timeout_ms: int,
    even_if_last: bool,
    as_json: bool,
    credentials: Credentials,
) -> None:
    """Have an oracle process take no new work, finish what is under way, hand over, and end with exit code 0.

    ADDRESS, HOST:PORT or a name, as pythia tso status shows it: a standby or the primary; not given: the primary.
    Refused where nobody could take over. Progress is told on standard error. Exit code 1: nothing was drained.
    """

    def tell(line: str) -> None:
        click.echo(line, err=True)

    try:
        with contextlib.closing(ZooKeeperCoordinator(zookeeper)) as coordinator:
            done = drain(
                coordinator,
                root,
                address,
                limit_ms=timeout_ms,
                even_if_last=even_if_last,
                tell=tell,
                credentials=credentials,
            )
    except (LeaseError, CannotHandOver, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(asdict(done)))
    else:
        served = f"; {done.primary} is primary" if done.primary else "; nobody serves now"
        click.echo(f"{done.holder} ({done.role}) was drained in {done.took_ms:.0f} ms and has ended{served}")
