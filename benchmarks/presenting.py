"""Where results go: a table to standard output, a picture, one JSON object on the last line."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
from rich.console import Console

from benchmarks import comparison_table, plot
from benchmarks.comparison import Comparison
from benchmarks.contest import Series, Tell
from benchmarks.machine import describe_machine
from benchmarks.options import Asked

TABLE_WIDTH_CHARACTERS = 190
"""A narrow terminal may break the lines; a number is never cut short."""


def prefixed(name: str) -> Tell:
    """Progress, to standard error."""
    return lambda line: click.echo(f"{name}: {line}", err=True)


def check(asked: Asked) -> None:
    """Raise ``SideError`` where the results could not be handed back in the end."""
    if asked.plot is not None:
        plot.require_plotting(asked.plot)


def present(
    title: str,
    comparisons: Sequence[Comparison],
    asked: Asked,
    *,
    axis: str | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Hand the results back in every form that was asked for.

    ``axis``: what the cases are steps of, if they are. Raises ``SideError`` where the picture cannot be written.
    """
    Console(width=TABLE_WIDTH_CHARACTERS).print(comparison_table.table(title, comparisons))
    for note in notes:
        click.echo(note)
    if asked.plot is not None:
        plot.draw(asked.plot, title, distinct(comparisons), axis=axis)
    if asked.as_json:
        cases = [comparison.to_fields() for comparison in comparisons]
        click.echo(json.dumps({"cases": cases, "machine": describe_machine()}))


def distinct(comparisons: Sequence[Comparison]) -> list[Series]:
    """Each series once, in the order of the table."""
    pairs = ((comparison.beside, comparison.ours) for comparison in comparisons)
    return list({series.side: series for pair in pairs for series in pair}.values())
