"""``pythia claims``: which keys have landed, and what is to land again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any

import click

from client.claims.recorded import claims as recorded
from client.claims.recorded import forget as forget_keys
from client.command_line import Place, connecting, managed
from client.manager import TransactionManager
from client.transactions.claims import Claim

DAYS_MAX = 100_000
_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
_prefix_option = click.option("--prefix", metavar="TEXT", default="", help="Keys that begin with it.")
_table_option = click.option("--table", metavar="NAME", help="That table's keys.")
_older_option = click.option(
    "--older-than-days",
    "days",
    type=click.IntRange(0, DAYS_MAX),
    help="Keys whose transaction began longer ago.",
)


@click.group()
def claims() -> None:
    """Keys that transactions have claimed, so that nothing lands twice: list, forget."""


@claims.command("list")
@connecting
@_table_option
@_prefix_option
@_older_option
@_json_option
def list_(place: Place, table: str | None, prefix: str, days: int | None, as_json: bool) -> None:
    """Show which keys have landed, a line each: when the transaction began that landed it, the table whose key it is
    (- for one of the installation's), the key.

    With --json a line is an object.
    """
    with managed(place) as manager:
        for claim in recorded(manager, prefix, table=table, before=_moment(days)):
            click.echo(json.dumps(_fields(claim)) if as_json else _line(claim))


@claims.command()
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@connecting
@_table_option
@_prefix_option
@_older_option
@click.option("--dry-run", is_flag=True, help="Only count.")
@_json_option
def forget(
    place: Place,
    keys: tuple[str, ...],
    table: str | None,
    prefix: str,
    days: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Forget the keys KEY, or those that --prefix and --older-than-days name.

    KEY is one of the table's that --table names, and without it one of the installation's. The others are of any
    table, unless --table names it.

    What claims a forgotten key lands again. So forget those alone of which no replay can come any more, and those
    whose work is to be done again, such as after a table was put back from a backup.
    """
    if bool(keys) == bool(prefix or days is not None):
        raise click.UsageError("say which: either keys, or --prefix or --older-than-days, or both of these")
    if keys and dry_run:
        raise click.UsageError("--dry-run counts what --prefix and --older-than-days name: leave it out with keys")
    with managed(place) as manager:
        if keys:
            counted = forget_keys(manager, keys, table=table or "")
        else:
            chosen = recorded(manager, prefix, table=table, before=_moment(days))
            counted = sum(1 for _ in chosen) if dry_run else _forget(manager, chosen)
    if as_json:
        click.echo(json.dumps({"would be forgotten" if dry_run else "forgotten": counted}))
    else:
        click.echo(f"{counted:,} would be forgotten" if dry_run else f"{counted:,} forgotten")


def _forget(manager: TransactionManager, chosen: Iterable[Claim]) -> int:
    of_tables = groupby(chosen, attrgetter("table"))
    return sum(forget_keys(manager, (claim.key for claim in owned), table=table) for table, owned in of_tables)


def _moment(days: int | None) -> datetime | None:
    return None if days is None else datetime.now(UTC) - timedelta(days=days)


def _fields(claim: Claim) -> dict[str, Any]:
    began, transaction = claim.began.isoformat(), str(claim.start_timestamp)
    return {"key": claim.key, "table": claim.table or None, "transaction": transaction, "began": began}


def _line(claim: Claim) -> str:
    began = claim.began.isoformat(sep=" ", timespec="milliseconds")
    return f"{began}  {claim.table or '-'}  {_printable(claim.key)}"


def _printable(key: str) -> str:
    """As it is, where it is one line."""
    return key if key.isprintable() else json.dumps(key)
