"""What the commands that land rows say at their end: how many have landed, or how to go on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from client.errors import OutcomeUnknown, TransactionAborted
from client.tables.steps import Landed

_WIDTH_CHARACTERS: Final = 160


@contextmanager
def to_be_gone_on_with(what: str) -> Iterator[None]:
    """Tells, of a transaction that did not commit or may have, that the command can be run again; ``what`` it does."""
    try:
        yield
    except (TransactionAborted, OutcomeUnknown) as error:
        raise click.ClickException(
            f"{error}\nRun the same command again: it goes on where the {what} stopped, and lands nothing twice."
        ) from error


def print_columns(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """On standard output, in columns. What a narrow terminal cannot hold in a line it may break; no name is cut."""
    shown = Table(box=None, pad_edge=False)
    for title in titles:
        shown.add_column(title, no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    Console(width=_WIDTH_CHARACTERS, soft_wrap=True).print(shown)


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
