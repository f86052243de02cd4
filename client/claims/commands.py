"""``pythia claims``: which keys have landed, and what is to land again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from client.claims.recorded import claims as recorded
from client.claims.recorded import forget as forget_keys
from client.command_line import Place, connecting, managed
from client.transactions.claims import Claim

DAYS_MAX = 100_000
_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
_prefix_option = click.option("--prefix", metavar="TEXT", default="", help="Keys that begin with it.")
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
@_prefix_option
@_older_option
@_json_option
def list_(place: Place, prefix: str, days: int | None, as_json: bool) -> None:
    """Show which keys have landed, and when the transaction began that landed each, a line each.

    With --json a line is an object.
    """
    with managed(place) as manager:
        for claim in recorded(manager, prefix, before=_moment(days)):
            click.echo(json.dumps(_fields(claim)) if as_json else f"{_time(claim)}  {_printable(claim.key)}")


@claims.command()
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@connecting
@_prefix_option
@_older_option
@click.option("--dry-run", is_flag=True, help="Only count.")
@_json_option
def forget(place: Place, keys: tuple[str, ...], prefix: str, days: int | None, dry_run: bool, as_json: bool) -> None:
    """Forget the keys KEY, or those that --prefix and --older-than-days name.

    What claims a forgotten key lands again. So forget those alone of which no replay can come any more, and those
    whose work is to be done again, such as after a table was put back from a backup.
    """
    if bool(keys) == bool(prefix or days is not None):
        raise click.UsageError("say which: either keys, or --prefix or --older-than-days, or both of these")
    with managed(place) as manager:
        known = (claim.key for claim in recorded(manager, prefix, before=_moment(days)))
        chosen = [key for key in known if not keys or key in keys] if dry_run or not keys else keys
        forgotten = len(chosen) if dry_run else forget_keys(manager, chosen)
    if as_json:
        click.echo(json.dumps({"forgotten": 0 if dry_run else forgotten, "found": forgotten}))
    else:
        click.echo(f"{forgotten:,} {'would be forgotten' if dry_run else 'forgotten'}")


def _moment(days: int | None) -> datetime | None:
    return None if days is None else datetime.now(UTC) - timedelta(days=days)


def _fields(claim: Claim) -> dict[str, Any]:
    return {"key": claim.key, "transaction": str(claim.start_timestamp), "began": claim.began.isoformat()}


def _time(claim: Claim) -> str:
    return claim.began.isoformat(sep=" ", timespec="milliseconds")


def _printable(key: str) -> str:
    """As it is, where it is one line."""
    return key if key.isprintable() else json.dumps(key)
