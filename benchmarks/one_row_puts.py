"""A put of one row: the gateway's call for one row, which is used for it, beside the call for several.

    python -m benchmarks.one_row_puts --thrift H:P [--rounds N] [--seconds S] [--json]

*Ours*: ``mutateRowTs``, one after the other. *Beside*: ``mutateRowsTs`` with one row; both over the same connection of
HappyBase. A gateway has HBase write one row in the thread that was asked, and several in another one.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import uuid
from typing import Final

import click

from benchmarks.options import gateway_option
from benchmarks.rounds import Case, calls_per_second
from store import Family
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.addresses import parse_addresses
from store.hbase.connection import GatewayConnection
from store.hbase.thrift_types import BatchMutation, Mutation

MUTATIONS: Final = [Mutation(column=b"f:a", value=b"12345678")]
TIMESTAMP: Final = 100


def measure(thrift: str, rounds: int, seconds: float) -> Case:
    """Both in turn, after one round that is not counted."""
    table, case = f"one_row_puts_{uuid.uuid4().hex[:8]}", Case("one row", [], [])
    rows = (b"%09d" % number for number in itertools.count())
    with (
        contextlib.closing(HBaseCellStore(thrift)) as store,
        contextlib.closing(GatewayConnection(parse_addresses(thrift)[0], PoolSettings())) as connection,
    ):
        client, name = connection.client, table.encode()
        calls = (
            lambda: client.mutateRowTs(name, next(rows), MUTATIONS, TIMESTAMP, {}),
            lambda: client.mutateRowsTs(name, [BatchMutation(next(rows), MUTATIONS)], TIMESTAMP, {}),
        )
        store.create_table(table, [Family("f")])
        try:
            for number in range(rounds + 1):
                rates = [calls_per_second(call, threads=1, seconds=seconds) for call in calls]
                click.echo(f"round {number}: {rates[0]:,.0f} / {rates[1]:,.0f} puts a second", err=True)
                if number:
                    case.ours.append(rates[0])
                    case.beside.append(rates[1])
        finally:
            store.drop_table(table)
    return case


@click.command()
@gateway_option
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="After one not counted.")
@click.option("--seconds", default=2.0, show_default=True, type=click.FloatRange(0.1, 60), help="Of one measurement.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object at the end instead of a line.")
def main(thrift: str, rounds: int, seconds: float, as_json: bool) -> None:
    """Measure puts of one row, on a gateway that is up."""
    case = measure(thrift, rounds, seconds)
    click.echo(json.dumps({"cases": [case.summary()]}) if as_json else case.line("puts"))


if __name__ == "__main__":
    main()
