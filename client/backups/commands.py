"""``pythia backup``: all tables at one moment in a directory, or what changed since another; checked, and made anew.

As with ``pythia table``, progress goes to standard error and results to standard output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from client.backups.creating import create, merge
from client.backups.layout import Backup
from client.backups.opening import check
from client.backups.restoring import restore
from client.command_line import Place, connecting, explained, managed, moment_option, name_option
from client.snapshots.moments import Moment
from client.tables.options import json_option, rows_per_transaction_option
from client.tables.progress import lines
from client.tables.reporting import in_words, print_columns, to_be_gone_on_with
from commit_table.timestamps import wall_time_of
from configuration.connection_flags import thrift2_flag
from store.errors import InvalidCell
from store.validation import check_table

_directory = click.argument("directory", type=click.Path(file_okay=False, path_type=Path))


def _checked_prefix(context: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        check_table(f"namespace:{value}table")
    except InvalidCell as error:
        raise click.BadParameter(f"it is what a table's name begins with, after its namespace: {error}") from error
    return value


@contextmanager
def _shown() -> Iterator[Callable[[str, int, bool], None]]:
    with lines("no rows yet") as tell:
        yield lambda table, rows, counts: tell(f"{table}: {rows:,} rows", counts)


@click.group()
def backup() -> None:
    """Backups: create, check, merge, restore."""


@backup.command("create")
@_directory
@click.argument("names", nargs=-1, metavar="[NAME…]")
@connecting
@click.option("--as-of", metavar="MOMENT", callback=moment_option,
              help="A timestamp, a time with its zone, or the name of a snapshot; by default now.")  # fmt: skip
@click.option("--since", metavar="BACKUP", type=click.Path(file_okay=False, path_type=Path),
              help="Write only what has changed since this backup, a directory beside DIRECTORY.")  # fmt: skip
@click.option("--position-snapshot", metavar="NAME", callback=name_option,
              help="The name of a snapshot that is moved along, and keeps what the next backup needs.")  # fmt: skip
@json_option
def create_command(
    directory: Path,
    names: tuple[str, ...],
    place: Place,
    as_of: Moment | None,
    since: Path | None,
    position_snapshot: str | None,
    as_json: bool,
) -> None:
    """Write tables NAME…, by default all, as of one moment, to DIRECTORY, which must not exist yet.

    A table needs no mapping for it. The directory gets its name once everything is on the disk. No vacuum takes away
    what is being read as of now, however long that takes; of an earlier moment name a snapshot.

    With --since the backup is as good as a whole one while BACKUP is there, and needs the space of what has changed.
    What has is known as long as no vacuum has gone beyond BACKUP: give both the same --position-snapshot.
    """
    with managed(place) as manager, _shown() as tell:
        snapshot = manager.snapshot(as_of)
        made = create(manager, snapshot, names, directory, tell, since=since, position_snapshot=position_snapshot)
    _print_backup(made, directory, as_json)


@backup.command("check")
@_directory
@json_option
def check_command(directory: Path, as_json: bool) -> None:
    """Read all of the backup in DIRECTORY, and compare it with what was written. Needs no service.

    Where it has what changed since another one, that is read, too, and so on.
    """
    with explained(), lines("nothing read yet") as tell:
        found = check(directory, lambda table: tell(f"{table}: whole", True))
    _print_backup(found.newest, directory, as_json)
    if found.bases and not as_json:
        click.echo(
            f"{len(found.bases):,} more that it is based on, of {sum(each.bytes for each in found.bases):,} bytes"
        )


@backup.command("merge")
@_directory
@click.argument("whole", type=click.Path(file_okay=False, path_type=Path))
@json_option
def merge_command(directory: Path, whole: Path, as_json: bool) -> None:
    """Write what DIRECTORY and the backups that it is based on have together to WHOLE, which must not exist yet.

    WHOLE is a whole backup of the same moment, and needs none of them: restore from it, base further ones on it, and
    delete what it was made of. Needs no service.
    """
    with explained(), _shown() as tell:
        made = merge(directory, whole, tell)
    _print_backup(made, whole, as_json)


@backup.command("restore")
@_directory
@click.argument("names", nargs=-1, metavar="[NAME…]")
@connecting
@click.option("--prefix", default="", metavar="TEXT", callback=_checked_prefix,
              help="Put TEXT before the name of each table that is made, as in copy_of_.")  # fmt: skip
@rows_per_transaction_option
@thrift2_flag
@json_option
def restore_command(
    directory: Path,
    names: tuple[str, ...],
    place: Place,
    prefix: str,
    rows_per_transaction: int,
    thrift2: str,
    as_json: bool,
) -> None:
    """Make tables NAME…, by default all, anew from the backup in DIRECTORY, in this installation or another.

    With --thrift2 they have the regions that they had. A table that has rows already is refused. After a kill, or a
    failure of the services, run the same command again: it goes on after the last row that has landed.
    """
    with managed(place, thrift2=thrift2) as manager, _shown() as tell, to_be_gone_on_with("restore"):
        done = restore(manager, directory, names, rows_per_transaction, tell, prefix=prefix)
    if as_json:
        tables = {name: landed._asdict() for name, landed in done.items()}
        click.echo(json.dumps({"directory": str(directory), "tables": tables}))
        return
    for name, landed in done.items():
        click.echo(in_words(name, landed))


def _print_backup(shown: Backup, directory: Path, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_fields(shown, directory)))
        return
    print_columns(
        ("table", "rows", "deleted", "cells", "bytes", "holds"),
        [
            (
                one.table,
                *(f"{count:,}" for count in (one.file.rows, one.file.deleted, one.file.cells, one.file.bytes)),
                "what changed" if one.since else "all",
            )
            for one in shown.tables
        ],
    )
    moment = wall_time_of(shown.snapshot).isoformat(timespec="milliseconds")
    based_on = "" if shown.base is None else f", since {shown.base.name}"
    click.echo(
        f"{directory}: {len(shown.tables):,} tables of {shown.root} as of {shown.snapshot} ({moment}){based_on}, "
        f"{shown.rows:,} rows in {shown.bytes:,} bytes"
    )


def _fields(shown: Backup, directory: Path) -> dict[str, Any]:
    return {
        "directory": str(directory),
        "backup_id": shown.backup_id,
        "root": shown.root,
        "snapshot": shown.snapshot,
        "base": None if shown.base is None else asdict(shown.base),
        "tables": {
            one.table: {"rows": one.file.rows, "deleted": one.file.deleted, "cells": one.file.cells, "since": one.since}
            for one in shown.tables
        },
    }
