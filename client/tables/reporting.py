"""What the commands that land rows say at their end: how many have landed, or how to go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click

from client.errors import OutcomeUnknown, TransactionAborted
from client.tables.steps import Landed


@contextmanager
def to_be_gone_on_with(what: str) -> Iterator[None]:
    """Tells, of a transaction that did not commit or may have, that the command can be run again; ``what`` it does."""
    try:
        yield
    except (TransactionAborted, OutcomeUnknown) as error:
        raise click.ClickException(
            f"{error}\nRun the same command again: it goes on where the {what} stopped, and lands nothing twice."
        ) from error


def print_landed(table: str, landed: Landed, as_json: bool, **more: str) -> None:
    """On standard output; ``more``: what else the JSON object has."""
    if as_json:
        click.echo(json.dumps({**more, "table": table, **landed._asdict()}))
        return
    click.echo(in_words(table, landed))


def in_words(table: str, landed: Landed) -> str:
    """What was done to a table."""
    before = f"; {landed.rows_before:,} had landed before" if landed.rows_before else ""
    return f"{table}: {landed.rows:,} rows have landed in {landed.transactions:,} transactions{before}"
