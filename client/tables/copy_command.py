"""``pythia table copy``: what is in a plain HBase table, written into one of Pythia's."""

from __future__ import annotations

import click

from client.catalog.entry import ConflictLevel
from client.command_line import Place, connecting, managed
from client.tables.copying import copy
from client.tables.options import json_option, rows_per_transaction_option
from client.tables.progress import shown
from client.tables.reporting import print_landed, to_be_gone_on_with
from configuration.connection_flags import thrift2_flag


@click.command("copy")
@click.argument("plain")
@click.argument("name")
@connecting
@click.option("--level", type=click.Choice(["row", "cell"]),
              help="Whether transactions conflict when they write the same row of the table that is made, or only the "
              "same cell; by default the row.")  # fmt: skip
@rows_per_transaction_option
@thrift2_flag
@click.option("--again", is_flag=True, help="Copy rows that have been copied before, too.")
@json_option
def copy_command(
    plain: str,
    name: str,
    place: Place,
    level: ConflictLevel | None,
    rows_per_transaction: int,
    thrift2: str,
    again: bool,
    as_json: bool,
) -> None:
    """Copy the newest cells of HBase's table PLAIN, which no transaction wrote, into table NAME.

    To take PLAIN over where it is there is pythia table adopt.

    NAME is made where it is missing, with the column families of PLAIN, and with --thrift2 with its regions. Nothing
    may write PLAIN meanwhile. After a kill, or a failure of the services, run the same command again: it goes on after
    the last row that has landed.
    """
    with managed(place, thrift2=thrift2) as manager, shown("written") as tell, to_be_gone_on_with("copy"):
        landed = copy(manager, plain, name, rows_per_transaction, tell, conflict_level=level, again=again)
    print_landed(name, landed, as_json, copied=plain)
