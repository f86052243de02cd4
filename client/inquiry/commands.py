"""``pythia txn``: what is known of a transaction, and ending one for good."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import click

from client.command_line import Place, connecting, explained, managed, settings_for
from client.connection.primary import Directory, SoloDirectory, ZooKeeperDirectory
from client.errors import InvalidRequest
from client.inquiry.asking import inquire
from client.inquiry.findings import fields, lines, moment
from client.manager import TransactionManager
from client.settings import ClientSettings
from commit_table import Committed, system_table
from commit_table.timestamps import TIMESTAMP_MAX
from lease.solo import SoloRegistry
from store.hbase import HBaseCellStore, PoolSettings

TRANSACTIONS_MAX = 100

_TRANSACTION = click.IntRange(1, TIMESTAMP_MAX - 1)


@click.group()
def txn() -> None:
    """Transactions: what became of one, and ending one."""


@txn.command()
@click.argument("start_timestamps", nargs=-1, required=True, type=_TRANSACTION, metavar="START_TIMESTAMP…")
@connecting
@click.option("--timeout-ms", default=3_000, show_default=True, type=click.IntRange(1, 3_600_000),
              help="For each service that is asked, in milliseconds.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an object with `transactions`.")
def show(
    start_timestamps: tuple[int, ...],
    place: Place,
    timeout_ms: int,
    as_json: bool,
) -> None:
    """Say what is known of transactions, in words, and what to do: committed, aborted, running, given up …

    A transaction's id is its START_TIMESTAMP. Needs HBase alone; with --zookeeper (or --oracle) it says also whether
    one that is open still lives. Changes nothing.
    """
    if len(start_timestamps) > TRANSACTIONS_MAX:
        raise click.UsageError(f"{TRANSACTIONS_MAX} transactions at most, not {len(start_timestamps)}")
    with explained():
        known = bool(place.zookeeper or place.oracle)
        settings = replace(
            settings_for(place, needs_oracle=False), request_timeout_ms=timeout_ms, deadline_ms=timeout_ms
        )
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(
                contextlib.closing(HBaseCellStore(place.thrift, PoolSettings(unavailable_after_ms=timeout_ms)))
            )
            directory = _directory(settings, store, stack)
            manager = stack.enter_context(TransactionManager(settings, store, directory))
            found = inquire(manager, directory if known else None, list(dict.fromkeys(start_timestamps)))
    if as_json:
        click.echo(json.dumps({"transactions": [fields(one) for one in found]}, indent=2))
    else:
        click.echo("\n\n".join("\n".join(lines(one)) for one in found))


@txn.command()
@click.argument("start_timestamp", type=_TRANSACTION)
@connecting
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def abort(start_timestamp: int, place: Place, as_json: bool) -> None:
    """Make sure that a transaction never commits, whoever runs it.

    Exit code 1 where it has committed already: then nothing was changed.
    """
    with managed(place) as manager:
        if start_timestamp > manager.oracle.status().last_timestamp:
            raise InvalidRequest(f"no transaction {start_timestamp} has begun yet: look whether it is the right number")
        outcome = manager.abort(start_timestamp)
    committed = outcome.commit_timestamp if isinstance(outcome, Committed) else None
    if as_json:
        state = "aborted" if committed is None else "committed"
        click.echo(json.dumps({"transaction": start_timestamp, "state": state, "commit_timestamp": committed}))
    elif committed is None:
        click.echo(f"transaction {start_timestamp} is aborted for good")
    else:
        click.echo(f"transaction {start_timestamp} committed at {committed}, {moment(committed)}: nothing was changed")
    if committed is not None:
        raise SystemExit(1)


def _directory(settings: ClientSettings, store: HBaseCellStore, stack: contextlib.ExitStack) -> Directory:
    if settings.oracle:
        return SoloDirectory(settings.oracle, SoloRegistry(store, system_table(settings.root, "epoch")))
    return stack.enter_context(contextlib.closing(ZooKeeperDirectory(settings)))
