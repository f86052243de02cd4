"""How far a command has come, on standard error: a live line on a terminal, a line at each landing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def shown(written: str) -> Iterator[Callable[[int, bool], None]]:
    """What is to be told the rows so far, and whether all of these are safe; ``written``: what is done to rows."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as live:
        task = live.add_task(f"no rows {written} yet", total=None)

        def tell(rows: int, landed: bool) -> None:
            live.update(task, description=f"{rows:,} rows {'have landed' if landed else written}")
            if landed and not console.is_terminal:
                click.echo(f"{rows:,} rows have landed", err=True)

        yield tell
