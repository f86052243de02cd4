"""``pythia table adopt``: a table that programs without transactions have written, taken over where it is."""

from __future__ import annotations

import json

import click

from client.catalog.entry import ConflictLevel
from client.command_line import Place, connecting, managed
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.spark.mapping import TableMapping
from client.spark.tables import adopt_table
from client.tables.columns import mapping_of, parse_column, parse_family
from client.tables.options import as_usage_errors, families_option, json_option
from client.tables.progress import shown


@click.command("adopt")
@click.argument("name")
@connecting
@click.option("--column", "columns", multiple=True, metavar="NAME:TYPE",
              help="A column for Spark and pythia table, for instance price:bigint; once for each.")  # fmt: skip
@click.option("--row-key", metavar="NAME", help="Which of the columns is the row key, as it is: a string, or binary.")
@click.option("--family", help="HBase's column family of the other columns; by default the table's only one.")
@families_option
@click.option("--level", default="row", show_default=True, type=click.Choice(["row", "cell"]),
              help="Whether transactions conflict when they write the same row, or only the same cell.")  # fmt: skip
@json_option
def adopt_command(
    name: str,
    place: Place,
    columns: tuple[str, ...],
    row_key: str | None,
    family: str | None,
    families: tuple[str, ...],
    level: ConflictLevel,
    as_json: bool,
) -> None:
    """Take over HBase's table NAME, which no transaction wrote, where it is. No cell of it is changed.

    What lies in it is what every snapshot begins with, the newest cell of each column. Nothing may write it any more
    but transactions. Its families have to keep all versions of a cell, for ever. Each cell is read once; after a kill,
    or a failure of the services, run the same command again.
    """
    if bool(columns) != (row_key is not None) or ((family is not None or families) and not columns):
        raise click.UsageError("give both --column and --row-key, for a table that Spark is to read, or neither")
    with managed(place) as manager, shown("looked at") as tell:
        mapping = _mapping(manager, name, columns, row_key, family, families, level) if row_key is not None else None
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
    families: tuple[str, ...],
    level: ConflictLevel,
) -> TableMapping:
    there = manager.catalog.plain_families(name)
    with as_usage_errors():
        parsed, placed = [parse_column(column) for column in columns], dict(map(parse_family, families))
    others = {column for column, _ in parsed} - {row_key, *placed}
    if others and family is None and len(there) > 1:
        raise InvalidRequest(
            f"table {name!r} has the families {', '.join(there)}: say which with --family, or --family-of for some of "
            "the columns"
        )
    with as_usage_errors():
        return mapping_of(
            name,
            parsed,
            [row_key],
            family=family or there[0],
            families=placed,
            conflict_level=level,
            plain_row_key=True,
        )
