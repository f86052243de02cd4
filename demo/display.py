"""What a person sees while the demo runs: live bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from demo.report import Phase
from devcluster import Step


class Display:
    """Bars, lines and the times of the phases. A context manager, since the bars are redrawn by a thread."""

    def __init__(self, console: Console) -> None:
        self.phases: list[Phase] = []
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    def __enter__(self) -> Display:
        if self.is_live:  # one that is only disabled ends in an empty line, before rich 14.3
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.is_live:
            self._progress.stop()

    @property
    def is_live(self) -> bool:
        """Whether bars are seen at all."""
        return self._console.is_terminal

    def line(self, text: str) -> None:
        """A line that stays."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, what: RenderableType) -> None:
        """A table or the like that stays."""
        self._console.print(what)

    @contextmanager
    def phase(self, title: str) -> Iterator[Phase]:
        """Time a phase, with a bar while it lasts and a line at its end."""
        phase = Phase(title)
        started = time.monotonic()
        with self.bar(title):
            yield phase
        phase.seconds = time.monotonic() - started
        self.phases.append(phase)
        self.line(f"{title}: {phase.seconds:.1f} s")

    @contextmanager
    def bar(self, text: str, total: int | None = None) -> Iterator[Bar]:
        """A bar that goes when the block ends."""
        task = self._progress.add_task(text, total=total)
        try:
            yield Bar(self._progress, task)
        finally:
            self._progress.remove_task(task)

    @contextmanager
    def steps(self) -> Iterator[Steps]:
        """Shows the steps of the development cluster."""
        with self.bar("") as bar:
            bar.hide()
            yield Steps(self, bar)


class Bar:
    """One bar."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def set(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Say something else; a hidden bar is seen again."""
        self._progress.update(self._task, description=text, completed=done, total=total, visible=True)

    def hide(self) -> None:
        """Do not show it until it says something else."""
        self._progress.update(self._task, visible=False)


class Steps:
    """Shows each step of the development cluster: on the bar, and once as a line where there are no bars."""

    def __init__(self, display: Display, bar: Bar) -> None:
        self._display = display
        self._bar = bar
        self._told: set[str] = set()

    def done(self) -> None:
        """No step is under way."""
        self._bar.hide()

    def __call__(self, step: Step) -> None:
        """Take a step."""
        self._bar.set(step.text, step.done, step.total or None)
        if step.text not in self._told and not self._display.is_live:
            self._display.line(f"  {step.text}")
        self._told.add(step.text)
