"""``pythia upgrade …``: the level of an installation, who keeps it from being raised, and raising it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict

import click

from configuration.connection_flags import root_flag, thrift_flag, zookeeper_flag
from lease.zookeeper import ZooKeeperCoordinator
from store.hbase import HBaseCellStore
from tso.commands.printing import print_table
from tso.commands.upgrading import Outlook, finish, outlook
from tso.commands.zookeeper_session import writing_session, zookeeper_credentials_flag
from versions import spoken
from versions.levels import LEVEL_MAX

_zookeeper = zookeeper_flag("where lease, level and members are kept.")


@click.group()
def upgrade() -> None:
    """From one release to the next: status, finish."""


@upgrade.command()
@_zookeeper
@thrift_flag
@root_flag
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(zookeeper: str, thrift: str, root: str, as_json: bool) -> None:
    """Show the installation's level, at which levels each process works, and what stands in the way of a higher one.

    Exit code 1 where raising the level was begun and not brought to its end.
    """
    with (
        contextlib.closing(HBaseCellStore(thrift)) as store,
        contextlib.closing(ZooKeeperCoordinator(zookeeper)) as coordinator,
    ):
        found = outlook(coordinator, store, root, spoken())
    if as_json:
        click.echo(json.dumps({**asdict(found), "obstacles": found.obstacles}))
    else:
        _print(found)
    if found.is_unfinished:
        raise SystemExit(1)


@upgrade.command("finish")
@_zookeeper
@thrift_flag
@zookeeper_credentials_flag
@root_flag
@click.option("--yes", is_flag=True, help="Do not ask.")
def finish_command(zookeeper: str, thrift: str, zookeeper_credentials_file: str, root: str, yes: bool) -> None:
    """Raise the level as far as every process, and this program, works at it.

    It never goes down again: releases that do not work at the new level cannot come back, neither as oracles nor as
    clients. Nothing stops meanwhile, and it is harmless to repeat.
    """
    with (
        contextlib.closing(HBaseCellStore(thrift)) as store,
        writing_session(zookeeper, root, zookeeper_credentials_file, may_be_open=True) as coordinator,
    ):
        found = outlook(coordinator, store, root, spoken())
        if found.target > found.level and not found.obstacles and not yes:
            agreed = _agreed(
                f"The level of {root} goes from {found.level} to {found.target}, and never back: releases that do not "
                f"work at level {found.target} cannot take part any more, also not as clients. Go on?"
            )
            if not agreed:
                raise click.ClickException(f"nothing was done: the level stays at {found.level}")
        at_most = LEVEL_MAX if yes else found.target
        level = finish(coordinator, store, root, spoken(), tell=click.echo, agreed=at_most)
    click.echo(f"level {level}")


def _agreed(question: str) -> bool:
    """Whether whoever is asked says yes. Raises ``ClickException`` where there is nobody: that is no interrupt."""
    try:
        return click.confirm(question)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo(err=True)  # the question has no end of its line
        raise click.ClickException(
            "nothing was done: nobody answered. Where there is no terminal, give --yes"
        ) from None


def _print(found: Outlook) -> None:
    click.echo(f"level {found.level}" + (f", level {found.required} is required" if found.is_unfinished else ""))
    if found.of_data is not None and found.of_data != found.required:
        click.echo(f"on record with the data: level {found.of_data}")
    members = ((one.holder, one.role, one.address, str(one.levels)) for one in found.members)
    print_table(("process", "role", "address", "works at"), members)
    for obstacle in found.obstacles:
        click.echo(obstacle)
    if found.target > found.level and not found.obstacles:
        click.echo(f"`pythia upgrade finish` raises it to level {found.target}")
