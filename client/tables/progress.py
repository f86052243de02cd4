"""How far a command has come, on standard error: a live line on a terminal, a line at each landing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def shown(written: str) -> Iterator[Callable[[int, bool], None]]:
    """What is to be told the rows so far, and whether all of these are safe; ``written``: what is done to rows."""
    with lines(f"no rows {written} yet") as tell:
        yield lambda rows, landed: tell(f"{rows:,} rows {'have landed' if landed else written}", landed)


@contextmanager
def lines(first: str) -> Iterator[Callable[[str, bool], None]]:
    """What is to be told how things are, and whether that is a step that counts; elsewhere only these are shown."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    live = Progress(*columns, console=console, transient=True)
    with live if console.is_terminal else nullcontext():  # one only disabled ends in an empty line, before rich 14.3
        task = live.add_task(first, total=None)

        def tell(text: str, counts: bool) -> None:
            live.update(task, description=text)
            if counts and not console.is_terminal:
                click.echo(text, err=True)

        yield tell
