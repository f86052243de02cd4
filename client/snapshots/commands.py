"""``pythia snapshot``: moments of the past that have a name, and that no vacuum takes away."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from client.command_line import Place, connecting, managed, moment_option, name_option
from client.snapshots.moments import Moment
from client.snapshots.record import NamedSnapshot
from commit_table.timestamps import wall_time_of

_LIST_WIDTH_CHARACTERS = 180

_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")


@click.group()
def snapshot() -> None:
    """Named snapshots: create, move, list, drop."""


_at_option = click.option(
    "--at",
    metavar="WHEN",
    callback=moment_option,
    help="A timestamp, a time with its zone, or another name; by default now.",
)


@snapshot.command()
@click.argument("name", callback=name_option)
@connecting
@_at_option
@_json_option
def create(name: str, place: Place, at: Moment | None, as_json: bool) -> None:
    """Give what is committed by now, or was by WHEN, the name NAME: no vacuum drops what it shows.

    A NAME begins with a letter and goes on with letters, digits, dots, underscores and hyphens. Read it with
    manager.snapshot(at="NAME"), or in Spark with the option as_of. Drop it when it is read no more.
    """
    with managed(place) as manager:
        _tell(manager.create_snapshot(name, at), as_json)


@snapshot.command()
@click.argument("name", callback=name_option)
@connecting
@_at_option
@_json_option
def move(name: str, place: Place, at: Moment | None, as_json: bool) -> None:
    """Have the name NAME stand for what is committed by now, or was by WHEN: a later moment than it stood for."""
    with managed(place) as manager:
        _tell(manager.move_snapshot(name, at), as_json)


@snapshot.command("list")
@connecting
@_json_option
def list_(place: Place, as_json: bool) -> None:
    """Show every snapshot that has a name. Needs no oracle."""
    with managed(place, needs_oracle=False) as manager:
        found = manager.snapshots()
    if as_json:
        click.echo(json.dumps({"snapshots": [_fields(one) for one in found]}, indent=2))
    elif found:
        _print_list(found)
    else:
        click.echo("No snapshot has a name yet. Make one: pythia snapshot create --help")


@snapshot.command()
@click.argument("name")
@connecting
@_json_option
def drop(name: str, place: Place, as_json: bool) -> None:
    """Give the name NAME up: the next vacuum may drop what it shows. Needs no oracle."""
    with managed(place, needs_oracle=False) as manager:
        manager.drop_snapshot(name)
    click.echo(json.dumps({"dropped": name}) if as_json else f"{name}: dropped")


def _tell(named: NamedSnapshot, as_json: bool) -> None:
    click.echo(json.dumps(_fields(named)) if as_json else f"{named.name}: {named.timestamp}, {_time(named)}")


def _fields(named: NamedSnapshot) -> dict[str, Any]:
    return {
        "name": named.name,
        "timestamp": named.timestamp,
        "time": wall_time_of(named.timestamp).isoformat(),
        "finished": named.is_finished,
    }


def _time(named: NamedSnapshot) -> str:
    return wall_time_of(named.timestamp).isoformat(sep=" ", timespec="milliseconds")


def _print_list(found: list[NamedSnapshot]) -> None:
    shown = Table(box=None, pad_edge=False)
    for title in ("name", "timestamp", "time", ""):
        shown.add_column(title, no_wrap=True)
    for named in found:
        shown.add_row(named.name, str(named.timestamp), _time(named), "" if named.is_finished else "not finished")
    Console(width=_LIST_WIDTH_CHARACTERS, highlight=False, markup=False).print(shown)
