"""``pythia table adopt``: a table that programs without transactions have written, taken over where it is."""

from __future__ import annotations

import json

import click

from client.catalog.entry import ConflictLevel
from client.command_line import Place, connecting, explained, managed
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.spark.mapping import TableMapping
from client.spark.tables import adopt_table
from client.tables.columns import mapping_of, parse_column
from client.tables.options import json_option
from client.tables.progress import shown


@click.command("adopt")
@click.argument("name")
@connecting
@click.option("--column", "columns", multiple=True, metavar="NAME:TYPE",
              help="A column for Spark and pythia table, for instance price:bigint; once for each.")  # fmt: skip
@click.option("--row-key", metavar="NAME", help="Which of the columns is the row key, as it is: a string, or binary.")
@click.option("--family", help="HBase's column family of the other columns; by default the table's only one.")
@click.option("--level", default="row", show_default=True, type=click.Choice(["row", "cell"]),
              help="Whether transactions conflict when they write the same row, or only the same cell.")  # fmt: skip
@json_option
def adopt_command(
    name: str,
    place: Place,
    columns: tuple[str, ...],
    row_key: str | None,
    family: str | None,
    level: ConflictLevel,
    as_json: bool,
) -> None:
    """Take over HBase's table NAME, which no transaction wrote, where it is. No cell of it is changed.

    What lies in it is what every snapshot begins with, the newest cell of each column. Nothing may write it any more
    but transactions. Its families have to keep all versions of a cell, for ever. Each cell is read once; after a kill,
    or a failure of the services, run the same command again.
    """
    if bool(columns) != (row_key is not None) or (family is not None and not columns):
        raise click.UsageError("give both --column and --row-key, for a table that Spark is to read, or neither")
    with managed(place) as manager, shown("looked at") as tell:
        mapping = _mapping(manager, name, columns, row_key, family, level) if row_key is not None else None
        if mapping is None:
            adopted = manager.adopt_table(name, conflict_level=level, progress=lambda rows: tell(rows, False))
        else:
            adopted = adopt_table(manager, mapping, progress=lambda rows: tell(rows, False))
    if as_json:
        click.echo(json.dumps({"table": name, "rows": adopted.rows, "plain_through": adopted.plain_through}))
    elif adopted.rows:
        click.echo(f"{name}: adopted with {adopted.rows:,} rows, of cells up to timestamp {adopted.plain_through}")
    else:
        click.echo(f"{name}: adopted, of cells up to timestamp {adopted.plain_through}")


def _mapping(
    manager: TransactionManager,
    name: str,
    columns: tuple[str, ...],
    row_key: str,
    family: str | None,
    level: ConflictLevel,
) -> TableMapping:
    families = manager.catalog.plain_families(name)
    if family is None and len(families) > 1:
        raise InvalidRequest(f"table {name!r} has the families {', '.join(families)}: say which with --family")
    with explained():
        try:
            return mapping_of(
                name,
                [parse_column(column) for column in columns],
                [row_key],
                family=family or families[0],
                conflict_level=level,
                plain_row_key=True,
            )
        except InvalidRequest as error:
            raise click.UsageError(str(error)) from error
