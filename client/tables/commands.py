"""``pythia table``: tables for Spark and programs, made, looked at, filled from files and written to files.

Invariant: progress goes to standard error and results to standard output; an error is one message and a non-zero exit,
2 where it is a file that cannot be read or written, or the command line itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from client.catalog.entry import ConflictLevel
from client.command_line import Place, connecting, explained, managed
from client.positions import moment_since
from client.snapshots.moments import parse_moment, parse_since
from client.spark.codecs import RowEncoder
from client.spark.mapping import SALT_BUCKETS_MAX, TableMapping
from client.spark.region_keys import KeySample, boundaries, split_keys
from client.spark.tables import create_table, table_mapping
from client.tables.adopt_command import adopt_command
from client.tables.casting import cast, check_fits
from client.tables.columns import columns_like, mapping_of, parse_column, parse_family
from client.tables.copy_command import copy_command
from client.tables.describing import Description, describe, tables
from client.tables.exporting import export
from client.tables.files import DataFile, FileFormat, format_of
from client.tables.landing import PIECE_ROWS, land
from client.tables.options import (
    FILE,
    as_usage_errors,
    data_file,
    families_option,
    format_option,
    json_option,
    names_of,
    reading_files,
)
from client.tables.progress import shown
from client.tables.reporting import print_columns, print_landed, to_be_gone_on_with
from client.tables.restore_command import restore_command
from client.tables.splits import shell_commands
from client.tables.steps import ROWS_PER_TRANSACTION_MAX
from client.tables.supply import small_pieces
from commit_table.layout import SALTS
from configuration.connection_flags import thrift2_flag
from store.validation import REGIONS_MAX


@click.group()
def table() -> None:
    """Tables: list, create, prepare, describe, splits, import, export, adopt, copy, restore."""


table.add_command(adopt_command)
table.add_command(copy_command)
table.add_command(restore_command)


@table.command("list")
@connecting
@json_option
def list_(place: Place, as_json: bool) -> None:
    """Show every table that Pythia knows. Needs no oracle."""
    with managed(place, needs_oracle=False) as manager:
        found = [describe(manager, name) for name in tables(manager)]
    if as_json:
        click.echo(json.dumps({"tables": [one.to_fields() for one in found]}, indent=2))
    elif found:
        _print_list(found)
    else:
        click.echo("No table yet. Make one: pythia table create --help")


@table.command()
@click.argument("name")
@connecting
@click.option("--column", "columns", multiple=True, metavar="NAME:TYPE",
              help="A column, for instance id:bigint; once for each, in the order of showing.")  # fmt: skip
@click.option("--like", type=FILE, help="Take the columns of this file instead, with the types that it has.")
@reading_files
@click.option(
    "--row-key", required=True, metavar="NAME[,…]", help="The columns by which rows are told apart and sorted."
)
@click.option("--family", default="f", show_default=True, help="HBase's column family for the other columns.")
@families_option
@click.option("--level", default="row", show_default=True, type=click.Choice(["row", "cell"]),
              help="Whether transactions conflict when they write the same row, or only the same cell.")  # fmt: skip
@click.option("--packed", is_flag=True,
              help="Keep all columns of a row in one cell: faster, but writes have them all.")  # fmt: skip
@click.option(
    "--plain-row-key", is_flag=True, help="The row key is one column, a string or binary, and its bytes as they are."
)
@click.option("--salt-buckets", default=0, show_default=True, type=click.IntRange(0, SALT_BUCKETS_MAX), metavar="N",
              help="Spread rows with neighbouring keys over N places, for keys that grow; 0: over none.")  # fmt: skip
@click.option("--regions", default=1, show_default=True, type=click.IntRange(1, REGIONS_MAX),
              help="Of how many regions; more than one need --thrift2.")  # fmt: skip
@click.option("--sample", type=FILE,
              help="Rows like those that are to come, which spread evenly over the regions; by default the file of "
              "--like, or none with --salt-buckets.")  # fmt: skip
@thrift2_flag
@json_option
def create(
    name: str,
    place: Place,
    columns: tuple[str, ...],
    like: Path | None,
    file_format: FileFormat | None,
    delimiter: str,
    nulls: tuple[str, ...],
    row_key: str,
    family: str,
    families: tuple[str, ...],
    level: ConflictLevel,
    packed: bool,
    plain_row_key: bool,
    salt_buckets: int,
    regions: int,
    sample: Path | None,
    thrift2: str,
    as_json: bool,
) -> None:
    """Make table NAME. Its columns, types and conflict level are for good.

    TYPE is one of Spark's: string, binary, boolean, tinyint, smallint, int, bigint, float, double, date, timestamp,
    timestamp_ntz, decimal(precision,scale). Of a CSV file the types are guessed from its first 4 MiB.

    With --regions the table has several from its first row on, and as many servers take part in filling it.
    """
    if bool(columns) == (like is not None):
        raise click.UsageError("give the columns, either one by one with --column, or by a file with --like")
    if not salt_buckets:
        sample = sample or like
    if regions > max(salt_buckets, 1) and sample is None:
        raise click.UsageError("--regions needs rows by which to part them: give a file of such with --sample")
    with as_usage_errors():
        if like is None:
            chosen = [parse_column(column) for column in columns]
        else:
            chosen = columns_like(data_file(like, file_format, delimiter, nulls).guessed_schema())
        mapping = mapping_of(
            name,
            chosen,
            names_of(row_key),
            family=family,
            families=dict(map(parse_family, families)),
            conflict_level=level,
            packed=packed,
            plain_row_key=plain_row_key,
            salt_buckets=salt_buckets,
        )
    with explained():
        if regions > 1 and sample is not None:
            cuts = boundaries(_sampled_keys(mapping, data_file(sample, file_format, delimiter, nulls)), regions)
        else:
            cuts = split_keys(mapping, regions)
    with managed(place, thrift2=thrift2) as manager:
        create_table(manager, mapping, split_keys=cuts)
        made = describe(manager, name)
    _print_description(made, as_json)
    _tell_of_fewer(cuts, regions)


@table.command()
@connecting
@click.option("--commit-table-regions", default=1, show_default=True, type=click.IntRange(1, SALTS), metavar="N",
              help="Of how many regions the commit table is made; more than one need --thrift2.")  # fmt: skip
@thrift2_flag
@json_option
def prepare(place: Place, commit_table_regions: int, thrift2: str, as_json: bool) -> None:
    """Make the tables in which Pythia keeps what it knows, those that are missing.

    For an administrator, where HBase lets few make tables: nobody needs that right after him. Needs no oracle.

    The commit table takes a write of every transaction: with several regions, as many servers share that.
    """
    with managed(place, needs_oracle=False, thrift2=thrift2) as manager:
        made = manager.create_own_tables(commit_table_regions=commit_table_regions)
        own = sorted(manager.catalog.tables_of_nobody)
    if as_json:
        click.echo(json.dumps({"own_tables": own, "made": list(made)}, indent=2))
        return
    for name in own:
        click.echo(f"{name}  {'made' if name in made else 'was there'}")


@table.command("describe")
@click.argument("name")
@connecting
@json_option
def describe_(name: str, place: Place, as_json: bool) -> None:
    """Show the columns of table NAME, and how HBase and Pythia keep it. Needs no oracle."""
    with managed(place, needs_oracle=False) as manager:
        found = describe(manager, name)
    _print_description(found, as_json)


@table.command()
@click.argument("name")
@click.argument("file", type=FILE)
@connecting
@reading_files
@click.option("--regions", required=True, type=click.IntRange(2, REGIONS_MAX), help="Into how many regions.")
@json_option
def splits(
    name: str,
    file: Path,
    place: Place,
    file_format: FileFormat | None,
    delimiter: str,
    nulls: tuple[str, ...],
    regions: int,
    as_json: bool,
) -> None:
    """Print the commands of HBase's shell that split table NAME so that the rows of FILE spread evenly.

    Nothing is split by this: HBase's Thrift gateways, which Pythia speaks to, cannot. Run them one after the other,
    each once the region of the one before is split. A table that is yet to be made: pythia table create --regions.
    """
    with managed(place, needs_oracle=False) as manager:
        mapping = table_mapping(manager, name)
        cuts = boundaries(_sampled_keys(mapping, data_file(file, file_format, delimiter, nulls)), regions)
    if as_json:
        click.echo(json.dumps({"table": name, "split_keys": [cut.hex() for cut in cuts]}))
    else:
        for line in shell_commands(name, cuts):
            click.echo(line)
    _tell_of_fewer(cuts, regions)


@table.command("import")
@click.argument("name")
@click.argument("files", nargs=-1, required=True, type=FILE)
@connecting
@reading_files
@click.option("--rows-per-transaction", type=click.IntRange(1, ROWS_PER_TRANSACTION_MAX), metavar="N",
              help="Land N rows in each transaction; by default all in one, "
                   f"of {ROWS_PER_TRANSACTION_MAX:,} at most.")  # fmt: skip
@click.option("--again", is_flag=True, help="Land rows that an import of the same files has landed before, too.")
@click.option("--changes", is_flag=True, help="FILES are exports with --changed-since: put or delete their rows.")
@json_option
def import_(
    name: str,
    files: tuple[Path, ...],
    place: Place,
    file_format: FileFormat | None,
    delimiter: str,
    nulls: tuple[str, ...],
    rows_per_transaction: int | None,
    again: bool,
    changes: bool,
    as_json: bool,
) -> None:
    """Write the rows of FILES, CSV or Parquet, into table NAME: rows with the same row key are replaced.

    A row that does not fit is refused with its whole transaction. After a kill, or a failure of the services, run the
    same command again: it goes on where the import stopped, and lands nothing twice.
    """
    with managed(place) as manager, shown("written") as tell:
        mapping = table_mapping(manager, name)
        chosen = [data_file(file, file_format, delimiter, nulls) for file in files]
        with to_be_gone_on_with("import"):
            landed = land(manager, mapping, chosen, rows_per_transaction, tell, again=again, changes=changes)
    print_landed(name, landed, as_json)


@table.command("export")
@click.argument("name")
@click.argument("file", type=FILE)
@connecting
@format_option
@click.option(
    "--as-of", metavar="MOMENT", help="A timestamp, a time with its zone, or the name of a snapshot; by default now."
)
@click.option("--changed-since", metavar="MOMENT",
              help="Only what has changed since then, and what is to be done with it; by default all.")  # fmt: skip
@click.option("--columns", metavar="NAME[,…]", help="Only these; by default all.")
@json_option
def export_(
    name: str,
    file: Path,
    place: Place,
    file_format: FileFormat | None,
    as_of: str | None,
    changed_since: str | None,
    columns: str | None,
    as_json: bool,
) -> None:
    """Write the rows of table NAME, as of one moment, to FILE (CSV or Parquet), which must not exist yet."""
    with managed(place) as manager, shown("exported") as tell:
        mapping = table_mapping(manager, name)
        snapshot = manager.snapshot(None if as_of is None else parse_moment(as_of))
        chosen = None if columns is None else names_of(columns)
        written_as = format_of(file, file_format)
        since = None if changed_since is None else moment_since(manager, parse_since(changed_since))
        rows = export(snapshot, mapping, chosen, file, written_as, lambda rows: tell(rows, False), since)
    if as_json:
        click.echo(json.dumps({"table": name, "file": str(file), "rows": rows, "snapshot": snapshot.timestamp}))
    else:
        click.echo(f"{file}: {rows:,} rows of {name} as of {snapshot.timestamp}")


def _sampled_keys(mapping: TableMapping, file: DataFile) -> list[bytes]:
    check_fits(mapping, file.schema(), str(file.path), file.format)
    encoder, sample = RowEncoder(mapping), KeySample()
    for piece in small_pieces(file.pieces(), PIECE_ROWS):
        sample.add(encoder.encode(cast(mapping, piece)).row_keys())
    return sample.keys


def _tell_of_fewer(cuts: Sequence[bytes], regions: int) -> None:
    if len(cuts) + 1 < regions:
        click.echo(f"the file has row keys for {len(cuts) + 1} regions only", err=True)


def _print_description(found: Description, as_json: bool) -> None:
    click.echo(json.dumps(found.to_fields(), indent=2) if as_json else "\n".join(found.lines()))


def _print_list(found: list[Description]) -> None:
    rows = []
    for one in found:
        key, columns = ("", "no mapping") if one.mapping is None else _outline(one.mapping)
        rows.append((one.table, key, columns, one.conflict_level, str(len(one.regions))))
    print_columns(("table", "row key", "columns", "conflicts by", "regions"), rows)


def _outline(mapping: TableMapping) -> tuple[str, str]:
    return ", ".join(mapping.row_key), str(len(mapping.columns))
