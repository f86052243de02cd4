"""``pythia table restore``: tables put back to what one moment shows."""

from __future__ import annotations

import json

import click

from client.command_line import Place, connecting, managed
from client.errors import OutcomeUnknown, TransactionAborted
from client.snapshots.moments import parse_moment
from client.tables.options import json_option
from client.tables.restoring import restore


@click.command("restore")
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@connecting
@click.option(
    "--as-of", required=True, metavar="MOMENT", help="A timestamp, a time with its zone, or the name of a snapshot."
)
@click.option("--dry-run", is_flag=True, help="Count what would change, and change nothing.")
@click.option("--even-if-empty", is_flag=True, help="Also a table that has no row then: all its rows go.")
@json_option
def restore_command(
    names: tuple[str, ...],
    place: Place,
    as_of: str,
    dry_run: bool,
    even_if_empty: bool,
    as_json: bool,
) -> None:
    """Put tables NAME… back to what they were at one moment, all of them in one transaction.

    Readers see all of it or nothing. What was committed since stays readable as of before, until a vacuum. A row that
    somebody changes meanwhile is a conflict: then nothing was restored, and the command can be run again.
    """

    def tell(table: str, rows: int) -> None:
        click.echo(f"{table}: {rows:,} rows looked at", err=True)

    with managed(place) as manager:
        past = manager.snapshot(parse_moment(as_of))
        try:
            tables = list(dict.fromkeys(names))
            done = restore(manager, past, tables, tell, even_if_empty=even_if_empty, dry_run=dry_run)
        except (TransactionAborted, OutcomeUnknown) as error:
            raise click.ClickException(
                f"{error}\nRun the same command again: what is restored already is left alone."
            ) from error
    if as_json:
        fields = {table: one.to_fields() for table, one in done.items()}
        click.echo(json.dumps({"as_of": past.timestamp, "dry_run": dry_run, "tables": fields}))
        return
    would = "would have to be" if dry_run else "were"
    for table, one in done.items():
        changed = f"{one.put_back:,} {would} put back, {one.removed:,} {would} removed"
        click.echo(f"{table}: {one.rows:,} rows as of {past.timestamp}; {changed}")
