"""Steps of progress as one line on a terminal, which is gone at the end. Elsewhere nothing is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich import progress
from rich.console import Console

from devcluster.settings import Progress, Step


@contextmanager
def live_line(console: Console) -> Iterator[Progress]:
    """What is to be told each step; ``console``: where the line is."""
    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.BarColumn(20),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    )
    live = progress.Progress(*columns, console=console, transient=True)
    with live if console.is_terminal else nullcontext():  # one only disabled ends in an empty line, before rich 14.3
        task = live.add_task("beginning", total=None)

        def show(step: Step) -> None:
            live.update(task, description=step.text, completed=step.done, total=step.total or None)

        yield show
